package karpetrack

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
)

// A drain is undone after a quarter of an hour. One whose pods can only go a few
// at a time is not begun unless it can end in drainTime. Where a pod does not say
// how long it takes to start, startup is assumed.
const (
	drainTime = 10 * time.Minute
	startup   = time.Minute
)

// A purchase is what is bought in place of nodes: for each machine the markets
// in which it may be, cheapest first.
type purchase struct {
	nodes   [][]policy.MarketID
	cost    policy.Money // of the cheapest, per hour
	quality string       // how good the packing is known to be
}

// leavers returns the pods that have to leave n, or why it may not be emptied
// now.
func (b *board) leavers(n *policy.Node) ([]policy.Pod, policy.Why) {
	var pods []policy.Pod
	need := make([]int32, len(b.allowed))
	for _, id := range b.space().Pods(n.ID) {
		p := &b.s.Pods[id]
		t := &b.s.Templates[p.Template]
		switch {
		case t.DaemonSet || p.Phase == policy.PodTerminating:
			continue
		case p.DoNotDisrupt || t.NotSafeToEvict:
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "a pod of the node must not be evicted"}
		case !t.SafeToEvict && (t.Workload == policy.None || b.s.Workloads[t.Workload].Kind == policy.KindBare):
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "a pod of the node has no controller that would make it anew"}
		case len(t.PDBs) > 1:
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: a pod of the node has more than one disruption budget"}
		case len(t.PDBs) == 1 && !freely(p, &b.s.PDBs[t.PDBs[0]]):
			need[t.PDBs[0]]++
			turn := t.Grace + max(t.Startup, startup)
			left := b.allowed[t.PDBs[0]]
			if left <= 0 || time.Duration((need[t.PDBs[0]]-1)/left)*turn > drainTime {
				return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: the disruption budget of a pod of the node allows too few evictions"}
			}
		}
		pods = append(pods, *p)
	}
	return pods, policy.Why{}
}

// freely reports whether p may be evicted without being counted, since it is not
// ready anyway.
func freely(p *policy.Pod, d *policy.PDB) bool {
	return p.Phase == policy.PodStarting && (d.AlwaysAllowUnhealthy || d.Desired > 0 && d.Healthy >= d.Desired)
}

// charge takes the evictions of pods off what their budgets allow.
func (b *board) charge(pods []policy.Pod) {
	for i := range pods {
		for _, id := range b.s.Templates[pods[i].Template].PDBs {
			b.allowed[id] = max(0, b.allowed[id]-1)
		}
	}
}

// offersOf returns what can be bought of a capacity type, cheapest first.
func (b *board) offersOf(c policy.CapacityType) []place.Offer {
	if !b.made[c] {
		b.made[c] = true
		offers := slices.DeleteFunc(place.Offers(b.s, b.pool.ID, c), func(o place.Offer) bool {
			return !b.trusted(&b.s.Markets[o.Market])
		})
		slices.SortStableFunc(offers, func(x, y place.Offer) int {
			return cmp.Or(cmp.Compare(x.Price, y.Price), cmp.Compare(x.Market, y.Market))
		})
		b.offers[c] = offers[:min(len(offers), offersMax)]
		b.floor[c] = place.FloorOf(b.offers[c])
	}
	return b.offers[c]
}

// requested returns what pods request together.
func (b *board) requested(pods []policy.Pod) (total policy.Resources) {
	for i := range pods {
		total = total.Plus(b.s.Templates[pods[i].Template].Requests)
	}
	return total
}

// trusted reports whether a node is bought in m by choice: on demand, or where the
// forecast is good enough and none of our nodes was taken within a day: what takes
// one may take more. In an auction a loss is answered by a higher bid.
func (b *board) trusted(m *policy.Market) bool {
	f, lost := &m.Forecast, m.Experience.Reclaimed
	switch {
	case m.Capacity != policy.Spot:
		return true
	case f.Source != policy.SourceNone && f.Confidence < trustedAt:
		return false
	}
	return m.Auction() || lost == 0 || b.s.Now.Sub(lost) >= shaken
}

// cheapest returns the cheapest purchase that holds pods, which are bound
// nowhere, for at most the given price and leaves the pool the spot share that
// it is to have. Spot is looked at first.
func (b *board) cheapest(n *policy.Node, pods []policy.Pod, most policy.Money) (best purchase, found bool) {
	for _, c := range [...]policy.CapacityType{policy.Spot, policy.OnDemand} {
		p, ok := b.purchase(c, pods, splitMax, most)
		if ok && (!found || p.cost < best.cost) && b.keeps(b.moved(n, p)) {
			best, found = p, true
		}
	}
	return best, found
}

// purchase packs pods, which are bound nowhere, onto at most nodesMax new
// machines of one capacity type, and reports whether they cost no more than most.
func (b *board) purchase(c policy.CapacityType, pods []policy.Pod, nodesMax int, most policy.Money) (purchase, bool) {
	offers := b.offersOf(c)
	if len(offers) == 0 || b.floor[c].Cost(b.requested(pods))*(1-1e-9) > most.Float() {
		return purchase{}, false
	}
	packing, ok := b.space().PackWithin(pods, offers, most)
	bins := packing.Bins
	if !ok || len(bins) == 0 || len(packing.Unplaced) > 0 || len(bins) > nodesMax || packing.Total > most {
		return purchase{}, false
	}
	p := purchase{nodes: make([][]policy.MarketID, len(bins)), cost: packing.Total, quality: packing.Quality()}
	// The provider chooses among the markets of a launch, so each node may be
	// dearer than the cheapest by its part of what is left to the limit.
	spare := (most - packing.Total) / policy.Money(len(bins))
	left := b.room.Clone()
	for i := range bins {
		for _, o := range bins[i].Offers {
			x := &offers[o]
			if len(p.nodes[i]) < marketsMax && x.Price <= offers[bins[i].Offers[0]].Price+spare && left.Has(x.Market) {
				p.nodes[i] = append(p.nodes[i], x.Market)
			}
		}
		if len(p.nodes[i]) == 0 {
			return purchase{}, false // limits or quotas leave room for a part of them only
		}
		if b.s.Markets[p.nodes[i][0]].Auction() {
			p.nodes[i] = p.nodes[i][:1] // a bid is for one class of machine
		}
		left.Take(p.nodes[i])
	}
	p.cost = b.dearest(p.nodes)
	return p, p.cost <= most
}

// dearest returns what the first markets of nodes cost together, which limits
// may have made more than the packing's.
func (b *board) dearest(nodes [][]policy.MarketID) policy.Money {
	total := policy.Money(0)
	for _, markets := range nodes {
		total += b.s.Markets[markets[0]].Charge()
	}
	return total
}
