// Package portfolio is the policy that treats the nodes of a pool as a portfolio of markets: it
// holds the nodes that cost least including the cost of their expected losses, spreads them so that
// no single loss does harm, and moves pods only if the saving exceeds the cost of the move.
package portfolio

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A Policy holds a portfolio of markets in every pool. It reuses its own memory, so only one
// goroutine may use it at a time.
type Policy struct {
	cfg  Config
	name string

	exposure workload.Exposure
	spread   capacitySpread
	moved    []podMove         // tentative moves since exposure and spread were read
	pools    []poolScratch     // by pool
	cover    *billing.Coverage // of the current snapshot and what is planned on it

	pods       podIndex    // of the current snapshot
	nodes      nodeIndex   // of the current snapshot
	names      nameOrder   // of nodes
	classes    nodeClasses // of nodes
	roomy      roomyNodes  // of nodes
	ranking    ranking     // of the nodes of the current pool
	gangs      gangIndex   // of pods
	nodeOffers []nodeOffer // of the current pool and capacity type
	shares     []float64   // target Spot share by pool; 0 for pools that are off

	space placement.Space // kept to reuse its memory
}

// New returns the policy, or an error that names the first parameter out of range.
func New(cfg Config) (*Policy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Policy{cfg: cfg, name: cfg.name(), ranking: ranking{texts: map[float64]string{}}}, nil
}

// Name returns "portfolio" followed by the parameters that differ from the default.
func (e *Policy) Name() string { return e.name }

// Decide steers every pool to the markets where its demand costs least, buys for pools without a
// provisioner, and makes the moves that pay for themselves.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	wanted := func(p policy.PoolID) float64 { return e.shares[p] }
	e.shares = scratch.Zeroed(e.shares, len(s.Pools))
	e.read(s)
	states := make([]*planState, len(s.Pools))
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Mode != policy.ModeOff {
			states[i] = newPlanState(e, s, p, &plan, m.Pool(p.Name))
			e.shares[i] = states[i].choice.share
			if states[i].waiting.urgent && p.SelfProvisioned() {
				e.shares[i] = p.Share.Min
			}
		}
	}
	plan.Launches, plan.Holds = placement.Shortages(withheld(s, states), wanted)
	e.readMoves(s)
	for _, d := range states {
		if d == nil {
			continue
		}
		d.decide()
		d.sp = nil // the space of the next pool reuses its memory
		if d.changed {
			m = m.With(d.memory)
		}
	}
	e.addExposed(s, &plan)
	m.Decisions++
	launches, drains := len(plan.Launches), len(plan.Drains)
	plan, m = replan.Consolidate(s, plan, m, replan.ConsolidateOptions{Share: wanted})
	for _, d := range states {
		if d != nil {
			d.keepWithin(&plan, launches, drains)
		}
	}
	return plan, m
}

// read reads the parts of s that every pool needs.
func (e *Policy) read(s *policy.Snapshot) {
	e.cover = billing.CoverageOf(s)
	last := e.pods.mark
	e.pods.read(s)
	if len(e.pools) != len(s.Pools) {
		e.pools = make([]poolScratch, len(s.Pools))
	}
	e.gangs.read(s)
	e.nodes.read(s, last)
	e.classes.read(e, s, last)
	e.roomy.read(e, s, last)
}

// readMoves reads where pods run, and clears the tentative moves.
func (e *Policy) readMoves(s *policy.Snapshot) {
	e.exposure.Read(s)
	e.spread.read(s, &e.pods)
	e.moved = e.moved[:0]
}

// offersIn returns the offers of pool in markets.
func (e *Policy) offersIn(s *policy.Snapshot, pool policy.PoolID, markets []policy.MarketID) []placement.Offer {
	return e.pools[pool].tags.OffersIn(s, pool, markets)
}

// labelsOf returns the labels of a node of pool in market id.
func (e *Policy) labelsOf(s *policy.Snapshot, pool *policy.Pool, id policy.MarketID) []policy.Label {
	return e.pools[pool.ID].tags.Labels(s, pool, id)
}

// reportEvery is how often the effect of losing a group is reported, in addition to whenever a pool
// is steered.
const reportEvery = policy.Time(time.Hour / time.Millisecond)

// addExposed adds a hold for every workload that the loss of one market or zone would leave short
// of its required pods. The hold reports whether another placement avoids this.
func (e *Policy) addExposed(s *policy.Snapshot, plan *policy.Plan) {
	if s.Now%reportEvery != 0 && len(plan.Steers) == 0 {
		return
	}
	for w := range s.Workloads {
		if !e.exposure.Tracks(policy.WorkloadID(w)) {
			continue
		}
		l := e.exposure.Loss(policy.WorkloadID(w))
		for _, x := range [...]workload.Exposed{l.Market, l.Zone} {
			if l.Short(x) > 0 {
				plan.Holds = append(plan.Holds, policy.Hold{Pool: policy.None, Node: policy.None, Why: e.exposed(s, &l, x)})
			}
		}
	}
}

// exposed returns the explanation for a workload that the loss of x would leave short.
func (e *Policy) exposed(s *policy.Snapshot, l *workload.Loss, x workload.Exposed) policy.Why {
	name := s.Workloads[l.Workload].Name
	state := name + " is"
	switch {
	case x.Group.Market >= 0:
		state = "losing market " + s.Markets[x.Group.Market].Name + " would leave " + name
	case x.Group.Zone >= 0:
		state = "losing zone " + s.Zones[x.Group.Zone] + " would leave " + name
	}
	why := policy.Why{Reason: policy.ReasonRisk, Text: fmt.Sprintf("%s %s short of its minimum of %d",
		state, figures.Count(l.Short(x), "pod"), l.Required)}
	switch {
	case l.Mendable(x) <= 0:
		why.Reason = policy.ReasonInfeasible
		why.Text += "; no allowed placement avoids this"
	case l.Unavoidable(x) > 0:
		why.Text += fmt.Sprintf("; no allowed placement avoids %d of these", l.Unavoidable(x))
	default:
		why.Text += "; a wider spread avoids this"
	}
	return why
}
