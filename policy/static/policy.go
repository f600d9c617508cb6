// Package static is the policy that holds one spot share whatever the market
// does: the plain thing that a cleverer policy must beat.
//
// It steers every pool to the share and moves running nodes towards it, a few
// at a time and replacement first, as far as the pool's disruption budgets go.
// It leaves a pool alone that is within one of its nodes of the share, so that
// it comes to rest.
package static

import (
	"fmt"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
)

// A Policy holds one spot share.
type Policy struct {
	cfg  Config
	name string
}

// New returns the policy, or says which parameter is out of range.
func New(cfg Config) (*Policy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	name := "static"
	if cfg != DefaultConfig() {
		name += ":share=" + strconv.FormatFloat(cfg.Share, 'g', -1, 64)
	}
	return &Policy{cfg: cfg, name: name}, nil
}

// Name returns "static", with the share where it is not one half.
func (e *Policy) Name() string { return e.name }

// Decide steers each pool to the share and moves it there.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Drains: place.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	wanted := func(p policy.PoolID) float64 { return e.share(&s.Pools[p]) }
	plan.Launches, plan.Holds = place.Shortages(s, wanted)
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.Mode == policy.ModeOff {
			continue
		}
		share := e.share(p)
		if !p.Steer.Set || p.Steer.Share != share {
			plan.Steers = append(plan.Steers, policy.Steer{
				Pool: p.ID, Share: share, Exact: p.Share.Exact, Fallback: p.OnDemandFallback, Bid: place.Bid(s, p.ID),
				Why: policy.Why{Reason: policy.ReasonConfigured, Text: "the policy holds a fixed spot share"},
			})
		}
		if !place.Balance(s, p.ID).Off(share) {
			continue
		}
		memory := m.Pool(p.Name)
		launches, drains, holds := place.Shift(s, nil, place.ShiftOptions{
			Pool: p.ID, Share: share, DrainsMax: s.Disruptable(p.ID, policy.Underutilized),
			Reason:  policy.ReasonShare,
			Text:    fmt.Sprintf("towards a spot share of %.2f", share),
			Backoff: func(node string) bool { return memory.BackedOff(node, s.Now) },
		})
		plan.Launches = append(plan.Launches, launches...)
		plan.Drains = append(plan.Drains, drains...)
		plan.Holds = append(plan.Holds, holds...)
	}
	m.Decisions++
	return place.Consolidate(s, plan, m, wanted)
}

// share returns the wanted share within the bounds of p.
func (e *Policy) share(p *policy.Pool) float64 {
	return min(max(e.cfg.Share, p.Share.Min), p.Share.Max)
}
