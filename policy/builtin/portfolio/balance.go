package portfolio

import (
	"fmt"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/share"
	"github.com/spotter-dev/spotter/policy/workload"
)

// shiftsMax is the maximum number of attempts to find nodes to move towards the share when the
// nodes found before must stay.
const shiftsMax = 4

// balance moves the pool towards its share if it differs from it.
func (d *planState) balance() {
	if !placement.BalanceOf(d.s, d.pool.ID).Off(d.choice.share) {
		return
	}
	if d.choice.share >= 1 && d.consolidates() {
		return // replacing expensive nodes does the same, and compares the costs
	}
	rest := d.resting()
	var launches []policy.Launch
	var drains []policy.Drain
	var holds []policy.Hold
	for range shiftsMax {
		var stay []policy.NodeID
		moved := len(d.e.moved)
		launches, drains, holds = replan.Rebalance(d.s, nil, replan.RebalanceOptions{
			Pool: d.pool.ID, Share: d.choice.share, DrainsMax: d.s.Disruptable(d.pool.ID, policy.Underutilized),
			Reason: policy.ReasonShare, Text: "towards the target Spot share",
			Backoff: func(node string) bool { return d.memory.BackedOff(node, d.s.Now) || slices.Contains(rest, node) },
		})
		if at := placement.BalanceOf(d.s, d.pool.ID); float64(at.Spot) < float64(d.choice.share*float64(at.Total)) {
			break // an exact share is kept as stated, and a chosen share already accounts for possible losses
		}
		launches, drains, stay = d.within(launches, drains)
		if len(stay) == 0 || len(drains) > 0 {
			break
		}
		d.e.undo(moved)
		for _, n := range stay {
			rest = append(rest, d.s.Nodes[n].Name)
		}
	}
	for i := range drains {
		drains[i].Gentle = true
	}
	d.out.Launches = append(d.out.Launches, launches...)
	d.out.Drains = append(d.out.Drains, drains...)
	d.out.Holds = append(d.out.Holds, holds...)
}

// resting returns the names of the nodes that must not be emptied to reach the share. These are
// nodes whose jobs would lose more by moving than they are expected to lose, or to cost, where they
// are; nodes that commitments pay for; and nodes whose pods would no longer be spread over capacity
// types. If the policy chooses the share, the moving costs of an on-demand node include its pods of
// services that can spare no pod: moving to Spot certainly takes one down.
func (d *planState) resting() []string {
	s := d.s
	leave, stay := make([]float64, len(s.Nodes)), make([]float64, len(s.Nodes))
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Node < 0 || !ofJob(d.s, &d.s.Templates[p.Template]) || !d.holds(p) {
			continue
		}
		run, age := d.jobs.run(p)
		cost := d.jobs.leaving(p)
		leave[p.Node] += cost
		if n := &s.Nodes[p.Node]; n.Market >= 0 && s.Markets[n.Market].Capacity == policy.Spot {
			hazard := max(d.reclaims.hazard, s.Markets[n.Market].Forecast.Hazard)
			stay[p.Node] -= float64(portable.Expm1(-float64(hazard*(run-age))) * cost)
		}
	}
	if !d.e.cfg.Fixed && !d.pool.Share.Exact {
		d.addAnchored(leave)
	}
	names := d.spreadOut()
	for i := range s.Nodes {
		if n := &s.Nodes[i]; leave[i] > 0 && n.Market >= 0 && s.Markets[n.Market].Capacity != policy.Spot {
			stay[i] = float64(d.prices.keeping(n)*d.choice.saving) * d.e.cfg.Holding.Hours()
		}
		if leave[i] > stay[i] || d.paid(&s.Nodes[i]) {
			names = append(names, s.Nodes[i].Name)
		}
	}
	return names
}

// addAnchored adds to leave, by on-demand node, the cost of moving its pods of services that can
// spare none, in dollars.
func (d *planState) addAnchored(leave []float64) {
	costs := moveCostsOf(d.s, d.e, d.perPod)
	for i := range d.s.Pods {
		p := &d.s.Pods[i]
		if p.Node < 0 || !d.losses.anchors[p.Template] || p.Phase == policy.PodGone || p.Phase == policy.PodTerminating {
			continue
		}
		if at := d.s.Nodes[p.Node].Market; at < 0 || d.s.Markets[at].Capacity == policy.Spot {
			continue
		}
		leave[p.Node] += costs.each[d.s.Templates[p.Template].Workload]
	}
}

