package karpetrack

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/share"
)

// splitMax is the most nodes that are bought in place of one, and triesMax the most
// nodes for which replacements are packed in one step. The next step begins with
// others.
const (
	splitMax = 4
	triesMax = 24
)

// between is the least time between two rounds of replacements in a pool that
// states no cooldown of its own.
const between = 10 * time.Minute

// expireLead is how long before it expires a node's replacement is bought.
const expireLead = 30 * time.Minute

// renew plans to replace nodes of a pool by cheaper ones: the next step of a wave
// under way, the nodes that expire, a new wave, or single nodes, whichever comes
// first. It waits while pods wait for a node or a node is on its way.
func (e *Policy) renew(s *policy.Snapshot, m policy.Memory, plan *policy.Plan, id policy.PoolID) policy.Memory {
	p := &s.Pools[id]
	pm := m.Pool(p.Name)
	if !p.Levers.Launch && p.Provisioner != policy.ProvisionerNone || p.Consolidation == policy.ConsolidateNever && p.ExpireAfter == 0 {
		return m
	}
	b := newBoard(e, s, plan, id, &pm)
	switch {
	case pm.Wave.Since != 0:
		pm = b.endWave(pm)
	case b.unsettled():
		return m
	default:
		b.survey()
		if !b.expire() && p.Consolidation != policy.ConsolidateNever {
			pm = b.improve(pm)
		}
	}
	if b.changed {
		m = m.With(pm)
	}
	return m
}

// improve looks for cheaper machines: for single nodes, and where nothing is to be
// gained there and it is time for it, for several together.
func (b *board) improve(pm policy.PoolMemory) policy.PoolMemory {
	c := &b.e.cfg
	if pm.Moved != 0 && b.s.Now.Sub(pm.Moved) < b.cooldown() {
		return pm
	}
	if b.replaceDear() {
		return pm
	}
	if !c.Periodic || !b.pool.SelfProvisioned() ||
		pm.Packed != 0 && b.s.Now.Sub(pm.Packed) < c.PeriodicInterval {
		return pm
	}
	pm.Packed, b.changed = b.s.Now, true
	if wave, ok := b.beginWave(); ok {
		pm.Wave = wave
	}
	return pm
}

func (b *board) cooldown() time.Duration {
	if b.pool.Cooldown > 0 {
		return b.pool.Cooldown
	}
	return between
}

// A board is where the renewal of one pool is worked out.
type board struct {
	e    *Policy
	s    *policy.Snapshot
	plan *policy.Plan
	pool *policy.Pool

	sp      *placement.Space
	cover   *billing.Coverage
	at      placement.Balance // after the replacements planned so far
	share   float64           // of spot that the pool is to have
	left    int               // nodes that may still go
	allowed []int32           // evictions left, by disruption budget
	memory  *policy.PoolMemory

	nodes    []policy.NodeID // that may be replaced
	offers   [2][]placement.Offer
	floor    [2]placement.Floor // below which none of the offers holds pods
	made     [2]bool
	headroom placement.Headroom // after what is bought on this board
	changed  bool               // the memory was written
}

func newBoard(e *Policy, s *policy.Snapshot, plan *policy.Plan, id policy.PoolID, pm *policy.PoolMemory) *board {
	return &board{e: e, s: s, plan: plan, pool: &s.Pools[id], share: replan.Wanted(&s.Pools[id]), cover: billing.CoverageOf(s), headroom: placement.HeadroomOf(s, id), memory: pm}
}

// unsettled reports whether the pool is on the move anyway: pods wait for nodes
// that nobody else buys, or a node of it is on its way in or out.
func (b *board) unsettled() bool {
	for i := range b.plan.Launches {
		if b.plan.Launches[i].Pool == b.pool.ID {
			return true
		}
	}
	if b.pool.SelfProvisioned() {
		for i := range b.s.Pods {
			if p := &b.s.Pods[i]; p.Phase == policy.PodPending && !p.Gated && !b.s.Templates[p.Template].DaemonSet {
				return true
			}
		}
	}
	return slices.ContainsFunc(b.s.Nodes, func(n policy.Node) bool {
		return n.Pool == b.pool.ID && n.Live() && (n.Phase < policy.NodeInitialized && b.pool.SelfProvisioned() || n.ReclaimAt != 0)
	})
}

