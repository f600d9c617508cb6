package sim

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/controller"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/machines"
	"github.com/spotter-dev/spotter/sim/setup"
)

// A RunObserver is called during a run. It must change nothing: a run has the same hash with and
// without an observer.
type RunObserver interface {
	// Happened is called for every entry of the event log, in its order.
	Happened(Entry)

	// Settled is called after all events of an instant, and finally at the end of the window. The
	// Moment is valid until Settled returns.
	Settled(*Moment)
}

// An Entry is one entry of the event log.
type Entry = engine.Entry

// A Moment is the state of a run after all events of an instant.
type Moment struct {
	// Now is the instant, and Next the instant of the next event. Between them, only amounts that
	// accrue with time change.
	Now, Next policy.Time

	watch *watch
}

// Nodes returns the slots in which something changed since the previous moment. It may contain
// duplicates.
func (m *Moment) Nodes() []policy.NodeID { return m.watch.changedNodes }

// Workloads returns the workloads of which something changed since the previous moment. It may
// contain duplicates.
func (m *Moment) Workloads() []policy.WorkloadID { return m.watch.changedWork }

// Node returns the node in a slot, the requests of its pods and their number without those of
// DaemonSets. It returns false for an empty slot, and for a node that the provider has taken, even
// if the cluster has not noticed.
func (m *Moment) Node(id policy.NodeID) (n *policy.Node, requested policy.Resources, pods int32, ok bool) {
	c := m.watch.cluster
	n, x := &c.Nodes.All[id], &c.Nodes.State[id]
	if n.Phase == policy.NodeGone || x.Lost {
		return nil, policy.Resources{}, 0, false
	}
	return n, c.Space.Requested(id), x.Pods, true
}

// Workload returns the state of a workload.
func (m *Moment) Workload(id policy.WorkloadID) WorkloadState {
	return m.watch.cluster.Serving.State(id)
}

// Budgets returns the number of GPU budgets.
func (m *Moment) Budgets() int { return len(m.watch.cluster.GPUBudgets.All) }

// Budget returns the ledger of budget i at the last decision, or nil if it has no entries yet, and
// whether the gate is closed.
func (m *Moment) Budget(i int) (ledger *policy.BudgetMemory, closed bool) {
	b := &m.watch.cluster.GPUBudgets.All[i]
	return m.watch.controller.Saved().Budget(b.Name), b.Closed
}

// LossBudget returns the loss budget of a pool after the last decision, and whether the policy
// keeps one.
func (m *Moment) LossBudget(id policy.PoolID) (policy.LossBudget, bool) {
	return m.watch.controller.LossBudget(m.watch.Scenario.Pools[id].Name)
}

// Counts is like Costs at Now, but leaves the amounts of money and the outages at 0, because the
// time to compute them grows with the number of nodes.
func (m *Moment) Counts() Sample { return m.watch.counts(m.Now) }

// Costs returns the totals of the run at an instant from Now to Next.
func (m *Moment) Costs(at policy.Time) Sample { return m.watch.sample(at) }

// A watch reports events of a run to its observer, and takes the samples.
type watch struct {
	*setup.Run
	cluster    *cluster.Cluster
	machines   *machines.Machines
	controller *controller.Controller

	observer RunObserver // nil without an observer
	every    time.Duration

	// changedNodes and changedWork are the changes that are not yet reported to the observer.
	changedNodes []policy.NodeID
	changedWork  []policy.WorkloadID

	// sampleAt is the time of the next sample.
	sampleAt policy.Time

	// heldNow and heldBefore are the numbers of initialized nodes by market at the last sample and
	// at the one before.
	heldNow, heldBefore []int64
}

