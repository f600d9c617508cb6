package gpubudget

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// absentMax bounds how many budgets of a namespace are remembered that no snapshot has, so
// that making and deleting budgets does not fill the memory.
const absentMax = 100

// memories returns what is remembered after the decision, ascending by name: of the budgets
// of the snapshot, and of those that are missing from it for a while longer.
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

// notAfter moves the instants of m that are after now to it, since the clock was ahead when
// they were noted: nothing waits for them, and what was used counts from now.
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
