// Package guard puts limits around a policy: it removes from a plan what moves too
// much at once, too soon, or into markets without a trusted forecast, and hides
// markets that cost more than a pool may pay. It knows plans and snapshots, and no
// policy.
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
// While some observations of the cluster are stale, everything by choice is held.
//
// No guardrail holds a node under notice, which cannot stay, unless another controller is draining
// it. One node may always move, also in a small cluster in which a user has cordoned a node.
//
// It panics when cfg is not valid; see [Config.Validate].
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

	surveys scratch.Pool[survey] // memory to work in; no result depends on it
}

// Name returns the name of the guarded policy, since guardrails are the default.
func (g *guarded) Name() string { return g.policy.Name() }

// Decide returns the guarded policy's plan without what the guardrails hold.
func (g *guarded) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan, next := g.policy.Decide(s, m)
	if len(plan.Steers)+len(plan.Launches)+len(plan.Drains)+len(plan.DeletionCosts) == 0 {
		return plan, next
	}
	return g.review(s, m, plan, next)
}

// review is apart from Decide so that a plan without moves, the usual one,
// costs no allocation.
func (g *guarded) review(s *policy.Snapshot, m policy.Memory, plan policy.Plan, next policy.Memory) (policy.Plan,
	policy.Memory) {
	last := g.surveys.Get()
	r := review{survey: *last, trust: trust{s, g.cfg.ConfidenceMin}, before: &m, plan: plan}
	r.cfg, r.s, r.stale = &g.cfg, s, staleText(s)
	r.plan.Holds = slices.Clip(plan.Holds) // what is appended must not reach the policy's own list
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

// A review is one plan on its way through the guardrails.
type review struct {
	survey
	trust  trust
	before *policy.Memory

	// stale says why nothing is done by choice, empty where it may.
	stale string

	// plan is the rest of the plan; its lists are rebuilt.
	plan policy.Plan
}

// A survey is what the guardrails count of the pools, of the nodes that the plan
// drains and of the capacity that is free on the others, after the drains that were
// let through so far.
type survey struct {
	cfg *Config
	s   *policy.Snapshot

	placed  placed
	pools   []guardedPool // by PoolID
	leaving []leavingNode

	// replacements are the launches that are not held themselves, byToken the last of each
	// token, by position. found is what replacing returned last.
	replacements []replacement
	byToken      map[string]int32
	found        []int32

	// slot[n] is 1 + the index in leaving of node n, 0 if it is not there.
	slot []int32

	// wanted is by node 1 + the entry of the plan that gives its pods a deletion cost, 0 of none.
	wanted []int32

	// freeNodes are the nodes that stay, less the pods placed there so far. They are listed
	// when pods are placed first.
	freeNodes []freeNode
	listed    bool

	// movesLeft is how many more nodes may go by choice in the whole cluster.
	movesLeft int
}

// A replacement is a launch that a drain waits for or is replaced by. It is
// counted with the first such drain that is let through, and no more than once:
// one node does not make up for two.
type replacement struct {
	launch   *policy.Launch
	capacity policy.Resources // that it brings at least, whichever market it comes from
	counted  bool
	needed   need

	// forNode and forToken are 1 + the positions of others for the same node and of the
	// same token, 0 for no more.
	forNode, forToken int32
}

// A need says what becomes of the drains that a launch is for.
type need uint8

const (
	standsAlone need = iota // it needs no replacement
	forHeld                 // all are held
	forDrain                // for no drain
)

// A guardedPool is what the guardrails know of a pool.
type guardedPool struct {
	// requested and allocatable are of usable nodes, after the plan so far.
	requested, allocatable policy.Resources

	ours, drained        int   // nodes that we are emptying already, and drains let through
	underutilized, empty int   // what is left of the budgets
	spot, total          int64 // in units of the share, after the plan so far
	planned, moved       bool  // a drain by choice was planned; and was let through
}

// A leavingNode is a node that the plan drains, and what runs there.
type leavingNode struct {
	node        policy.NodeID
	pods        int              // that have to go elsewhere
	requests    policy.Resources // of displaced
	ending      policy.Resources // requests of pods that end with the node
	displaced   []policy.PodID   // pods that a controller creates again elsewhere
	critical    bool             // one is critical, or to be moved gracefully only
	pinned      bool             // one must not be disrupted, or no controller would create it again and it is not marked safe to evict
	unevictable bool             // the disruption budgets of one allow no eviction
	replaced    bool             // a replacement in the plan is let through
	placed      bool             // its pods took free capacity of other nodes
	allowed     bool             // the drain is let through
	forNode     int32            // 1 + the position of a replacement, 0 for none

	replacementHeld bool // a replacement in the plan is held
}

// moves reviews launches and drains together, since each may need the other.
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

// immediate returns d as it is carried out. A node under notice waits for no
// replacement, which could not come in time, and is drained before it is reclaimed.
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

// urgent reports whether d empties a node under notice.
func (r *survey) urgent(d *policy.Drain) bool { return r.s.Nodes[d.Node].ReclaimAt != 0 }

// node returns what is known of n, which the plan drains.
func (r *survey) node(n policy.NodeID) *leavingNode { return &r.leaving[r.slot[n]-1] }

// launches returns which of the launches are held, and records it with the nodes
// that they replace.
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

// whyHeldLaunch returns why l is held, and "" where it is not.
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

// staleText returns why nothing is done by choice on what s knows, and "" where it is fresh.
func staleText(s *policy.Snapshot) string {
	for i := range s.Sources {
		if x := &s.Sources[i]; x.Stale {
			return "stale data: nothing was heard of " + x.Name + " since " + x.At.String()
		}
	}
	return ""
}

// keepLaunches lets through what is neither held itself nor meant only for drains that
// are. What no drain waits for and replaces nothing stands alone.
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

// hold adds to the plan that something was left as it is.
func (r *review) hold(pool policy.PoolID, node policy.NodeID, why *policy.Why, reason policy.Reason, text string) {
	r.plan.Holds = append(r.plan.Holds, policy.Hold{Pool: pool, Node: node, Why: policy.Why{
		Reason: reason, Text: text, Before: why.Before, After: why.After, RunnerUp: why.RunnerUp,
	}})
}
