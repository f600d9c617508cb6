package rescheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/share"
)

// triesMax is the most nodes that one round tries to empty. Where more stand on
// demand the next round begins with others, so that those that cannot be emptied
// keep no other from it.
const triesMax = 48

// tightAt is the utilization of a pool above which its pods are not left to the
// room of other nodes: the guardrails would hold many such drains.
const tightAt = policy.UtilizationTight

// A board is where one round of drains is worked out: the space with the pods
// where they will be after the drains planned so far.
type board struct {
	e *Policy
	s *policy.Snapshot

	sp      *placement.Space
	cover   *billing.Coverage // of the nodes that are left after the drains planned so far
	targets []rankedNode      // see fullestFirst; none before it was asked for

	// full[t] says that no target has room for a pod of template t, whose
	// place depends on no other pod: that stays so for the round.
	full []bool

	// allowed is what is left of each disruption budget.
	allowed []int32

	pools     []boardPool
	headrooms []placement.Headroom // by pool, after what the round buys

	steps []step // what was done to sp for the node at hand

	// These are of the node at hand, but for candidates: the pods that leave it, those of them
	// that need a place and have none yet, and what they ask of each disruption budget.
	leaver, rest []*policy.Pod
	need         []int32
	candidates   []policy.NodeID

	launches []policy.Launch
	drains   []policy.Drain
	holds    []policy.Hold
}

// A boardPool is what a round knows of a pool.
type boardPool struct {
	at    placement.Balance // after the drains planned so far
	left  int               // drains that the disruption budgets still allow
	tight bool              // too full to rely on the room of other nodes

	market market // what can be bought; made when first needed
}

// A step is a pod put on a node or taken off it.
type step struct {
	pod  *policy.Pod
	node policy.NodeID
	on   bool
}

func (e *Policy) newBoard(s *policy.Snapshot) *board {
	e.space.Load(s)
	e.nodes.readSpace(s, &e.space, &e.cfg)
	b := &e.board
	*b = board{
		e: e, s: s, sp: &e.space, cover: billing.CoverageOf(s), full: scratch.Zeroed(b.full, len(s.Templates)),
		allowed: scratch.Zeroed(b.allowed, len(s.PDBs)), need: scratch.Zeroed(b.need, len(s.PDBs)), pools: scratch.Zeroed(b.pools, len(s.Pools)),
		headrooms: placement.Headrooms(s), steps: b.steps[:0], leaver: b.leaver, rest: b.rest, candidates: b.candidates,
	}
	for i := range s.PDBs {
		b.allowed[i] = s.PDBs[i].Allowed
	}
	for i := range s.Pools {
		id := policy.PoolID(i)
		at, used := placement.BalanceOf(s, id), &e.nodes.used[1+i]
		b.pools[i] = boardPool{
			at: at, left: s.Disruptable(id, policy.Underutilized) - at.Moving, tight: used.requested.LargestShare(used.allocatable) > tightAt,
		}
	}
	return b
}

// fullestFirst returns the spot nodes that take pods by the largest share of one resource
// that was requested of them when the round began, the fullest first, then by name: filling
// up what is nearly full keeps the room of the others in one piece.
func (b *board) fullestFirst() []rankedNode {
	if b.targets == nil {
		b.targets = b.e.nodes.fullest.order()
	}
	return b.targets
}

// empty plans to empty nodes, in their order, as many as the round may.
func (b *board) empty(nodes []policy.NodeID, round uint64) {
	nodes = replan.Rotate(nodes, triesMax, round)
	lossy := slices.IndexFunc(nodes, b.losesPods)
	if lossy >= 0 {
		// What would lose pods for ever comes after all others.
		slices.SortStableFunc(nodes, func(x, y policy.NodeID) int { return cmp.Compare(rank(b.losesPods(x)), rank(b.losesPods(y))) })
	}
	for _, id := range nodes {
		n := &b.s.Nodes[id]
		if b.pools[n.Pool].left <= 0 {
			b.hold(n.Pool, policy.ReasonInProgress, "the limit of nodes that move at once is reached")
			continue
		}
		if _, ok := b.without(n); !ok {
			b.hold(n.Pool, policy.ReasonConfigured, "the pool would exceed its target Spot share")
			continue
		}
		if hold := b.move(n); hold.Reason != "" {
			b.holds = append(b.holds, policy.Hold{Pool: n.Pool, Node: id, Why: hold})
			continue
		}
		if len(b.drains) > 0 && b.e.cfg.Drains == OneNode {
			return
		}
	}
}

// hold holds pool, once for each reason.
func (b *board) hold(pool policy.PoolID, reason policy.Reason, text string) {
	for i := range b.holds {
		if h := &b.holds[i]; h.Pool == pool && h.Node == policy.None && h.Why.Reason == reason {
			return
		}
	}
	b.holds = append(b.holds, policy.Hold{Pool: pool, Node: policy.None, Why: policy.Why{Reason: reason, Text: text}})
}

