package policy

import (
	"cmp"
	"slices"
)

// Guard returns p with guardrails around it: what p plans is left out of the
// plan, and named in a Hold, where it would move too much at once, too soon,
// into a market that nobody knows, or against a disruption budget that will
// not let it end.
//
// A guardrail never holds a node under notice: staying is no longer an option
// there, and only the work of somebody else is left alone. Nor does one hold
// for ever what a small cluster cannot divide: one node may always move, also
// while a node that somebody else cordoned stands there.
//
// It panics when cfg is not valid; [GuardConfig.Validate] tells before.
func Guard(p Policy, cfg GuardConfig) Policy {
	if err := cfg.Validate(); err != nil {
		panic(err.Error())
	}
	return &guarded{policy: p, cfg: cfg}
}

type guarded struct {
	policy Policy
	cfg    GuardConfig
}

// Name returns the name of the guarded policy: guardrails are the rule.
func (g *guarded) Name() string { return g.policy.Name() }

// Decide returns the guarded policy's plan without what the guardrails hold.
func (g *guarded) Decide(s *Snapshot, m Memory) (Plan, Memory) {
	plan, next := g.policy.Decide(s, m)
	if len(plan.Steers)+len(plan.Launches)+len(plan.Drains)+len(plan.DeletionCosts) == 0 {
		return plan, next
	}
	return g.review(s, m, plan, next)
}

// review is apart from Decide so that a plan without moves, the usual one,
// costs no allocation.
func (g *guarded) review(s *Snapshot, m Memory, plan Plan, next Memory) (Plan, Memory) {
	r := review{cfg: &g.cfg, s: s, before: &m, plan: plan}
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
	return r.plan, next
}

// A review is one plan on its way through the guardrails.
type review struct {
	cfg    *GuardConfig
	s      *Snapshot
	before *Memory

	// plan is what is left; its lists are built anew.
	plan Plan

	pools   []guardedPool // by PoolID
	leaving []leavingNode

	// replacements are the launches for drains that are not held themselves.
	replacements []replacement

	// slot[n] is 1 + the index in leaving of node n, 0 without one.
	slot []int32

	// vacancies are the nodes that stay, less what pods let go before take.
	vacancies []vacancy

	// movesLeft is how many more nodes may go by choice in the whole cluster.
	movesLeft int
}

// A replacement is a launch that a drain waits for or is replaced by. It is
// counted with the first such drain that is let through, and no more than once:
// one node does not make up for two.
type replacement struct {
	launch  *Launch
	room    Resources // that it brings at least, whichever market it comes from
	counted bool
}

// A guardedPool is what the guardrails know of a pool.
type guardedPool struct {
	// requested and allocatable are of usable nodes, after the plan so far.
	requested, allocatable Resources

	ours, kept           int   // nodes that we empty already, and drains let through
	underutilized, empty int   // what is left of the budgets
	spot, total          int64 // in units of the share, after the plan so far
	asked, moved         bool  // a drain by choice was planned; and was let through
}

// A leavingNode is a node that the plan drains, and what runs there.
type leavingNode struct {
	node     NodeID
	pods     int       // that have to go elsewhere
	asked    Resources // by them
	going    Resources // by pods that end with the node
	movers   []PodID   // those that asked is the sum of
	critical bool      // one is critical, or to be moved gracefully only
	pinned   bool      // one must not be disrupted, or nothing would make it anew and its owner did not call it safe to evict
	stuck    bool      // a disruption budget lets one of them never go
	replaced bool      // the plan buys a replacement that was let through
	settled  bool      // its pods took room on other nodes
	refused  bool      // the plan bought a replacement that was held
	kept     bool      // the drain was let through
}

// moves reviews launches and drains together, since each may need the other.
func (r *review) moves(launches []Launch, drains []Drain) {
	r.survey(drains)
	held := r.launches(launches)
	r.plan.Drains = make([]Drain, 0, len(drains))
	for _, urgent := range [...]bool{true, false} {
		for i := range drains {
			d := &drains[i]
			if r.urgent(d) != urgent {
				continue
			}
			n := r.node(d.Node)
			if n.kept {
				continue // planned twice
			}
			if reason, text := r.verdict(d, n); reason != "" {
				r.hold(r.s.Nodes[d.Node].Pool, d.Node, &d.Why, reason, text)
				continue
			}
			n.kept = true
			r.charge(d)
			r.plan.Drains = append(r.plan.Drains, r.hurried(d))
		}
	}
	r.keepLaunches(launches, drains, held)
}

