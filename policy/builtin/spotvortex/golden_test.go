package spotvortex_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/workload"
)

func TestGoldenPolicy(t *testing.T) {
	var file struct {
		Configs map[string]json.RawMessage `json:"configs"`
		Vectors []struct {
			Config   string              `json:"config"`
			State    spotvortex.State    `json:"state"`
			Safety   workload.PoolSafety `json:"pool_safety"`
			Capacity float64             `json:"capacity_score"`
			Runtime  float64             `json:"runtime_score"`
			Want     struct {
				Action      string             `json:"action"`
				Reason      string             `json:"reason"`
				Mode        spotvortex.Mode    `json:"response_mode"`
				Urgency     spotvortex.Urgency `json:"urgency"`
				Composite   float64            `json:"composite_risk"`
				FeatureCap  float64            `json:"feature_cap"`
				WorkloadCap float64            `json:"workload_cap"`
				Cap         float64            `json:"effective_cap"`
				Outside     bool               `json:"is_ood"`
				Reasons     []string           `json:"ood_reasons"`
			} `json:"want"`
		} `json:"vectors"`
	}
	if err := json.Unmarshal(policytest.Golden(t, "spotvortex_policy.json"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatal("the file holds no vector")
	}
	configs := map[string]*spotvortex.Config{}
	for name, data := range file.Configs {
		c, err := spotvortex.ParseRuntime(data, nil)
		if err != nil {
			t.Fatalf("configuration %s: %v", name, err)
		}
		configs[name] = &c
	}
	for i, v := range file.Vectors {
		cfg := configs[v.Config]
		if cfg == nil {
			t.Fatalf("vector %d: there is no configuration %q", i, v.Config)
		}
		d, w := spotvortex.Evaluate(cfg, v.State, v.Safety, v.Capacity, v.Runtime), v.Want
		if d.Action.String() != w.Action || d.Reason != w.Reason || d.Mode != w.Mode || d.Urgency != w.Urgency ||
			!near(d.Composite, w.Composite) || !near(d.FeatureCap, w.FeatureCap) ||
			!near(d.WorkloadCap, w.WorkloadCap) || !near(d.Cap, w.Cap) ||
			(d.Outside != 0) != w.Outside || !slices.Equal(d.Outside.Names(), w.Reasons) {
			t.Errorf("vector %d (%s): got %+v %v\nwant %+v", i, v.Config, d, d.Outside.Names(), w)
		}
	}
	t.Logf("%d vectors", len(file.Vectors))
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }
