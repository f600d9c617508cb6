package sim

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A Watcher is told of a run while it goes on. It changes nothing: a run has the
// same hash with and without one.
type Watcher interface {
	// Happened is called for every entry of the event log, in its order.
	Happened(Entry)

	// Settled is called when all of an instant has happened, and a last time at
	// the end of the window. What it is given is valid until it returns.
	Settled(*Moment)
}

// An Entry is one entry of the event log.
type Entry struct {
	At policy.Time

	// Kind, Subject and Object are as the log has them: "launch general-7
	// aws/us-east-1/…". Subject and Object may be empty.
	Kind, Subject, Object string

	// Amount is in micro-dollars, milliseconds or a count, by kind.
	Amount int64
}

// A Moment is the state of a run when all of an instant has happened.
type Moment struct {
	// Now is the instant, and Next the one at which something happens again.
	// Between them nothing changes but what accrues with time.
	Now, Next policy.Time

	run *run
}

// Nodes returns the slots in which something changed since the moment before. It
// may name a slot twice.
func (m *Moment) Nodes() []policy.NodeID { return m.run.watched.nodes }

// Workloads returns the workloads of which something changed since the moment
// before. It may name one twice.
func (m *Moment) Workloads() []policy.WorkloadID { return m.run.watched.work }

// Node returns the node in a slot with what its pods request and how many they
// are, those of DaemonSets not counted. It reports false for an empty slot, and
// for a node that the provider has taken, which the cluster may still believe in.
func (m *Moment) Node(id policy.NodeID) (n *policy.Node, requested policy.Resources, pods int32, ok bool) {
	n, x := &m.run.nodes[id], &m.run.nodeX[id]
	if n.Phase == policy.NodeGone || x.lost {
		return nil, policy.Resources{}, 0, false
	}
	return n, m.run.space.Requested(id), x.pods, true
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
	g := &m.run.gauges[id]
	s := WorkloadState{Desired: g.desired, Required: g.required, Ready: g.ready, OnSpot: g.readySpot}
	switch m.run.world.Workloads[id].Kind {
	case policy.KindJob, policy.KindDaemonSet:
		s.Desired = m.run.work[id].active
	}
	return s
}

// Budgets returns how many budgets there are.
func (m *Moment) Budgets() int { return len(m.run.budgets) }

// Budget returns what the ledger had of budget i at the last decision, nil before
// it had anything, and whether its gate is closed.
func (m *Moment) Budget(i int) (ledger *policy.BudgetMemory, closed bool) {
	b := &m.run.budgets[i]
	return m.run.saved.Budget(b.Name), b.Closed
}

// Counts returns what Costs does at Now but for the amounts of money and the
// outages, which are left 0: those take as long as there are nodes.
func (m *Moment) Counts() Sample { return m.run.counts(m.Now) }

// Costs returns what the run has come to at an instant from Now up to Next.
func (m *Moment) Costs(at policy.Time) Sample { return m.run.sample(at) }

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

	// Reclaims are nodes taken or given notice, Evictions pods evicted by choice.
	Reclaims, Evictions int64

	// Nodes and SpotNodes are the initialized ones; Size and SpotSize what they
	// hold, in vCPUs, or in GPUs where every pool has them.
	Nodes, SpotNodes, Size, SpotSize int64
}

// A Taken is one node that the provider took, or said that it would.
type Taken struct {
	At     policy.Time
	Market policy.MarketID
}

// watched is what the watcher of a run has yet to be told.
type watched struct {
	nodes []policy.NodeID
	work  []policy.WorkloadID

	// sampleAt is when the next sample is due.
	sampleAt policy.Time
}

// samplesMax keeps a slip in Config.Sample from filling the memory.
const samplesMax = 1_000_000

func (c *Config) checkSample(window billing.Span) error {
	if c.Sample < 0 || c.Sample%time.Millisecond != 0 || c.Sample > 0 && window.Length()/c.Sample > samplesMax {
		return fmt.Errorf("sim: Config.Sample is %v; it is whole milliseconds, at least a %d-th of the window of %v", c.Sample, samplesMax, window.Length())
	}
	return nil
}