// hurried returns d as it is carried out. A node under notice waits for no
// replacement, which could not come in time, and is left before it is taken.
func (r *review) hurried(d *Drain) Drain {
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
func (r *review) urgent(d *Drain) bool { return r.s.Nodes[d.Node].ReclaimAt != 0 }

func (r *review) node(n NodeID) *leavingNode { return &r.leaving[r.slot[n]-1] }

// launches returns which of the launches are held, and notes on the nodes that
// leave whether their replacements come.
func (r *review) launches(launches []Launch) []bool {
	held := make([]bool, len(launches))
	for i := range launches {
		l := &launches[i]
		held[i] = r.distrusted(l)
		if l.Replaces != None && r.slot[l.Replaces] != 0 {
			n := r.node(l.Replaces)
			n.replaced = n.replaced || !held[i]
			n.refused = n.refused || held[i]
		}
		if !held[i] {
			r.replacements = append(r.replacements, replacement{launch: l, room: r.leastRoom(l.Markets)})
		}
	}
	return held
}

// leastRoom returns what a node bought in any of markets brings at least.
func (r *review) leastRoom(markets []MarketID) Resources {
	var least Resources
	for i, m := range markets {
		x := r.s.Types[r.s.Markets[m].Type].Allocatable
		if i == 0 {
			least = x
			continue
		}
		least = Resources{
			CPU: min(least.CPU, x.CPU), Memory: min(least.Memory, x.Memory), Storage: min(least.Storage, x.Storage),
			GPU: min(least.GPU, x.GPU), Pods: min(least.Pods, x.Pods),
		}
	}
	return least
}

// keepLaunches lets through what is neither held itself nor meant only for
// drains that are.
func (r *review) keepLaunches(launches []Launch, drains []Drain, held []bool) {
	r.plan.Launches = make([]Launch, 0, len(launches))
	for i := range launches {
		l := launches[i]
		if held[i] {
			r.hold(l.Pool, l.Replaces, &l.Why, ReasonGuardrail, "low confidence: no forecast of its spot markets can be trusted")
			continue
		}
		if r.needed(&l, drains) {
			l.Markets = r.trusted(&l)
			r.plan.Launches = append(r.plan.Launches, l)
		}
	}
}

// needed reports whether a launch serves anything besides drains that were
// held. One that no drain waits for and that replaces nothing stands alone.
func (r *review) needed(l *Launch, drains []Drain) bool {
	alone := true
	for i := range drains {
		if drains[i].Node != l.Replaces && !slices.Contains(drains[i].After, l.Token) {
			continue
		}
		if r.node(drains[i].Node).kept {
			return true
		}
		alone = false
	}
	return alone
}

func (r *review) hold(pool PoolID, node NodeID, why *Why, reason Reason, text string) {
	r.plan.Holds = append(r.plan.Holds, Hold{Pool: pool, Node: node, Why: Why{
		Reason: reason, Text: text, Before: why.Before, After: why.After, RunnerUp: why.RunnerUp,
	}})
}

// survey counts, once for a plan, what the guardrails look at.
func (r *review) survey(drains []Drain) {
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
		p.underutilized = s.Disruptable(PoolID(i), Underutilized)
		p.empty = s.Disruptable(PoolID(i), Empty)
		h := s.Holding(PoolID(i))
		p.spot, p.total = h.Spot, h.Spot+h.Fixed
	}
	r.surveyNodes()
	r.surveyPods()
	r.surveyRoom()
}

