// Package guard puts limits around a policy: it removes from a plan the moves that are too many at
// once, too soon, or into markets without a trusted forecast, and hides markets that cost more than
// a pool may pay. It uses only plans and snapshots and does not depend on any policy.
package guard

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// Around returns p with guardrails: an entry of p's plan is left out, and reported in a Hold, if it
// would move too many nodes at once, too soon after the last move, into a market without a trusted
// forecast, or against a disruption budget that allows no eviction.
//
// While some observations of the cluster are stale, all voluntary changes are held.
//
// No guardrail holds a node under notice, which cannot stay, unless another controller is draining
// it. One node may always move, even in a small cluster in which a user has cordoned a node.
//
// It panics if cfg is not valid; see [Config.Validate].
func Around(p policy.Policy, cfg Config) policy.Policy {
	if err := cfg.Validate(); err != nil {
		panic(err.Error())
	}
	return &guarded{policy: p, cfg: cfg}
}

// A guarded is a policy whose plans are reviewed.
type guarded struct {
	policy policy.Policy
	cfg    Config

	surveys scratch.Pool[survey] // reusable memory; no result depends on it
}

// Name returns the name of the guarded policy, since guardrails are the default.
func (g *guarded) Name() string { return g.policy.Name() }

// Decide returns the guarded policy's plan without the entries that the guardrails hold.
func (g *guarded) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan, next := g.policy.Decide(s, m)
	if len(plan.Steers)+len(plan.Launches)+len(plan.Drains)+len(plan.DeletionCosts) == 0 {
		return plan, next
	}
	return g.review(s, m, plan, next)
}

// review is separate from Decide so that a plan without moves, the usual case, causes no
// allocation.
func (g *guarded) review(s *policy.Snapshot, m policy.Memory, plan policy.Plan, next policy.Memory) (policy.Plan,
	policy.Memory) {
	last := g.surveys.Get()
	r := review{survey: *last, trust: trust{s, g.cfg.ConfidenceMin}, before: &m, plan: plan}
	r.cfg, r.s, r.stale = &g.cfg, s, staleText(s)
	r.plan.Holds = slices.Clip(plan.Holds) // appending must not change the policy's own list
	if len(plan.Steers) > 0 {
		r.steers(plan.Steers)
	}
	if len(plan.Drains)+len(plan.Launches) > 0 {
		r.moves(plan.Launches, plan.Drains)
		next = r.remember(next)
	}
	if len(plan.DeletionCosts) > 0 {
		r.patches(plan.DeletionCosts)
	}
	*last = r.survey.emptied()
	g.surveys.Put(last)
	return r.plan, next
}

// A review is the state of one plan under review.
type review struct {
	survey
	trust  trust
	before *policy.Memory

	// stale is the reason why voluntary changes are held; empty if they are allowed.
	stale string

	// plan is the result; its lists are rebuilt.
	plan policy.Plan
}

// A survey is the guardrails' accounting of the pools, of the nodes that the plan drains and of the
// free capacity on the others, after the drains allowed so far.
type survey struct {
	cfg *Config
	s   *policy.Snapshot

	placed  placed
	pools   []guardedPool // by PoolID
	leaving []leavingNode

	// replacements are the launches that are not held themselves. byToken is, by token, 1 + the
	// index of the last replacement with it. found is the last result of replacing.
	replacements []replacement
	byToken      map[string]int32
	found        []int32

	// slot[n] is 1 + the index of node n in leaving, or 0 if it is not there.
	slot []int32

	// wanted is, by node, 1 + the index of the entry of the plan that sets the deletion cost of its
	// pods, or 0 without one.
	wanted []int32

	// freeNodes are the nodes that stay, less the pods placed there so far. They are listed when
	// the first pods are placed.
	freeNodes []freeNode
	listed    bool

	// movesLeft is how many more nodes of the whole cluster may move voluntarily.
	movesLeft int
}

// A replacement is a launch that a drain waits for or that replaces its node. It counts for the
// first such drain that is allowed, and only once: one node does not make up for two.
type replacement struct {
	launch   *policy.Launch
	capacity policy.Resources // lower bound over its markets
	counted  bool
	needed   need

	// forNode and forToken are 1 + the index of another replacement for the same node and with the
	// same token, or 0 if there are no more.
	forNode, forToken int32
}

// A need describes the drains that a launch is for.
type need uint8

const (
	standsAlone need = iota // the launch is for no drain
	forHeld                 // all its drains are held
	forDrain                // a drain of it is allowed
)

// A guardedPool is the guardrails' accounting of a pool.
type guardedPool struct {
	// requested and allocatable are totals over usable nodes, after the plan so far.
	requested, allocatable policy.Resources

	ours, drained        int   // nodes already leaving, not drained by other controllers; drains allowed
	underutilized, empty int   // disruptions that the budgets still allow
	spot, total          int64 // in units of the share, after the plan so far
	planned, moved       bool  // a voluntary drain was planned; one was allowed
}

// A leavingNode is a node that the plan drains, with its pods.
type leavingNode struct {
	node        policy.NodeID
	pods        int              // number of pods that must move
	requests    policy.Resources // of displaced
	ending      policy.Resources // requests of pods that end with the node
	displaced   []policy.PodID   // pods that a controller creates again elsewhere
	critical    bool             // a pod is critical, or must be moved gracefully
	pinned      bool             // a pod must not be disrupted, or is bare and not marked safe to evict
	unevictable bool             // the disruption budgets of a pod allow no eviction
	replaced    bool             // a replacement in the plan is allowed
	placed      bool             // its pods took free capacity of other nodes
	allowed     bool             // the drain is allowed
	forNode     int32            // 1 + the index of a replacement, 0 without one

	replacementHeld bool // a replacement in the plan is held
}

