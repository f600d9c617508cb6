package capture

import (
	"bytes"
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/manifest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// A Run is the prices and the interval of a run of a scenario.
type Run struct {
	// Start is the time at which metering starts, Duration is the length of the metered interval,
	// and WarmUp is the length of the interval before it, which starts with the cluster as it was
	// captured.
	Start            policy.Time
	Duration, WarmUp time.Duration

	// Trace is the path of the prices, relative to the folder of the scenario.
	Trace string

	// Head are comment lines for the head of the file.
	Head []string

	// Intensity is the factor for the modelled rate of reclaims; nil leaves the rate unchanged.
	Intensity *float64

	// Compared are the lines of a table that compares the simulation with the history, and
	// Deviation summarises it. Both are empty if there is no comparison.
	Compared  []string
	Deviation string
}

// A scenario is the Scenario object, with its fields in the order of reading.
type scenario struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
}

type spec struct {
	Start       string       `json:"start"`
	Duration    string       `json:"duration"`
	WarmUp      string       `json:"warmUp"`
	Trace       string       `json:"trace"`
	Nodes       []seed       `json:"nodes,omitempty"`
	Commitments []commitment `json:"commitments,omitempty"`
	Market      *market      `json:"market,omitempty"`
}

type market struct {
	Intensity *float64 `json:"intensity"`
}

// Write returns the scenario as a file: the assumptions and omissions as comments, then the
// Scenario object, then the manifests.
func (c *Captured) Write(r Run) ([]byte, error) {
	var b bytes.Buffer
	for _, line := range r.Head {
		manifest.Comment(&b, "# ", "#  ", line)
	}
	for _, a := range c.Assumed {
		manifest.Comment(&b, "# Assumed: ", "#  ", a)
	}
	for _, l := range c.Left {
		manifest.Comment(&b, "# Left out: ", "#  ", l)
	}
	for _, line := range r.Compared {
		b.WriteString("# " + line + "\n")
	}
	mark := map[string]string{scenarios.AnnotationCaptured: c.at.Std().Format(time.RFC3339)}
	if r.Deviation != "" {
		mark[scenarios.AnnotationDeviation] = r.Deviation
	}
	var m *market
	if r.Intensity != nil {
		m = &market{r.Intensity}
	}
	all := append([]any{&scenario{"spotter.dev/v1alpha1", "Scenario", metadata{c.name, mark}, spec{
		Start: r.Start.Std().Format(time.RFC3339), Duration: r.Duration.String(), WarmUp: r.WarmUp.String(), Trace: r.Trace,
		Nodes: c.seeds, Commitments: c.commitments, Market: m,
	}}}, c.objects...)
	for i, o := range all {
		if i > 0 {
			b.WriteString("---\n")
		}
		write := manifest.Write
		if _, ok := o.(*nodeClass); ok { // including its status
			write = manifest.WriteWhole
		}
		if err := write(&b, o); err != nil {
			return nil, fmt.Errorf("writing a %T: %w", o, err)
		}
	}
	return b.Bytes(), nil
}
