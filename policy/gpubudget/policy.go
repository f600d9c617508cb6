package gpubudget

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Around returns p with budgets: the actions of the budgets of a snapshot are added to the plan of
// p, and drains of nodes whose pods a closed gate would not admit again are removed from it.
//
// It panics if cfg is not valid; see [Config.Validate].
func Around(p policy.Policy, cfg Config) policy.Policy {
	if err := cfg.Validate(); err != nil {
		panic(err.Error())
	}
	return &around{policy: p, cfg: cfg}
}

type around struct {
	policy policy.Policy
	cfg    Config

	// The fields below are scratch memory, which each decision fills.
	tallies []tally
	index   index
	running [][]int32 // by template that a budget counts, its pods that hold devices
	picked  []bool
	pods    []policy.Pod
}

// Name returns the name of the inner policy: budgets belong to the cluster.
func (a *around) Name() string { return a.policy.Name() }

// Inside returns the inner policy.
func (a *around) Inside() policy.Policy { return a.policy }

// Decide returns the plan of the inner policy with the actions of the budgets.
func (a *around) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	if len(s.Budgets) > 0 {
		a.index.build(s.Templates, s.Budgets)
	}
	plan, next := a.policy.Decide(a.settled(s), m)
	if len(s.Budgets) == 0 && len(m.Budgets) == 0 && !slices.ContainsFunc(s.Workloads, paused) {
		next.Budgets = nil
		return plan, next
	}
	return a.enforce(s, m, plan, next)
}

// paused reports whether w is a job that was suspended for a budget.
func paused(w policy.Workload) bool {
	return w.Kind == policy.KindJob && w.Suspended && w.PausedBy != ""
}

