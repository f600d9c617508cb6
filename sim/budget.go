package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// refreshBudgets sets which disruption budgets of pool are in force now. The
// list is shared with snapshots and with other runs, so a change makes a new
// one.
func (pl *pools) refreshBudgets(pool policy.PoolID) {
	p := &pl.all[pool]
	for i := range p.Budgets {
		b := &p.Budgets[i]
		if active := kube.InForce(b, pl.q.Now); active != b.Active {
			p.Budgets = slices.Clone(p.Budgets)
			p.Budgets[i].Active = active
		}
	}
}
