package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A poolContext is one pool while a plan is made, and the plan. All parts of a planState
// share it, so that each sees what the others have planned and remembered.
type poolContext struct {
	e      *Policy
	s      *policy.Snapshot
	pool   *policy.Pool
	out    *policy.Plan
	memory policy.PoolMemory

	// changed says that the memory is not what it was.
	changed bool

	// sp is the snapshot with what is placed on paper. It is nil until it is needed, and
	// again after each step whose placements do not hold for the next one.
	sp *placement.Space
}

// space returns the nodes and what runs on them, with what is placed on paper.
func (x *poolContext) space() *placement.Space {
	if x.sp == nil {
		x.e.space.Load(x.s)
		x.sp = &x.e.space
	}
	return x.sp
}

// consolidates reports whether the policy moves pods in the pool to save money, and the
// provisioner does not.
func (x *poolContext) consolidates() bool {
	return !x.e.cfg.Fixed && x.pool.Provisioner == policy.ProvisionerKarpenter && x.pool.Levers.Launch
}

// leaves reports whether the plan empties node n already.
func (x *poolContext) leaves(n policy.NodeID) bool {
	for i := range x.out.Drains {
		if x.out.Drains[i].Node == n {
			return true
		}
	}
	return false
}

// holds reports whether p counts as one of the pool's.
func (x *poolContext) holds(p *policy.Pod) bool {
	if p.Phase == policy.PodGone || p.Phase == policy.PodTerminating {
		return false
	}
	at := p.Node
	if at < 0 {
		at = p.Nominated
	}
	return at >= 0 && x.s.Nodes[at].Pool == x.pool.ID || at < 0 && len(x.s.Pools) == 1
}
