package sim

import (
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/spotter-dev/spotter/policy"
)

// refreshBudgets sets which disruption budgets of pool are in force now. The
// list is shared with snapshots and with other runs, so a change makes a new
// one.
func (pl *pools) refreshBudgets(pool policy.PoolID) {
	p := &pl.all[pool]
	for i := range p.Budgets {
		b := &p.Budgets[i]
		if active := b.Schedule == "" || inForce(b.Schedule, b.Duration, pl.q.Now); active != b.Active {
			p.Budgets = slices.Clone(p.Budgets)
			p.Budgets[i].Active = active
		}
	}
}

// inForce reports whether an interval of the given length, begun by the schedule
// (cron, UTC), covers t. A schedule that does not parse was refused when the
// scenario was read.
func inForce(schedule string, length time.Duration, t policy.Time) bool {
	s, err := cron.ParseStandard(schedule)
	if err != nil {
		return true // the stricter reading
	}
	// The first begin after (t − length) is at or before t exactly when a
	// interval is on.
	return !s.Next(t.Add(-length).Std()).After(t.Std())
}
