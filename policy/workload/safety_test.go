package workload_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/workload"
)

func TestGoldenPoolSafety(t *testing.T) {
	var vectors []struct {
		In struct {
			OnDemandNodes  int `json:"od_nodes"`
			Pods           int `json:"workload_pods"`
			Stateful       int `json:"stateful_pods"`
			Evictable      int `json:"evictable_pods"`
			Critical       int `json:"critical_pods"`
			CriticalOnSpot int `json:"critical_on_spot"`
			PDBs           []struct {
				Allowed     int            `json:"disruptions_allowed"`
				PodsPerNode map[string]int `json:"pods_per_node"`
			} `json:"pdbs"`
			Utilization float64 `json:"utilization"`
			Zones       int     `json:"zone_count"`
			Restart     float64 `json:"restart_p95_seconds"`
		} `json:"in"`
		Want workload.PoolSafety `json:"want"`
	}
	if err := json.Unmarshal(policytest.Golden(t, "spotvortex_poolsafety.json"), &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("the file holds no vector")
	}
	for i, v := range vectors {
		in := workload.SafetyInput{
			OnDemandNodes: v.In.OnDemandNodes, Pods: v.In.Pods, Stateful: v.In.Stateful,
			Evictable: v.In.Evictable, Critical: v.In.Critical, CriticalOnSpot: v.In.CriticalOnSpot,
			Utilization: v.In.Utilization, ZoneCount: v.In.Zones, Restart: v.In.Restart,
		}
		for _, b := range v.In.PDBs {
			spread := workload.BudgetSpread{Allowed: b.Allowed}
			for _, n := range b.PodsPerNode {
				switch {
				case n > spread.Most:
					spread.Most, spread.Second = n, spread.Most
				case n > spread.Second:
					spread.Second = n
				}
			}
			in.Budgets = append(in.Budgets, spread)
		}
		if got := workload.Safety(in, true); !near(got, v.Want) {
			t.Errorf("vector %d: got %+v\nwant %+v", i, got, v.Want)
		}
	}
	t.Logf("%d vectors", len(vectors))
}

func near(a, b workload.PoolSafety) bool {
	x, y := fields(a), fields(b)
	for i := range x {
		if math.Abs(x[i]-y[i]) > 1e-12 {
			return false
		}
	}
	return true
}

func fields(p workload.PoolSafety) [10]float64 {
	return [10]float64{p.CriticalOnSpot, p.Slack1, p.Slack2, p.Stateful, p.Restart,
		p.Risk, p.SpareOnDemand, p.Zones, p.Evictable, p.SafeMax}
}
