package budget

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Around returns p with budgets around it: what the budgets of a snapshot want
// is added to the plan of p, and drains of nodes whose pods would be kept out
// by a closed gate are taken from it.
//
// It panics when cfg is not valid; [Config.Validate] tells before.
func Around(p policy.Policy, cfg Config) policy.Policy {
	if err := cfg.Validate(); err != nil {
		panic(err.Error())
	}
	return &around{policy: p, cfg: cfg}
}

type around struct {
	policy policy.Policy
	cfg    Config

	// What follows is scratch: filled anew by each decision.
	tallies []tally
	counted []bool // by template: some budget counts its pods
	picked  []policy.PodID
	pods    []policy.Pod
}

// Name returns the name of the policy inside: budgets are the cluster's.
func (a *around) Name() string { return a.policy.Name() }

// Inside returns the policy that the budgets are around.
func (a *around) Inside() policy.Policy { return a.policy }

// Decide returns the plan of the policy inside and what the budgets want.
func (a *around) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan, next := a.policy.Decide(a.settled(s), m)
	if len(s.Budgets) == 0 && len(m.Budgets) == 0 {
		next.Budgets = nil
		return plan, next
	}
	return a.enforce(s, m, plan, next)
}

// settled returns s as the policy inside is to see it: the pods that a closed gate
// would not admit again are not to be disrupted, so that it looks for other nodes
// and does not plan the same drain again and again. Without a closed gate it is s.
func (a *around) settled(s *policy.Snapshot) *policy.Snapshot {
	x := s
	for i := range s.Budgets {
		b := &s.Budgets[i]
		if !b.Closed {
			continue
		}
		for k := range s.Pods {
			p := &s.Pods[k]
			if !holds(p) || p.Phase == policy.PodTerminating || b.Counts(&s.Templates[p.Template]) == 0 || s.Templates[p.Template].DaemonSet {
				continue
			}
			if x == s {
				a.pods = append(a.pods[:0], s.Pods...)
				x = new(policy.Snapshot)
				*x = *s
				x.Pods = a.pods
			}
			x.Pods[k].DoNotDisrupt = true
		}
	}
	return x
}

// enforce is apart from Decide so that a cluster without budgets, the usual one,
// costs no allocation.
func (a *around) enforce(s *policy.Snapshot, m policy.Memory, plan policy.Plan, next policy.Memory) (policy.Plan, policy.Memory) {
	a.survey(s, &m)
	e := enforcement{cfg: &a.cfg, s: s, before: &m, plan: &plan, tallies: a.tallies, picked: a.picked[:0]}
	next.Budgets = make([]policy.BudgetMemory, len(a.tallies))
	e.judge()
	e.act()
	if kept := e.keepNodes(a.counted); kept != nil {
		next = e.forgetMoves(next, kept)
	}
	for i := range a.tallies {
		next.Budgets[i] = a.tallies[i].next
	}
	if next.Budgets = append(next.Budgets, e.release()...); len(next.Budgets) == 0 {
		next.Budgets = nil
	}
	a.picked = e.picked
	return plan, next
}

// A tally is what the pods of one budget use, and used.
type tally struct {
	budget *policy.Budget
	next   policy.BudgetMemory
	ledger ledger

	// counts is, by template, what one of its pods uses.
	counts []int64

	// from is since when use is not booked yet, at the earliest the begin of the
	// hour in which the window begins.
	from policy.Time

	// now is what is used now; steady the part of it that was used all the time
	// since from.
	now, steady rate

	// live is what the pods that are there used within the window.
	live use

	// use is what counts: that of the ledger, or live.
	use use

	// over says that the budget is spent, enforcing that its action is due,
	// and closed that its gate is to be closed.
	over, enforcing, closed bool
}

// survey books the use since the last decision.
func (a *around) survey(s *policy.Snapshot, m *policy.Memory) {
	a.tallies = slices.Grow(a.tallies[:0], len(s.Budgets))[:len(s.Budgets)]
	a.counted = slices.Grow(a.counted[:0], len(s.Templates))[:len(s.Templates)]
	clear(a.counted)
	for i := range s.Budgets {
		a.begin(&a.tallies[i], &s.Budgets[i], s, m)
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; holds(p) && a.counted[p.Template] {
			for k := range a.tallies {
				a.tallies[k].count(s, p)
			}
		}
	}
	for k := range a.tallies {
		a.tallies[k].finish(s)
	}
}

// holds reports whether p holds devices: from the moment in which it is bound
// until it is gone, whether it uses them or not.
func holds(p *policy.Pod) bool {
	return p.Phase >= policy.PodStarting && p.Node != policy.None && p.Bound != 0
}

