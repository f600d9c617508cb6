package eval

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestEvidence: which part of a scenario is in which digest.
func TestEvidence(t *testing.T) {
	made := func() *scenarios.BoundScenario {
		return &scenarios.BoundScenario{Settings: scenarios.Settings{Duration: time.Hour, Intensity: 1}, Workloads: make([]scenarios.Workload, 1),
			Templates: make([]policy.Template, 1), PDBs: make([]policy.PDB, 1), Markets: make([]policy.Market, 1), Pools: make([]policy.Pool, 1)}
	}
	base := EvidenceOf(made())
	for name, c := range map[string]struct {
		change             func(*scenarios.BoundScenario)
		conditions, demand bool
	}{
		"nothing":      {func(*scenarios.BoundScenario) {}, false, false},
		"the file":     {func(w *scenarios.BoundScenario) { w.Digest[3]++ }, false, false},
		"the policy":   {func(w *scenarios.BoundScenario) { w.Pools[0].Policy = "portfolio" }, false, false},
		"a toleration": {func(w *scenarios.BoundScenario) { w.Templates[0].Tolerations = make([]policy.Toleration, 1) }, false, false},
		"the trace":    {func(w *scenarios.BoundScenario) { w.TraceDigest[3]++ }, true, false},
		"the week":     {func(w *scenarios.BoundScenario) { w.Start += 1000 }, true, false},
		"warm-up":      {func(w *scenarios.BoundScenario) { w.WarmUp = time.Hour }, true, false},
		"intensity":    {func(w *scenarios.BoundScenario) { w.Intensity = 2 }, true, false},
		"slots":        {func(w *scenarios.BoundScenario) { w.Slots = 9 }, true, false},
		"a fault":      {func(w *scenarios.BoundScenario) { w.Faults = make([]scenarios.Fault, 1) }, true, false},
		"replicas":     {func(w *scenarios.BoundScenario) { w.Workloads[0].Schedule = []scenarios.ReplicaStep{{Replicas: 2}} }, false, true},
		"requests":     {func(w *scenarios.BoundScenario) { w.Templates[0].Requests.CPU = 100 }, false, true},
		"a job":        {func(w *scenarios.BoundScenario) { w.Workloads[0].Job = &scenarios.Job{} }, false, true},
		"penalty":      {func(w *scenarios.BoundScenario) { w.Workloads[0].OutagePenalty = 4 }, false, true},
		"a PDB":        {func(w *scenarios.BoundScenario) { w.PDBs[0].MinAvailable.Set = true }, false, true},
		"ready grace":  {func(w *scenarios.BoundScenario) { w.ReadyGrace = time.Minute }, false, true},
	} {
		w := made()
		c.change(w)
		got := EvidenceOf(w)
		if (got.Conditions != base.Conditions) != c.conditions || (got.Demand != base.Demand) != c.demand {
			t.Errorf("%s: conditions differ %t, want %t; demand differs %t, want %t", name,
				got.Conditions != base.Conditions, c.conditions, got.Demand != base.Demand, c.demand)
		}
	}
}
