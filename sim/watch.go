package sim

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
)

// A RunObserver is called while a run goes on. It changes nothing: a run has the
// same hash with and without one.
type RunObserver interface {
	// Happened is called for every entry of the event log, in its order.
	Happened(Entry)

	// Settled is called when all of an instant has happened, and a last time at
	// the end of the window. What it is given is valid until it returns.
	Settled(*Moment)
}

// An Entry is one entry of the event log.
type Entry = engine.Entry

// A Moment is the state of a run when all of an instant has happened.
type Moment struct {
	// Now is the instant, and Next the one at which something happens again.
	// Between them nothing changes but what accrues with time.
	Now, Next policy.Time

	watch *watch
}

// Nodes returns the slots in which something changed since the moment before. It
// may name a slot twice.
func (m *Moment) Nodes() []policy.NodeID { return m.watch.changedNodes }

// Workloads returns the workloads of which something changed since the moment
// before. It may name one twice.
func (m *Moment) Workloads() []policy.WorkloadID { return m.watch.changedWork }

// Node returns the node in a slot with what its pods request and how many they
// are, those of DaemonSets not counted. It reports false for an empty slot, and
// for a node that the provider has taken, which the cluster may still believe in.
func (m *Moment) Node(id policy.NodeID) (n *policy.Node, requested policy.Resources, pods int32, ok bool) {
	n, x := &m.watch.nodes.all[id], &m.watch.nodes.state[id]
	if n.Phase == policy.NodeGone || x.lost {
		return nil, policy.Resources{}, 0, false
	}
	return n, m.watch.space.Requested(id), x.pods, true
}

// A WorkloadState is where a workload stands.
type WorkloadState struct {
	// Desired counts growth only after the ready grace, and is what a job has at
	// work or pending; Required is the part that must be there, Ready what serves
	// and OnSpot the part of it on spot nodes.
	Desired, Required, Ready, OnSpot int32
}

// Workload returns where a workload stands.
func (m *Moment) Workload(id policy.WorkloadID) WorkloadState {
	g := &m.watch.serving.of[id]
	s := WorkloadState{Desired: g.desired, Required: g.required, Ready: g.ready, OnSpot: g.readySpot}
	switch m.watch.scenario.Workloads[id].Kind {
	case policy.KindJob, policy.KindDaemonSet:
		s.Desired = m.watch.workloads.state[id].active
	}
	return s
}

// Budgets returns how many budgets there are.
func (m *Moment) Budgets() int { return len(m.watch.budgets.all) }

// Budget returns what the ledger had of budget i at the last decision, nil before
// it had anything, and whether its gate is closed.
func (m *Moment) Budget(i int) (ledger *policy.BudgetMemory, closed bool) {
	b := &m.watch.budgets.all[i]
	return m.watch.decider.saved.Budget(b.Name), b.Closed
}

// Counts returns what Costs does at Now but for the amounts of money and the
// outages, which are left 0: those take as long as there are nodes.
func (m *Moment) Counts() Sample { return m.watch.counts(m.Now) }

// Costs returns what the run has come to at an instant from Now up to Next.
func (m *Moment) Costs(at policy.Time) Sample { return m.watch.sample(at) }

// A Sample is what a run has come to at an instant, counted from the begin of
// the metered window. At its end Bill, OutageCost and Outages are those of the Result.
type Sample struct {
	At policy.Time

	// Bill is what the nodes that ran would have cost had they all stopped at At,
	// where commitments may cover them without the least time that is billed;
	// OutageCost counts incidents in hand as if they were over, and jobs once they
	// are due.
	Bill, OutageCost policy.Money

	// Outages have those in hand as if they were over.
	Outages

	// Notices and Reclaims are those of Result, Evictions pods evicted by choice.
	Notices, Reclaims, Evictions int64

	// Nodes and SpotNodes are the initialized ones; Size and SpotSize what they
	// hold, in vCPUs, or in GPUs where every pool has them.
	Nodes, SpotNodes, Size, SpotSize int64
}

// A Taken is one node that the provider took.
type Taken struct {
	At     policy.Time
	Market policy.MarketID
}

// A Held is how many initialized nodes of a market there are from the sample at At on.
type Held struct {
	At     policy.Time
	Market policy.MarketID
	Nodes  int64
}

// A watch reports to the observer of a run what happens, and takes the samples.
type watch struct {
	*environment
	bills     *bills
	budgets   *gpuBudgets
	decider   *decider
	nodes     *nodes
	serving   *serving
	space     *placement.Space
	workloads *workloads

	// changedNodes and changedWork are what the watcher has yet to learn of.
	changedNodes []policy.NodeID
	changedWork  []policy.WorkloadID

	// sampleAt is when the next sample is due.
	sampleAt policy.Time

	// heldNow and heldBefore are the initialized nodes by market at the last sample
	// and at the one before.
	heldNow, heldBefore []int64
}

// samplesMax keeps a slip in Config.Sample from filling the memory.
const samplesMax = 1_000_000

