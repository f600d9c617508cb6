package gpubudget

import (
	"github.com/spotter-dev/spotter/policy"
)

// An Outlook describes one budget beyond its memory: what counts now and when its gate would open.
type Outlook struct {
	// Pods is the number of pods that hold devices, which are Devices thousandths
	// of a device and cost PerHour.
	Pods    int
	Devices int64
	PerHour policy.Money

	// Uncounted is the number of pods that the budget selects and that hold devices of
	// which the number is not known. Such is the first of them by name.
	Uncounted int
	Such      string

	// Reopens is when the budget will have room again, zero if that is unknown or more than a
	// window away. Like the decision, it assumes that pods end where they are evicted, and keep
	// running elsewhere.
	Reopens policy.Time
}

// Look returns the outlooks at s.Now of budgets, which are of s. memory says what the
// decision on s remembers of each; cfg is that of the decision.
func Look(cfg Config, s *policy.Snapshot, budgets []policy.Budget,
	memory func(budget string) *policy.BudgetMemory) []Outlook {
	var x index
	x.build(s.Templates, budgets)
	tallies, all := make([]tally, len(budgets)), make([]Outlook, len(budgets))
	for i := range budgets {
		tallies[i].budget = &budgets[i]
		if m := memory(budgets[i].Name); m != nil {
			tallies[i].next, tallies[i].ledger = *m, m.Buckets
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if !holds(p) {
			continue
		}
		if t := &s.Templates[p.Template]; t.Uncounted {
			x.found = x.selectors.Candidates(x.found, t.Namespace, t.Labels)
			for _, k := range x.found {
				all[k].uncounted(&budgets[k], t, p)
			}
		}
		for _, c := range x.of[p.Template] {
			t := &tallies[c.at]
			t.now = t.now.plus(rate{c.n, t.price(s, &s.Nodes[p.Node], c.n)})
			all[c.at].Pods++
		}
	}
	e := enforcement{cfg: &cfg, s: s}
	for i := range tallies {
		t := &tallies[i]
		all[i].Devices, all[i].PerHour = t.now.devices, t.now.cost
		if !t.budget.Invalid {
			all[i].Reopens = e.reopens(t, s.Now.Add(t.budget.Window))
		}
	}
	return all
}

// uncounted notes a pod that holds devices of which the number is not known.
func (o *Outlook) uncounted(b *policy.Budget, t *policy.Template, p *policy.Pod) {
	if b.Resource == "cpu" || !b.Selector.Matches(t.Labels) {
		return
	}
	if o.Uncounted++; o.Such == "" || p.Name < o.Such {
		o.Such = p.Name
	}
}
