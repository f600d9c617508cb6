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
)

// splitMax is the maximum number of nodes that are bought to replace one, and triesMax the maximum
// number of nodes for which replacements are packed in one step. The next step starts with others.
const (
	splitMax = 4
	triesMax = 24
)

// between is the minimum time between two rounds of replacements in a pool that sets no cooldown.
const between = 10 * time.Minute

// expireLead is how long before a node expires its replacement is bought.
const expireLead = 30 * time.Minute

// renew plans the replacement of nodes of a pool with cheaper ones: the next step of a wave in
// progress, expired nodes, single nodes, or a new wave, whichever comes first. It waits while pods
// wait for a node or a node is starting.
func (e *Policy) renew(s *policy.Snapshot, m policy.Memory, plan *policy.Plan, id policy.PoolID) policy.Memory {
	p := &s.Pools[id]
	pm := m.Pool(p.Name)
	if !p.Levers.Launch && p.Provisioner != policy.ProvisionerNone ||
		p.Consolidation == policy.ConsolidateNever && p.ExpireAfter == 0 {
		return m
	}
	r := newRenewal(e, s, plan, id, &pm)
	switch {
	case pm.Wave.Since != 0:
		w := waveUnderWay{r, &pm.Wave}
		pm = w.end(pm)
	case r.unsettled():
		return m
	case !r.expire() && p.Consolidation != policy.ConsolidateNever:
		pm = r.improve(pm)
	}
	if r.changed {
		m = m.With(pm)
	}
	return m
}

// improve looks for cheaper machines: for single nodes, and if that saves nothing and the interval
// has passed, for several nodes together.
func (r *renewal) improve(pm policy.PoolMemory) policy.PoolMemory {
	c := &r.e.cfg
	if pm.Moved != 0 && r.S.Now.Sub(pm.Moved) < r.cooldown() {
		return pm
	}
	r.load()
	if r.replaceExpensive() {
		return pm
	}
	if !c.Periodic || !r.Pool.SelfProvisioned() ||
		pm.Packed != 0 && r.S.Now.Sub(pm.Packed) < c.PeriodicInterval {
		return pm
	}
	pm.Packed, r.changed = r.S.Now, true
	if wave, ok := r.beginWave(); ok {
		pm.Wave = wave
	}
	return pm
}

// beginWave repacks the pool tentatively and, if that saves the threshold, plans to launch the
// machines of a first group. The nodes that they replace are drained later. It reports whether a
// wave starts.
func (r *renewal) beginWave() (policy.Wave, bool) {
	for _, c := range [...]policy.CapacityType{policy.Spot, policy.OnDemand} {
		x := repacking{r, c}
		nodes := x.candidates()
		if len(nodes) < 2 || !x.pays(nodes) {
			continue
		}
		if g, ok := x.bestGroup(nodes); ok {
			return x.open(g), true
		}
	}
	return policy.Wave{}, false
}

func (r *renewal) cooldown() time.Duration {
	if r.Pool.Cooldown > 0 {
		return r.Pool.Cooldown
	}
	return between
}

// A renewal determines which nodes of one pool are replaced, and with what.
type renewal struct {
	replan.Moves
	e      *Policy
	share  float64             // target Spot share of the pool, in [0, 1]
	sold   [2]*replan.Offering // by capacity type; nil until first needed
	memory *policy.PoolMemory

	filter  *policy.BackoffFilter // filter of memory; nil until first needed
	changed bool                  // whether the memory must be written
}

func newRenewal(e *Policy, s *policy.Snapshot, plan *policy.Plan, id policy.PoolID, pm *policy.PoolMemory) *renewal {
	r := &renewal{Moves: replan.NewMoves(s, id, plan), e: e, share: replan.Wanted(&s.Pools[id]), memory: pm}
	r.Cover, r.Allowed = billing.CoverageOf(s), replan.Evictions(s)
	return r
}

// load loads the space. That takes longer than all other checks before pods are moved.
func (r *renewal) load() {
	r.Space = &r.e.space
	r.Space.Load(r.S)
	r.e.nodes.readSpace(r.S, r.Space)
}

