package cluster

import (
	"github.com/spotter-dev/spotter/policy"
)

// DisruptionBudgets are the PodDisruptionBudgets of the cluster.
type DisruptionBudgets struct {
	*Cluster

	All []policy.PDB
	of  [][]policy.WorkloadID // by budget, the workloads that it covers
}

// Update recomputes the status of the PodDisruptionBudgets of workload w, as the disruption
// controller does.
func (db *DisruptionBudgets) Update(w policy.WorkloadID) {
	for _, p := range db.Scenario.Templates[w].PDBs {
		b := &db.All[p]
		b.Healthy, b.Expected = 0, 0
		for _, x := range db.of[p] {
			b.Healthy += db.Serving.Of[x].seen
			b.Expected += db.expected(x)
		}
		b.Desired = b.Required(b.Expected)
		b.Allowed = max(0, b.Healthy-b.Desired)
	}
	if len(db.Scenario.Templates[w].PDBs) > 0 {
		db.PDBsChanged.Publish(w)
	}
}

// expected returns the scale of a workload as a PodDisruptionBudget counts it.
func (db *DisruptionBudgets) expected(w policy.WorkloadID) int32 {
	if db.Scenario.Workloads[w].Kind == policy.KindJob {
		return db.Workloads.State[w].Active
	}
	return db.Serving.Of[w].wanted
}

// Allows reports whether PodDisruptionBudget b allows the eviction of a pod in the given phase.
func (db *DisruptionBudgets) Allows(b policy.PDBID, phase policy.PodPhase) bool {
	x := &db.All[b]
	if phase == policy.PodReady {
		return x.Allowed > 0
	}
	return x.AlwaysAllowUnhealthy || x.Allowed > 0 || x.Healthy >= x.Desired && x.Desired > 0
}
