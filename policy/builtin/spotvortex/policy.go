package spotvortex

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A Policy follows the rules of one [Config]. It does not change after [New], so any number of
// goroutines may use it.
type Policy struct {
	cfg  Config
	name string

	// scratch is reusable memory; no result depends on it.
	scratch scratch.Pool[buffers]
}

type buffers struct {
	workload workload.Scratch
	pools    []holdings
	space    placement.Space
	compat   compatScratch
}

// New returns the policy of cfg, with its parameters limited by [Config.Normal].
func New(cfg Config) *Policy {
	cfg = cfg.Normal()
	p := &Policy{cfg: cfg, name: "spotvortex"}
	if differs := cfg.String(); differs != "" {
		p.name += ":" + differs
	}
	return p
}

// Name returns "spotvortex" followed by the parameters that differ from the shipped ones.
func (p *Policy) Name() string { return p.name }

// Config returns the parameters in effect.
func (p *Policy) Config() Config { return p.cfg }

// Decide applies the rules to every pool that is not off.
func (p *Policy) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	sc := p.scratch.Get()
	defer p.scratch.Put(sc)
	m.Decisions++
	if p.cfg.Compat {
		return p.decideCompat(s.WithoutFees(), m, sc) // the agent knows only list prices
	}
	return p.decideMended(s, m, sc)
}

// text returns a decision's reason as a sentence.
func text(reason string) string {
	switch reason {
	case EmergencyRisk:
		return "the market is about to reclaim or refuse nodes: leave Spot"
	case HighRisk:
		return "the risk is high: reduce the Spot share by 30 points"
	case MediumRisk:
		return "the risk is elevated: reduce the Spot share by 10 points"
	case SafetyFast:
		return "the share is far above what the pods can afford to lose"
	case SafetyGradual:
		return "the share is above what the pods can afford to lose"
	case CapReached:
		return "the share is at what the pods can afford to lose"
	case SafetyFreeze:
		return "the pool could hardly absorb the loss of a node: no more Spot"
	case OutsideIncrease10:
		return "the workload is unusual, but the saving is large and the risk small"
	case OutsideHold:
		return "the workload is unusual, and the saving is too small or the risk too large"
	case EconomicIncrease3, EconomicIncrease1:
		return "Spot saves enough to pay for the move"
	case string(policy.ReasonConfigured):
		return "the pool sets an exact ratio"
	}
	return "Spot saves too little to pay for a move"
}
