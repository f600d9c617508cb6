package gpubudget

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

	// The fields below are scratch memory, which each decision fills.
	tallies []tally
	index   index
	running [][]int32 // by template that a budget counts, its pods that hold devices
	picked  []bool
	pods    []policy.Pod
}

// Name returns the name of the policy inside: budgets are the cluster's.
func (a *around) Name() string { return a.policy.Name() }

// Inside returns the policy that the budgets are around.
func (a *around) Inside() policy.Policy { return a.policy }

// Decide returns the plan of the policy inside and what the budgets want.
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

// settled returns s as the policy inside must see it: the pods that a closed gate would
// not admit again must not be disrupted, so that it looks for other nodes and does not
// plan the same drain again and again. Without a closed gate it is s.
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

// enforce is apart from Decide so that a cluster without budgets, the usual one,
// costs no allocation.
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

// A tally is what the pods of one budget use, and used.
type tally struct {
	budget *policy.Budget
	next   policy.BudgetMemory
	ledger ledger

	// templates are those whose pods it counts.
	templates []match

	// from is since when use is not booked yet, at the earliest the start of the hour in which the
	// window starts.
	from policy.Time

	// now is what is used now; steady the part of it that was used all the time
	// since from.
	now, steady rate

	// live is what the pods that are there used within the window.
	live use

	// use is what counts: that of the ledger, or live.
	use use

	// over says that the budget is spent, enforcing that its action is due, and closed that its
	// gate must be closed.
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

// count adds what the pod p, which holds devices, uses to the budgets that count it. These
// share a price where they count the same resource and the node has one.
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

// bookEnded books the pods that went away since the last decision.
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

// holds reports whether p holds devices: from the moment in which it is bound
// until it is gone, whether it uses them or not.
func holds(p *policy.Pod) bool {
	return p.Phase >= policy.PodStarting && p.Node != policy.None && p.Bound != 0
}

// begin returns the tally of b at now, of which old was remembered; nil is nothing. The
// history of another budget of its name is not its own.
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

// count adds what a pod uses at rate r that has held devices since bound.
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

// during returns what pods use in ms milliseconds at r.
func (r rate) during(ms int64) use {
	cost := r.cost*policy.Money(ms/msPerHour) + policy.Money(inProportion(int64(r.cost), ms%msPerHour))
	return use{r.devices * ms, cost}
}

// price returns what n thousandths of a device cost per hour on node: their part of the node's
// devices, at the node's current charge. Unused devices are charged to no budget.
func (t *tally) price(s *policy.Snapshot, node *policy.Node, n int64) policy.Money {
	if node.Market == policy.None {
		return t.guess(s, n)
	}
	m := &s.Markets[node.Market]
	return m.Charge().Times(t.budget.Share(n, node, &s.Types[m.Type]))
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
		if p := m.OnDemand.Times(t.budget.Share(1000, &node, it)); p > 0 && (each == 0 || p < each) {
			each = p
		}
	}
	return (each*policy.Money(n) + 500) / 1000
}

// finish books what is the same for all pods. Of a budget that cannot be read it leaves
// the memory as it was.
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

// bookEnded books a pod that went away, which requested n thousandths of a device on node;
// nil where that is gone too.
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
