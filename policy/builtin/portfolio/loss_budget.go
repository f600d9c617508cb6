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
//	left = fraction × value of the pods + what Spot nodes cost less than on-demand − losses
//
// Until the budget is used up for the first time, it does not limit the Spot share of the pool.
// From then on, the pool runs no more Spot than left could pay for if all of its Spot nodes were
// lost at once, and none while left is below zero. So at any time
//
//	bill + outages  ≤  (1 + fraction) × on-demand bill  +  the shock that first used up the budget
//
// if Spot causes the difference, its losses do not exceed what poolLosses expects, and the minimum
// share of the pool is zero. The first bill counts as that of at least one day. The bound does not
// cover what the policy pays for on-demand nodes above the policy on-demand. The budget accumulates
// for about a month: what is left decays.
type lossBudget struct {
	*poolContext
	demand *demand
	losses *poolLosses
	perPod *podLosses

	// fraction is the part of the on-demand bill that may be lost; 0 if there is no budget.
	fraction float64
}

const (
	// lossMemory is the time constant with which what is left decays: savings and budgets much
	// older than that pay for no loss.
	lossMemory = 30 * 24 * time.Hour

	// initialBudgetTime is the time whose budget a pool has from its first pods on.
	initialBudgetTime = 24 * time.Hour

	// readyGrace is how long a new pod may wait for a node before it counts as missing, as in
	// scenarios.
	readyGrace = 10 * time.Minute

	// accountedMax is the longest time between two accounts that is charged.
	accountedMax = time.Hour

	// awayFirst is how long a pool stays on-demand at least when the budget is used up for the
	// first time. The time doubles with each further time, at most awayDoublings times, and halves
	// after a calm period of the same length.
	awayFirst     = 6 * time.Hour
	awayDoublings = 7
)

// readLossBudget returns the loss budget of a pool, after updating the account if that is due.
func readLossBudget(d *demand, l *poolLosses) *lossBudget {
	b := &lossBudget{poolContext: d.poolContext, demand: d, losses: l, perPod: d.perPod}
	if b.fraction = b.fractionFor(); b.fraction > 0 && b.due() {
		b.account()
	}
	return b
}

// account opens the account of a pool with its first pods, and charges it for the time since the
// last update.
func (b *lossBudget) account() {
	s, account := b.s, &b.memory.Loss
	if account.At == 0 {
		if bill := b.bill(); bill > 0 {
			account.At, account.Left = s.Now, float64(b.fraction*bill)*initialBudgetTime.Hours()
			b.changed = true
		}
		return
	}
	b.changed = true
	hours := min(s.Now.Sub(account.At), accountedMax).Hours()
	if account.Left > 0 {
		account.Left = float64(account.Left * portable.Exp(-hours/lossMemory.Hours()))
	}
	account.Left += float64(b.earned() * hours)
	account.Outages = slices.Clone(account.Outages) // the memory of the last decision must not change
	b.readTaken(account.At)
	account.Left -= b.lostWork() + b.chargeOutages(hours)
	account.At = s.Now
	b.updateAway()
}

// due reports whether the account must be updated: every LossAccountEvery, and at once if Spot
// takes pods, since Ended lists them in one decision only, or if an outage is open. Each update
// changes the memory, so the account is not updated at other times.
func (b *lossBudget) due() bool {
	s, account := b.s, &b.memory.Loss
	if s.Now.Sub(account.At) >= policy.LossAccountEvery || len(account.Outages) > 0 {
		return true
	}
	lost := func(p policy.EndedPod) bool { return endedWithNode(&p) }
	return slices.ContainsFunc(s.Ended, lost) || slices.ContainsFunc(b.e.nodes.odd, func(id policy.NodeID) bool {
		n := &s.Nodes[id]
		return n.Pool == b.pool.ID && noticedSince(n, account.At)
	})
}

// endedWithNode reports whether a pod ended because its node, or that of another pod of its gang,
// was reclaimed.
func endedWithNode(p *policy.EndedPod) bool {
	return p.Cause == policy.EndReclaimed || p.Cause == policy.EndGang
}

// noticedSince reports whether the reclaim of n was announced after since.
func noticedSince(n *policy.Node, since policy.Time) bool {
	return n.ReclaimAt != 0 && n.NoticeAt > since
}

