package karpetrack

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/figures"
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
	b := newRenewal(e, s, plan, id, &pm)
	switch {
	case pm.Wave.Since != 0:
		w := waveUnderWay{b, &pm.Wave}
		pm = w.end(pm)
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
func (r *renewal) improve(pm policy.PoolMemory) policy.PoolMemory {
	c := &r.e.cfg
	if pm.Moved != 0 && r.s.Now.Sub(pm.Moved) < r.cooldown() {
		return pm
	}
	if r.replaceDear() {
		return pm
	}
	if !c.Periodic || !r.pool.SelfProvisioned() ||
		pm.Packed != 0 && r.s.Now.Sub(pm.Packed) < c.PeriodicInterval {
		return pm
	}
	pm.Packed, r.changed = r.s.Now, true
	if wave, ok := r.beginWave(); ok {
		pm.Wave = wave
	}
	return pm
}

// beginWave packs the pool anew on paper and, where that saves the threshold,
// plans to launch the machines of a first group. The nodes that they replace are
// drained later. It reports whether a wave begins.
func (r *renewal) beginWave() (policy.Wave, bool) {
	for _, c := range [...]policy.CapacityType{policy.Spot, policy.OnDemand} {
		x := repacking{r, c}
		nodes := x.group()
		if len(nodes) < 2 {
			continue
		}
		if !x.paysOnPaper(nodes) {
			continue
		}
		g, ok := x.bestGroup(nodes)
		if !ok {
			continue
		}
		return x.open(g), true
	}
	return policy.Wave{}, false
}

func (r *renewal) cooldown() time.Duration {
	if r.pool.Cooldown > 0 {
		return r.pool.Cooldown
	}
	return between
}

// A renewal works out which nodes of one pool are replaced, and by what.
type renewal struct {
	e    *Policy
	s    *policy.Snapshot
	plan *policy.Plan
	pool *policy.Pool

	pods   occupancy
	market marketplace

	cover  *billing.Coverage
	at     placement.Balance // after the replacements planned so far
	share  float64           // of spot that the pool is to have
	left   int               // nodes that may still go
	memory *policy.PoolMemory

	filter  *policy.BackoffFilter // of the memory; made when first needed
	changed bool                  // the memory was written
}

func newRenewal(e *Policy, s *policy.Snapshot, plan *policy.Plan, id policy.PoolID, pm *policy.PoolMemory) *renewal {
	p := &s.Pools[id]
	r := &renewal{e: e, s: s, plan: plan, pool: p, share: replan.Wanted(p), cover: billing.CoverageOf(s), memory: pm}
	r.pods = occupancy{e: e, s: s, pool: p}
	r.market = marketplace{s: s, pool: p, pods: &r.pods, headroom: placement.HeadroomOf(s, id)}
	return r
}

// unsettled reports whether the pool is on the move anyway: pods wait for nodes
// that nobody else buys, or a node of it is on its way in or out.
func (r *renewal) unsettled() bool {
	for i := range r.plan.Launches {
		if r.plan.Launches[i].Pool == r.pool.ID {
			return true
		}
	}
	if r.pool.SelfProvisioned() {
		for p := range r.s.Pending() {
			if !p.Gated && !r.s.Templates[p.Template].DaemonSet {
				return true
			}
		}
	}
	return in(r.s, r.pool.ID, r.e.nodes.noticed.All()) || r.pool.SelfProvisioned() && in(r.s, r.pool.ID, r.e.nodes.coming.All())
}

// survey collects what bounds the number of nodes that are replaced.
func (r *renewal) survey() {
	s := r.s
	r.at = placement.BalanceOf(s, r.pool.ID)
	r.left = s.Disruptable(r.pool.ID, policy.Underutilized) - r.at.Moving
	r.pods.allowed = make([]int32, len(s.PDBs))
	for i := range s.PDBs {
		r.pods.allowed[i] = s.PDBs[i].Allowed
	}
	for i := range r.plan.Drains {
		if n := &s.Nodes[r.plan.Drains[i].Node]; n.Pool == r.pool.ID && n.ReclaimAt == 0 {
			r.left--
		}
	}
}

// nodes returns the nodes that may be replaced.
func (r *renewal) nodes() (list []policy.NodeID) {
	for _, id := range r.e.nodes.movable.All() {
		if r.s.Nodes[id].Pool == r.pool.ID && !r.backedOff(id) {
			list = append(list, id)
		}
	}
	return list
}

// backedOff reports whether the drain of a node is not to be tried again now.
func (r *renewal) backedOff(id policy.NodeID) bool {
	if r.filter == nil {
		r.filter = r.memory.Filter(r.s.Now)
	}
	name := r.s.Nodes[id].Name
	return r.filter.May(name) && r.memory.BackedOff(name, r.s.Now)
}

// price returns what is saved per hour without n: what it costs, or what is left
// of that where it was paid for in advance. A market that sells nothing any more
// has no price: what it costs on demand stands for it.
func (r *renewal) price(n *policy.Node) policy.Money { return r.priceIn(n.Market) }

// priceIn returns the price of a node of a market.
func (r *renewal) priceIn(id policy.MarketID) policy.Money {
	m := &r.s.Markets[id]
	switch {
	case r.cover.Covers(m.ID):
		return r.cover.Saving(m.ID)
	case m.Offered:
		return m.Charge()
	}
	return m.OnDemand
}

func (r *renewal) prices(nodes []policy.NodeID) policy.Money {
	total := policy.Money(0)
	for _, id := range nodes {
		total += r.price(&r.s.Nodes[id])
	}
	return total
}

// replaceDear plans to replace the nodes whose pods others hold for less by the
// threshold, those that save most first, and reports whether there are any.
func (r *renewal) replaceDear() bool {
	if r.left <= 0 {
		return false
	}
	type dear struct {
		node   policy.NodeID
		saving policy.Money // at most
	}
	var list []dear
	spot, fixed := r.market.floorOf(policy.Spot), r.market.floorOf(policy.OnDemand)
	sp := r.pods.space()
	least := func(need policy.Resources) float64 { return min(spot.Cost(need), fixed.Cost(need)) }
	may := func(m policy.MarketID, need policy.Resources) bool {
		return least(need) <= r.limit(r.priceIn(m)).Float()
	}
	r.e.nodes.asked(sp, r.pool.ID, may, func(id policy.NodeID) {
		if need, m := sp.Requested(id), r.s.Nodes[id].Market; may(m, need) && !r.backedOff(id) {
			list = append(list, dear{id, r.priceIn(m) - policy.Dollars(least(need))})
		}
	})
	slices.SortFunc(list, func(x, y dear) int {
		return cmp.Or(cmp.Compare(y.saving, x.saving), cmp.Compare(r.s.Nodes[x.node].Name, r.s.Nodes[y.node].Name))
	})
	list = replan.Rotate(list, triesMax, uint64(r.s.Now/policy.DefaultStep))
	before := len(r.plan.Drains)
	for _, d := range list {
		if r.left <= 0 {
			break
		}
		n := &r.s.Nodes[d.node]
		r.replace(n, r.limit(r.price(n)), policy.ReasonCheaper)
	}
	return len(r.plan.Drains) > before
}

// limit returns the most that may be paid in place of what cost before.
func (r *renewal) limit(before policy.Money) policy.Money {
	return before - before.Times(r.pool.SavingsThreshold)
}

// expire plans to replace the nodes that have reached the pool's age, or are
// about to, whatever that costs. It reports whether there are any.
func (r *renewal) expire() bool {
	if r.pool.ExpireAfter == 0 {
		return false
	}
	old := r.e.nodes.aged(r.s, r.pool.ID, r.pool.ExpireAfter-min(expireLead, r.pool.ExpireAfter/2))
	old = slices.DeleteFunc(old, r.backedOff)
	slices.SortFunc(old, func(x, y policy.NodeID) int {
		return cmp.Or(cmp.Compare(r.s.Nodes[x].Launched, r.s.Nodes[y].Launched), cmp.Compare(r.s.Nodes[x].Name, r.s.Nodes[y].Name))
	})
	for _, id := range old[:min(len(old), triesMax)] {
		if r.left <= 0 {
			break
		}
		r.replace(&r.s.Nodes[id], 1<<62, ReasonExpired)
	}
	return len(old) > 0
}

// replace plans to buy what holds the pods of n for at most the given price, and
// to drain n once it is ready.
func (r *renewal) replace(n *policy.Node, most policy.Money, reason policy.Reason) {
	pods, why := r.pods.leavers(n)
	if why.Reason != "" {
		r.plan.Holds = append(r.plan.Holds, policy.Hold{Pool: r.pool.ID, Node: n.ID, Why: why})
		return
	}
	if len(pods) == 0 {
		if reason == ReasonExpired {
			r.drain(n, nil, policy.Why{Reason: reason, Text: "it reached the pool's expiry age and runs no pods", Before: r.price(n)})
		}
		return
	}
	sp := r.pods.space()
	for i := range pods {
		sp.Unbind(&pods[i], n.ID)
	}
	p, ok := r.cheapest(n, pods, most)
	for i := range pods {
		sp.Bind(&pods[i], n.ID) // until the new nodes are there they count where they are
	}
	if !ok {
		if reason == ReasonExpired {
			r.plan.Holds = append(r.plan.Holds, policy.Hold{Pool: r.pool.ID, Node: n.ID, Why: policy.Why{
				Reason: policy.ReasonInfeasible, Text: "it reached the pool's expiry age, but no node that can be bought fits its pods", Before: r.price(n),
			}})
		}
		return
	}
	before := r.price(n)
	text := fmt.Sprintf("its pods would cost %s an hour on %s instead of %s; %s", p.cost.Short(), machines(len(p.nodes)), before.Short(), p.quality)
	if reason == ReasonExpired {
		text = "it reached the pool's expiry age; " + text
	}
	why = policy.Why{Reason: reason, Text: text, Before: before, After: p.cost}
	r.drain(n, r.launch(n.Name, []policy.NodeID{n.ID}, p, why), why)
	r.at = r.moved(n, p)
	r.pods.charge(pods)
}

func machines(n int) string { return figures.Count(n, "new node") }

// cheapest returns the cheapest purchase that holds pods, which are bound
// nowhere, for at most the given price and leaves the pool the spot share that
// it is to have. Spot is looked at first.
func (r *renewal) cheapest(n *policy.Node, pods []policy.Pod, most policy.Money) (best purchase, found bool) {
	for _, c := range [...]policy.CapacityType{policy.Spot, policy.OnDemand} {
		p, ok := r.market.purchase(c, pods, splitMax, most)
		if ok && (!found || p.cost < best.cost) && r.keeps(r.moved(n, p)) {
			best, found = p, true
		}
	}
	return best, found
}

// drain plans to drain n after the launches of tokens.
func (r *renewal) drain(n *policy.Node, after []string, why policy.Why) {
	r.plan.Drains = append(r.plan.Drains, policy.Drain{Node: n.ID, After: after, Why: why})
	r.left--
}

// launch plans the machines of p in place of nodes, and returns the tokens. key
// tells the tokens of one instant apart.
func (r *renewal) launch(key string, nodes []policy.NodeID, p purchase, why policy.Why) []string {
	tokens := make([]string, len(p.nodes))
	for i, markets := range p.nodes {
		l := replan.Launch(r.s, r.pool, key, i, markets, nodes[min(i, len(nodes)-1)], why)
		r.plan.Launches, tokens[i] = append(r.plan.Launches, l), l.Token
		r.market.headroom.Take(markets)
	}
	return tokens
}

// moved returns where the pool stands when n is gone and p has come.
func (r *renewal) moved(n *policy.Node, p purchase) placement.Balance {
	at := r.at
	size := share.Units(r.s, r.pool.ID, n.Market)
	at.Total -= size
	if r.s.Markets[n.Market].Capacity == policy.Spot {
		at.Spot -= size
	}
	for _, markets := range p.nodes {
		size := share.Units(r.s, r.pool.ID, markets[0])
		at.Total += size
		if r.s.Markets[markets[0]].Capacity == policy.Spot {
			at.Spot += size
		}
	}
	return at
}

// keeps reports whether a pool that stands at after has no more spot than it is
// to have and no less than it must, or is at least no further off than before.
func (r *renewal) keeps(after placement.Balance) bool {
	spot, total := float64(after.Spot), float64(after.Total)
	was := float64(r.at.Spot) / max(float64(r.at.Total), 1)
	switch {
	case after.Total == 0:
		return true
	case spot > float64(r.share*total) && spot > float64(was*total):
		return false
	case r.pool.Share.Exact && spot < float64(r.share*total) && spot < float64(was*total):
		return false
	}
	return spot >= float64(r.pool.Share.Min*total) || spot >= float64(was*total)
}
