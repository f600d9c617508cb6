package portfolio

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// What is lost with a market or a zone is priced, not forbidden: a workload pays the
// penalty of an outage for each pod there that it cannot spare, as often as such a loss is
// expected. So a small pool may stand on two nodes, and one that has met shocks may not.

// A moveRisk holds what moves on paper put at risk, at what it costs that pods are missed.
// When since and instead return, the moves on paper are those from before.
type moveRisk struct {
	*poolContext
	reclaims *reclaims
	costs    *moveCosts
}

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

// since returns what is put at risk by the moves on paper from the n-th on.
func (r *moveRisk) since(n int) addedRisk {
	moves := slices.Clone(r.e.moved[n:])
	r.e.undo(n)
	return r.of(moves)
}

// of moves pods on paper, and returns what that puts at risk.
func (r *moveRisk) of(moves []podMove) addedRisk {
	a := addedRisk{workload: policy.None}
	for _, x := range moves {
		if w := x.workload; r.e.exposure.Tracks(w) {
			from, to := r.s.Nodes[x.from].Market, x.to
			if from != to {
				r.between(&a, w, workload.Group{Market: from, Zone: policy.None}, workload.Group{Market: to, Zone: policy.None})
			}
			if f, t := zoneOf(r.s, from), zoneOf(r.s, to); f != t {
				r.between(&a, w, workload.Group{Market: policy.None, Zone: f}, workload.Group{Market: policy.None, Zone: t})
			}
		}
		r.e.move(x)
	}
	return a
}

// between adds what is put at risk when a pod of w goes from one group to another.
func (r *moveRisk) between(a *addedRisk, w policy.WorkloadID, from, to workload.Group) {
	slack := max(0, r.costs.slack[w])
	if pen := float64(r.costs.penalty[w] * r.reclaims.losses(from)); pen > 0 && r.e.exposure.Pods(w, from) > slack {
		a.add(-pen, w, from)
	}
	if pen := float64(r.costs.penalty[w] * r.reclaims.losses(to)); pen > 0 && r.e.exposure.Pods(w, to) >= slack {
		a.add(pen, w, to)
	}
}

// instead returns what is put at risk more, in dollars an hour, if the pods of there,
// which have moved on paper, went to market id.
func (r *moveRisk) instead(there []podMove, id policy.MarketID) float64 {
	began := len(r.e.moved)
	instead := slices.Clone(there)
	for i, x := range there {
		r.e.exposure.MoveOf(x.workload, -1, x.from, x.to)
		instead[i].to = id
	}
	sum := r.of(instead).sum
	r.e.undo(began)
	sum -= r.of(there).sum
	r.e.moved = r.e.moved[:began] // those of there stand in it already
	return sum
}

// inGroup reports whether a node of market id is lost with g.
func inGroup(s *policy.Snapshot, g workload.Group, id policy.MarketID) bool {
	if g.Market >= 0 {
		return id == g.Market
	}
	return s.Markets[id].Zone == g.Zone
}

// zoneOf returns the zone of market id, or None.
func zoneOf(s *policy.Snapshot, id policy.MarketID) policy.ZoneID {
	if id < 0 {
		return policy.None
	}
	return s.Markets[id].Zone
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
	e.spread.move(x, 1)
	e.moved = append(e.moved, x)
}

// undo takes back all moves but the first n.
func (e *Policy) undo(n int) {
	for k := len(e.moved) - 1; k >= n; k-- {
		x := &e.moved[k]
		e.exposure.MoveOf(x.workload, -1, x.from, x.to)
		e.spread.move(*x, -1)
	}
	e.moved = e.moved[:n]
}
