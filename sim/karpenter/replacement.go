package karpenter

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Replacement is the new node of a command.
type Replacement struct {
	Pool policy.PoolID

	// Types are the possible instance types, cheapest first. Markets are the markets to request,
	// cheapest first: those of Types, and only Spot markets if the replacement must be Spot.
	Types   []policy.TypeID
	Markets []policy.MarketID

	// Choice is the label choice of the offers; see placement.Offer.
	Choice int

	// Price is the lowest price of Markets for the first type, or 0 if there is no such market.
	Price policy.Money
}

// An option is a possible instance type of a claim.
type option struct {
	typ      policy.TypeID
	cheapest policy.Money // lowest price of all its offers, by which options are ordered

	// launch is the highest price at which it may be launched: that of the most expensive Spot
	// offer, or on-demand offer if there is no Spot offer (pkg/cloudprovider/types.go,
	// WorstLaunchPrice).
	launch policy.Money
	spot   bool
}

const noPrice = policy.Money(math.MaxInt64)

// options returns the instance types of a claim, cheapest first. If spotOnly is true, a type
// without a Spot offer has no launch price.
func (sm *simulator) options(c *Cluster, sim *simulation, spotOnly bool) []option {
	out := sm.optionBuf[:0]
	for _, i := range sim.claims[0].Offers {
		o := &sim.offers[i]
		m := &c.Markets[o.Market]
		at := slices.IndexFunc(out, func(x option) bool { return x.typ == m.Type })
		if at < 0 {
			at = len(out)
			out = append(out, option{typ: m.Type, cheapest: o.Price, launch: noPrice})
		}
		x := &out[at]
		x.cheapest = min(x.cheapest, o.Price)
		switch isSpot := m.Capacity == policy.Spot; {
		case isSpot && !x.spot:
			x.spot, x.launch = true, o.Price
		case isSpot:
			x.launch = max(x.launch, o.Price)
		case !x.spot && !spotOnly:
			if x.launch == noPrice {
				x.launch = 0
			}
			x.launch = max(x.launch, o.Price)
		}
	}
	slices.SortStableFunc(out, func(a, b option) int { return cmp.Compare(a.cheapest, b.cheapest) })
	sm.optionBuf = out
	return out
}

// cheaperThan keeps the options whose highest launch price is below price.
func cheaperThan(options []option, price policy.Money) []option {
	return slices.DeleteFunc(options, func(x option) bool { return x.launch >= price })
}

// capacityTypes returns which capacity types the requirements of a claim and its pods allow,
// whether or not they are available now.
func (sm *simulator) capacityTypes(c *Cluster, sim *simulation) (spot, onDemand bool) {
	if o := &sim.offers[sim.claims[0].Offers[0]]; c.Markets[o.Market].Capacity == policy.Reserved {
		return false, false // the claim is restricted to reservations
	}
	spot, onDemand = c.View.CapacityTypes(sim.offers[sim.claims[0].Offers[0]].Pool)
	for _, i := range sim.claims[0].Pods {
		t := &c.Templates[sm.batch.Pods[i].Template]
		spot, onDemand = spot && allows(t, "spot"), onDemand && allows(t, "on-demand")
	}
	return spot && !excludes(c, sim, policy.Spot), onDemand && !excludes(c, sim, policy.OnDemand)
}

// excludes reports whether the claim's pods exclude a capacity type for a reason other than their
// own requirements: an offer of that capacity type exists for a type and zone of the claim's
// offers.
func excludes(c *Cluster, sim *simulation, capacity policy.CapacityType) bool {
	bin := &sim.claims[0]
	if slices.ContainsFunc(bin.Offers, func(i int) bool { return c.Markets[sim.offers[i].Market].Capacity == capacity }) {
		return false
	}
	pool := sim.offers[bin.Offers[0]].Pool
	for i := range sim.offers {
		o := &sim.offers[i]
		m := &c.Markets[o.Market]
		if o.Pool != pool || m.Capacity != capacity {
			continue
		}
		zone, _ := policy.FindLabel(o.Labels, labelZone)
		if slices.ContainsFunc(bin.Offers, func(k int) bool {
			x := &sim.offers[k]
			at, _ := policy.FindLabel(x.Labels, labelZone)
			return c.Markets[x.Market].Type == m.Type && at == zone
		}) {
			return true
		}
	}
	return false
}

const (
	labelCapacityType = "karpenter.sh/capacity-type"
	labelZone         = "topology.kubernetes.io/zone"
)

// allows reports whether the node selector and affinity of t allow a capacity type.
func allows(t *policy.Template, capacity string) bool {
	for _, l := range t.NodeSelector {
		if l.Key == labelCapacityType && l.Value != capacity {
			return false
		}
	}
	return len(t.Affinity) == 0 || slices.ContainsFunc(t.Affinity, func(term policy.NodeTerm) bool {
		for _, q := range term.Labels {
			if q.Key == labelCapacityType && !q.MetBy(capacity, true) {
				return false
			}
		}
		return true
	})
}

// replacement returns the replacement for the remaining options.
func (sm *simulator) replacement(c *Cluster, sim *simulation, options []option, spotOnly bool) *Replacement {
	bin := &sim.claims[0]
	first := &sim.offers[bin.Offers[0]]
	x := &Replacement{Pool: first.Pool, Choice: first.Choice, Price: noPrice}
	for _, o := range options {
		x.Types = append(x.Types, o.typ)
	}
	for _, i := range bin.Offers {
		o := &sim.offers[i]
		m := &c.Markets[o.Market]
		if o.Choice != x.Choice || spotOnly && m.Capacity != policy.Spot || !slices.Contains(x.Types, m.Type) {
			continue
		}
		x.Markets = append(x.Markets, o.Market)
		if m.Type == x.Types[0] {
			x.Price = min(x.Price, o.Price)
		}
	}
	if x.Price == noPrice {
		x.Price = 0
	}
	return x
}

// sameTypeBound returns the price below which a replacement of several nodes must cost: the lowest
// price of a node whose type the replacement may have. Otherwise, that node could be kept instead
// (multinodeconsolidation.go, filterOutSameInstanceType).
func sameTypeBound(c *Cluster, options []option, candidates []Candidate) policy.Money {
	bound := noPrice
	for _, o := range options {
		for i := range candidates {
			if x := &candidates[i]; c.Markets[c.Nodes[x.Node].Market].Type == o.typ {
				bound = min(bound, x.Price)
			}
		}
	}
	return bound
}

// flexible reports whether the options have at least as many values of each label as the NodePool
// requires (pkg/cloudprovider/types.go, SatisfiesMinValues).
func (sm *simulator) flexible(c *Cluster, sim *simulation, options []option) bool {
	bin := &sim.claims[0]
	pool := sim.offers[bin.Offers[0]].Pool
	for _, p := range sm.batch.Pools {
		if p.ID != pool {
			continue
		}
		for _, x := range p.MinValues {
			var values []string
			for _, i := range bin.Offers {
				o := &sim.offers[i]
				v, ok := policy.FindLabel(o.Labels, x.Key)
				if ok && !slices.Contains(values, v) && has(options, c.Markets[o.Market].Type) {
					values = append(values, v)
				}
			}
			if len(values) < x.N {
				return false
			}
		}
	}
	return true
}

func has(options []option, t policy.TypeID) bool {
	return slices.ContainsFunc(options, func(x option) bool { return x.typ == t })
}
