package placement_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

type goldenPacking struct {
	Pods []struct {
		Name    string  `json:"name"`
		CPU     int64   `json:"cpu_milli"`
		Memory  int64   `json:"mem_mi"`
		Storage float64 `json:"storage_gi"`
	} `json:"pods"`
	Types []struct {
		Type    string  `json:"type"`
		CPU     float64 `json:"cpu"`
		Memory  float64 `json:"mem_gi"`
		Price   float64 `json:"price"`
		Storage float64 `json:"storage_gi"`
	} `json:"node_types"`
	Overhead *struct {
		CPU    int64 `json:"cpu_milli"`
		Memory int64 `json:"mem_mi"`
	} `json:"daemonset_overhead"`
	Want struct {
		Cost  float64 `json:"total_cost"`
		Error string  `json:"error"`
	} `json:"want"`
}

const gib = 1 << 30

func (g *goldenPacking) space() (*placement.Space, []policy.Pod, []placement.Offer) {
	var templates []policy.Template
	var pods []policy.Pod
	for i, p := range g.Pods {
		templates = append(templates, policy.Template{
			ID: policy.TemplateID(i), Workload: policy.None, Name: p.Name,
			Requests: policy.Resources{CPU: p.CPU, Memory: p.Memory << 20, Storage: int64(p.Storage * gib), Pods: 1},
		})
		pods = append(pods, policy.Pod{ID: policy.PodID(i), Template: policy.TemplateID(i), VolumeZone: policy.None})
	}
	if g.Overhead != nil {
		templates = append(templates, policy.Template{
			ID: policy.TemplateID(len(templates)), Workload: policy.None, Name: "daemon", DaemonSet: true,
			Requests: policy.Resources{CPU: g.Overhead.CPU, Memory: g.Overhead.Memory << 20, Pods: 1},
		})
	}
	var offers []placement.Offer
	for i, t := range g.Types {
		offers = append(offers, placement.Offer{
			Market: policy.MarketID(i), Price: policy.Dollars(t.Price),
			Allocatable: policy.Resources{
				CPU: int64(t.CPU * 1000), Memory: int64(t.Memory * gib), Storage: int64(t.Storage * gib), Pods: 1000,
			},
			Labels: []policy.Label{{Key: "node.kubernetes.io/instance-type", Value: t.Type + strconv.Itoa(i)}},
		})
	}
	return placement.New(templates, nil), pods, offers
}

// TestGoldenBinpack packs no case at a higher price than the packing that is stated for it.
func TestGoldenBinpack(t *testing.T) {
	var cases []goldenPacking
	if err := json.Unmarshal(policytest.Golden(t, "karpetrack_binpack.json"), &cases); err != nil {
		t.Fatal(err)
	}
	cheaper, packed := 0, 0
	for i := range cases {
		g := &cases[i]
		sp, pods, offers := g.space()
		p := placement.Pack(sp, pods, offers)
		if failed := len(p.Unplaced) > 0; failed != (g.Want.Error != "") {
			t.Errorf("case %d: %d pods unplaced, want error %q", i, len(p.Unplaced), g.Want.Error)
			continue
		}
		if g.Want.Error != "" {
			continue
		}
		packed++
		want := policy.Dollars(g.Want.Cost)
		if p.Total > want {
			t.Errorf("case %d: %d pods cost %v in %d bins, want at most %v", i, len(pods), p.Total, len(p.Bins), want)
		}
		if p.Total < want {
			cheaper++
		}
	}
	t.Logf("%d of %d packings are cheaper than stated", cheaper, packed)
}
