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

// A steering is the order to the provisioner: in which markets it buys, and whether it may remove
// only empty nodes. The memory records the last order.
type steering struct{ *planState }

// steerEvery is the minimum time between two changes of what a pool may buy.
const steerEvery = 10 * time.Minute

// steer plans the markets in which the provisioner buys, if they have changed.
func (g *steering) steer() {
	p, waits := g.pool, g.waiting.waits
	st := policy.Steer{
		Pool: p.ID, Share: g.choice.share, Exact: p.Share.Exact, Fallback: p.OnDemandFallback && !waits,
	}
	alike := p.Steer.Follows(&st) && g.memory.SpotOnly == waits
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
	st.Markets, st.Bid, st.EmptyOnly, st.Why = markets, placement.Bid(g.s, p.ID), empty, g.account()
	g.out.Steers = append(g.out.Steers, st)
	g.memory.Selected, g.memory.Steered, g.memory.Consolidates, g.memory.SpotOnly, g.changed = names, g.s.Now, !empty, waits, true
}

// falls reports whether the provisioner buys in a market that is losing nodes.
func (g *steering) falls() bool {
	return slices.ContainsFunc(g.prices.ranked, func(r ranked) bool {
		_, selected := slices.BinarySearch(g.memory.Selected, g.s.Markets[r.market].Name)
		return r.falling && selected
	})
}

// account explains the steer of the pool.
func (g *steering) account() policy.Why {
	why := g.choice.why
	if why.Reason == "" {
		why = policy.Why{Reason: policy.ReasonConfigured,
			Text: fmt.Sprintf("the Spot share is set to %s, in the markets that cost least with expected losses",
				figures.RoughShare(g.choice.share))}
	}
	return why
}

// selected returns the markets to buy in, in ascending order: some of the best Spot markets of each
// zone, and all on-demand markets. For pods that must be spread over zones, nodes are bought in all
// zones at once. Zones therefore get different types if these cost about the same, so that not all
// of the nodes are lost together. A market with as many pods of a service as the service can spare
// is not chosen if its zone has another that costs little more.
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

// anySpot returns the Spot markets of the pool in which the demand costs less than in its best
// on-demand market, including markets that have refused, since capacity comes back.
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

// withRoom adds markets for pods that fit no Spot market in markets, because of their size or their
// node selectors: in each zone the market that fits them at the lowest cost, if that is lower than
// on-demand.
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

// wider is the factor by which Width is multiplied for markets without too many pods of a service,
// so that services stay spread.
const wider = 1.25

// full reports, by index in the ranking, which Spot markets have as many pods of a service as it
// can spare, or as many as an even spread over the markets of about the lowest price in their zones
// would put there.
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

// unitWithRisk returns the unit cost of r with the risk of concentration, in dollars per hour and
// core.
func (g *steering) unitWithRisk(r ranked) float64 {
	return r.unit * g.concentration.factor(r.market)
}

// emptyOnly reports whether the provisioner may remove only empty nodes. It moves pods sooner than
// repack and without considering the cost. So it may do so only while the waste, on the nodes whose
// pods are worth moving, costs more per hour than
//
//	(loss of every node, one at a time) / Holding  +  shocks per hour × cost of a shock
//
// This is the cost if each node is emptied once in the time that a saving lasts, as if it were
// lost, and if the closer packing makes the pool suffer shocks in full. Regardless of the waste,
// the provisioner must not move pods in these cases: in a pool of jobs with deadlines, where it
// would move a job that has no time for it; where it would take down a service without a disruption
// budget; where commitments pay for capacity, which a provisioner does not know; and where a part
// of the pool must be on-demand, which it would repeatedly replace with Spot.
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

// unprotected reports whether a service without a disruption budget has more pods on one node of
// the pool than it can spare: a provisioner evicts them all at once.
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

// wastes reports whether the pool's nodes cost more per hour than the given dollars above the value
// of what their pods need. The edge that a move must save does not count, nor the cost of moving
// the pods of a node: each is missing for Disturbance at its value, however its workload is divided
// into pods.
func (g *steering) wastes(dollars float64) bool {
	s := g.s
	moves := make([]float64, len(s.Templates)) // cost of moving a pod, by template
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

// wasted returns the cost per hour of node id above what its pods need and the cost of moving them,
// at least 0.
func (g *steering) wasted(id policy.NodeID, moves []float64) float64 {
	s, n := g.s, &g.e.nodes.all[id]
	used, move := policy.Resources{}, 0.0
	for _, p := range g.e.pods.on(id) {
		if p.phase != policy.PodTerminating {
			used = used.Plus(s.Templates[p.template].Requests)
			move += moves[p.template]
		}
	}
	spot := s.Markets[n.market].Capacity == policy.Spot || g.choice.share >= 1 // whether its replacement would be Spot
	value, cost := g.prices.worth(id, used, spot), g.prices.keepingIn(n.market)
	return max(0, cost-value-float64(g.e.cfg.Edge*cost)-move/g.e.cfg.Holding.Hours())
}
