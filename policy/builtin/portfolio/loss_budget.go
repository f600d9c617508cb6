package portfolio

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A lossBudget limits how much more Spot may cost a pool than on-demand would have cost, as
// portfolio insurance limits the loss of a fund (Black and Perold, Theory of constant proportion
// portfolio insurance, 1992). What is left grows with a fraction of the on-demand bill and with
// what Spot saves, and shrinks with what Spot costs:
//
//	left = part × value of the pods + what Spot nodes cost less than on-demand − losses
//
// Until the budget is used up for the first time, it does not limit the Spot share of the pool.
// From then on, the pool runs no more Spot than left could pay for if all of its Spot nodes were
// lost at once, and none while left is below zero. So at any time
//
//	bill + outages  ≤  (1 + part) × on-demand bill  +  the shock that first used up the budget
//
// if Spot causes the difference, its losses do not exceed what poolLosses expects, and the minimum
// share of the pool is zero. The first bill counts as that of at least one day. The bound does not
// cover what the policy pays for on-demand nodes above the policy on-demand, which is 24% in the
// scenario no-notice. The budget accumulates for about a month: what is left decays.
type lossBudget struct {
	*poolContext
	demand *demand
	losses *poolLosses
	perPod *podLosses

	// part is the fraction of the on-demand bill that may be lost; 0 if there is no budget.
	part float64
}

const (
	// lossMemory is the time constant with which what is left decays: savings and budgets much
	// older than that pay for no loss.
	lossMemory = 30 * 24 * time.Hour

	// atLeast is the time whose budget a new pool has from the start.
	atLeast = 24 * time.Hour

	// readyGrace is how long a new pod may wait for a node before it counts as missing, as in
	// scenarios.
	readyGrace = 10 * time.Minute

	// unseenMax is the maximum time between two accounts that is accounted for.
	unseenMax = time.Hour

	// awayFirst is how long a pool stays on-demand at least when the budget is used up for the
	// first time. The time doubles with each further time, at most awayDoublings times, and halves
	// after a calm period of the same length.
	awayFirst     = 6 * time.Hour
	awayDoublings = 7
)

// readLossBudget returns the loss budget of a pool, after updating the account if that is due.
func readLossBudget(d *demand, l *poolLosses) *lossBudget {
	b := &lossBudget{poolContext: d.poolContext, demand: d, losses: l, perPod: d.perPod}
	if b.part = b.partOf(); b.part > 0 && b.due() {
		b.account()
	}
	return b
}

// account accounts for the time since the last account.
func (b *lossBudget) account() {
	s, x := b.s, &b.memory.Loss
	b.changed = true
	if x.At == 0 {
		x.At, x.Left = s.Now, float64(b.part*b.bill())*atLeast.Hours()
		return
	}
	hours := min(s.Now.Sub(x.At), unseenMax).Hours()
	if x.Left > 0 {
		x.Left = float64(x.Left * portable.Exp(-hours/lossMemory.Hours()))
	}
	x.Left += float64(b.earned() * hours)
	x.Left -= b.lostWork() + b.lostService(hours)
	x.At = s.Now
	b.turn()
}

// due reports whether the account must be updated: in quiet times only now and then, since each
// update changes the memory, and at once if Spot takes pods, which are listed in one decision only,
// or pods are missing.
func (b *lossBudget) due() bool {
	s, x := b.s, &b.memory.Loss
	if s.Now.Sub(x.At) >= policy.LossAccountEvery || len(x.Outages) > 0 {
		return true
	}
	lost := func(p policy.EndedPod) bool { return p.Cause == policy.EndReclaimed || p.Cause == policy.EndGang }
	return slices.ContainsFunc(s.Ended, lost) || slices.ContainsFunc(b.e.nodes.odd, func(id policy.NodeID) bool {
		n := &s.Nodes[id]
		return n.Pool == b.pool.ID && n.ReclaimAt != 0 && n.NoticeAt > x.At
	})
}

// partOf returns the fraction of the on-demand bill that the pool may lose; 0 if its share is
// fixed, or if it may not use on-demand or has no on-demand market to compare with.
func (b *lossBudget) partOf() float64 {
	p, cfg := b.pool, &b.e.cfg
	sold := slices.ContainsFunc(p.Markets, func(id policy.MarketID) bool {
		m := &b.s.Markets[id]
		return m.Capacity == policy.OnDemand && m.Offered
	})
	switch {
	case cfg.Fixed || p.Share.Exact || !p.OnDemandFallback || !sold:
		return 0
	case p.HasLossBudget:
		return p.LossBudget
	}
	return cfg.LossBudget
}