// survey collects the nodes that may be replaced and what bounds their number.
func (b *board) survey() {
	s := b.s
	b.at = placement.BalanceOf(s, b.pool.ID)
	b.left = s.Disruptable(b.pool.ID, policy.Underutilized) - b.at.Moving
	b.allowed = make([]int32, len(s.PDBs))
	for i := range s.PDBs {
		b.allowed[i] = s.PDBs[i].Allowed
	}
	for i := range b.plan.Drains {
		if n := &s.Nodes[b.plan.Drains[i].Node]; n.Pool == b.pool.ID && n.ReclaimAt == 0 {
			b.left--
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == b.pool.ID && n.Usable() && n.ActedBy == policy.ActorNone && !n.DoNotDisrupt && n.Market != policy.None &&
			s.Markets[n.Market].Capacity != policy.Reserved && !b.memory.BackedOff(n.Name, s.Now) {
			b.nodes = append(b.nodes, n.ID)
		}
	}
}

// space returns the space of the snapshot, made when it is first needed.
func (b *board) space() *placement.Space {
	if b.sp == nil {
		b.sp = placement.FromSnapshot(b.s)
	}
	return b.sp
}

// price returns what is saved per hour without n: what it costs, or what is left
// of that where it was paid for in advance. A market that sells nothing any more
// has no price: what it costs on demand stands for it.
func (b *board) price(n *policy.Node) policy.Money {
	m := &b.s.Markets[n.Market]
	switch {
	case b.cover.Covers(m.ID):
		return b.cover.Saving(m.ID)
	case m.Offered:
		return m.Charge()
	}
	return m.OnDemand
}

// replaceDear plans to replace the nodes whose pods others hold for less by the
// threshold, those that save most first, and reports whether there are any.
func (b *board) replaceDear() bool {
	if b.left <= 0 || len(b.nodes) == 0 {
		return false
	}
	type dear struct {
		node   policy.NodeID
		saving policy.Money // at most
	}
	var list []dear
	b.offersOf(policy.Spot)
	b.offersOf(policy.OnDemand)
	for _, id := range b.nodes {
		n := &b.s.Nodes[id]
		need := b.space().Requested(id)
		least := min(b.floor[policy.Spot].Cost(need), b.floor[policy.OnDemand].Cost(need))
		before := b.price(n)
		if most := b.limit(before); need.Pods > 0 && least <= most.Float() {
			list = append(list, dear{id, before - policy.Dollars(least)})
		}
	}
	slices.SortFunc(list, func(x, y dear) int {
		return cmp.Or(cmp.Compare(y.saving, x.saving), cmp.Compare(b.s.Nodes[x.node].Name, b.s.Nodes[y.node].Name))
	})
	list = replan.Rotate(list, triesMax, uint64(b.s.Now/policy.DefaultStep))
	before := len(b.plan.Drains)
	for _, d := range list {
		if b.left <= 0 {
			break
		}
		n := &b.s.Nodes[d.node]
		b.replace(n, b.limit(b.price(n)), policy.ReasonCheaper)
	}
	return len(b.plan.Drains) > before
}

// limit returns the most that may be paid in place of what cost before.
func (b *board) limit(before policy.Money) policy.Money {
	return before - before.Times(b.pool.SavingsThreshold)
}

// expire plans to replace the nodes that have reached the pool's age, or are
// about to, whatever that costs. It reports whether there are any.
func (b *board) expire() bool {
	if b.pool.ExpireAfter == 0 {
		return false
	}
	old := slices.DeleteFunc(slices.Clone(b.nodes), func(id policy.NodeID) bool {
		return b.s.Now.Sub(b.s.Nodes[id].Launched) < b.pool.ExpireAfter-min(expireLead, b.pool.ExpireAfter/2)
	})
	slices.SortFunc(old, func(x, y policy.NodeID) int {
		return cmp.Or(cmp.Compare(b.s.Nodes[x].Launched, b.s.Nodes[y].Launched), cmp.Compare(b.s.Nodes[x].Name, b.s.Nodes[y].Name))
	})
	for _, id := range old[:min(len(old), triesMax)] {
		if b.left <= 0 {
			break
		}
		b.replace(&b.s.Nodes[id], 1<<62, ReasonExpired)
	}
	return len(old) > 0
}

// replace plans to buy what holds the pods of n for at most the given price, and
// to drain n once it is ready.
func (b *board) replace(n *policy.Node, most policy.Money, reason policy.Reason) {
	pods, why := b.leavers(n)
	if why.Reason != "" {
		b.plan.Holds = append(b.plan.Holds, policy.Hold{Pool: b.pool.ID, Node: n.ID, Why: why})
		return
	}
	if len(pods) == 0 {
		if reason == ReasonExpired {
			b.drain(n, nil, policy.Why{Reason: reason, Text: "it reached the pool's age, and nothing runs on it", Before: b.price(n)})
		}
		return
	}
	sp := b.space()
	for i := range pods {
		sp.Unbind(&pods[i], n.ID)
	}
	p, ok := b.cheapest(n, pods, most)
	for i := range pods {
		sp.Bind(&pods[i], n.ID) // until the new nodes are there they count where they are
	}
	if !ok {
		if reason == ReasonExpired {
			b.plan.Holds = append(b.plan.Holds, policy.Hold{Pool: b.pool.ID, Node: n.ID, Why: policy.Why{
				Reason: policy.ReasonInfeasible, Text: "it reached the pool's age, and nothing that can be bought holds its pods", Before: b.price(n),
			}})
		}
		return
	}
	before := b.price(n)
	text := fmt.Sprintf("its pods cost %s an hour on %s and %s where they are; %s", p.cost.Short(), machines(len(p.nodes)), before.Short(), p.quality)
	if reason == ReasonExpired {
		text = "it reached the pool's age; " + text
	}
	why = policy.Why{Reason: reason, Text: text, Before: before, After: p.cost}
	b.drain(n, b.launch(n.Name, []policy.NodeID{n.ID}, p, why), why)
	b.at = b.moved(n, p)
	b.charge(pods)
}

func machines(n int) string {
	if n == 1 {
		return "one new machine"
	}
	return fmt.Sprintf("%d new machines", n)
}

// drain plans to drain n after the launches of tokens.
func (b *board) drain(n *policy.Node, after []string, why policy.Why) {
	b.plan.Drains = append(b.plan.Drains, policy.Drain{Node: n.ID, After: after, Why: why})
	b.left--
}

// launch plans the machines of p in place of nodes, and returns the tokens. key
// tells the tokens of one instant apart.
func (b *board) launch(key string, nodes []policy.NodeID, p purchase, why policy.Why) []string {
	tokens := make([]string, len(p.nodes))
	for i, markets := range p.nodes {
		l := replan.Launch(b.s, b.pool, key, i, markets, nodes[min(i, len(nodes)-1)], why)
		b.plan.Launches, tokens[i] = append(b.plan.Launches, l), l.Token
		b.headroom.Take(markets)
	}
	return tokens
}

// moved returns where the pool stands when n is gone and p has come.
func (b *board) moved(n *policy.Node, p purchase) placement.Balance {
	at := b.at
	size := share.Units(b.s, b.pool.ID, n.Market)
	at.Total -= size
	if b.s.Markets[n.Market].Capacity == policy.Spot {
		at.Spot -= size
	}
	for _, markets := range p.nodes {
		size := share.Units(b.s, b.pool.ID, markets[0])
		at.Total += size
		if b.s.Markets[markets[0]].Capacity == policy.Spot {
			at.Spot += size
		}
	}
	return at
}

// keeps reports whether a pool that stands at after has no more spot than it is
// to have and no less than it must, or is at least no further off than before.
func (b *board) keeps(after placement.Balance) bool {
	spot, total := float64(after.Spot), float64(after.Total)
	was := float64(b.at.Spot) / max(float64(b.at.Total), 1)
	switch {
	case after.Total == 0:
		return true
	case spot > float64(b.share*total) && spot > float64(was*total):
		return false
	case b.pool.Share.Exact && spot < float64(b.share*total) && spot < float64(was*total):
		return false
	}
	return spot >= float64(b.pool.Share.Min*total) || spot >= float64(was*total)
}
