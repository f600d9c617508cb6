package portfolio

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A limit is how many pods of a workload may stand in one spot market and in one
// zone once pods have moved: as many as it can lose, or as many as stand in the
// worst of these already. So no move makes a loss unbearable that was not, nor a
// shortfall greater.
type limit struct {
	workload     policy.WorkloadID
	market, zone int32
}

// limits returns the limits of the workloads of pods, as pods stand now. The only
// pod of a service has none: any zone that it stands in takes all of it, and what it
// costs to stand on spot besides is weighed with its move.
func (e *Policy) limits(s *policy.Snapshot, pods []policy.Pod) []limit {
	var list []limit
	for i := range pods {
		w := s.Templates[pods[i].Template].Workload
		if !e.exposure.Tracks(w) || limitOf(list, w) != nil {
			continue
		}
		l := e.exposure.Loss(w)
		if l.Desired <= 1 {
			continue
		}
		spare := max(0, min(l.Desired, l.Bound)-l.Required)
		list = append(list, limit{w, max(spare, l.Market.Pods), max(spare, l.Zone.Pods)})
	}
	return list
}

// limitOf returns the limit of w, or nil.
func limitOf(list []limit, w policy.WorkloadID) *limit {
	if i := slices.IndexFunc(list, func(l limit) bool { return l.workload == w }); i >= 0 {
		return &list[i]
	}
	return nil
}

// broken returns the first group in which more pods stand than one of list lets,
// and the workload; None where all are kept.
func (e *Policy) broken(list []limit) (workload.Group, policy.WorkloadID) {
	for _, l := range list {
		x := e.exposure.Loss(l.workload)
		switch {
		case x.Market.Pods > l.market:
			return x.Market.Group, l.workload
		case x.Zone.Pods > l.zone:
			return x.Zone.Group, l.workload
		}
	}
	return workload.Group{Market: policy.None, Zone: policy.None}, policy.None
}

// breaks reports whether one pod more of w would break its limit, when it comes
// from a node of market from to one of market to.
func (e *Policy) breaks(s *policy.Snapshot, list []limit, w policy.WorkloadID, from, to policy.MarketID) bool {
	l := limitOf(list, w)
	if l == nil || to < 0 {
		return false
	}
	x := &s.Markets[to]
	if to != from && x.Capacity == policy.Spot && e.exposure.Pods(w, workload.Group{Market: to, Zone: policy.None}) >= l.market {
		return true
	}
	stays := from >= 0 && s.Markets[from].Zone == x.Zone
	return !stays && e.exposure.Pods(w, workload.Group{Market: policy.None, Zone: x.Zone}) >= l.zone
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

// bears reports whether no limit of list is broken if the pods of there, which have
// moved on paper, went to market id instead.
func (e *Policy) bears(list []limit, there []podMove, id policy.MarketID) bool {
	began := len(e.moved)
	for _, x := range there {
		e.exposure.MoveOf(x.workload, -1, x.from, x.to)
		e.move(podMove{x.workload, x.from, id})
	}
	_, w := e.broken(list)
	e.undo(began)
	for _, x := range there {
		e.exposure.MoveOf(x.workload, 1, x.from, x.to)
	}
	return w == policy.None
}

// refuse notes that node n stays for the sake of w, which the loss of g would
// leave with too little if the pods of n went where it pays.
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
		"to move its pods would leave %s with less than before, and than it must have, after the loss of %s", d.s.Workloads[w].Name, group)}})
}

// addRefused adds the holds of the nodes that stay for a limit.
func (d *planState) addRefused() {
	for _, h := range d.refused {
		if !d.leaves(h.Node) {
			d.out.Holds = append(d.out.Holds, h)
		}
	}
}