// earned returns the present growth of the budget in dollars per hour. Pods are valued at the
// fraction of an on-demand node that they request, which is the minimum that they cost there. A
// node that costs more than the value of its pods would be no fuller on-demand: it loses at most
// what it costs more than an on-demand node of its type.
func (b *lossBudget) earned() float64 {
	s, e, values := b.s, b.e, b.perPod.values
	earned := float64(b.part * b.bill())
	for i := range e.nodes.all {
		n := &e.nodes.all[i]
		if n.pool != b.pool.ID || !n.live() || n.market < 0 || s.Markets[n.market].Capacity != policy.Spot {
			continue
		}
		m := &s.Markets[n.market]
		cost, used := (m.Charge() + s.Fees(n.pool, n.market)).Float(), 0.0
		if n.usable {
			for _, g := range e.pods.groups[i] {
				used += float64(float64(g.n) * values[g.template])
			}
		}
		earned += max(used-cost, min(0, (m.OnDemand-m.Charge()).Float()))
	}
	return earned
}

// bill returns the value of the pods of the pool in dollars per hour, which is the minimum that
// they cost on-demand.
func (b *lossBudget) bill() float64 {
	bill := 0.0
	for t, n := range b.demand.pods {
		bill += float64(float64(n) * b.perPod.values[t])
	}
	return bill
}

// lostWork returns the value in dollars of the work that jobs have to do again because pods ended
// with their nodes.
func (b *lossBudget) lostWork() float64 {
	sum := 0.0
	for i := range b.s.Ended {
		x := &b.s.Ended[i]
		t := &b.s.Templates[x.Template]
		lost := x.Cause == policy.EndReclaimed || x.Cause == policy.EndGang
		if !lost || x.Start == 0 || !ofJob(b.s, t) || !b.counts(x.Template) {
			continue
		}
		redo := x.End.Sub(x.Start)
		if t.Checkpoint > 0 {
			redo = min(redo, t.Checkpoint/2)
		}
		sum += float64(b.perPod.values[x.Template] * redo.Hours())
	}
	return sum
}

// counts reports whether a pod of t that has ended is assumed to have belonged to the pool, which
// its record does not state: if the pool has other pods of t, if no pool has, or if there is only
// one pool.
func (b *lossBudget) counts(t policy.TemplateID) bool {
	if b.demand.pods[t] > 0 || len(b.s.Pools) == 1 {
		return true
	}
	for p := range b.s.Pools {
		if standingIn(&b.e.pods, b.e.pods.standing, policy.PoolID(p))[t] > 0 {
			return false
		}
	}
	return true
}

// lostService returns the cost in dollars of the outages that Spot caused since the last account,
// by the formula of the meter: twice the value of missing pods, and for each incident the penalty
// for the maximum number of required pods that were missing, or the stated cost per hour.
func (b *lossBudget) lostService(hours float64) float64 {
	b.readTaken()
	x := &b.memory.Loss
	sum, kept := 0.0, x.Outages[:0:0]
	for _, o := range x.Outages {
		v, found := b.outageOf(o.Workload)
		if !found {
			continue
		}
		sum += float64(float64(2*v.value*float64(o.Missing)) * hours)
		if o.Below && v.rate > 0 {
			sum += float64(v.rate * hours)
		}
		o.Missing = min(o.Taken, v.missing)
		short := min(o.Taken, v.short)
		if o.Below = short > 0; o.Below {
			o.Last = b.s.Now
		}
		over := b.s.Now.Sub(o.Last) >= policy.IncidentGap
		if over {
			o.Short = 0
		}
		if v.rate <= 0 {
			sum += float64(v.penalty * float64(max(0, short-o.Short)))
		}
		o.Short = max(o.Short, short)
		if o.Missing > 0 || !over {
			kept = append(kept, o)
		}
	}
	if x.Outages = kept; len(kept) == 0 {
		x.Outages = nil
	}
	return sum
}

// A serviceOutage contains the values that determine the cost of an outage of a workload.
type serviceOutage struct {
	missing, short       int32   // missing of the pods wanted, and of the pods required
	value, penalty, rate float64 // dollars: of a pod per hour, of one short pod, of an hour
}

// outageOf returns the outage of the service with the given name, and whether the service exists.
func (b *lossBudget) outageOf(name string) (v serviceOutage, found bool) {
	s := b.s
	for i := range s.Templates {
		t := &s.Templates[i]
		if t.Workload < 0 || s.Workloads[t.Workload].Name != name || s.Workloads[t.Workload].Kind == policy.KindJob {
			continue
		}
		w, value := &s.Workloads[t.Workload], b.perPod.values[i]
		found = true
		v.missing = max(0, w.Replicas-w.Ready)
		v.short = max(v.short, workload.Required(s, t, w.Replicas)-w.Ready)
		v.value, v.rate = max(v.value, value), max(v.rate, t.OutageCost.Float())
		v.penalty = max(v.penalty, float64(value*t.PenaltyHours()))
	}
	return v, found
}

