package guard

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// count counts, once for a plan, what the guardrails look at.
func (r *survey) count(drains []policy.Drain) {
	s := r.s
	r.slot = make([]int32, len(s.Nodes))
	r.leaving = make([]leavingNode, 0, len(drains))
	for i := range drains {
		if n := drains[i].Node; r.slot[n] == 0 {
			r.leaving = append(r.leaving, leavingNode{node: n})
			r.slot[n] = int32(len(r.leaving))
		}
	}
	r.pools = make([]guardedPool, len(s.Pools))
	for i := range r.pools {
		p := &r.pools[i]
		p.underutilized = s.Disruptable(policy.PoolID(i), policy.Underutilized)
		p.empty = s.Disruptable(policy.PoolID(i), policy.Empty)
		h := share.Of(s, policy.PoolID(i))
		p.spot, p.total = h.Spot, h.Spot+h.Fixed
	}
	r.surveyNodes()
	r.surveyPods()
	r.surveyFree()
}

// surveyNodes counts how many nodes may still move. Nodes that others empty count
// against the fraction too, but leave one move: otherwise one node that somebody
// cordoned and forgot would hold a small cluster for as long as it exists.
func (r *survey) surveyNodes() {
	nodes, going, others := 0, 0, 0
	for i := range r.s.Nodes {
		n := &r.s.Nodes[i]
		if n.Pool == policy.None || n.Phase < policy.NodeInitialized {
			continue
		}
		nodes++
		p := &r.pools[n.Pool]
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

// surveyPods adds up what runs on each pool and on each node that is drained.
func (r *survey) surveyPods() {
	s := r.s
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase < policy.PodStarting || p.Node == policy.None {
			continue
		}
		n := &s.Nodes[p.Node]
		t := &s.Templates[p.Template]
		if n.Pool != policy.None && n.Usable() && n.ActedBy == policy.ActorNone {
			r.pools[n.Pool].requested = r.pools[n.Pool].requested.Plus(t.Requests)
		}
		if r.slot[p.Node] == 0 {
			continue
		}
		l := r.node(p.Node)
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

// unevictable reports whether the API server would refuse to evict p, and would go
// on refusing until something else changes. It refuses a pod that two disruption
// budgets select.
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

// surveyFree finds the free capacity of the nodes that stay. One that the plan drains
// has none, whether its drain is let through or held.
func (r *survey) surveyFree() {
	at := make([]int32, len(r.s.Nodes)) // 1 + the index in freeNodes
	for i := range r.s.Nodes {
		n := &r.s.Nodes[i]
		if n.Pool != policy.None && n.Usable() && n.ActedBy == policy.ActorNone && r.slot[i] == 0 {
			r.freeNodes = append(r.freeNodes, freeNode{n.Pool, n.Allocatable})
			at[i] = int32(len(r.freeNodes))
		}
	}
	for i := range r.s.Pods {
		p := &r.s.Pods[i]
		on := p.Node
		if p.Phase == policy.PodPending {
			on = p.Nominated
		}
		if p.Phase == policy.PodGone || on == policy.None || at[on] == 0 {
			continue
		}
		v := &r.freeNodes[at[on]-1]
		v.free = v.free.Minus(r.requests(policy.PodID(i)))
	}
}