func rank(later bool) int {
	if later {
		return 1
	}
	return 0
}

// losesPods reports whether a pod of node n has no controller and was not said
// to be safe to evict.
func (b *board) losesPods(n policy.NodeID) bool {
	return slices.ContainsFunc(b.sp.Pods(n), func(id policy.PodID) bool {
		p := &b.s.Pods[id]
		t := &b.s.Templates[p.Template]
		return !t.DaemonSet && p.Phase != policy.PodTerminating && !t.SafeToEvict && b.s.Bare(t)
	})
}

// move plans to empty n. What it returns has a reason when n is left alone for
// one that is worth reporting.
func (b *board) move(n *policy.Node) policy.Why {
	pods, careful, hold := b.leavers(n)
	if hold.Reason != "" || len(pods) == 0 {
		return hold // an empty node is the provisioner's to give back
	}
	if b.paid(n) {
		return policy.Why{Reason: policy.ReasonNoEdge, Text: "a commitment pays for it, so nothing would be saved"}
	}
	need, hold := b.evictable(pods)
	if hold.Reason != "" {
		return hold
	}
	rest, stays := b.placed(pods), careful || b.pools[n.Pool].tight
	if stays && len(rest) > 0 {
		if hold := b.buys(n); hold.Reason != "" {
			return hold
		}
	}
	b.steps = b.steps[:0]
	for _, p := range pods {
		b.put(p, n.ID, false)
	}
	if !stays {
		rest = b.displace(rest)
	}
	if len(rest) == 0 {
		b.leave(n)
	} else {
		hold = b.replace(n, rest)
	}
	if hold.Reason != "" {
		b.undo()
		return hold
	}
	for i := range need {
		b.allowed[i] -= min(b.allowed[i], need[i])
	}
	b.pools[n.Pool].left--
	b.cover.Add(n.Market, -1)
	return policy.Why{}
}

// paid reports whether giving n back saves nothing, since commitments pay for it
// and would cover no other node instead.
func (b *board) paid(n *policy.Node) bool {
	return n.Market != policy.None && b.s.Markets[n.Market].Offered && b.cover.Covers(n.Market) && b.cover.Saving(n.Market) == 0
}

// leavers returns the pods that have to leave n, those that ask for the most CPU
// first, and whether one of them is moved only to a node that stands ready.
func (b *board) leavers(n *policy.Node) (pods []*policy.Pod, careful bool, hold policy.Why) {
	pods = b.leaver[:0]
	for _, id := range b.sp.Pods(n.ID) {
		p := &b.s.Pods[id]
		t := &b.s.Templates[p.Template]
		switch {
		case t.DaemonSet || p.Phase == policy.PodTerminating:
			continue
		case p.DoNotDisrupt || t.NotSafeToEvict:
			return nil, false, policy.Why{Reason: policy.ReasonGuardrail, Text: "a pod on the node must not be evicted"}
		case b.s.Bare(t) && !t.SafeToEvict && !b.e.cfg.DeleteNonReplicated:
			return nil, false, policy.Why{Reason: policy.ReasonGuardrail, Text: "a pod on the node is not replicated, so nothing would recreate it"}
		}
		careful = careful || t.Critical || t.GracefulOnly
		pods = append(pods, p)
	}
	byRequest(b.s, pods)
	b.leaver = pods
	return pods, careful, policy.Why{}
}

// byRequest sorts pods by falling request of CPU, then of memory.
func byRequest(s *policy.Snapshot, pods []*policy.Pod) {
	slices.SortFunc(pods, func(p, q *policy.Pod) int {
		x, y := &s.Templates[p.Template].Requests, &s.Templates[q.Template].Requests
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(p.ID, q.ID))
	})
}

// evictable returns what the eviction of pods asks of each disruption budget, or
// why it could not end.
func (b *board) evictable(pods []*policy.Pod) ([]int32, policy.Why) {
	need := scratch.Zeroed(b.need, len(b.allowed))
	for _, p := range pods {
		t := &b.s.Templates[p.Template]
		if len(t.PDBs) > 1 {
			// The eviction API knows no answer for a pod with two budgets.
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: a pod on the node has more than one disruption budget"}
		}
		for _, id := range t.PDBs {
			if !b.s.PDBs[id].Uncounted(p) {
				need[id]++
			}
		}
	}
	for _, p := range pods {
		t := &b.s.Templates[p.Template]
		for _, id := range t.PDBs {
			switch left := b.allowed[id]; {
			case need[id] == 0:
			case left <= 0:
				return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: the disruption budget of a pod on the node allows no eviction"}
			case waves(need[id], left)*turn(t) > replan.DrainTime:
				return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: the disruption budget of the node's pods allows too few evictions at a time"}
			}
		}
	}
	return need, policy.Why{}
}

