package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A Policy holds a portfolio of markets in every pool. It works in memory of its
// own and serves one goroutine at a time.
type Policy struct {
	cfg  Config
	name string

	exposure workload.Exposure
	spread   capacitySpread
	moved    []podMove         // on paper, since exposure and spread were read
	sums     []lossSums        // by pool
	cover    *billing.Coverage // of the snapshot in hand and what is planned on it
	costs    []float64         // by market, dollars an hour for a node with what its loss costs

	losses podLosses // of the pool in hand

	pods       podIndex        // of the snapshot in hand
	nodes      nodeIndex       // its nodes
	names      nameOrder       // of these
	classes    nodeClasses     // of these
	roomy      roomyNodes      // of these
	ranking    ranking         // of those of the pool in hand
	mates      map[int64]int32 // pods of gangs by node and template
	nodeOffers []nodeOffer     // of the pool and capacity type in hand
	shares     []float64       // by pool, of those that are not off

	tags  []placement.Tags // by pool
	space placement.Space  // the memory of the last one
}

// New returns the policy, or says which parameter is out of range.
func New(cfg Config) (*Policy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	losses := podLosses{disturbance: cfg.Disturbance}
	return &Policy{cfg: cfg, name: cfg.name(), losses: losses, mates: map[int64]int32{}, ranking: ranking{texts: map[float64]string{}}}, nil
}

// Name returns "portfolio", with the parameters that differ from their defaults.
func (e *Policy) Name() string { return e.name }

// Decide steers every pool to the markets where the demand costs least, buys what nobody
// else buys, and moves what it pays to move.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	wanted := func(p policy.PoolID) float64 { return e.shares[p] }
	e.shares = scratch.Zeroed(e.shares, len(s.Pools))
	e.read(s)
	states := make([]*planState, len(s.Pools))
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Mode != policy.ModeOff {
			states[i] = newPlanState(e, s, p, &plan, m.Pool(p.Name))
			states[i].look()
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
		d.sp = nil // the next pool's is loaded in its memory
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

// read reads what is asked of s for every pool.
func (e *Policy) read(s *policy.Snapshot) {
	e.cover = billing.CoverageOf(s)
	last := e.pods.mark
	e.pods.read(s)
	e.readSums(s)
	e.nodes.read(s, last)
	e.classes.read(e, s, last)
	e.roomy.read(e, s, last)
}

// readMoves reads where pods stand. None has moved on paper.
func (e *Policy) readMoves(s *policy.Snapshot) {
	e.exposure.Read(s)
	e.spread.read(s, &e.pods)
	e.moved = e.moved[:0]
}

// offersIn returns the offers of pool in markets.
func (e *Policy) offersIn(s *policy.Snapshot, pool policy.PoolID, markets []policy.MarketID) []placement.Offer {
	return e.tagsOf(s, pool).OffersIn(s, pool, markets)
}

// labelsOf returns the labels of a node of pool in market id.
func (e *Policy) labelsOf(s *policy.Snapshot, pool *policy.Pool, id policy.MarketID) []policy.Label {
	return e.tagsOf(s, pool.ID).Labels(s, pool, id)
}

func (e *Policy) tagsOf(s *policy.Snapshot, pool policy.PoolID) *placement.Tags {
	if len(e.tags) != len(s.Pools) {
		e.tags = make([]placement.Tags, len(s.Pools))
	}
	return &e.tags[pool]
}