// moves reviews launches and drains together, since they depend on each other.
func (r *review) moves(launches []policy.Launch, drains []policy.Drain) {
	r.count(drains)
	held := r.launches(launches)
	r.plan.Drains = make([]policy.Drain, 0, len(drains))
	for _, urgent := range [...]bool{true, false} {
		for i := range drains {
			d := &drains[i]
			if r.urgent(d) != urgent {
				continue
			}
			n := r.node(d.Node)
			if n.allowed {
				continue // planned twice
			}
			if reason, text := r.whyHeld(d, n); reason != "" {
				r.hold(r.s.Nodes[d.Node].Pool, d.Node, &d.Why, reason, text)
				continue
			}
			n.allowed = true
			r.countDrain(d)
			r.plan.Drains = append(r.plan.Drains, r.immediate(d))
		}
	}
	r.keepLaunches(launches, drains, held)
}

// immediate returns d as it is carried out. The drain of a node under notice does not wait for a
// replacement, which could not start in time, and must end before the node is reclaimed.
func (r *review) immediate(d *policy.Drain) policy.Drain {
	x := *d
	if taken := r.s.Nodes[d.Node].ReclaimAt; taken != 0 {
		x.After = nil
		if x.Deadline == 0 || x.Deadline > taken {
			x.Deadline = taken
		}
	}
	return x
}

// urgent reports whether d drains a node under notice.
func (r *survey) urgent(d *policy.Drain) bool { return r.s.Nodes[d.Node].ReclaimAt != 0 }

// node returns the entry of n, which the plan must drain.
func (r *survey) node(n policy.NodeID) *leavingNode { return &r.leaving[r.slot[n]-1] }

// launches returns, by launch, whether it is held. It records the replacements and the nodes that
// they replace.
func (r *review) launches(launches []policy.Launch) []bool {
	held := make([]bool, len(launches))
	for i := range launches {
		l := &launches[i]
		reason, _ := r.whyHeldLaunch(l)
		held[i] = reason != ""
		x := replacement{launch: l}
		if l.Replaces != policy.None && r.slot[l.Replaces] > 0 {
			n := r.node(l.Replaces)
			n.replaced = n.replaced || !held[i]
			n.replacementHeld = n.replacementHeld || held[i]
			if x.forNode = n.forNode; !held[i] {
				n.forNode = int32(len(r.replacements)) + 1
			}
		}
		if !held[i] {
			x.capacity, x.forToken = r.leastCapacity(l.Markets), r.byToken[l.Token]
			r.replacements = append(r.replacements, x)
			r.byToken[l.Token] = int32(len(r.replacements))
		}
	}
	return held
}

// whyHeldLaunch returns why l is held; the reason is empty if it is not.
func (r *review) whyHeldLaunch(l *policy.Launch) (policy.Reason, string) {
	switch {
	case r.stale != "" && r.trust.byChoice(l):
		return policy.ReasonStale, r.stale
	case r.s.Pools[l.Pool].Closed() != "" && r.trust.byChoice(l):
		return policy.ReasonGuardrail, r.s.Pools[l.Pool].Closed()
	case r.trust.distrusted(l):
		return policy.ReasonGuardrail, "low confidence: no forecast for its Spot markets is reliable"
	}
	return "", ""
}

// staleText returns why voluntary changes are held because of stale data; it is empty if s is
// fresh.
func staleText(s *policy.Snapshot) string {
	for i := range s.Sources {
		if x := &s.Sources[i]; x.Stale {
			return "stale data: nothing was heard of " + x.Name + " since " + x.At.String()
		}
	}
	return ""
}

// keepLaunches allows the launches that are neither held themselves nor needed only for drains that
// are held. A launch that no drain waits for and that replaces no drained node needs no drain.
func (r *review) keepLaunches(launches []policy.Launch, drains []policy.Drain, held []bool) {
	r.plan.Launches = make([]policy.Launch, 0, len(launches))
	for i := range drains {
		for _, at := range r.replacing(&drains[i]) {
			x := &r.replacements[at]
			if x.needed = max(x.needed, forHeld); r.node(drains[i].Node).allowed {
				x.needed = forDrain
			}
		}
	}
	next := 0
	for i := range launches {
		l := launches[i]
		if held[i] {
			reason, text := r.whyHeldLaunch(&l)
			r.hold(l.Pool, l.Replaces, &l.Why, reason, text)
			continue
		}
		needed := r.replacements[next].needed
		next++
		if change := r.s.LaunchChange(&l); needed == standsAlone && !r.s.Pools[l.Pool].Approves(change) {
			r.hold(l.Pool, l.Replaces, &l.Why, policy.ReasonApproval, policy.Proposal+change)
			continue
		}
		if needed != forHeld {
			l.Markets = r.trust.trusted(&l)
			r.plan.Launches = append(r.plan.Launches, l)
		}
	}
}

// hold adds a hold to the plan.
func (r *review) hold(pool policy.PoolID, node policy.NodeID, why *policy.Why, reason policy.Reason, text string) {
	r.plan.Holds = append(r.plan.Holds, policy.Hold{Pool: pool, Node: node, Why: policy.Why{
		Reason: reason, Text: text, Before: why.Before, After: why.After, RunnerUp: why.RunnerUp,
	}})
}
