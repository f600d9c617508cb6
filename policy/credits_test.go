package policy

import "testing"

// TestExpectedSurplus: a node is taken to be full of pods like those of the cluster, by CPU or by
// memory, whichever ends first.
func TestExpectedSurplus(t *testing.T) {
	const gib = int64(1) << 30
	s := &Snapshot{
		Types: []InstanceType{
			{VCPU: 2, Allocatable: Resources{CPU: 1900, Memory: 8 * gib}, Credits: CPUCredits{Baseline: 400, Surplus: 50_000}},
			{VCPU: 2, Allocatable: Resources{CPU: 1900, Memory: gib}, Credits: CPUCredits{Baseline: 400, Surplus: 50_000, Standard: true}},
			{VCPU: 2, Allocatable: Resources{CPU: 1900, Memory: 8 * gib}},
		},
		Markets:   []Market{{Type: 0}, {Type: 1}, {Type: 2}},
		Pools:     []Pool{{Fees: NodeFees{Fee: 7000}}},
		Workloads: []Workload{{Replicas: 3}, {Replicas: 1}},
		Templates: []Template{
			{Workload: 0, Requests: Resources{CPU: 1000, Memory: gib}, CPUUse: 500},
			{Workload: 1, Requests: Resources{CPU: 1000, Memory: 5 * gib}, CPUUse: 2500},
			{Workload: None, Requests: Resources{CPU: 9000}, CPUUse: 9000},
		},
	}
	s.EstimateUse()
	if want := (CPUUse{4000, 4000, 8 * gib}); s.Use != want {
		t.Fatalf("%+v, want %+v", s.Use, want)
	}
	// 1.9 cores are used of the first, 1.5 beyond its baseline; half a core fits the second.
	for m, want := range []Money{7000 + 75_000, 7000 + 5000, 7000} {
		if got := s.Fees(0, MarketID(m)); got != want {
			t.Errorf("market %d: %v, want %v", m, got, want)
		}
	}
	if got := s.Fees(None, 0); got != 75_000 {
		t.Errorf("a node of no pool costs %v more", got)
	}
	if got := s.Fees(0, None); got != 7000 {
		t.Errorf("a node of no market costs %v more", got)
	}
	if got := s.WithoutFees().Fees(0, 0); got != 0 {
		t.Errorf("a provisioner sees %v", got)
	}
	s.Pools[0].Fees = NodeFees{}
	if got := s.WithoutFees().Fees(0, 0); got != 0 || s.Fees(0, 0) != 75_000 {
		t.Errorf("a provisioner sees %v of %v", got, s.Fees(0, 0))
	}
}
