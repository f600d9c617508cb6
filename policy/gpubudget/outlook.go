package gpubudget

import (
	"github.com/spotter-dev/spotter/policy"
)

// An Outlook describes one budget beyond its memory: what counts now and when its gate would open.
type Outlook struct {
	// Pods is the number of pods that hold devices, Devices the number of these devices in
	// thousandths, and PerHour their cost per hour.
	Pods    int
	Devices int64
	PerHour policy.Money

	// Uncounted is the number of pods that the budget selects and that hold an unknown number of
	// devices. Such is the name of the first of them in ascending order.
	Uncounted int
	Such      string

	// Reopens is when the budget will have room again; zero if that is unknown or more than a
	// window away. Like the decision, it assumes that evicted pods end, and that other pods keep
	// running.
	Reopens policy.Time
}

// Look returns the outlooks at s.Now of budgets, which must be budgets of s. memory returns the
// memory of a budget after the decision on s, or nil; cfg is the configuration of that decision.
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

// uncounted counts a pod that holds an unknown number of devices.
func (o *Outlook) uncounted(b *policy.Budget, t *policy.Template, p *policy.Pod) {
	if b.Resource == "cpu" || !b.Selector.Matches(t.Labels) {
		return
	}
	if o.Uncounted++; o.Such == "" || p.Name < o.Such {
		o.Such = p.Name
	}
}