// waves returns how often pods have to wait for those before them, with the first
// going at once.
func waves(need, allowed int32) time.Duration {
	return time.Duration((need - 1) / allowed)
}

// turn returns how long after an eviction of a pod of t another is ready in its
// place.
func turn(t *policy.Template) time.Duration {
	if t.Startup > 0 {
		return t.Grace + t.Startup
	}
	return t.Grace + replan.StartupUsual
}

// put puts p on n or takes it off, to be undone with the other steps.
func (b *board) put(p *policy.Pod, n policy.NodeID, on bool) {
	if on {
		b.sp.Bind(p, n)
	} else {
		b.sp.Unbind(p, n)
	}
	b.steps = append(b.steps, step{p, n, on})
}

// undo takes back what was done for the node at hand.
func (b *board) undo() { b.undoTo(0) }

func (b *board) undoTo(mark int) {
	for i := len(b.steps) - 1; i >= mark; i-- {
		if x := &b.steps[i]; x.on {
			b.sp.Unbind(x.pod, x.node)
		} else {
			b.sp.Bind(x.pod, x.node)
		}
	}
	b.steps = b.steps[:mark]
}

// placed returns those of pods that need a place elsewhere: one of priority
// below zero only keeps a place warm for others.
func (b *board) placed(pods []*policy.Pod) []*policy.Pod {
	b.rest = b.rest[:0]
	for _, p := range pods {
		if b.s.Templates[p.Template].Priority >= 0 {
			b.rest = append(b.rest, p)
		}
	}
	return b.rest
}

// displace puts pods, in their order, each on the first spot node that takes it,
// and returns, in the memory of pods, those that none takes.
func (b *board) displace(pods []*policy.Pod) []*policy.Pod {
	untouched, rest := true, pods[:0]
	for _, p := range pods {
		t := &b.s.Templates[p.Template]
		if b.full[p.Template] || !b.settle(p) {
			b.full[p.Template] = b.full[p.Template] || untouched && plain(t)
			rest = append(rest, p)
			continue
		}
		untouched = false
	}
	return rest
}

// plain reports whether the place of a pod of t depends on resources and on no
// other pod: room that there is not will then not come about in the round.
func plain(t *policy.Template) bool {
	return len(t.Spread) == 0 && len(t.PodAffinity) == 0 && len(t.PodAntiAffinity) == 0 && len(t.HostPorts) == 0 && len(t.Volumes) == 0
}

// settle puts p on the first spot node that takes it, and reports whether one
// does.
func (b *board) settle(p *policy.Pod) bool {
	for _, n := range b.fullestFirst() {
		if b.takes(n.id, p) {
			b.put(p, n.id, true)
			return true
		}
	}
	return false
}

// takes reports whether n takes p, where need be in place of pods that only keep
// the room warm: these it takes off.
func (b *board) takes(n policy.NodeID, p *policy.Pod) bool {
	refusal := b.sp.Check(p, n)
	if refusal == placement.OK || b.s.Templates[p.Template].PreemptionNever {
		return refusal == placement.OK
	}
	var yielding []*policy.Pod
	for _, id := range b.sp.Pods(n) {
		q := &b.s.Pods[id]
		if t := &b.s.Templates[q.Template]; t.Priority < 0 && !t.DaemonSet && q.Phase != policy.PodTerminating {
			yielding = append(yielding, q)
		}
	}
	if len(yielding) == 0 {
		return false
	}
	mark := len(b.steps)
	for _, q := range yielding {
		b.put(q, n, false)
	}
	if b.sp.Check(p, n) == placement.OK {
		return true
	}
	b.undoTo(mark)
	return false
}

// leave plans to drain n, all of whose pods have a place.
func (b *board) leave(n *policy.Node) {
	b.pools[n.Pool].at, _ = b.without(n)
	why := policy.Why{Reason: ReasonFreeCapacity, Text: "all its pods fit on existing Spot nodes"}
	if n.Market != policy.None && b.s.Markets[n.Market].Offered {
		why.Before = b.cover.Saving(n.Market)
	}
	b.drains = append(b.drains, policy.Drain{Node: n.ID, Why: why})
}

// without returns where the pool of n stands after n is gone and bought nodes of
// the given markets have come, and whether that is no more spot than it is to
// have.
func (b *board) without(n *policy.Node, bought ...policy.MarketID) (placement.Balance, bool) {
	at := b.pools[n.Pool].at
	if n.Market != policy.None {
		at.Total -= share.Units(b.s, n.Pool, n.Market)
	}
	for _, m := range bought {
		size := share.Units(b.s, n.Pool, m)
		at.Total += size
		at.Spot += size
	}
	return at, float64(at.Spot) <= float64(replan.Wanted(&b.s.Pools[n.Pool])*float64(at.Total))
}
