package eval

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestGrounds: which part of a world is told by which digest.
func TestGrounds(t *testing.T) {
	world := func() *scenarios.World {
		return &scenarios.World{Duration: time.Hour, Intensity: 1, Workloads: make([]scenarios.Workload, 1),
			Templates: make([]policy.Template, 1), PDBs: make([]policy.PDB, 1), Markets: make([]policy.Market, 1), Pools: make([]policy.Pool, 1)}
	}
	base := groundsOf(world())
	for name, c := range map[string]struct {
		change             func(*scenarios.World)
		conditions, demand bool
	}{
		"nothing":      {func(*scenarios.World) {}, false, false},
		"the file":     {func(w *scenarios.World) { w.Digest[3]++ }, false, false},
		"the policy":   {func(w *scenarios.World) { w.Pools[0].Policy = "portfolio" }, false, false},
		"a toleration": {func(w *scenarios.World) { w.Templates[0].Tolerations = make([]policy.Toleration, 1) }, false, false},
		"the trace":    {func(w *scenarios.World) { w.TraceDigest[3]++ }, true, false},
		"the week":     {func(w *scenarios.World) { w.Start += 1000 }, true, false},
		"warm-up":      {func(w *scenarios.World) { w.WarmUp = time.Hour }, true, false},
		"intensity":    {func(w *scenarios.World) { w.Intensity = 2 }, true, false},
		"slots":        {func(w *scenarios.World) { w.Slots = 9 }, true, false},
		"a fault":      {func(w *scenarios.World) { w.Faults = make([]scenarios.Fault, 1) }, true, false},
		"replicas":     {func(w *scenarios.World) { w.Workloads[0].Schedule = []scenarios.ReplicaStep{{Replicas: 2}} }, false, true},
		"requests":     {func(w *scenarios.World) { w.Templates[0].Requests.CPU = 100 }, false, true},
		"a job":        {func(w *scenarios.World) { w.Workloads[0].Job = &scenarios.Job{} }, false, true},
		"penalty":      {func(w *scenarios.World) { w.Workloads[0].OutagePenalty = 4 }, false, true},
		"a PDB":        {func(w *scenarios.World) { w.PDBs[0].MinAvailable.Set = true }, false, true},
		"ready grace":  {func(w *scenarios.World) { w.ReadyGrace = time.Minute }, false, true},
	} {
		w := world()
		c.change(w)
		got := groundsOf(w)
		if (got.conditions != base.conditions) != c.conditions || (got.demand != base.demand) != c.demand {
			t.Errorf("%s: conditions differ %t, want %t; demand differs %t, want %t", name,
				got.conditions != base.conditions, c.conditions, got.demand != base.demand, c.demand)
		}
	}
}
