package budget

import (
	"github.com/spotter-dev/spotter/policy"
)

// An Outlook is what can be told of one budget besides its memory: what counts now
// and when its gate would open.
type Outlook struct {
	// Pods is the number of pods that hold devices, which are Devices thousandths
	// of a device and cost PerHour.
	Pods    int
	Devices int64
	PerHour policy.Money

	// Reopens is when there will be room again, zero where that cannot be told or
	// is more than a window away. As the decision does, it takes the pods to go
	// where they are made to, and to go on where they are not.
	Reopens policy.Time
}

// Look returns the outlook of b at s.Now. m is what the decision on s remembers of
// it; cfg is that of the decision.
func Look(cfg Config, s *policy.Snapshot, b *policy.Budget, m *policy.BudgetMemory) Outlook {
	t := tally{budget: b, next: *m, ledger: m.Buckets}
	var o Outlook
	for i := range s.Pods {
		p := &s.Pods[i]
		if !holds(p) {
			continue
		}
		n := b.Counts(&s.Templates[p.Template])
		if n == 0 {
			continue
		}
		o.Pods++
		t.now = t.now.plus(rate{n, t.price(s, &s.Nodes[p.Node], n)})
	}
	o.Devices, o.PerHour = t.now.devices, t.now.cost
	e := enforcement{cfg: &cfg, s: s}
	o.Reopens = e.reopens(&t, s.Now.Add(b.Window))
	return o
}