// readTaken counts the pods that Spot has taken since the last account: pods on Spot nodes with a
// new notice, pods that ended with a node, and pods that have waited since a Spot launch was
// refused for longer than new pods may wait. A pod that is counted twice adds no cost, since no
// more pods are charged than are missing.
func (b *lossBudget) readTaken() {
	s, e, since := b.s, b.e, b.memory.Loss.At
	for _, id := range e.nodes.odd {
		n := &s.Nodes[id]
		noticed := n.ReclaimAt != 0 && n.NoticeAt > since
		if !noticed || n.Pool != b.pool.ID || n.Market < 0 || s.Markets[n.Market].Capacity != policy.Spot {
			continue
		}
		for _, g := range e.pods.groups[id] {
			b.take(g.template, g.n)
		}
	}
	for i := range s.Ended {
		if x := &s.Ended[i]; x.Cause == policy.EndReclaimed && b.counts(x.Template) {
			b.take(x.Template, 1)
		}
	}
	refused := policy.Time(0)
	for _, id := range b.pool.Markets {
		if m := &s.Markets[id]; m.Capacity == policy.Spot {
			refused = max(refused, m.Experience.Refused)
		}
	}
	if refused == 0 {
		return
	}
	waiting := make([]int32, len(s.Templates))
	for _, id := range e.pods.pending {
		p := &s.Pods[id]
		if p.Created <= refused && s.Now.Sub(p.Created) >= readyGrace && b.counts(p.Template) {
			waiting[p.Template]++
		}
	}
	for t, n := range waiting {
		if o := b.outage(policy.TemplateID(t)); n > 0 && o != nil {
			o.Taken = max(o.Taken, n)
		}
	}
}

// take adds n pods of t that Spot took.
func (b *lossBudget) take(t policy.TemplateID, n int32) {
	if o := b.outage(t); o != nil {
		o.Taken += n
	}
}

// outage returns the outage of the workload of t, adding it if necessary. It returns nil if t does
// not belong to a service.
func (b *lossBudget) outage(t policy.TemplateID) *policy.SpotOutage {
	w := b.s.Templates[t].Workload
	if w < 0 || b.s.Workloads[w].Kind == policy.KindJob || b.s.Workloads[w].Kind == policy.KindDaemonSet {
		return nil
	}
	x, name := &b.memory.Loss, b.s.Workloads[w].Name
	x.Outages = slices.Clone(x.Outages) // the memory of the last decision must not change
	i, found := slices.BinarySearchFunc(x.Outages, name, func(o policy.SpotOutage, name string) int {
		return cmp.Compare(o.Workload, name)
	})
	if !found {
		x.Outages = slices.Insert(x.Outages, i, policy.SpotOutage{Workload: name, Last: b.s.Now})
	}
	return &x.Outages[i]
}

// turn moves the pool to on-demand when the budget is used up, and lets it return.
func (b *lossBudget) turn() {
	x, now := &b.memory.Loss, b.s.Now
	away := awayFirst << min(max(x.Exhausted-1, 0), awayDoublings)
	switch {
	case !x.Away && x.Left < 0:
		x.Away, x.Bounded = true, true
		x.Exhausted++
		x.Until = now.Add(awayFirst << min(x.Exhausted-1, awayDoublings))
	case x.Away && now >= x.Until && x.Left > b.losses.shock(1.0/shareSteps, 1):
		x.Away, x.Until = false, now.Add(away)
	case !x.Away && x.Exhausted > 0 && now >= x.Until:
		x.Exhausted--
		x.Until = now.Add(away)
	}
}

// away reports whether the pool is on-demand because its budget is used up.
func (b *lossBudget) away() bool { return b.part > 0 && b.memory.Loss.Away }

// shareMax returns the maximum Spot share whose total loss does not exceed what is left.
func (b *lossBudget) shareMax() float64 {
	x := &b.memory.Loss
	switch {
	case b.part <= 0 || !x.Bounded:
		return 1
	case b.away():
		return 0
	}
	for k := shareSteps; k > 0; k-- {
		if share := float64(k) / shareSteps; b.losses.shock(share, 1) <= x.Left {
			return share
		}
	}
	return 0
}

// why explains a share that is limited by the budget.
func (b *lossBudget) why(share float64) policy.Why {
	x := &b.memory.Loss
	w := policy.Why{
		Reason: policy.ReasonRisk, Before: policy.Dollars(b.losses.shock(1, 1)), After: policy.Dollars(max(x.Left, 0)),
	}
	if x.Away {
		w.Text = "the loss budget is used up"
		if x.Left < 0 {
			w.Text += " by " + policy.Dollars(-x.Left).Short() + " more than it had"
		}
		return w
	}
	w.Text = fmt.Sprintf("the loss budget has %s left, which the loss of more than %s Spot at once could exceed",
		w.After.Short(), figures.RoughShare(share))
	return w
}