// unsettled reports whether the pool is changing for other reasons: the plan launches nodes for it,
// pods wait for nodes that no provisioner buys, or a node of it is starting or under notice.
func (r *renewal) unsettled() bool {
	for i := range r.Plan.Launches {
		if r.Plan.Launches[i].Pool == r.Pool.ID {
			return true
		}
	}
	if r.Pool.SelfProvisioned() {
		for p := range r.S.Pending() {
			if !p.Gated && !r.S.Templates[p.Template].DaemonSet {
				return true
			}
		}
	}
	return in(r.S, r.Pool.ID, r.e.nodes.noticed.All()) ||
		r.Pool.SelfProvisioned() && in(r.S, r.Pool.ID, r.e.nodes.coming.All())
}

// nodes returns the nodes that may be replaced.
func (r *renewal) nodes() (list []policy.NodeID) {
	for _, id := range r.e.nodes.movable.All() {
		if r.S.Nodes[id].Pool == r.Pool.ID && !r.backedOff(id) {
			list = append(list, id)
		}
	}
	return list
}

// backedOff reports whether the drain of a node must not be tried again yet.
func (r *renewal) backedOff(id policy.NodeID) bool {
	if r.filter == nil {
		r.filter = r.memory.Filter(r.S.Now)
	}
	name := r.S.Nodes[id].Name
	return r.filter.May(name) && r.memory.BackedOff(name, r.S.Now)
}

// price returns what is saved per hour without n: its price, or the part of it that commitments do
// not pay. If its market is no longer offered, the on-demand price is used.
func (r *renewal) price(n *policy.Node) policy.Money { return r.priceIn(n.Market) }

// priceIn returns what is saved per hour without one node of a market.
func (r *renewal) priceIn(id policy.MarketID) policy.Money {
	m := &r.S.Markets[id]
	switch {
	case r.Cover.Covers(m.ID):
		return r.Cover.Saving(m.ID)
	case m.Offered:
		return m.Charge()
	}
	return m.OnDemand
}

func (r *renewal) prices(nodes []policy.NodeID) policy.Money {
	total := policy.Money(0)
	for _, id := range nodes {
		total += r.price(&r.S.Nodes[id])
	}
	return total
}

// replaceExpensive plans to replace nodes whose pods can run on cheaper ones that save at least the
// threshold, in order of descending possible saving. It reports whether it drains any.
func (r *renewal) replaceExpensive() bool {
	if r.Left <= 0 {
		return false
	}
	type candidate struct {
		node   policy.NodeID
		saving policy.Money // upper bound
	}
	var list []candidate
	spot, fixed := r.offering(policy.Spot).Floor, r.offering(policy.OnDemand).Floor
	least := func(need policy.Resources) float64 { return min(spot.Cost(need), fixed.Cost(need)) }
	may := func(m policy.MarketID, need policy.Resources) bool {
		return least(need) <= r.limit(r.priceIn(m)).Float()
	}
	r.e.nodes.asked(r.Space, r.Pool.ID, may, func(id policy.NodeID) {
		if need, m := r.Space.Requested(id), r.S.Nodes[id].Market; may(m, need) && !r.backedOff(id) {
			list = append(list, candidate{id, r.priceIn(m) - policy.Dollars(least(need))})
		}
	})
	slices.SortFunc(list, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.saving, x.saving), cmp.Compare(r.S.Nodes[x.node].Name, r.S.Nodes[y.node].Name))
	})
	list = replan.Rotate(list, triesMax, uint64(r.S.Now/policy.DefaultStep))
	before := len(r.Plan.Drains)
	for _, d := range list {
		if r.Left <= 0 {
			break
		}
		n := &r.S.Nodes[d.node]
		r.replace(n, r.limit(r.price(n)), policy.ReasonCheaper)
	}
	return len(r.Plan.Drains) > before
}

// limit returns the maximum price of replacements for nodes that cost before.
func (r *renewal) limit(before policy.Money) policy.Money {
	return before - before.Times(r.Pool.SavingsThreshold)
}

// expire plans to replace the nodes that have reached the pool's expiry age, or will soon, at any
// price. It reports whether there are any.
func (r *renewal) expire() bool {
	if r.Pool.ExpireAfter == 0 {
		return false
	}
	old := r.e.nodes.aged(r.S, r.Pool.ID, r.Pool.ExpireAfter-min(expireLead, r.Pool.ExpireAfter/2))
	old = slices.DeleteFunc(old, r.backedOff)
	slices.SortFunc(old, func(x, y policy.NodeID) int {
		return cmp.Or(cmp.Compare(r.S.Nodes[x].Launched, r.S.Nodes[y].Launched),
			cmp.Compare(r.S.Nodes[x].Name, r.S.Nodes[y].Name))
	})
	if len(old) > 0 {
		r.load()
	}
	for _, id := range old[:min(len(old), triesMax)] {
		if r.Left <= 0 {
			break
		}
		r.replace(&r.S.Nodes[id], 1<<62, ReasonExpired)
	}
	return len(old) > 0
}

