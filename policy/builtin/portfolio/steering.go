package portfolio

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A steering is the order to the provisioner: in which markets it buys, and whether it removes
// empty nodes only. The memory holds the last order.
type steering struct{ *planState }

// steerEvery is the least time between two changes of what a pool may buy.
const steerEvery = 10 * time.Minute

// steer plans in which markets the provisioner buys, where that has changed.
func (g *steering) steer() {
	p, waits := g.pool, g.waiting.waits
	alike := p.Steer.Set && p.Steer.Share == g.choice.share && g.memory.SpotOnly == waits
	recent := g.memory.Steered != 0 && g.s.Now.Sub(g.memory.Steered) < steerEvery
	if alike && recent && !g.waiting.urgent && !g.falls() && !(waits && p.Refused > g.memory.Steered) {
		return
	}
	markets := g.selected()
	if len(markets) == 0 {
		return
	}
	names := make([]string, 0, len(markets))
	for _, m := range markets {
		names = append(names, g.s.Markets[m].Name)
	}
	slices.Sort(names)
	empty := g.emptyOnly()
	if alike && g.memory.Consolidates != empty && slices.Equal(names, g.memory.Selected) {
		return
	}
	st := policy.Steer{
		Pool: p.ID, Share: g.choice.share, Exact: p.Share.Exact, Markets: markets, Fallback: p.OnDemandFallback && !waits,
		Bid: placement.Bid(g.s, p.ID), EmptyOnly: empty,
		Why: g.account(),
	}
	g.out.Steers = append(g.out.Steers, st)
	g.memory.Selected, g.memory.Steered, g.memory.Consolidates, g.memory.SpotOnly, g.changed = names, g.s.Now, !empty, waits, true
}

// falls reports whether the provisioner buys in a market that loses nodes.
func (g *steering) falls() bool {
	return slices.ContainsFunc(g.prices.ranked, func(r ranked) bool {
		_, selected := slices.BinarySearch(g.memory.Selected, g.s.Markets[r.market].Name)
		return r.falling && selected
	})
}

// account returns why the pool is steered as it is.
func (g *steering) account() policy.Why {
	why := g.choice.why
	if why.Reason == "" {
		why = policy.Why{Reason: policy.ReasonConfigured,
			Text: fmt.Sprintf("the Spot share is set to %s, in the markets that cost least with expected losses",
				figures.RoughShare(g.choice.share))}
	}
	return why
}

// selected returns the markets to buy in, ascending: of each zone some of the best on Spot, and all
// that are on demand. Pods that must be spread over zones are bought for in all of them at once, so
// zones are given different types if these cost about the same: then not all of them are lost
// together. A market that holds all that a service can spare is not chosen while its zone has
// another that costs little more.
func (g *steering) selected() []policy.MarketID {
	s, cfg := g.s, &g.e.cfg
	if g.waiting.waits && g.pool.Refused != 0 && s.Now.Sub(g.pool.Refused) < probeFirst {
		return g.anySpot()
	}
	var markets []policy.MarketID
	best := make([]float64, len(s.Zones))
	uses := make([]int, len(s.Types))
	taken := make([]bool, len(g.prices.ranked))
	for i, r := range g.prices.ranked {
		m := &s.Markets[r.market]
		if m.Capacity != policy.Spot {
			markets = append(markets, r.market)
			continue
		}
		if taken[i] = r.falling; r.falling {
			continue
		}
		if x := g.unitWithRisk(r); best[m.Zone] == 0 || x < best[m.Zone] {
			best[m.Zone] = x
		}
	}
	if g.waiting.urgent && len(markets) > 0 {
		return markets
	}
	full := g.full(best)
	for range cfg.Choices {
		for z := range s.Zones {
			pick, least := -1, 0.0
			for i, r := range g.prices.ranked {
				m := &s.Markets[r.market]
				if taken[i] || m.Capacity != policy.Spot || int(m.Zone) != z {
					continue
				}
				width := cfg.Width
				if !full[i] {
					width *= wider
				}
				if g.unitWithRisk(r) > best[z]*(1+width) || pick >= 0 && full[i] && !full[pick] {
					continue
				}
				x := g.unitWithRisk(r) * (1 + float64(cfg.TypeRisk*float64(uses[m.Type]))/float64(len(s.Zones)))
				if pick < 0 || x < least || full[pick] && !full[i] {
					pick, least = i, x
				}
			}
			if pick >= 0 {
				taken[pick] = true
				uses[s.Markets[g.prices.ranked[pick].market].Type]++
				markets = append(markets, g.prices.ranked[pick].market)
			}
		}
	}
	markets = g.withRoom(markets)
	slices.Sort(markets)
	return markets
}

