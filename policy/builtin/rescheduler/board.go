package rescheduler

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// triesMax is the maximum number of nodes that one round tries to empty. If there are more
// on-demand nodes, the next round starts with others, so that nodes that cannot be emptied do not
// block the others.
const triesMax = 48

// tightAt is the utilization of a pool, in [0, 1], above which its pods are not moved into the free
// capacity of other nodes: the guardrails would hold many such drains.
const tightAt = policy.UtilizationTight

// A board is the state of one round of drains: the space with the pods on the nodes where they will
// be after the drains planned so far.
type board struct {
	e       *Policy
	s       *policy.Snapshot
	plan    *policy.Plan
	pools   []pool
	cover   *billing.Coverage // of the nodes that remain after the drains planned so far
	targets []policy.NodeID   // see fullestFirst; nil until first needed

	// full[t] reports that no target has room for a pod of template t, whose placement depends on
	// no other pod. That does not change within the round.
	full []bool

	// placed are the bindings of the pods of the current node, and yielded the bindings of the pods
	// that made room.
	placed, yielded []placement.Binding
}

// A pool is the state of a pool in a round.
type pool struct {
	replan.Moves
	tight    bool             // too full to rely on the free capacity of other nodes
	offering *replan.Offering // what can be bought; nil until first needed
}

// newBoard returns the board of a round, which adds its drains to plan.
func (e *Policy) newBoard(s *policy.Snapshot, plan *policy.Plan) *board {
	e.space.Load(s)
	b := &board{e: e, s: s, plan: plan, pools: make([]pool, len(s.Pools)), cover: billing.CoverageOf(s),
		full: make([]bool, len(s.Templates))}
	allowed, headrooms := replan.Evictions(s), placement.Headrooms(s)
	for i := range b.pools {
		p := &b.pools[i]
		p.Moves = replan.NewMoves(s, policy.PoolID(i), plan)
		p.Space, p.Cover, p.Headroom, p.Allowed, p.MayLose = &e.space, b.cover, headrooms[i], allowed, e.cfg.DeleteNonReplicated
		requested, allocatable := p.Usage()
		p.tight = requested.LargestShare(allocatable) > tightAt
	}
	return b
}

// fullestFirst returns the Spot nodes that accept pods, in descending order of the largest share of
// one resource that was requested on them when the round started; ties are broken by name. Filling
// nodes that are nearly full keeps the free capacity of the others contiguous.
func (b *board) fullestFirst() []policy.NodeID {
	if b.targets == nil {
		b.targets = make([]policy.NodeID, 0, len(b.s.Nodes))
		for i := range b.s.Nodes {
			n := &b.s.Nodes[i]
			if n.Usable() && n.ActedBy == policy.ActorNone && n.Recommended == 0 && b.e.cfg.isSpot(b.s, n) {
				b.targets = append(b.targets, n.ID)
			}
		}
		placement.FullestFirst(b.s, &b.e.space, b.targets)
	}
	return b.targets
}

// empty plans to empty as many of nodes as the round may, in their order. Nodes with pods that
// would be lost permanently come last.
func (b *board) empty(nodes []policy.NodeID, round uint64) {
	nodes = slices.Clone(replan.Rotate(nodes, triesMax, round))
	lossy := slices.DeleteFunc(slices.Clone(nodes), func(n policy.NodeID) bool { return !b.losesPods(n) })
	drains := len(b.plan.Drains)
	for _, id := range append(slices.DeleteFunc(nodes, b.losesPods), lossy...) {
		n := &b.s.Nodes[id]
		p := &b.pools[n.Pool]
		if p.Left <= 0 {
			b.hold(p, policy.ReasonInProgress, "the limit of nodes that move at once is reached")
			continue
		}
		if !p.keepsShare(id, nil) {
			b.hold(p, policy.ReasonConfigured, "the pool would exceed its target Spot share")
			continue
		}
		if hold := b.move(n); hold.Reason != "" {
			p.Hold(id, hold)
		}
		if len(b.plan.Drains) > drains && b.e.cfg.Drains == OneNode {
			return
		}
	}
}

// hold adds a hold of p, once for each reason.
func (b *board) hold(p *pool, reason policy.Reason, text string) {
	if !slices.ContainsFunc(b.plan.Holds, func(h policy.Hold) bool {
		return h.Pool == p.Pool.ID && h.Node == policy.None && h.Why.Reason == reason
	}) {
		p.Hold(policy.None, policy.Why{Reason: reason, Text: text})
	}
}

// losesPods reports whether node n has a pod that has no controller and is not marked as safe to
// evict.
func (b *board) losesPods(n policy.NodeID) bool {
	return slices.ContainsFunc(b.e.space.Pods(n), func(id policy.PodID) bool {
		p := &b.s.Pods[id]
		t := &b.s.Templates[p.Template]
		return !t.DaemonSet && p.Phase != policy.PodTerminating && !t.SafeToEvict && b.s.Bare(t)
	})
}

// keepsShare reports whether the pool has no more Spot than its target once n is removed and the
// bought nodes have joined.
func (p *pool) keepsShare(n policy.NodeID, bought [][]policy.MarketID) bool {
	at := p.After([]policy.NodeID{n}, bought)
	return float64(at.Spot) <= float64(replan.Wanted(p.Pool)*float64(at.Total))
}

