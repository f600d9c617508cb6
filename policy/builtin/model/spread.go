package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/workload"
)

const (
	// spreadLeast is the minimum number of pods that a service must be able to spare to be spread
	// over markets: a service that can spare fewer is short after the loss of any node.
	spreadLeast = 2

	// spreadDearer is the highest price of a market that a launch names for the provider to choose
	// from, as a multiple of the lowest price of a suitable market.
	spreadDearer = 1.05

	// spreadPrice is the maximum price of the replacement in another market, as a multiple of the
	// price of the node that it replaces.
	spreadPrice = 1.25

	// spreadMarkets is the maximum number of markets of one launch.
	spreadMarkets = 8
)

// A concentration is a Spot market that has more pods of a service than the service can spare.
type concentration struct {
	workload policy.WorkloadID
	market   policy.MarketID
	over     int32
}

// A detour is a node whose pods should move to another market of its zone.
type detour struct {
	node    policy.NodeID
	change  int32 // change of the number of pods beyond what is allowed; negative is better
	markets []policy.MarketID
	price   policy.Money // of the cheapest market with this change
}

// spread moves nodes out of markets that have more pods of a service than the service can spare: a
// shortage takes a market within minutes, so notices to its nodes arrive together, and pods are
// missing before others start. Such concentrations result from growth, since a provisioner buys for
// many pods in the one market that is cheapest at the time. A few nodes move at a time, each after
// its replacement in another market of the zone, and only while the pool has no other changes in
// progress. The floor handles the rest.
func (e *Policy) spread(t *turn, plan *policy.Plan) {
	if e.cfg.Spread == 0 && e.cfg.Floor == 0 {
		return
	}
	for i := range t.courses {
		c := &t.courses[i]
		if c.pool == nil || !c.pool.Levers.Launch || busy(t.s, c.pool.ID, plan) {
			continue
		}
		e.look(t)
		if e.cfg.Spread > 0 {
			e.spreadPool(t.s, c.pool, plan)
		}
		if e.cfg.Floor > 0 {
			e.raise(t.s, c.pool, plan)
		}
	}
}

// busy reports whether a pool has nodes that are starting or leaving, or plan launches or drains
// nodes of it.
func busy(s *policy.Snapshot, pool policy.PoolID, plan *policy.Plan) bool {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool == pool && n.Live() && (!n.Usable() || n.ActedBy != policy.ActorNone) {
			return true
		}
	}
	return slices.ContainsFunc(plan.Drains, func(d policy.Drain) bool { return s.Nodes[d.Node].Pool == pool }) ||
		slices.ContainsFunc(plan.Launches, func(l policy.Launch) bool { return l.Pool == pool })
}

// spreadPool plans the moves of the nodes of one pool.
func (e *Policy) spreadPool(s *policy.Snapshot, p *policy.Pool, plan *policy.Plan) {
	concentrations := e.concentrations(s)
	if len(concentrations) == 0 {
		return
	}
	e.sort(s, placement.Sales(s, p.ID, policy.Spot))
	needs := needsOf(s, p.ID, concentrations)
	for range e.cfg.Spread {
		best := detour{node: policy.None}
		for id := range needs {
			if needs[id].CPU == 0 ||
				slices.ContainsFunc(plan.Drains, func(d policy.Drain) bool { return d.Node == policy.NodeID(id) }) {
				continue
			}
			x := e.detour(s, policy.NodeID(id), needs[id])
			if x.change < best.change || x.change == best.change && x.change < 0 && x.price < best.price {
				best = x
			}
		}
		if best.node < 0 {
			return
		}
		e.take(s, p, &best, plan)
	}
}

// sort groups offers by zone and keeps their order, since a node moves within its zone.
func (e *Policy) sort(s *policy.Snapshot, offers []placement.Offer) {
	if len(e.sales) < len(s.Zones) {
		e.sales = append(e.sales, make([][]placement.Offer, len(s.Zones)-len(e.sales))...)
	}
	for i := range e.sales {
		e.sales[i] = e.sales[i][:0]
	}
	for i := range offers {
		zone := s.Markets[offers[i].Market].Zone
		e.sales[zone] = append(e.sales[zone], offers[i])
	}
}