// replace plans to buy nodes for the pods of n for at most the given price, and to drain n once
// they are ready.
func (r *renewal) replace(n *policy.Node, most policy.Money, reason policy.Reason) {
	expired := reason == ReasonExpired
	pods, _, hold := r.Leaving(n.ID)
	switch {
	case hold.Reason != "":
		r.Hold(n.ID, hold)
		return
	case len(pods) == 0 && expired:
		r.Drain(n.ID, nil, policy.Why{Reason: reason, Text: "it reached the pool's expiry age and runs no pods",
			Before: r.price(n)})
		return
	case len(pods) == 0:
		return
	}
	r.Lift(pods)
	p, ok := r.cheapest(n, pods, most)
	r.SetDown(pods) // until the new nodes exist, the pods count on their present nodes
	before := r.price(n)
	switch {
	case ok:
		text := fmt.Sprintf("its pods would cost %s an hour on %s instead of %s; %s", p.Cost.Short(),
			machines(len(p.Bought)), before.Short(), p.Quality)
		if expired {
			text = "it reached the pool's expiry age; " + text
		}
		nodes := []policy.NodeID{n.ID}
		r.Charge(pods)
		r.Order(n.Name, nodes, p.Bought, policy.Why{Reason: reason, Text: text, Before: before, After: p.Cost})
	case expired:
		r.Hold(n.ID, policy.Why{
			Reason: policy.ReasonInfeasible, Text: "it reached the pool's expiry age, but no node that can be bought fits its pods", Before: before,
		})
	}
}

func machines(n int) string { return figures.Count(n, "new node") }

// cheapest returns the cheapest purchase that fits pods, which must not be bound, costs at most the
// given price and keeps the pool at its target Spot share. It tries Spot first.
func (r *renewal) cheapest(n *policy.Node, pods []policy.Pod, most policy.Money) (best replan.Purchase, found bool) {
	for _, c := range [...]policy.CapacityType{policy.Spot, policy.OnDemand} {
		p, ok := r.buy(c, pods, splitMax, most)
		if ok && (!found || p.Cost < best.Cost) && r.keeps(r.After([]policy.NodeID{n.ID}, p.Bought)) {
			best, found = p, true
		}
	}
	return best, found
}

// buy packs pods, which must not be bound, onto at most nodesMax new nodes of one capacity type,
// and reports whether they cost at most the given price.
func (r *renewal) buy(c policy.CapacityType, pods []policy.Pod, nodesMax int,
	most policy.Money) (replan.Purchase, bool) {
	var need policy.Resources
	for i := range pods {
		need = need.Plus(r.S.Templates[pods[i].Template].Requests)
	}
	if o := r.offering(c); o.Floor.Cost(need)*(1-1e-9) <= most.Float() {
		return o.Buy(&r.Moves, pods, nodesMax, most)
	}
	return replan.Purchase{}, false
}

// offering returns the markets of a capacity type in which the pool may buy. A Spot market must
// have a sufficiently good forecast and, unless it is an auction, must not have reclaimed a node
// managed by Spotter within a day: a market that reclaims one node may reclaim more. In an auction
// the bid is raised instead.
func (r *renewal) offering(c policy.CapacityType) *replan.Offering {
	if r.sold[c] == nil {
		r.sold[c] = replan.NewOffering(r.S, r.Pool.ID, c, func(m *policy.Market) bool {
			lost := m.Experience.Reclaimed
			return m.Capacity != policy.Spot || replan.Trusted(m) && (m.Auction() || lost == 0 || r.S.Now.Sub(lost) >= shaken)
		})
	}
	return r.sold[c]
}

// keeps reports whether a pool with the balance after has no more Spot than its target and no less
// than its minimum, or is at least no further from them than before.
func (r *renewal) keeps(after placement.Balance) bool {
	spot, total := float64(after.Spot), float64(after.Total)
	was := float64(r.At.Spot) / max(float64(r.At.Total), 1)
	switch {
	case after.Total == 0:
		return true
	case spot > float64(r.share*total) && spot > float64(was*total):
		return false
	case r.Pool.Share.Exact && spot < float64(r.share*total) && spot < float64(was*total):
		return false
	}
	return spot >= float64(r.Pool.Share.Min*total) || spot >= float64(was*total)
}
