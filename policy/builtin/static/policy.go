// Package static is the policy that keeps a fixed Spot share whatever the market does: the baseline
// that any other policy must beat.
//
// It steers every pool to the share and moves running nodes towards it, a few at a time and
// replacement first, within the pool's disruption budgets. A pool within one node of the share is
// left alone, so that it does not oscillate.
package static

import (
	"fmt"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// A Policy keeps a fixed Spot share.
type Policy struct {
	cfg  Config
	name string
}

// New returns the policy, or an error if a parameter is out of range.
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

// Name returns "static", followed by the share if it is not one half.
func (e *Policy) Name() string { return e.name }

// Decide steers each pool to the share and moves its nodes towards it.
func (e *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Drains: placement.Notices(s), Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	wanted := func(p policy.PoolID) float64 { return e.share(&s.Pools[p]) }
	plan.Launches, plan.Holds = placement.Shortages(s, wanted)
	plan.Steers = replan.Steers(s, wanted, "the policy keeps a fixed Spot share")
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Mode != policy.ModeOff {
			share := e.share(p)
			replan.Towards(s, p, share, m, fmt.Sprintf("towards a Spot share of %.2f", share), &plan)
		}
	}
	m.Decisions++
	return replan.Consolidate(s, plan, m, replan.ConsolidateOptions{Share: wanted})
}

// share returns the configured share within the limits of p.
func (e *Policy) share(p *policy.Pool) float64 {
	return min(max(e.cfg.Share, p.Share.Min), p.Share.Max)
}