// surveyNodes counts what may still go. What others empty counts against the
// fraction too, but not to the last node: a node that somebody cordoned and
// forgot would else hold a small cluster for as long as it stands.
func (r *review) surveyNodes() {
	nodes, going, others := 0, 0, 0
	for i := range r.s.Nodes {
		n := &r.s.Nodes[i]
		if n.Pool == None || n.Phase < NodeInitialized {
			continue
		}
		nodes++
		p := &r.pools[n.Pool]
		switch {
		case n.ReclaimAt == 0 && n.ActedBy > ActorUs:
			others++
		case n.Phase > NodeInitialized || n.ActedBy != ActorNone || n.ReclaimAt != 0:
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

func (r *review) surveyPods() {
	s := r.s
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase < PodStarting || p.Node == None {
			continue
		}
		n := &s.Nodes[p.Node]
		t := &s.Templates[p.Template]
		if n.Pool != None && n.Usable() && n.ActedBy == ActorNone {
			r.pools[n.Pool].requested = r.pools[n.Pool].requested.Plus(t.Requests)
		}
		if r.slot[p.Node] == 0 {
			continue
		}
		l := r.node(p.Node)
		if t.DaemonSet || p.Phase == PodTerminating {
			l.going = l.going.Plus(t.Requests)
			continue
		}
		l.pods++
		if s.bare(t) {
			l.going = l.going.Plus(t.Requests)
		} else {
			l.asked = l.asked.Plus(t.Requests)
			l.movers = append(l.movers, p.ID)
		}
		l.critical = l.critical || t.Critical || t.GracefulOnly
		l.pinned = l.pinned || p.DoNotDisrupt || t.NotSafeToEvict || s.bare(t) && !t.SafeToEvict
		l.stuck = l.stuck || s.stuck(p, t)
	}
}

// bare reports whether no controller would make a pod of t anew.
func (s *Snapshot) bare(t *Template) bool {
	return t.Workload == None || s.Workloads[t.Workload].Kind == KindBare
}

// stuck reports whether the API server would refuse to evict p, and would go
// on refusing until something else changes. The eviction API knows no answer
// for a pod with two disruption budgets.
func (s *Snapshot) stuck(p *Pod, t *Template) bool {
	switch len(t.PDBs) {
	case 0:
		return false
	case 1:
	default:
		return true
	}
	b := &s.PDBs[t.PDBs[0]]
	if p.Phase == PodStarting && (b.AlwaysAllowUnhealthy || b.Desired > 0 && b.Healthy >= b.Desired) {
		return false // an unready pod may go without being counted
	}
	return b.Allowed == 0
}

// remember returns m with the moves that were let through: when each pool was
// last moved, and until when each of the nodes is not tried again. It undoes
// what the policy noted of moves that were held.
func (r *review) remember(m Memory) Memory {
	for i := range r.pools {
		if !r.pools[i].asked {
			continue
		}
		pm := m.Pool(r.s.Pools[i].Name)
		pm.Moved = r.before.Pool(pm.Name).Moved
		if r.pools[i].moved {
			pm.Moved = r.s.Now
			pm.Backoff = r.backoff(PoolID(i), pm.Backoff)
		}
		m = m.With(pm)
	}
	return m
}

// backoff returns list without nodes that are gone and with those of pool that
// are drained now.
func (r *review) backoff(pool PoolID, list []Backoff) []Backoff {
	there := make([]bool, len(list))
	for i := range r.s.Nodes {
		if n := &r.s.Nodes[i]; n.Live() && n.Pool == pool {
			if at, ok := findBackoff(list, n.Name); ok {
				there[at] = true
			}
		}
	}
	next := make([]Backoff, 0, len(list)+len(r.leaving))
	for i := range list {
		if there[i] {
			next = append(next, list[i])
		}
	}
	for i := range r.leaving {
		n := &r.s.Nodes[r.leaving[i].node]
		if !r.leaving[i].kept || n.Pool != pool || n.ReclaimAt != 0 {
			continue
		}
		at, ok := findBackoff(next, n.Name)
		if !ok {
			next = slices.Insert(next, at, Backoff{Node: n.Name})
		}
		b := &next[at]
		b.Tries++
		wait := r.cfg.BackoffMax
		if shift := b.Tries - 1; shift < 16 {
			wait = min(wait, r.cfg.BackoffMin<<shift)
		}
		b.Until = r.s.Now.Add(wait)
	}
	return next
}

func findBackoff(list []Backoff, node string) (int, bool) {
	return slices.BinarySearchFunc(list, node, func(b Backoff, name string) int { return cmp.Compare(b.Node, name) })
}

// BackedOff reports whether the drain of node is not to be tried again at now.
func (m *PoolMemory) BackedOff(node string, now Time) bool {
	i, ok := findBackoff(m.Backoff, node)
	return ok && now < m.Backoff[i].Until
}

// charge counts a drain that was let through.
func (r *review) charge(d *Drain) {
	n := &r.s.Nodes[d.Node]
	if n.Pool == None {
		return
	}
	p := &r.pools[n.Pool]
	if l := r.node(d.Node); !l.settled && (r.urgent(d) || !l.replaced && len(d.After) == 0) {
		l.settled = r.settle(l) // they go now; without room for all of them they wait for a new node
	}
	p.kept++
	p.underutilized--
	p.empty--
	if r.urgent(d) {
		// The node is counted among those on their way out; its pods are not
		// yet among those that the rest of the pool has to carry.
		p.requested, p.allocatable = r.room(d)
		r.count(d)
		return
	}
	r.movesLeft--
	p.moved = true
	p.spot, p.total = r.after(d)
	p.requested, p.allocatable = r.room(d)
	r.count(d)
}

// comes reports whether x stands for what d drains and is not counted yet.
func (x *replacement) comes(d *Drain) bool {
	return !x.counted && (x.launch.Replaces == d.Node || slices.Contains(d.After, x.launch.Token))
}

// count marks what stands for d as counted.
func (r *review) count(d *Drain) {
	for i := range r.replacements {
		x := &r.replacements[i]
		x.counted = x.counted || x.comes(d)
	}
}

// room returns what the pool of d's node has to carry, and on what, once d is
// done and what stands for it has come.
func (r *review) room(d *Drain) (requested, allocatable Resources) {
	n, l := &r.s.Nodes[d.Node], r.node(d.Node)
	p := &r.pools[n.Pool]
	requested, allocatable = p.requested, p.allocatable
	if n.Usable() {
		requested, allocatable = requested.Minus(l.going), allocatable.Minus(n.Allocatable)
	} else {
		requested = requested.Plus(l.asked)
	}
	for i := range r.replacements {
		if x := &r.replacements[i]; x.comes(d) {
			allocatable = allocatable.Plus(x.room)
		}
	}
	return requested, allocatable
}
