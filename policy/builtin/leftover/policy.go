// Package leftover is the policy that ranks markets: it steers a pool to buy in the cheapest few
// instance types and zones whose placement score is good enough, and to fall back to on-demand if
// no market qualifies.
//
// It is a complete implementation of Leftover, for GPUs and for everything else. The price of a
// market is the cost of the pool's own pods there, so that types of different size, memory and
// accelerators are comparable. A type that does not fit the pods by every filter of the scheduler
// (architecture, labels, taints, accelerator) is not considered. A score applies to one type in one
// zone. A chosen market stays chosen until another market is cheaper by a margin, or until its
// score falls below the minimum by more than a margin.
//
// An unpublished score is not a bad score: such a market passes. A market that refused a launch
// within the last half hour is ranked after all markets that did not.
//
// A steer moves no node. It names the chosen markets and the markets in which the pool has nodes,
// so that a provisioner that replaces nodes outside its requirements finds none; a market is
// dropped when its last node is gone. If no provisioner serves a pool, the policy itself launches,
// consolidates and replaces on-demand nodes with Spot. It also replaces them if a provisioner
// serves the pool with a share strictly between 0 and 1, since the provisioner would not.
//
// In a pool of jobs a refused launch does not fall back to on-demand while there are markets that
// have not been tried.
package leftover

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// Reasons that only this policy uses.
const (
	// ReasonRanking is the reason for a steer to the markets that rank first.
	ReasonRanking policy.Reason = "ranking"

	// ReasonStale is the reason for keeping the choice of a pool because prices are old.
	ReasonStale policy.Reason = "stale-prices"
)

// steerEvery is the minimum time between two changes of the choice that are not forced: each change
// writes to the provisioner's own objects.
const steerEvery = 10 * time.Minute

// A Policy ranks markets by price and placement score.
type Policy struct {
	cfg  Config
	name string
}

// New returns the policy, or an error that names the first parameter out of range.
func New(cfg Config) (*Policy, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Families = slices.Clone(cfg.Families)
	return &Policy{cfg: cfg, name: cfg.name()}, nil
}

// Name returns "leftover" followed by the parameters that differ from the default.
func (e *Policy) Name() string { return e.name }

// Decide steers each pool to the markets that rank first in it, and buys there for pools without a
// provisioner.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	r := newRanker(e.cfg, s)
	choices := make([]choice, len(s.Pools))
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.Mode == policy.ModeOff {
			continue
		}
		memory := m.Pool(p.Name)
		choices[i] = r.choose(p, &memory)
		plan.Holds = append(plan.Holds, choices[i].holds...)
		if e.steer(s, p, &choices[i], &memory, &plan) {
			m = m.With(memory)
		}
	}
	plan, m = buy(s, choices, plan, m)
	m.Decisions++
	return plan, m
}

// steer adds to plan a steer of p to c, unless p already has it or the choice changed too recently.
// It then records the steer in memory and reports true.
func (e *Policy) steer(s *policy.Snapshot, p *policy.Pool, c *choice, memory *policy.PoolMemory,
	plan *policy.Plan) bool {
	if len(c.markets) == 0 {
		return false
	}
	selected := names(s, c.markets)
	published := union(c.markets, c.kept)
	same := slices.Equal(names(s, published), merged(memory.Selected, memory.Kept)) && c.spotOnly == memory.SpotOnly
	x := policy.Steer{
		Pool: p.ID, Share: c.share, Exact: p.Share.Exact, Markets: published, Fallback: p.OnDemandFallback && !c.spotOnly,
	}
	last := policy.Steer{Share: c.share, Exact: x.Exact, Fallback: p.OnDemandFallback && !memory.SpotOnly}
	// A steer that was held or failed left the pool unchanged, so it is sent again.
	resend := !p.Steer.Follows(&last) || p.Steer.Since < memory.Steered || len(memory.Selected) == 0
	if same && !resend {
		return false
	}
	if due := memory.Steered.Add(steerEvery); !resend && !c.urgent && due > s.Now {
		plan.Wake = min(plan.Wake, due)
		return false
	}
	x.Bid, x.Why = bid(s, p.ID, c.markets), c.why
	plan.Steers = append(plan.Steers, x)
	memory.Selected, memory.Kept, memory.SpotOnly, memory.Steered = selected, names(s, c.kept), c.spotOnly, s.Now
	return true
}

// bid returns the maximum value of a node of pool in the auctions among markets.
func bid(s *policy.Snapshot, pool policy.PoolID, markets []policy.MarketID) policy.Money {
	return placement.Bid(narrowed(s, func(p *policy.Pool) []policy.MarketID {
		if p.ID == pool {
			return markets
		}
		return nil
	}), pool)
}

// buy adds to plan the launches, moves and consolidation that no provisioner does, within the
// choice for each pool.
func buy(s *policy.Snapshot, choices []choice, plan policy.Plan, m policy.Memory) (policy.Plan, policy.Memory) {
	view := narrowed(s, func(p *policy.Pool) []policy.MarketID { return choices[p.ID].markets })
	share := func(p policy.PoolID) float64 { return choices[p].share }
	launches, holds := placement.Shortages(view, share)
	plan.Launches, plan.Holds = append(plan.Launches, launches...), append(plan.Holds, holds...)
	for i := range view.Pools {
		if p := &view.Pools[i]; returns(p, choices[i].share) {
			toSpot(view, p, choices[i].share, m, &plan)
		}
	}
	return replan.Consolidate(view, plan, m, replan.ConsolidateOptions{Share: share})
}

// returns reports whether on-demand nodes of p return to Spot only if this policy moves them. That
// is so without a provisioner, and with one that serves a share strictly between 0 and 1, since it
// replaces nodes only with nodes of the same capacity type.
func returns(p *policy.Pool, share float64) bool {
	if p.Mode == policy.ModeOff {
		return false
	}
	return p.Provisioner == policy.ProvisionerNone || p.Levers.Launch && share > 0 && share < 1
}

// toSpot replaces on-demand nodes of p with Spot. It never does the reverse: a Spot node whose
// market has lost its rank keeps running.
func toSpot(s *policy.Snapshot, p *policy.Pool, share float64, m policy.Memory, plan *policy.Plan) {
	if at := placement.BalanceOf(s, p.ID); float64(at.Spot) < float64(share*float64(at.Total)) {
		replan.Towards(s, p, share, m, "Spot that ranks high enough is available again", plan)
	}
}

// narrowed returns s with the markets of each pool replaced with the result of markets; nil leaves
// a pool unchanged.
func narrowed(s *policy.Snapshot, markets func(*policy.Pool) []policy.MarketID) *policy.Snapshot {
	view := *s
	view.Pools = slices.Clone(s.Pools)
	for i := range view.Pools {
		if list := markets(&s.Pools[i]); list != nil {
			view.Pools[i].Markets = list
		}
	}
	return &view
}

// names returns the names of markets in ascending order.
func names(s *policy.Snapshot, markets []policy.MarketID) []string {
	if len(markets) == 0 {
		return nil
	}
	list := make([]string, len(markets))
	for i, m := range markets {
		list[i] = s.Markets[m].Name
	}
	slices.Sort(list)
	return list
}

// union returns the markets in a or b in ascending order.
func union(a, b []policy.MarketID) []policy.MarketID {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// merged returns the names in a or b in ascending order.
func merged(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