// fractionFor returns the fraction of the on-demand bill that the pool may lose; 0 if its share is
// fixed, or if it may not use on-demand or has no on-demand market to compare with.
func (b *lossBudget) fractionFor() float64 {
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
	earned := float64(b.fraction * b.bill())
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
		ended := &b.s.Ended[i]
		t := &b.s.Templates[ended.Template]
		if !endedWithNode(ended) || ended.Start == 0 || !ofJob(b.s, t) || !b.counts(ended.Template) {
			continue
		}
		redo := ended.End.Sub(ended.Start)
		if t.Checkpoint > 0 {
			redo = min(redo, t.Checkpoint/2)
		}
		sum += float64(b.perPod.values[ended.Template] * redo.Hours())
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

// chargeOutages updates the outages after readTaken, and returns their cost in dollars since the
// last account by the formula of the meter: twice the value of missing pods, and for each incident
// the penalty for the maximum number of required pods that were missing, or the stated cost per
// hour.
func (b *lossBudget) chargeOutages(hours float64) float64 {
	account := &b.memory.Loss
	sum, kept := 0.0, account.Outages[:0:0]
	for _, outage := range account.Outages {
		now, found := b.shortfallOf(outage.Workload)
		if !found {
			continue
		}
		sum += float64(float64(2*now.value*float64(outage.Missing)) * hours)
		if outage.Below && now.rate > 0 {
			sum += float64(now.rate * hours)
		}
		outage.Missing = min(outage.Taken, now.missing)
		short := min(outage.Taken, now.short)
		if outage.Below = short > 0; outage.Below {
			outage.Last = b.s.Now
		}
		over := b.s.Now.Sub(outage.Last) >= policy.IncidentGap
		if over {
			outage.Short = 0
		}
		if now.rate <= 0 {
			sum += float64(now.penalty * float64(max(0, short-outage.Short)))
		}
		outage.Short = max(outage.Short, short)
		if outage.Missing > 0 || !over {
			kept = append(kept, outage)
		}
	}
	if account.Outages = kept; len(kept) == 0 {
		account.Outages = nil
	}
	return sum
}

// A shortfall contains the number of pods that a service lacks, and the values that determine the
// cost of that.
type shortfall struct {
	missing, short       int32   // missing of the pods wanted, and of the pods required
	value, penalty, rate float64 // dollars: of a pod per hour, of one short pod, of an hour
}

// shortfallOf returns the shortfall of the service with the given name, and whether the service
// exists.
func (b *lossBudget) shortfallOf(name string) (v shortfall, found bool) {
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

// readTaken counts the pods that Spot has taken since the given time: pods on Spot nodes with a new
// notice, pods that ended with a node, and pods that have waited since a Spot launch was refused
// for longer than new pods may wait. A pod that is counted twice adds no cost, since no more pods
// are charged than are missing.
func (b *lossBudget) readTaken(since policy.Time) {
	s, e := b.s, b.e
	for _, id := range e.nodes.odd {
		n := &s.Nodes[id]
		if !noticedSince(n, since) || n.Pool != b.pool.ID || n.Market < 0 || s.Markets[n.Market].Capacity != policy.Spot {
			continue
		}
		for _, g := range e.pods.groups[id] {
			b.take(g.template, g.n)
		}
	}
	for i := range s.Ended {
		if ended := &s.Ended[i]; ended.Cause == policy.EndReclaimed && b.counts(ended.Template) {
			b.take(ended.Template, 1)
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
		if outage := b.outageOf(policy.TemplateID(t)); n > 0 && outage != nil {
			outage.Taken = max(outage.Taken, n)
		}
	}
}

// take adds n pods of t that Spot took.
func (b *lossBudget) take(t policy.TemplateID, n int32) {
	if outage := b.outageOf(t); outage != nil {
		outage.Taken += n
	}
}

// outageOf returns the recorded outage of the workload of t, which it adds if necessary. The next
// call may invalidate the pointer. It is nil if t does not belong to a service.
func (b *lossBudget) outageOf(t policy.TemplateID) *policy.SpotOutage {
	w := b.s.Templates[t].Workload
	if w < 0 || b.s.Workloads[w].Kind == policy.KindJob || b.s.Workloads[w].Kind == policy.KindDaemonSet {
		return nil
	}
	account, name := &b.memory.Loss, b.s.Workloads[w].Name
	i, found := slices.BinarySearchFunc(account.Outages, name, func(o policy.SpotOutage, name string) int {
		return cmp.Compare(o.Workload, name)
	})
	if !found {
		account.Outages = slices.Insert(account.Outages, i, policy.SpotOutage{Workload: name, Last: b.s.Now})
	}
	return &account.Outages[i]
}

// updateAway moves the pool to on-demand when the budget is used up, and lets it return.
func (b *lossBudget) updateAway() {
	account, now := &b.memory.Loss, b.s.Now
	switch {
	case !account.Away && account.Left < 0:
		account.Away, account.Bounded = true, true
		account.Exhausted = min(account.Exhausted+1, awayDoublings+1)
		account.Until = now.Add(awayFor(account.Exhausted))
	case account.Away && now >= account.Until && account.Left > b.losses.shock(1.0/shareSteps, 1):
		account.Away, account.Until = false, now.Add(awayFor(account.Exhausted))
	case !account.Away && account.Exhausted > 0 && now >= account.Until:
		account.Exhausted--
		account.Until = now.Add(awayFor(account.Exhausted))
	}
}

// awayFor returns how long a pool stays on-demand at least when its budget is used up and the count
// of such times, less those that calm periods have taken off, is exhausted.
func awayFor(exhausted int) time.Duration {
	return awayFirst << min(max(exhausted-1, 0), awayDoublings)
}

// away reports whether the pool is on-demand because its budget is used up.
func (b *lossBudget) away() bool { return b.fraction > 0 && b.memory.Loss.Away }

// shareMax returns the maximum Spot share whose total loss does not exceed what is left.
func (b *lossBudget) shareMax() float64 {
	account := &b.memory.Loss
	switch {
	case b.fraction <= 0 || !account.Bounded:
		return 1
	case b.away():
		return 0
	}
	for k := shareSteps; k > 0; k-- {
		if share := float64(k) / shareSteps; b.losses.shock(share, 1) <= account.Left {
			return share
		}
	}
	return 0
}

// why explains a share that is limited by the budget.
func (b *lossBudget) why(share float64) policy.Why {
	account := &b.memory.Loss
	w := policy.Why{
		Reason: policy.ReasonRisk, Before: policy.Dollars(b.losses.shock(1, 1)), After: policy.Dollars(max(account.Left, 0)),
	}
	if account.Away {
		w.Text = "the loss budget is used up"
		if account.Left < 0 {
			w.Text += " by " + policy.Dollars(-account.Left).Short() + " more than it had"
		}
		return w
	}
	w.Text = fmt.Sprintf("the loss budget has %s left, which the loss of more than %s Spot at once could exceed",
		w.After.Short(), figures.RoughShare(share))
	return w
}