func (c *Config) checkSample(window billing.Span) error {
	if c.Sample < 0 || c.Sample%time.Millisecond != 0 || c.Sample > 0 && window.Length()/c.Sample > samplesMax {
		return fmt.Errorf("sim: Config.Sample is %v; it is whole milliseconds, at least a %d-th of the window of %v", c.Sample, samplesMax, window.Length())
	}
	return nil
}

// node notes for the watcher that node id changed.
func (wt *watch) node(id policy.NodeID) {
	if wt.cfg.Observer != nil {
		wt.changedNodes = append(wt.changedNodes, id)
	}
}

// workload notes for the watcher that workload id changed.
func (wt *watch) workload(id policy.WorkloadID) {
	if wt.cfg.Observer != nil {
		wt.changedWork = append(wt.changedWork, id)
	}
}

// passInstant calls the observer, and takes the samples, once nothing more happens at
// the instant.
func (wt *watch) passInstant() {
	next := wt.window.To
	if at, ok := wt.q.Following(); ok {
		next = min(next, at)
	}
	if next == wt.q.Now {
		return
	}
	if wt.cfg.Sample > 0 {
		for ; wt.sampleAt < next; wt.sampleAt = wt.sampleAt.Add(wt.cfg.Sample) {
			wt.takeSample(wt.sampleAt)
		}
	}
	wt.report(next)
}

func (wt *watch) report(next policy.Time) {
	if wt.cfg.Observer == nil {
		return
	}
	wt.cfg.Observer.Settled(&Moment{Now: wt.q.Now, Next: next, watch: wt})
	wt.changedNodes, wt.changedWork = wt.changedNodes[:0], wt.changedWork[:0]
}

// passEnd does so for the end of the window, when everything is accounted for.
func (wt *watch) passEnd() {
	wt.q.Now = wt.window.To
	if wt.cfg.Sample > 0 {
		wt.takeSample(wt.window.To)
	}
	wt.report(wt.window.To)
}

// takeSample adds what the run has come to at an instant to the result.
func (wt *watch) takeSample(at policy.Time) {
	wt.result.Samples = append(wt.result.Samples, wt.sample(at))
	if wt.heldNow == nil {
		wt.heldNow, wt.heldBefore = make([]int64, len(wt.scenario.Markets)), make([]int64, len(wt.scenario.Markets))
	}
	wt.heldNow, wt.heldBefore = wt.heldBefore, wt.heldNow
	clear(wt.heldNow)
	for i := range wt.nodes.state {
		if wt.nodes.state[i].held {
			wt.heldNow[wt.nodes.all[i].Market]++
		}
	}
	for m, n := range wt.heldNow {
		if n != wt.heldBefore[m] {
			wt.result.Held = append(wt.result.Held, Held{At: at, Market: policy.MarketID(m), Nodes: n})
		}
	}
}

// sample returns what the run has come to at an instant before which nothing
// more happens. It changes nothing.
func (wt *watch) sample(at policy.Time) Sample {
	s := wt.counts(at)
	s.Bill, s.OutageCost = wt.result.Bill, wt.result.JobCost
	if at < wt.window.From {
		return s
	}
	for i := range wt.nodes.all {
		if wt.nodes.all[i].Phase != policy.NodeGone && !wt.nodes.state[i].billed {
			s.Bill += wt.bills.owed(policy.NodeID(i), at)
		}
	}
	for i := range wt.serving.of {
		w := &wt.scenario.Workloads[i]
		if !wt.serving.serves(policy.WorkloadID(i)) {
			continue
		}
		g := wt.serving.of[i] // a copy: what is in hand goes on
		g.advance(at, wt.window)
		g.close()
		unserved, incidents := g.outage(wt.prepared.podValue[i], w.OutagePenalty, w.OutageCostPerHour)
		s.OutageCost += 2*unserved + incidents
		own := wt.serving.outages(policy.WorkloadID(i), &g)
		s.Outages.Add(&own)
	}
	return s
}

func (wt *watch) counts(at policy.Time) Sample {
	h := &wt.nodes.held
	return Sample{At: at, Notices: wt.result.Notices, Reclaims: wt.result.Reclaims, Evictions: wt.result.VoluntaryEvictions,
		Nodes: h.nodes, SpotNodes: h.spotNodes, Size: h.size, SpotSize: h.spotSize}
}

// owed returns what a running node would be billed if it stopped at t, fees included, without
// its debt of CPU credits, and of one that commitments may cover what it has come to.
func (bs *bills) owed(id policy.NodeID, t policy.Time) policy.Money {
	return bs.price(id, t) + bs.fees(id, t).Total()
}

// price returns the part of owed that is no fee.
func (bs *bills) price(id policy.NodeID, t policy.Time) policy.Money {
	n := &bs.nodes.all[id]
	life := billing.Span{From: n.Launched, To: t}
	switch {
	case bs.committed(n.Market):
		return bs.account.Owes(int(id), n.Market, t)
	case n.Bid > 0:
		// A node never pays more than its bid: neither after the price has passed it, to
		// the end, nor while nothing is offered and the price of before goes on.
		return bs.prepared.prices.Charges()[n.Market].BillAtMost(life, bs.window, n.Bid)
	}
	return bs.prepared.prices.Charges()[n.Market].Bill(life, bs.window)
}