// settled returns s for the inner policy: pods that a closed gate would not admit again are marked
// as not to be disrupted, so that the policy looks for other nodes and does not plan the same drain
// repeatedly. If no gate is closed, it returns s itself.
func (a *around) settled(s *policy.Snapshot) *policy.Snapshot {
	if !slices.ContainsFunc(s.Budgets, func(b policy.Budget) bool { return b.Closed }) {
		return s
	}
	x := s
	for k := range s.Pods {
		p := &s.Pods[k]
		if !holds(p) || p.Phase == policy.PodTerminating || s.Templates[p.Template].DaemonSet {
			continue
		}
		if !slices.ContainsFunc(a.index.of[p.Template], func(c match) bool { return s.Budgets[c.at].Closed }) {
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
	return x
}

// enforce is separate from Decide so that a cluster without budgets, the usual case, causes no
// allocation.
func (a *around) enforce(s *policy.Snapshot, m policy.Memory, plan policy.Plan, next policy.Memory) (policy.Plan,
	policy.Memory) {
	if len(s.Budgets) == 0 {
		a.index.build(s.Templates, nil)
	}
	a.survey(s, &m)
	a.picked = slices.Grow(a.picked[:0], len(s.Pods))[:len(s.Pods)]
	clear(a.picked)
	e := enforcement{cfg: &a.cfg, s: s, before: &m, plan: &plan, tallies: a.tallies, index: &a.index, running: a.running,
		picked: a.picked}
	e.judge()
	e.act()
	if kept := e.keepNodes(); kept != nil {
		next = e.forgetMoves(next, kept)
	}
	next.Budgets = e.memories()
	return plan, next
}

// A tally is the present and past use of the pods of one budget.
type tally struct {
	budget *policy.Budget
	next   policy.BudgetMemory
	ledger ledger

	// templates are the templates whose pods it counts.
	templates []match

	// from is the time since which use has not been booked, at the earliest the start of the hour
	// in which the window starts.
	from policy.Time

	// now is the present use, and steady the part of it that has lasted since from.
	now, steady rate

	// live is the use of existing pods within the window.
	live use

	// use is the use that counts: that of the ledger, or live.
	use use

	// over reports whether the budget is spent, enforcing whether its action is due, and closed
	// whether its gate must be closed.
	over, enforcing, closed bool
}

// survey books the use since the last decision.
func (a *around) survey(s *policy.Snapshot, m *policy.Memory) {
	a.tallies = slices.Grow(a.tallies[:0], len(s.Budgets))[:len(s.Budgets)]
	for i := range s.Budgets {
		a.tallies[i] = begin(&s.Budgets[i], a.index.templates[i], s.Now, m.Budget(s.Budgets[i].Name))
	}
	a.running = emptied(a.running, len(s.Templates))
	for i := range s.Pods {
		p := &s.Pods[i]
		if !holds(p) || len(a.index.of[p.Template]) == 0 {
			continue
		}
		a.running[p.Template] = append(a.running[p.Template], int32(i))
		a.count(s, p)
	}
	a.bookEnded(s)
	for k := range a.tallies {
		a.tallies[k].finish(s)
	}
}

// count adds the use of the pod p, which holds devices, to the budgets that count it. Consecutive
// budgets that count the same resource share the price if the node has a market.
func (a *around) count(s *policy.Snapshot, p *policy.Pod) {
	var r rate
	resource, node := "", &s.Nodes[p.Node]
	for _, c := range a.index.of[p.Template] {
		t := &a.tallies[c.at]
		if node.Market == policy.None || t.budget.Resource != resource {
			r, resource = rate{c.n, t.price(s, node, c.n)}, t.budget.Resource
		}
		t.count(s.Now, p.Bound, r)
	}
}

// bookEnded books the use of pods that ended since the last decision.
func (a *around) bookEnded(s *policy.Snapshot) {
	if len(s.Ended) == 0 {
		return
	}
	nodes := make(map[string]*policy.Node, len(s.Nodes))
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() {
			nodes[n.Name] = n
		}
	}
	for i := range s.Ended {
		x := &s.Ended[i]
		for _, c := range a.index.of[x.Template] {
			a.tallies[c.at].bookEnded(s, x, nodes[x.Node], c.n)
		}
	}
}

// holds reports whether p holds devices: from being bound until it is gone, whether it uses them or
// not.
func holds(p *policy.Pod) bool {
	return p.Phase >= policy.PodStarting && p.Node != policy.None && p.Bound != 0
}

// begin returns the tally of b at now. old is the memory of the budget of that name, or nil; it is
// ignored if it belongs to a budget with another UID.
func begin(b *policy.Budget, templates []match, now policy.Time, old *policy.BudgetMemory) tally {
	t := tally{budget: b, templates: templates, next: policy.BudgetMemory{Name: b.Name}}
	if old != nil && (old.UID == b.UID || old.UID == "" || b.UID == "") {
		t.next = *old
		notAfter(&t.next, now)
	}
	t.next.UID, t.next.Absent = b.UID, 0
	first := now.Add(-b.Window)
	t.from = max(t.next.Counted, first-first%msPerHour)
	if !b.LiveObjects {
		t.ledger = trimmed(t.next.Buckets, now, b.Window)
	}
	return t
}

// count adds the use of a pod that has held devices since bound, at rate r.
func (t *tally) count(now, bound policy.Time, r rate) {
	t.now = t.now.plus(r)
	switch {
	case t.budget.LiveObjects:
		u := r.during(int64(now - max(bound, now.Add(-t.budget.Window))))
		t.live.used += u.used
		t.live.cost += u.cost
	case bound <= t.from:
		t.steady = t.steady.plus(r)
	default:
		t.ledger.book(bound, now, r.devices, r.cost)
	}
}

// during returns the use of ms milliseconds at r.
func (r rate) during(ms int64) use {
	cost := r.cost*policy.Money(ms/msPerHour) + policy.Money(inProportion(int64(r.cost), ms%msPerHour))
	return use{r.devices * ms, cost}
}

// price returns the cost per hour of n thousandths of a device on node: their share of the node's
// devices, at the node's current charge. Unused devices are charged to no budget.
func (t *tally) price(s *policy.Snapshot, node *policy.Node, n int64) policy.Money {
	if node.Market == policy.None {
		return t.guess(s, n)
	}
	m := &s.Markets[node.Market]
	return m.Charge().Times(t.budget.Share(n, node, &s.Types[m.Type]))
}

// guess returns the cost per hour of n thousandths of a device on a node that is unknown: by the
// price of devices of this budget when they were last seen, or else by the lowest on-demand price
// of a device.
func (t *tally) guess(s *policy.Snapshot, n int64) policy.Money {
	each := t.next.DevicePrice
	for i := range s.Markets {
		if t.next.DevicePrice != 0 {
			break
		}
		m := &s.Markets[i]
		it := &s.Types[m.Type]
		node := policy.Node{Allocatable: it.Allocatable, GPUResource: it.GPUResource}
		if p := m.OnDemand.Times(t.budget.Share(1000, &node, it)); p > 0 && (each == 0 || p < each) {
			each = p
		}
	}
	return (each*policy.Money(n) + 500) / 1000
}

// finish books the use of steady pods and updates the memory. The memory of an invalid budget is
// left unchanged.
func (t *tally) finish(s *policy.Snapshot) {
	if t.budget.Invalid {
		return
	}
	if t.budget.LiveObjects {
		t.next.Buckets, t.use = nil, t.live
	} else {
		t.ledger.book(t.from, s.Now, t.steady.devices, t.steady.cost)
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

// bookEnded books the use of a pod that ended and requested n thousandths of a device on node. node
// is nil if the node is gone too.
func (t *tally) bookEnded(s *policy.Snapshot, x *policy.EndedPod, node *policy.Node, n int64) {
	from := max(x.Start, t.from)
	if t.budget.LiveObjects || x.Start == 0 || x.End <= from {
		return
	}
	cost := t.guess(s, n)
	if node != nil {
		cost = t.price(s, node, n)
	}
	t.ledger.book(from, x.End, n, cost)
}
