package portfolio

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// What is lost with a market or a zone is priced, not forbidden: a workload pays the
// penalty of an outage for each pod there that it cannot spare, as often as such a loss is
// expected. So a small pool may stand on two nodes, and one that has met shocks may not.

// zoneLosses is how often all of a zone is lost in an hour where nothing was met yet: once
// in three years, about as often as the availability zones of a large region have failed.
const zoneLosses = 1.0 / (3 * 365 * 24)

// calmest is the least that is believed of a market, in reclaims per node-hour: the upper
// end of the lowest band of AWS's Spot Instance Advisor, five in a hundred a month.
const calmest = 0.05 / 730

// lossesOf returns how often all nodes of ours in market id are expected to be lost
// together in an hour. Each reclaim is taken to begin a shortage that takes them all.
func (d *planState) lossesOf(id policy.MarketID) float64 {
	m := &d.s.Markets[id]
	if m.Capacity != policy.Spot {
		return 0
	}
	return max(m.Forecast.Hazard, d.hazard, calmest) + d.shocks()
}

// shocks returns how much of the pool's spot nodes is expected to be lost in shocks in an
// hour.
func (d *planState) shocks() float64 { return float64(d.shockRate() * d.memory.Shocks.Depth) }

// An addedRisk is what is expected to be lost more, in dollars an hour, and where most of
// it: a group and a workload there, or None.
type addedRisk struct {
	sum      float64
	group    workload.Group
	workload policy.WorkloadID
	most     float64
}

// add counts dollars an hour that w is expected to lose more with g.
func (a *addedRisk) add(dollars float64, w policy.WorkloadID, g workload.Group) {
	a.sum += dollars
	if dollars > a.most {
		a.most, a.group, a.workload = dollars, g, w
	}
}

// riskSince returns what is put at risk by the moves on paper from the n-th on.
func (d *planState) riskSince(n int, c *moveCosts) addedRisk {
	moves := slices.Clone(d.e.moved[n:])
	d.e.undo(n)
	return d.risk(moves, c)
}

// risk moves pods on paper, and returns what that puts at risk.
func (d *planState) risk(moves []podMove, c *moveCosts) addedRisk {
	a := addedRisk{workload: policy.None}
	for _, x := range moves {
		if w := x.workload; d.e.exposure.Tracks(w) {
			from, to := d.s.Nodes[x.from].Market, x.to
			if from != to {
				d.riskIn(&a, w, c, workload.Group{Market: from, Zone: policy.None}, workload.Group{Market: to, Zone: policy.None})
			}
			if f, t := d.zoneOf(from), d.zoneOf(to); f != t {
				d.riskIn(&a, w, c, workload.Group{Market: policy.None, Zone: f}, workload.Group{Market: policy.None, Zone: t})
			}
		}
		d.e.move(x)
	}
	return a
}

// riskIn adds what is put at risk when a pod of w goes from one group to another.
func (d *planState) riskIn(a *addedRisk, w policy.WorkloadID, c *moveCosts, from, to workload.Group) {
	slack := max(0, c.slack[w])
	if pen := float64(c.penalty[w] * d.losses(from)); pen > 0 && d.e.exposure.Pods(w, from) > slack {
		a.add(-pen, w, from)
	}
	if pen := float64(c.penalty[w] * d.losses(to)); pen > 0 && d.e.exposure.Pods(w, to) >= slack {
		a.add(pen, w, to)
	}
}

// losses returns how often g is lost in an hour; never where it is none.
func (d *planState) losses(g workload.Group) float64 {
	switch {
	case g.Market >= 0:
		return d.lossesOf(g.Market)
	case g.Zone >= 0:
		return zoneLosses + d.shocks()
	}
	return 0
}

// zoneOf returns the zone of market id, or None.
func (d *planState) zoneOf(id policy.MarketID) policy.ZoneID {
	if id < 0 {
		return policy.None
	}
	return d.s.Markets[id].Zone
}

// riskInstead returns what is put at risk more, in dollars an hour, if the pods of there,
// which have moved on paper, went to market id.
func (d *planState) riskInstead(there []podMove, id policy.MarketID, c *moveCosts) float64 {
	began := len(d.e.moved)
	instead := slices.Clone(there)
	for i, x := range there {
		d.e.exposure.MoveOf(x.workload, -1, x.from, x.to)
		instead[i].to = id
	}
	sum := d.risk(instead, c).sum
	d.e.undo(began)
	sum -= d.risk(there, c).sum
	d.e.moved = d.e.moved[:began] // those of there stand in it already
	return sum
}

// inGroup reports whether a node of market id is lost with g.
func inGroup(s *policy.Snapshot, g workload.Group, id policy.MarketID) bool {
	if g.Market >= 0 {
		return id == g.Market
	}
	return s.Markets[id].Zone == g.Zone
}

// A podMove is a pod that has a new place on paper.
type podMove struct {
	workload policy.WorkloadID
	from     policy.NodeID
	to       policy.MarketID
}

// move moves a pod on paper.
func (e *Policy) move(x podMove) {
	e.exposure.MoveOf(x.workload, 1, x.from, x.to)
	e.moved = append(e.moved, x)
}

// undo takes back all moves but the first n.
func (e *Policy) undo(n int) {
	for k := len(e.moved) - 1; k >= n; k-- {
		x := &e.moved[k]
		e.exposure.MoveOf(x.workload, -1, x.from, x.to)
	}
	e.moved = e.moved[:n]
}

// refuse notes that node n stays for the sake of w, of which the loss of g would take more
// if the pods of n went where it pays.
func (d *planState) refuse(n policy.NodeID, w policy.WorkloadID, g workload.Group) {
	if slices.ContainsFunc(d.refused, func(h policy.Hold) bool { return h.Node == n }) {
		return
	}
	group := "a market or zone"
	switch {
	case g.Market >= 0:
		group = "market " + d.s.Markets[g.Market].Name
	case g.Zone >= 0:
		group = "zone " + d.s.Zones[g.Zone]
	}
	d.refused = append(d.refused, policy.Hold{Pool: d.pool.ID, Node: n, Why: policy.Why{Reason: policy.ReasonRisk, Text: fmt.Sprintf(
		"to move its pods saves less than %s is then expected to lose with %s", d.s.Workloads[w].Name, group)}})
}

// addRefused adds the holds of the nodes that stay for a risk.
func (d *planState) addRefused() {
	for _, h := range d.refused {
		if !d.leaves(h.Node) {
			d.out.Holds = append(d.out.Holds, h)
		}
	}
}