// begin fills t with what was remembered of b.
func (a *around) begin(t *tally, b *policy.Budget, s *policy.Snapshot, m *policy.Memory) {
	*t = tally{budget: b, counts: slices.Grow(t.counts[:0], len(s.Templates))[:len(s.Templates)]}
	for i := range s.Templates {
		t.counts[i] = b.Counts(&s.Templates[i])
		a.counted[i] = a.counted[i] || t.counts[i] > 0
	}
	t.next = policy.BudgetMemory{Name: b.Name}
	if old := m.Budget(b.Name); old != nil {
		t.next = *old
	}
	first := s.Now.Add(-b.Window)
	t.from = max(t.next.Counted, first-first%msPerHour)
	if !b.LiveObjects {
		t.ledger = trimmed(t.next.Buckets, s.Now, b.Window)
	}
}

// count adds what the pod p, which holds devices, uses.
func (t *tally) count(s *policy.Snapshot, p *policy.Pod) {
	n := t.counts[p.Template]
	if n == 0 {
		return
	}
	r := rate{n, t.price(s, &s.Nodes[p.Node], n)}
	t.now = t.now.plus(r)
	switch {
	case t.budget.LiveObjects:
		u := r.during(int64(s.Now - max(p.Bound, s.Now.Add(-t.budget.Window))))
		t.live.used += u.used
		t.live.cost += u.cost
	case p.Bound <= t.from:
		t.steady = t.steady.plus(r)
	default:
		t.ledger.book(p.Bound, s.Now, r.devices, r.cost)
	}
}

// during returns what pods use in ms milliseconds at r.
func (r rate) during(ms int64) use {
	cost := r.cost*policy.Money(ms/msPerHour) + policy.Money(inProportion(int64(r.cost), ms%msPerHour))
	return use{r.devices * ms, cost}
}

// price returns what n thousandths of a device cost per hour on node: their part
// of the node's devices, at what the node is charged now. Devices that nobody
// uses are charged to nobody.
func (t *tally) price(s *policy.Snapshot, node *policy.Node, n int64) policy.Money {
	if node.Market == policy.None {
		return t.guess(s, n)
	}
	return s.Markets[node.Market].Charge().Times(t.budget.Share(n, node))
}

// guess returns what n thousandths of a device cost per hour on a node of which
// nothing is known any more: what devices of this budget cost when they were
// last seen, or else the least on-demand price of a device.
func (t *tally) guess(s *policy.Snapshot, n int64) policy.Money {
	each := t.next.DevicePrice
	for i := range s.Markets {
		if t.next.DevicePrice != 0 {
			break
		}
		m := &s.Markets[i]
		it := &s.Types[m.Type]
		node := policy.Node{Allocatable: it.Allocatable, GPUResource: it.GPUResource}
		if p := m.OnDemand.Times(t.budget.Share(1000, &node)); p > 0 && (each == 0 || p < each) {
			each = p
		}
	}
	return (each*policy.Money(n) + 500) / 1000
}

// finish books what is the same for all pods, and the pods that are gone.
func (t *tally) finish(s *policy.Snapshot) {
	if t.budget.LiveObjects {
		t.next.Buckets, t.use = nil, t.live
	} else {
		t.ledger.book(t.from, s.Now, t.steady.devices, t.steady.cost)
		t.bookEnded(s)
		t.next.Buckets, t.use = t.ledger, t.ledger.within(s.Now, t.budget.Window)
		if len(t.ledger) == 0 {
			t.next.Buckets = nil
		}
	}
	if t.now.devices > 0 && t.now.cost > 0 {
		t.next.DevicePrice = t.now.cost * 1000 / policy.Money(t.now.devices)
	}
	t.next.Counted = s.Now
	t.next.Used, t.next.Cost = t.use.used, t.use.cost
}

// bookEnded books the pods that went away since the last decision.
func (t *tally) bookEnded(s *policy.Snapshot) {
	for i := range s.Ended {
		e := &s.Ended[i]
		n := t.counts[e.Template]
		from := max(e.Start, t.from)
		if n == 0 || e.Start == 0 || e.End <= from {
			continue
		}
		cost := t.guess(s, n)
		if k := slices.IndexFunc(s.Nodes, func(x policy.Node) bool { return x.Live() && x.Name == e.Node }); k >= 0 {
			cost = t.price(s, &s.Nodes[k], n)
		}
		t.ledger.book(from, e.End, n, cost)
	}
}