// touched notes for the watcher that node id changed.
func (r *run) touched(id policy.NodeID) {
	if r.cfg.Watch != nil {
		r.watched.nodes = append(r.watched.nodes, id)
	}
}

// touchedWork notes for the watcher that workload id changed.
func (r *run) touchedWork(id policy.WorkloadID) {
	if r.cfg.Watch != nil {
		r.watched.work = append(r.watched.work, id)
	}
}

// passInstant tells the watcher, and takes the samples, once nothing more happens at
// the instant.
func (r *run) passInstant() {
	next := r.window.To
	if len(r.q.heap) > 0 {
		next = min(next, r.q.heap[0].at)
	}
	if next == r.q.now {
		return
	}
	if r.cfg.Sample > 0 {
		for ; r.watched.sampleAt < next; r.watched.sampleAt = r.watched.sampleAt.Add(r.cfg.Sample) {
			r.result.Samples = append(r.result.Samples, r.sample(r.watched.sampleAt))
		}
	}
	r.tell(next)
}

func (r *run) tell(next policy.Time) {
	if r.cfg.Watch == nil {
		return
	}
	r.cfg.Watch.Settled(&Moment{Now: r.q.now, Next: next, run: r})
	r.watched.nodes, r.watched.work = r.watched.nodes[:0], r.watched.work[:0]
}

// passEnd does so for the end of the window, when everything is accounted for.
func (r *run) passEnd() {
	r.q.now = r.window.To
	if r.cfg.Sample > 0 {
		r.result.Samples = append(r.result.Samples, r.sample(r.window.To))
	}
	r.tell(r.window.To)
}

// sample returns what the run has come to at an instant before which nothing
// more happens. It changes nothing.
func (r *run) sample(at policy.Time) Sample {
	s := r.counts(at)
	s.Bill, s.OutageCost = r.result.Bill, r.result.JobCost
	if at < r.window.From {
		return s
	}
	for i := range r.nodes {
		if r.nodes[i].Phase != policy.NodeGone && !r.nodeX[i].billed {
			s.Bill += r.owed(policy.NodeID(i), at)
		}
	}
	for i := range r.gauges {
		w := &r.world.Workloads[i]
		if w.Kind == policy.KindJob || w.Kind == policy.KindDaemonSet {
			continue
		}
		g := r.gauges[i] // a copy: what is in hand goes on
		g.advance(at, r.window)
		g.close()
		unserved, incidents := g.outage(r.stage.podValue[i], w.OutagePenalty, w.OutageCostPerHour)
		s.OutageCost += 2*unserved + incidents
		if g.outages.Incidents > 0 {
			g.outages.Longest.Workload = w.Name
		}
		s.Outages.Add(&g.outages)
	}
	return s
}

func (r *run) counts(at policy.Time) Sample {
	h := &r.held
	return Sample{At: at, Reclaims: r.result.Reclaims, Evictions: r.result.VoluntaryEvictions,
		Nodes: h.nodes, SpotNodes: h.spotNodes, Size: h.size, SpotSize: h.spotSize}
}

// owed returns what a running node would be billed if it stopped at t, and of one
// that commitments may cover what it has come to.
func (r *run) owed(id policy.NodeID, t policy.Time) policy.Money {
	n := &r.nodes[id]
	life := billing.Span{From: n.Launched, To: t}
	switch {
	case r.metered(n.Market):
		return r.account.Owes(int(id), n.Market, t)
	case n.Bid > 0:
		// A node never pays more than its bid: neither after the price has passed it, to
		// the end, nor while nothing is offered and the price of before goes on.
		return r.stage.curves[n.Market].BillAtMost(life, r.window, n.Bid)
	}
	return r.stage.curves[n.Market].Bill(life, r.window)
}
