package karpetrack

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
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
		case !t.SafeToEvict && b.s.Bare(t):
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "a pod of the node has no controller that would make it anew"}
		case len(t.PDBs) > 1:
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: a pod of the node has more than one disruption budget"}
		case len(t.PDBs) == 1 && !b.s.PDBs[t.PDBs[0]].Uncounted(p):
			need[t.PDBs[0]]++
			if !placement.EvictsInTime(t, need[t.PDBs[0]], b.allowed[t.PDBs[0]]) {
				return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: the disruption budget of a pod of the node allows too few evictions"}
			}
		}
		pods = append(pods, *p)
	}
	return pods, policy.Why{}
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
func (b *board) offersOf(c policy.CapacityType) []placement.Offer {
	if !b.made[c] {
		b.made[c] = true
		b.offers[c] = replan.Offers(b.s, b.pool.ID, c, b.trusted)
		b.floor[c] = placement.FloorOf(b.offers[c])
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
	lost := m.Experience.Reclaimed
	return m.Capacity != policy.Spot || replan.Trusted(m) && (m.Auction() || lost == 0 || b.s.Now.Sub(lost) >= shaken)
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
	packing, ok := placement.PackWithin(b.space(), pods, offers, most)
	bins := packing.Bins
	if !ok || len(bins) == 0 || len(packing.Unplaced) > 0 || len(bins) > nodesMax || packing.Total > most {
		return purchase{}, false
	}
	p := purchase{quality: packing.Quality()}
	if p.nodes, ok = replan.Markets(b.s, b.headroom, offers, bins, (most-packing.Total)/policy.Money(len(bins))); !ok {
		return purchase{}, false
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