// spreadOut returns the names of the on-demand nodes whose pods would not keep their spread over
// capacity types if they and the nodes before them moved to Spot. The pool's manifest takes
// precedence over the spread.
func (d *planState) spreadOut() []string {
	at, share := placement.BalanceOf(d.s, d.pool.ID), &d.pool.Share
	if d.e.cfg.Fixed || share.Exact || float64(at.Spot) < float64(share.Min*float64(at.Total)) {
		return nil
	}
	var names []string
	spread := d.e.spread.clone()
	for i := range d.s.Nodes {
		n := &d.s.Nodes[i]
		if n.Pool != d.pool.ID || !n.Usable() || n.Market < 0 || d.s.Markets[n.Market].Capacity == policy.Spot {
			continue
		}
		if !spread.mayLeave(n.ID, &d.e.pods) {
			names = append(names, n.Name)
			continue
		}
		for _, p := range d.e.pods.on(n.ID) {
			spread.toSpot(d.s.Templates[p.template].Workload)
		}
	}
	return names
}

// paid reports whether releasing n saves nothing.
func (d *planState) paid(n *policy.Node) bool {
	return n.Market >= 0 && d.s.Markets[n.Market].Capacity != policy.Spot && d.e.cover.Covers(n.Market) &&
		d.e.cover.Saving(n.Market) == 0
}

// A poolBalance is the distance of the pool from its share. at includes the planned moves.
type poolBalance struct {
	*poolContext
	demand *demand
	share  float64
	at     placement.Balance
}

// spotFor reports whether a replacement of n should be Spot: the pool is then nearer to its share,
// and some of the node's pods may run there.
func (b *poolBalance) spotFor(n *policy.Node) bool {
	size := b.size(n)
	spot, total := float64(b.at.Spot), float64(b.at.Total)
	if b.isSpot(n) {
		spot -= size
	}
	if spot+size/2 > float64(b.share*total) || b.share <= 0 {
		return false
	}
	if b.isSpot(n) {
		return true
	}
	_, fixed := b.demand.fixedOn(n.ID)
	return !fixed && b.e.spread.mayLeave(n.ID, &b.e.pods)
}

func (b *poolBalance) isSpot(n *policy.Node) bool {
	return b.s.Markets[n.Market].Capacity == policy.Spot
}

func (b *poolBalance) size(n *policy.Node) float64 {
	return float64(share.Units(b.s, b.pool.ID, n.Market))
}

// keepsShare reports whether t moves the pool further from its share by at most half of the node's
// size.
func (b *poolBalance) keepsShare(t *trial) bool {
	after := b.after(t)
	return b.away(after) <= max(b.away(b.at), b.size(t.node)/2)
}

// away returns the distance of a pool with balance x from its share, in units of the share.
func (b *poolBalance) away(x placement.Balance) float64 {
	if b.share >= 1 {
		return 0 // moves that pay for themselves bring the pool there
	}
	return math.Abs(float64(b.share*float64(x.Total)) - float64(x.Spot))
}

// after returns the balance of the pool with the trial t applied.
func (b *poolBalance) after(t *trial) placement.Balance {
	x := b.at
	x.Total -= int64(b.size(t.node))
	if b.isSpot(t.node) {
		x.Spot -= int64(b.size(t.node))
	}
	for i := range t.bins {
		id := t.offers[t.bins[i].Offers[0]].Market
		size := share.Units(b.s, b.pool.ID, id)
		x.Total += size
		if b.s.Markets[id].Capacity == policy.Spot {
			x.Spot += size
		}
	}
	return x
}

// A refusals collects the nodes that stay because of a risk, with one hold for each.
type refusals struct {
	*poolContext
	holds []policy.Hold
}

// add records that node n stays to protect w, which would lose more with the group g if the pods of
// n moved to the cheaper place.
func (r *refusals) add(n policy.NodeID, w policy.WorkloadID, g workload.Group) {
	if slices.ContainsFunc(r.holds, func(h policy.Hold) bool { return h.Node == n }) {
		return
	}
	group := "a market or zone"
	switch {
	case g.Market >= 0:
		group = "market " + r.s.Markets[g.Market].Name
	case g.Zone >= 0:
		group = "zone " + r.s.Zones[g.Zone]
	}
	r.holds = append(r.holds, policy.Hold{Pool: r.pool.ID, Node: n, Why: policy.Why{Reason: policy.ReasonRisk,
		Text: fmt.Sprintf(
			"moving its pods saves less than %s would then be expected to lose with %s", r.s.Workloads[w].Name, group)}})
}

// addTo adds to the plan the holds of the nodes that stay because of a risk.
func (r *refusals) addTo() {
	for _, h := range r.holds {
		if !r.leaves(h.Node) {
			r.out.Holds = append(r.out.Holds, h)
		}
	}
}
