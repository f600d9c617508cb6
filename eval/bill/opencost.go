package bill

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A Set contains the allocations of one period, by name.
type Set map[string]Allocation

// Properties are common to all pods of an allocation.
type Properties struct {
	Node           string            `json:"node,omitempty"`
	Controller     string            `json:"controller,omitempty"`
	ControllerKind string            `json:"controllerKind,omitempty"`
	Namespace      string            `json:"namespace,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
}

// A Window is the interval that a set describes.
type Window struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// An Allocation contains the fields of an OpenCost allocation that are known here, with OpenCost's
// meaning. Usage beyond requests, networks, load balancers and volumes are unknown. Costs are in
// dollars; averages are over Minutes.
type Allocation struct {
	Name       string     `json:"name"`
	Properties Properties `json:"properties"`
	Window     Window     `json:"window"`
	Start      string     `json:"start"`
	End        string     `json:"end"`
	Minutes    float64    `json:"minutes"`

	CPUCores              float64 `json:"cpuCores"`
	CPUCoreRequestAverage float64 `json:"cpuCoreRequestAverage"`
	CPUCoreHours          float64 `json:"cpuCoreHours"`
	CPUCost               float64 `json:"cpuCost"`

	GPUCount float64 `json:"gpuCount"`
	GPUHours float64 `json:"gpuHours"`
	GPUCost  float64 `json:"gpuCost"`

	RAMBytes              float64 `json:"ramBytes"`
	RAMByteRequestAverage float64 `json:"ramByteRequestAverage"`
	RAMByteHours          float64 `json:"ramByteHours"`
	RAMCost               float64 `json:"ramCost"`

	TotalCost float64 `json:"totalCost"`
}

// allocationOf returns a portion in OpenCost's format. Idle has no requests.
func allocationOf(name string, p *portion, cost [3]policy.Money, window billing.Span) Allocation {
	ran := p.to.Sub(p.from)
	var average amount
	if ran > 0 {
		for k := range average {
			average[k] = p.held[k] / ran.Hours()
		}
	}
	a := Allocation{
		Name: name, Properties: p.properties, Window: Window{rfc3339(window.From),
			rfc3339(window.To)}, Start: rfc3339(p.from), End: rfc3339(p.to), Minutes: ran.Minutes(),
		CPUCores: average[0], CPUCoreHours: p.held[0], CPUCost: cost[0].Float(),
		RAMBytes: average[1], RAMByteHours: p.held[1], RAMCost: cost[1].Float(),
		GPUCount: average[2], GPUHours: p.held[2], GPUCost: cost[2].Float(),
		TotalCost: (cost[0] + cost[1] + cost[2]).Float(),
	}
	if name != Idle {
		a.CPUCoreRequestAverage, a.RAMByteRequestAverage = average[0], average[1]
	}
	return a
}

func rfc3339(t policy.Time) string { return t.Std().Format(time.RFC3339) }

// WriteOpenCost writes sets in the format of OpenCost's /allocation API.
func WriteOpenCost(w io.Writer, sets []Set) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Code int   `json:"code"`
		Data []Set `json:"data"`
	}{http.StatusOK, sets})
}
