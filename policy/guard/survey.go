package guard

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/share"
)

// emptied returns an empty survey that reuses the memory of r.
func (r *survey) emptied() survey {
	clear(r.leaving)
	clear(r.replacements)
	clear(r.byToken)
	return survey{
		pools: r.pools[:0], leaving: r.leaving[:0], replacements: r.replacements[:0], byToken: r.byToken, found: r.found, slot: r.slot[:0],
		wanted: r.wanted[:0], freeNodes: r.freeNodes[:0], placed: r.placed,
	}
}

// count sets up the survey of the pools, nodes and pods, once per plan.
func (r *survey) count(drains []policy.Drain) {
	s := r.s
	if r.byToken == nil {
		r.byToken = make(map[string]int32)
	}
	r.slot = scratch.Zeroed(r.slot, len(s.Nodes))
	for i := range drains {
		if n := drains[i].Node; r.slot[n] == 0 {
			r.leaving = append(r.leaving, leavingNode{node: n})
			r.slot[n] = int32(len(r.leaving))
		}
	}
	r.pools = scratch.Zeroed(r.pools, len(s.Pools))
	for i := range r.pools {
		p := &r.pools[i]
		p.underutilized = s.Disruptable(policy.PoolID(i), policy.Underutilized)
		p.empty = s.Disruptable(policy.PoolID(i), policy.Empty)
		h := share.Of(s, policy.PoolID(i))
		p.spot, p.total = h.Spot, h.Spot+h.Fixed
	}
	r.placed.read(s)
	r.surveyNodes()
	for i := range r.leaving {
		r.surveyPods(&r.leaving[i])
	}
}

// surveyNodes counts how many nodes may still move. Nodes that other controllers drain also count
// against the fraction, but leave one move: otherwise one node that was cordoned and forgotten
// would block a small cluster for as long as it exists.
func (r *survey) surveyNodes() {
	nodes, going, others := 0, 0, 0
	for i := range r.s.Nodes {
		n := &r.s.Nodes[i]
		if n.Pool == policy.None || n.Phase < policy.NodeInitialized {
			continue
		}
		nodes++
		p := &r.pools[n.Pool]
		if n.Usable() && n.ActedBy == policy.ActorNone {
			p.requested = p.requested.Plus(r.placed.nodes[i].standing)
		}
		switch {
		case n.ReclaimAt == 0 && n.ActedBy > policy.ActorUs:
			others++
		case n.Phase > policy.NodeInitialized || n.ActedBy != policy.ActorNone || n.ReclaimAt != 0:
			going++
			p.ours++
		case n.Usable():
			p.allocatable = p.allocatable.Plus(n.Allocatable)
		}
	}
	r.movesLeft = max(1, int(r.cfg.FractionMax*float64(nodes))) - going
	if r.movesLeft > 0 {
		r.movesLeft = max(1, r.movesLeft-others)
	}
}

// surveyPods reads the pods of a node that is drained.
func (r *survey) surveyPods(l *leavingNode) {
	s := r.s
	for _, id := range r.placed.on(l.node) {
		p := &s.Pods[id]
		t := &s.Templates[p.Template]
		if t.DaemonSet || p.Phase == policy.PodTerminating {
			l.ending = l.ending.Plus(t.Requests)
			continue
		}
		l.pods++
		if s.Bare(t) {
			l.ending = l.ending.Plus(t.Requests)
		} else {
			l.requests = l.requests.Plus(t.Requests)
			l.displaced = append(l.displaced, p.ID)
		}
		l.critical = l.critical || t.Critical || t.GracefulOnly
		l.pinned = l.pinned || p.DoNotDisrupt || t.NotSafeToEvict || s.Bare(t) && !t.SafeToEvict
		l.unevictable = l.unevictable || unevictable(s, p, t)
	}
}

// unevictable reports whether the API server would refuse to evict p, and would continue to refuse
// until something else changes. It refuses a pod that two disruption budgets select.
func unevictable(s *policy.Snapshot, p *policy.Pod, t *policy.Template) bool {
	switch len(t.PDBs) {
	case 0:
		return false
	case 1:
	default:
		return true
	}
	b := &s.PDBs[t.PDBs[0]]
	return b.Allowed == 0 && !b.Uncounted(p)
}