// subscribe subscribes the watch to the events that it reports.
func (wt *watch) subscribe() {
	wt.sampleAt = wt.Window.From
	if wt.every > 0 {
		wt.machines.Reclaimed.Subscribe(func(n policy.NodeID) {
			if wt.Metered() {
				wt.Result.Taken = append(wt.Result.Taken, Taken{At: wt.Clock.Now, Market: wt.cluster.Nodes.All[n].Market})
			}
		})
	}
	if wt.observer == nil {
		return
	}
	node := func(n policy.NodeID) { wt.changedNodes = append(wt.changedNodes, n) }
	work := func(w policy.WorkloadID) { wt.changedWork = append(wt.changedWork, w) }
	wt.cluster.NodeChanged.Subscribe(node)
	wt.cluster.PodsOfNode.Subscribe(node)
	wt.machines.Stopped.Subscribe(node)
	wt.cluster.WorkloadChanged.Subscribe(work)
	wt.cluster.ServingChanged.Subscribe(work)
}

// samplesMax prevents a too small Config.Sample from exhausting the memory.
const samplesMax = 1_000_000

func (c *Config) checkSample(window billing.Span) error {
	if c.Sample < 0 || c.Sample%time.Millisecond != 0 || c.Sample > 0 && window.Length()/c.Sample > samplesMax {
		return fmt.Errorf("sim: Config.Sample is %v; it is whole milliseconds, at least a %d-th of the window of %v",
			c.Sample, samplesMax, window.Length())
	}
	return nil
}

// passInstant calls the observer and takes the due samples, if no more events follow at the current
// instant.
func (wt *watch) passInstant() {
	next := wt.Window.To
	if at, ok := wt.Clock.Following(); ok {
		next = min(next, at)
	}
	if next == wt.Clock.Now {
		return
	}
	if wt.every > 0 {
		for ; wt.sampleAt < next; wt.sampleAt = wt.sampleAt.Add(wt.every) {
			wt.takeSample(wt.sampleAt)
		}
	}
	wt.report(next)
}

func (wt *watch) report(next policy.Time) {
	if wt.observer == nil {
		return
	}
	wt.observer.Settled(&Moment{Now: wt.Clock.Now, Next: next, watch: wt})
	wt.changedNodes, wt.changedWork = wt.changedNodes[:0], wt.changedWork[:0]
}

// passEnd does the same for the end of the window, after everything is accounted for.
func (wt *watch) passEnd() {
	wt.Clock.Now = wt.Window.To
	if wt.every > 0 {
		wt.takeSample(wt.Window.To)
	}
	wt.report(wt.Window.To)
}

// takeSample adds the totals of the run at an instant to the result.
func (wt *watch) takeSample(at policy.Time) {
	wt.Result.Samples = append(wt.Result.Samples, wt.sample(at))
	if wt.heldNow == nil {
		wt.heldNow, wt.heldBefore = make([]int64, len(wt.Scenario.Markets)), make([]int64, len(wt.Scenario.Markets))
	}
	wt.heldNow, wt.heldBefore = wt.heldBefore, wt.heldNow
	clear(wt.heldNow)
	for i := range wt.cluster.Nodes.State {
		if wt.cluster.Nodes.State[i].Held {
			wt.heldNow[wt.cluster.Nodes.All[i].Market]++
		}
	}
	for m, n := range wt.heldNow {
		if n != wt.heldBefore[m] {
			wt.Result.Held = append(wt.Result.Held, Held{At: at, Market: policy.MarketID(m), Nodes: n})
		}
	}
}

// sample returns the totals of the run at an instant. There must be no events between now and that
// instant. It changes nothing.
func (wt *watch) sample(at policy.Time) Sample {
	s := wt.counts(at)
	s.Bill, s.OutageCost = wt.Result.Bill, wt.Result.JobCost
	if at < wt.Window.From {
		return s
	}
	s.Bill += wt.machines.Bills.OwedByAll(at)
	wt.cluster.AddOutages(&s, at)
	return s
}

func (wt *watch) counts(at policy.Time) Sample {
	h := &wt.cluster.Nodes.Holding
	return Sample{At: at, Notices: wt.Result.Notices, Reclaims: wt.Result.Reclaims,
		Evictions: wt.Result.VoluntaryEvictions,
		Nodes:     h.Nodes, SpotNodes: h.SpotNodes, Size: h.Size, SpotSize: h.SpotSize}
}