// anySpot returns the Spot markets of the pool in which a node costs less for the demand than the
// best on demand, including those that have refused: capacity comes back.
func (g *steering) anySpot() []policy.MarketID {
	s, need := g.s, g.demand.orIdle()
	unit := func(id policy.MarketID) float64 {
		return g.prices.costs[id] * need.LargestShare(s.Types[s.Markets[id].Type].Allocatable)
	}
	fixed := 0.0
	for _, id := range g.pool.Markets {
		if m := &s.Markets[id]; m.Capacity != policy.Spot && m.Offered {
			if x := unit(id); fixed == 0 || x < fixed {
				fixed = x
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(g.pool.Markets), func(id policy.MarketID) bool {
		m := &s.Markets[id]
		return m.Capacity != policy.Spot || !m.Offered || fixed > 0 && unit(id) >= fixed
	})
}

// withRoom adds markets for the pods that no Spot market among markets holds, by their size or by
// their node selectors: in each zone the one that holds them at the least cost, if that is less
// than on demand.
func (g *steering) withRoom(markets []policy.MarketID) []policy.MarketID {
	s := g.s
	least := make([]ranked, len(s.Zones))
	for i, asked := range g.demand.asked {
		t := &s.Templates[i]
		if !asked ||
			slices.ContainsFunc(markets, func(id policy.MarketID) bool {
				return s.Markets[id].Capacity == policy.Spot &&
					g.demand.holds(id, t)
			}) {
			continue
		}
		clear(least)
		fixed := math.Inf(1)
		for _, r := range g.prices.ranked {
			m := &s.Markets[r.market]
			if r.falling || !g.demand.holds(r.market, t) {
				continue
			}
			cost := g.prices.costs[r.market] * t.Requests.LargestShare(g.demand.freeCapacity(m.Type))
			switch best := &least[m.Zone]; {
			case m.Capacity != policy.Spot:
				fixed = min(fixed, cost)
			case best.unit == 0 || cost < best.unit:
				*best = ranked{market: r.market, unit: cost}
			}
		}
		for _, x := range least {
			if x.unit > 0 && x.unit < fixed {
				markets = append(markets, x.market)
			}
		}
	}
	return markets
}

// wider is how many times as expensive as the best market of its zone a market may be that is
// bought in so that services stay spread.
const wider = 1.25

// full reports, by place in the ranking, which Spot markets hold as many pods of a service as it
// can spare, or as many as an even spread over the markets that are about as cheap as the best of
// their zones would put there.
func (g *steering) full(best []float64) []bool {
	s, e := g.s, g.e
	full := make([]bool, len(g.prices.ranked))
	choice := int32(0)
	for _, r := range g.prices.ranked {
		if m := &s.Markets[r.market]; m.Capacity == policy.Spot && g.unitWithRisk(r) <= best[m.Zone]*(1+e.cfg.Width) {
			choice++
		}
	}
	for w := range s.Workloads {
		id := policy.WorkloadID(w)
		if !e.exposure.Tracks(id) {
			continue
		}
		l := e.exposure.Loss(id)
		most := max(l.Slack(), (l.Desired+choice-1)/max(choice, 1))
		if l.Desired <= 1 || l.Market.Pods < most {
			continue
		}
		for i, r := range g.prices.ranked {
			if s.Markets[r.market].Capacity == policy.Spot && e.exposure.Pods(id,
				workload.Group{Market: r.market, Zone: policy.None}) >= most {
				full[i] = true
			}
		}
	}
	return full
}

// unitWithRisk returns the unit cost of r with the risk of concentration.
func (g *steering) unitWithRisk(r ranked) float64 {
	return r.unit * g.concentration.factor(r.market)
}

// emptyOnly reports whether the provisioner must remove empty nodes only. It moves pods sooner than
// repack and without weighing what that costs. So it may do so only while the waste, on the nodes
// for which moving their pods pays, costs more an hour than
//
//	(loss of every node, one at a time) / Holding  +  shocks an hour × what one costs
//
// This is the cost if each node is emptied once in the time that a saving lasts, as if it were
// lost, and if the closer packing makes the pool suffer shocks in full. Regardless of the waste, it
// may not move pods in a pool of jobs with deadlines, where it would move a job that has no time
// for it; where it would take down a service that no disruption budget protects; where capacity was
// paid for in advance, which a provisioner does not know; and where a part of the pool must be on
// demand, which it would replace by Spot again and again.
func (g *steering) emptyOnly() bool {
	if !g.consolidates() {
		return false
	}
	paid := func(id policy.MarketID) bool { return g.e.cover.Covers(id) }
	if g.choice.share > 0 && g.choice.share < 1 || slices.ContainsFunc(g.pool.Markets, paid) || g.waiting.jobs.dueOnly ||
		g.unprotected() {
		return true
	}
	nodes := float64(g.losses.perNode*float64(g.demand.total.CPU)) / 1000
	shocks := float64(g.reclaims.shockRate() * g.losses.shock(1, g.memory.Shocks.Depth))
	return !g.wastes(nodes/g.e.cfg.Holding.Hours() + shocks)
}

// unprotected reports whether a service without a disruption budget has more pods on
// one node of the pool than it can spare: a provisioner evicts them all at once.
func (g *steering) unprotected() bool {
	s := g.s
	spare := make([]int32, len(s.Templates)) // on one node
	bare, least := false, int32(math.MaxInt32)
	for i := range s.Templates {
		t := &s.Templates[i]
		if spare[i] = math.MaxInt32; t.Workload < 0 || t.DaemonSet || len(t.PDBs) > 0 {
			continue
		}
		if w := &s.Workloads[t.Workload]; w.Kind != policy.KindJob {
			spare[i], bare = w.Replicas-workload.Required(s, t, w.Replicas), true
			least = min(least, spare[i])
		}
	}
	if !bare {
		return false
	}
	count := make([]int32, len(s.Templates))
	for i := range g.e.nodes.all {
		if g.e.nodes.all[i].pool != g.pool.ID || g.e.pods.sets[i].mates <= least {
			continue
		}
		pods := g.e.pods.on(policy.NodeID(i))
		for _, p := range pods {
			if p.phase == policy.PodTerminating {
				continue
			}
			if count[p.template]++; count[p.template] > spare[p.template] {
				return true
			}
		}
		for _, p := range pods {
			count[p.template] = 0
		}
	}
	return false
}

// wastes reports whether the pool's nodes cost an hour more than the given dollars above what their
// pods need. Of each node the least part that a move has to save does not count, nor the cost of
// moving its pods: each is missed, at its value in Disturbance, however its workload is divided
// into pods.
func (g *steering) wastes(dollars float64) bool {
	s := g.s
	moves := make([]float64, len(s.Templates)) // of a pod
	for i := range s.Templates {
		moves[i] = float64(g.perPod.values[i] * g.e.cfg.Disturbance.Hours())
	}
	sum := 0.0
	for i := 0; i < len(g.e.nodes.all) && sum <= dollars; i++ {
		if n := &g.e.nodes.all[i]; n.pool == g.pool.ID && n.usable && n.market >= 0 {
			sum += g.wasted(policy.NodeID(i), moves)
		}
	}
	return sum > dollars
}

// wasted returns what node id costs an hour above what its pods need and what it costs to move
// them, at least nothing.
func (g *steering) wasted(id policy.NodeID, moves []float64) float64 {
	s, n := g.s, &g.e.nodes.all[id]
	used, move := policy.Resources{}, 0.0
	for _, p := range g.e.pods.on(id) {
		if p.phase != policy.PodTerminating {
			used = used.Plus(s.Templates[p.template].Requests)
			move += moves[p.template]
		}
	}
	spot := s.Markets[n.market].Capacity == policy.Spot || g.choice.share >= 1 // of what a node in its place would be
	value, cost := g.prices.worth(id, used, spot), g.prices.keepingIn(n.market)
	return max(0, cost-value-float64(g.e.cfg.Edge*cost)-move/g.e.cfg.Holding.Hours())
}
