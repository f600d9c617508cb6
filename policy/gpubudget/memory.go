package gpubudget

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// absentMax is the maximum number of budgets of a namespace that are remembered although no
// snapshot contains them, so that creating and deleting budgets does not fill the memory.
const absentMax = 100

// memories returns the budget memories after the decision in ascending order of name: those of the
// budgets in the snapshot, and for some time those of budgets that are missing from it.
func (e *enforcement) memories() []policy.BudgetMemory {
	all := make([]policy.BudgetMemory, 0, len(e.tallies))
	for i := range e.tallies {
		all = append(all, e.tallies[i].next)
	}
	namespace, absent := "", 0
	for _, old := range e.before.Budgets {
		if _, found := e.find(old.Name); found || len(old.Buckets) == 0 {
			continue
		}
		if of, _, _ := strings.Cut(old.Name, "/"); of != namespace {
			namespace, absent = of, 0
		}
		if old.Absent == 0 {
			old.Absent = e.s.Now
		}
		if absent++; absent <= absentMax && e.s.Now < old.Absent.Add(e.cfg.Absent) {
			all = append(all, old)
		}
	}
	slices.SortFunc(all, func(a, b policy.BudgetMemory) int { return cmp.Compare(a.Name, b.Name) })
	if len(all) == 0 {
		return nil
	}
	return all
}

// notAfter moves times in m that are after now back to now, since they were recorded by a clock
// that was ahead: nothing waits for them, and use counts from now.
func notAfter(m *policy.BudgetMemory, now policy.Time) {
	m.Counted, m.Over, m.Ordered, m.Enforced = min(m.Counted, now), min(m.Over, now), min(m.Ordered,
		now), min(m.Enforced, now)
	if slices.ContainsFunc(m.Asked, func(a policy.AskedPod) bool { return a.At > now }) {
		m.Asked = slices.Clone(m.Asked)
		for i := range m.Asked {
			m.Asked[i].At = min(m.Asked[i].At, now)
		}
	}
	for n := len(m.Buckets); n > 0 && m.Buckets[n-1].Hour > now; n = len(m.Buckets) {
		last := m.Buckets[n-1]
		l := append(ledger{}, m.Buckets[:n-1]...)
		b := l.bucket(now - now%msPerHour)
		b.Used, b.Cost = b.Used+last.Used, b.Cost+last.Cost
		m.Buckets = l
	}
}