// move plans to empty n. The result has a reason if n is left alone for a reason worth reporting.
func (b *board) move(n *policy.Node) policy.Why {
	p := &b.pools[n.Pool]
	pods, careful, hold := b.leavers(n)
	if hold.Reason != "" || len(pods) == 0 {
		return hold // an empty node is released by the provisioner
	}
	if b.paid(n) {
		return policy.Why{Reason: policy.ReasonNoEdge, Text: "a commitment pays for it, so nothing would be saved"}
	}
	// Pods with a negative priority only reserve capacity for others, and need no place.
	rest := slices.DeleteFunc(slices.Clone(pods),
		func(q policy.Pod) bool { return b.s.Templates[q.Template].Priority < 0 })
	stays := careful || p.tight
	if stays && len(rest) > 0 {
		if hold := b.buys(n); hold.Reason != "" {
			return hold
		}
	}
	b.placed, b.yielded = b.placed[:0], b.yielded[:0]
	p.Lift(pods)
	if !stays {
		rest = b.displace(rest)
	}
	if len(rest) == 0 {
		b.leave(n)
	} else if hold := b.replace(n, rest); hold.Reason != "" {
		placement.UnbindAll(p.Space, b.placed)
		b.restore(0)
		p.SetDown(pods)
		return hold
	}
	p.Charge(pods)
	if n.Market != policy.None {
		b.cover.Add(n.Market, -1)
	}
	return policy.Why{}
}

// paid reports whether releasing n saves nothing, since commitments pay for it and would cover no
// other node instead.
func (b *board) paid(n *policy.Node) bool {
	return n.Market != policy.None && b.s.Markets[n.Market].Offered && b.cover.Covers(n.Market) &&
		b.cover.Saving(n.Market) == 0
}

// leavers returns the result of Leaving, with the pods sorted by descending CPU request, then by
// descending memory request.
func (b *board) leavers(n *policy.Node) ([]policy.Pod, bool, policy.Why) {
	pods, careful, hold := b.pools[n.Pool].Leaving(n.ID)
	placement.LargestFirst(b.s, pods)
	return pods, careful, hold
}

// displace binds each of pods to the first Spot node that accepts it, and returns the pods that no
// node accepts. The result reuses the memory of pods.
func (b *board) displace(pods []policy.Pod) []policy.Pod {
	rest := pods[:0]
	for i := range pods {
		p := &pods[i]
		if b.full[p.Template] || !b.settle(p) {
			b.full[p.Template] = b.full[p.Template] || len(b.placed) == 0 && plain(&b.s.Templates[p.Template])
			rest = append(rest, *p)
		}
	}
	return rest
}

// plain reports whether the placement of a pod of t depends only on resources and on no other pod:
// capacity that is missing then does not appear within the round.
func plain(t *policy.Template) bool {
	return len(t.Spread) == 0 && len(t.PodAffinity) == 0 && len(t.PodAntiAffinity) == 0 && len(t.HostPorts) == 0 &&
		len(t.Volumes) == 0
}

// settle binds p to the first Spot node that accepts it, and reports whether there is such a node.
func (b *board) settle(p *policy.Pod) bool {
	for _, n := range b.fullestFirst() {
		if b.takes(n, p) {
			b.e.space.Bind(p, n)
			b.placed = append(b.placed, placement.Binding{Pod: *p, Node: n})
			return true
		}
	}
	return false
}

// takes reports whether n accepts p, if necessary in place of pods that only reserve capacity; it
// unbinds these.
func (b *board) takes(n policy.NodeID, p *policy.Pod) bool {
	sp := &b.e.space
	refusal := sp.Check(p, n)
	if refusal == placement.OK || b.s.Templates[p.Template].PreemptionNever {
		return refusal == placement.OK
	}
	kept := len(b.yielded)
	for _, id := range sp.Pods(n) {
		q := &b.s.Pods[id]
		if t := &b.s.Templates[q.Template]; t.Priority < 0 && !t.DaemonSet && q.Phase != policy.PodTerminating {
			b.yielded = append(b.yielded, placement.Binding{Pod: *q, Node: n})
		}
	}
	if len(b.yielded) == kept {
		return false
	}
	placement.UnbindAll(sp, b.yielded[kept:])
	if sp.Check(p, n) == placement.OK {
		return true
	}
	b.restore(kept)
	return false
}

// restore binds all but the first kept of the pods that made room again.
func (b *board) restore(kept int) {
	for i := kept; i < len(b.yielded); i++ {
		b.e.space.Bind(&b.yielded[i].Pod, b.yielded[i].Node)
	}
	b.yielded = b.yielded[:kept]
}

// leave plans to drain n, whose pods all fit elsewhere.
func (b *board) leave(n *policy.Node) {
	why := policy.Why{Reason: ReasonFreeCapacity, Text: "all its pods fit on existing Spot nodes"}
	if n.Market != policy.None && b.s.Markets[n.Market].Offered {
		why.Before = b.cover.Saving(n.Market)
	}
	b.pools[n.Pool].Order(n.Name, []policy.NodeID{n.ID}, nil, why)
}