// concentrations returns the concentrations of services in markets, the worst first.
func (e *Policy) concentrations(s *policy.Snapshot) []concentration {
	var list []concentration
	var held []policy.MarketID // Spot markets with nodes, ascending
	for i := range s.Nodes {
		if m := s.Nodes[i].Market; m >= 0 && s.Markets[m].Capacity == policy.Spot {
			held = append(held, m)
		}
	}
	slices.Sort(held)
	held = slices.Compact(held)
	for i := range s.Workloads {
		w := policy.WorkloadID(i)
		if !e.exposure.Tracks(w) {
			continue
		}
		l := e.exposure.Loss(w)
		if l.Slack() < spreadLeast || l.Mendable(l.Market) <= 0 {
			continue
		}
		allowed, _ := e.exposure.Allowed(w)
		for _, m := range held {
			if n := e.exposure.Pods(w, workload.Group{Market: m, Zone: policy.None}); n > allowed {
				list = append(list, concentration{w, m, n - allowed})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b concentration) int { return cmp.Compare(b.over, a.over) })
	return list
}

// needsOf returns, by node, the total requests of its pods, for nodes of the pool that run pods of
// a concentration and may be drained; zero for other nodes.
func needsOf(s *policy.Snapshot, pool policy.PoolID, concentrations []concentration) []policy.Resources {
	needs, part := make([]policy.Resources, len(s.Nodes)), make([]bool, len(s.Nodes))
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone || p.Node < 0 || s.Nodes[p.Node].Pool != pool {
			continue
		}
		t := &s.Templates[p.Template]
		needs[p.Node] = needs[p.Node].Plus(t.Requests)
		part[p.Node] = part[p.Node] || slices.ContainsFunc(concentrations, func(c concentration) bool {
			return c.workload == t.Workload && c.market == s.Nodes[p.Node].Market
		})
	}
	for i := range s.Nodes {
		if !part[i] || s.Nodes[i].DoNotDisrupt {
			needs[i] = policy.Resources{}
		}
	}
	return needs
}

// detour returns the best markets in the zone of node id for its pods, the cheapest first. Its
// change is 0 if the node is best in its own market.
func (e *Policy) detour(s *policy.Snapshot, id policy.NodeID, need policy.Resources) detour {
	x := detour{node: id}
	own := &s.Markets[s.Nodes[id].Market]
	offers, most := e.sales[own.Zone], float64(own.Charge()+s.Fees(s.Nodes[id].Pool, own.ID))*spreadPrice
	fits := func(o *placement.Offer) bool {
		return float64(o.Price) <= most && o.Market != own.ID && need.Within(o.Allocatable) &&
			s.Markets[o.Market].Region == own.Region
	}
	for i := range offers {
		o := &offers[i]
		if !fits(o) {
			continue
		}
		if c := e.exposure.Change(id, o.Market); c < x.change || c == x.change && c < 0 && o.Price < x.price {
			x.change, x.price = c, o.Price
		}
	}
	if x.change == 0 {
		return x
	}
	var good []*placement.Offer
	for i := range offers {
		o := &offers[i]
		if fits(o) && float64(o.Price) <= float64(x.price)*spreadDearer && e.exposure.Change(id, o.Market) == x.change {
			good = append(good, o)
		}
	}
	slices.SortFunc(good, func(a, b *placement.Offer) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Market, b.Market))
	})
	for _, o := range good[:min(len(good), spreadMarkets)] {
		x.markets = append(x.markets, o.Market)
	}
	return x
}

// take plans a detour, and counts the pods of the node in the new market.
func (e *Policy) take(s *policy.Snapshot, p *policy.Pool, x *detour, plan *policy.Plan) {
	n := &s.Nodes[x.node]
	own := &s.Markets[n.Market]
	why := policy.Why{
		Reason: policy.ReasonRisk, Before: own.Charge() + s.Fees(p.ID, own.ID), After: x.price, RunnerUp: "stay",
		Text: fmt.Sprintf("more pods run in %s than their services can spare; moving this node's pods saves %s from its loss", own.Name, figures.Count(-x.change, "pod")),
	}
	token := policy.Token(s.Now, p.Name, n.Name, 0)
	plan.Launches = append(plan.Launches, policy.Launch{Token: token, Pool: p.ID, Markets: x.markets, Replaces: n.ID,
		Bid: placement.BidIn(&s.Markets[x.markets[0]]), Why: why})
	plan.Drains = append(plan.Drains, policy.Drain{Node: n.ID, After: []string{token}, Gentle: true, Why: why})
	e.exposure.Move(n.ID, x.markets[0])
}
