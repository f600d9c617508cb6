package karpenter

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Replacement is the one new node of a command.
type Replacement struct {
	Pool policy.PoolID

	// Types are the instance types that it may be, cheapest first. Markets are those that may be
	// requested, cheapest first, of these types and one capacity type where the claim allows both.
	Types   []policy.TypeID
	Markets []policy.MarketID

	// Choice is that of the offers: see placement.Offer.
	Choice int

	// Price is the price of the cheapest of these markets of the first type, 0 if there are no
	// markets.
	Price policy.Money
}

// An option is an instance type of a claim.
type option struct {
	typ      policy.TypeID
	cheapest policy.Money // of all its offers, by which types are ordered

	// launch is the most that it may cost when it is launched: the most expensive Spot offer, or
	// on-demand offer if there is no Spot offer (pkg/cloudprovider/types.go, WorstLaunchPrice).
	launch policy.Money
	spot   bool
}

const noPrice = policy.Money(math.MaxInt64)

// options returns the instance types of a claim, cheapest first, of the capacity
// types that it is restricted to.
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

// cheaperThan keeps the options that cost less than price whatever is launched.
func cheaperThan(options []option, price policy.Money) []option {
	return slices.DeleteFunc(options, func(x option) bool { return x.launch >= price })
}

// capacityTypes says what the requirements of a claim for pods allow, whether or
// not it is for sale now.
func (sm *simulator) capacityTypes(c *Cluster, sim *simulation) (spot, onDemand bool) {
	if o := &sim.offers[sim.claims[0].Offers[0]]; c.Markets[o.Market].Capacity == policy.Reserved {
		return false, false // it is restricted to what it holds of reservations
	}
	spot, onDemand = c.View.CapacityTypes(sim.offers[sim.claims[0].Offers[0]].Pool)
	for _, i := range sim.claims[0].Pods {
		t := &c.Templates[sm.batch.Pods[i].Template]
		spot, onDemand = spot && allows(t, "spot"), onDemand && allows(t, "on-demand")
	}
	return spot && !excludes(c, sim, policy.Spot), onDemand && !excludes(c, sim, policy.OnDemand)
}

// excludes reports whether the claim's pods keep it from a capacity type in a way that
// their own requirements do not say: it could be had where the claim's offers are.
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

// allows reports whether pods of t may run on nodes of a capacity type.
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

// replacement makes what is launched of the options left.
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

// sameTypeBound is the price below which a replacement of several nodes must stay:
// that of the cheapest of them whose type it may be. Otherwise that one might as
// well stay (multinodeconsolidation.go, filterOutSameInstanceType).
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

// flexible reports whether the options still have as many values of each label as the NodePool
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
