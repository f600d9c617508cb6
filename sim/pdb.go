package sim

import (
	"github.com/spotter-dev/spotter/policy"
)

// disruptionBudgets are the PodDisruptionBudgets of the cluster.
type disruptionBudgets struct {
	*environment
	observer  *observer
	serving   *serving
	workloads *workloads

	all []policy.PDB
	of  [][]policy.WorkloadID // by budget, the workloads that it covers
}

// update brings the status of the budgets of workload w up to date, as the
// disruption controller does.
func (db *disruptionBudgets) update(w policy.WorkloadID) {
	for _, p := range db.scenario.Templates[w].PDBs {
		b := &db.all[p]
		b.Healthy, b.Expected = 0, 0
		for _, x := range db.of[p] {
			b.Healthy += db.serving.of[x].seen
			b.Expected += db.expected(x)
		}
		b.Desired = b.Required(b.Expected)
		b.Allowed = max(0, b.Healthy-b.Desired)
		db.observer.pdbsDirty = [2]bool{true, true}
	}
}

// expected is the scale of a workload as a budget counts it.
func (db *disruptionBudgets) expected(w policy.WorkloadID) int32 {
	if db.scenario.Workloads[w].Kind == policy.KindJob {
		return db.workloads.state[w].active
	}
	return db.serving.of[w].wanted
}
