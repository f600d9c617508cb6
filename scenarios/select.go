package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// An offer is one instance type in one zone, sold as spot and on demand.
type offer struct {
	series   *trace.Series
	t        *policy.InstanceType
	onDemand policy.Money

	// From spell first until spell last the run meets the series.
	first, last int

	// spot is the price at the begin, or the first after it.
	spot policy.Money

	spotID, onDemandID policy.MarketID
}

// A selection is what a trace sells in a window, and what of it each pool
// takes: indices into offers.
type selection struct {
	tr                *trace.Trace
	begin, start, end policy.Time
	types             map[string]*policy.InstanceType
	offers            []offer
	pools             [][]int

	// Markets that were left out, by name.
	unknownType, tooSmall, unpriced, notOffered, otherProduct []string
}

// firstDay is how long after the begin of a trace a market may first be seen
// and still count as sold from its begin: a recording names each market at its
// first change.
const firstDay = policy.Time(24 * 3600 * 1000)

func newSelection(tr *trace.Trace, begin, start, end policy.Time) *selection {
	x := &selection{tr: tr, begin: begin, start: start, end: end, types: map[string]*policy.InstanceType{}}
	x.offers = make([]offer, 0, len(tr.Series))
	for i := range tr.Series {
		s := &tr.Series[i]
		if !isLinux(s.Product) {
			x.otherProduct = append(x.otherProduct, s.Name())
			continue
		}
		if k := len(x.offers) - 1; k >= 0 && sameMarket(x.offers[k].series, s) {
			// Series are ordered by product: the plain one stands before the
			// one for Amazon VPC, and replaces an unnamed one.
			if s.Product == trace.ProductLinux {
				x.offers = x.offers[:k]
			} else {
				x.otherProduct = append(x.otherProduct, s.Name())
				continue
			}
		}
		x.add(s)
	}
	return x
}

// isLinux reports whether prices of a product are those of a Linux node.
func isLinux(product string) bool {
	return product == "" || product == trace.ProductLinux || product == trace.ProductLinux+" (Amazon VPC)"
}

func sameMarket(a, b *trace.Series) bool {
	return a.Provider == b.Provider && a.Region == b.Region && a.Zone == b.Zone && a.Type == b.Type
}

// add takes s if its type, its on-demand price and a spot price are known.
func (x *selection) add(s *trace.Series) {
	t := x.typeOf(s)
	if t == nil {
		x.unknownType = append(x.unknownType, s.Name())
		return
	}
	if a := &t.Allocatable; a.CPU <= 0 || a.Memory <= 0 || a.Pods <= 0 {
		x.tooSmall = append(x.tooSmall, s.Name())
		return
	}
	o := offer{series: s, t: t}
	o.last, _ = slices.BinarySearch(s.At, x.end)
	first, exact := slices.BinarySearch(s.At, x.begin)
	if !exact && first > 0 {
		first--
	}
	o.first = first
	o.spot = firstPrice(s.Spot[o.first:max(o.first, o.last)])
	if o.onDemand = x.onDemandOf(s); o.onDemand <= 0 {
		x.unpriced = append(x.unpriced, s.Name())
		return
	}
	if o.spot == policy.NoPrice {
		x.notOffered = append(x.notOffered, s.Name())
		return
	}
	x.offers = append(x.offers, o)
}

func (x *selection) typeOf(s *trace.Series) *policy.InstanceType {
	key := s.Provider + "/" + s.Type
	t, seen := x.types[key]
	if !seen {
		if found, ok := catalog.Lookup(s.Provider, s.Type); ok {
			t = &found
		}
		x.types[key] = t
	}
	return t
}

// onDemandOf returns the price at the start: the trace's, the first one that
// it has if none is in force yet, else the catalog's; 0 if nobody knows it.
func (x *selection) onDemandOf(s *trace.Series) policy.Money {
	price := policy.Money(0)
	for i, p := range s.OnDemand {
		if s.At[i] > x.start && price > 0 {
			break
		}
		if p > 0 {
			price = p
		}
	}
	if price == 0 {
		price, _ = catalog.OnDemand(s.Provider, s.Region, s.Type)
	}
	return price
}

func firstPrice(prices []policy.Money) policy.Money {
	for _, p := range prices {
		if p != policy.NoPrice {
			return p
		}
	}
	return policy.NoPrice
}

// choose returns the offers that a pool takes, ascending.
func (x *selection) choose(p *v1alpha1.CapacityPool) []int {
	m := &p.Spec.Markets
	provider := p.Provider()
	var taken []int
	for i := range x.offers {
		o := &x.offers[i]
		if o.series.Provider == provider && m.Take(o.series.Region, o.series.Zone, o.t) && o.affordable(m) {
			taken = append(taken, i)
		}
	}
	if m.MaxInstanceTypes != nil {
		taken = x.cheapestTypes(taken, int(*m.MaxInstanceTypes))
	}
	if m.MaxZones != nil {
		taken = x.fullestZones(taken, int(*m.MaxZones))
	}
	return taken
}

// affordable compares with the bounds on price and placement score as of the
// begin. The bound on price is that of the dearer, on-demand, since a pool
// that falls back must be able to.
func (o *offer) affordable(m *v1alpha1.Markets) bool {
	if m.MaxPrice != nil && max(o.spot, o.onDemand) > policy.Dollars(*m.MaxPrice) {
		return false
	}
	if m.MinPlacementScore != nil && o.series.Score != nil {
		score := o.series.Score[o.first]
		return score < 0 || int32(score) >= *m.MinPlacementScore
	}
	return true
}

// cheapestTypes keeps the offers of the n types that cost least per vCPU on
// demand, the first by name among equals.
func (x *selection) cheapestTypes(taken []int, n int) []int {
	var best []*offer
	for _, i := range taken {
		o := &x.offers[i]
		k := slices.IndexFunc(best, func(b *offer) bool { return b.t == o.t })
		switch {
		case k < 0:
			best = append(best, o)
		case o.onDemand < best[k].onDemand:
			best[k] = o
		}
	}
	slices.SortFunc(best, func(a, b *offer) int {
		return cmp.Or(cmp.Compare(int64(a.onDemand)*b.t.VCPU, int64(b.onDemand)*a.t.VCPU), cmp.Compare(a.t.Name, b.t.Name))
	})
	best = best[:min(n, len(best))]
	return slices.DeleteFunc(taken, func(i int) bool {
		return !slices.ContainsFunc(best, func(b *offer) bool { return b.t == x.offers[i].t })
	})
}

// fullestZones keeps the offers of the n zones with the most offers, the first
// by name among equals.
func (x *selection) fullestZones(taken []int, n int) []int {
	type zone struct {
		name  string
		count int
	}
	var zones []zone
	for _, i := range taken {
		name := x.offers[i].series.Zone
		k := slices.IndexFunc(zones, func(z zone) bool { return z.name == name })
		if k < 0 {
			zones, k = append(zones, zone{name: name}), len(zones)
		}
		zones[k].count++
	}
	slices.SortFunc(zones, func(a, b zone) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.name, b.name))
	})
	zones = zones[:min(n, len(zones))]
	return slices.DeleteFunc(taken, func(i int) bool {
		return !slices.ContainsFunc(zones, func(z zone) bool { return z.name == x.offers[i].series.Zone })
	})
}

// tabulate writes the types, zones and markets of all pools into w, ordered by
// name, and notes in each offer which markets are its.
func (x *selection) tabulate(w *World) {
	used := make([]bool, len(x.offers))
	for _, p := range x.pools {
		for _, i := range p {
			used[i] = true
		}
	}
	names := map[string]*policy.InstanceType{}
	for i := range x.offers {
		if used[i] {
			names[x.offers[i].t.Name] = x.offers[i].t
			w.Zones = append(w.Zones, x.offers[i].series.Zone)
		}
	}
	slices.Sort(w.Zones)
	w.Zones = slices.Compact(w.Zones)
	for _, t := range names {
		w.Types = append(w.Types, *t)
	}
	slices.SortFunc(w.Types, func(a, b policy.InstanceType) int { return cmp.Compare(a.Name, b.Name) })
	typeIDs := make(map[string]policy.TypeID, len(w.Types))
	for i := range w.Types {
		w.Types[i].ID = policy.TypeID(i)
		typeIDs[w.Types[i].Name] = policy.TypeID(i)
	}
	x.list(w, used, typeIDs)
}

// A listing is a market with what goes beside it in the world's tables.
type listing struct {
	market    policy.Market
	price     PriceCurve
	available AvailabilityCurve
	offer     int
}

func (x *selection) list(w *World, used []bool, typeIDs map[string]policy.TypeID) {
	all := make([]listing, 0, 2*len(x.offers))
	recorded := false
	for i := range x.offers {
		if !used[i] {
			continue
		}
		o := &x.offers[i]
		zone, _ := slices.BinarySearch(w.Zones, o.series.Zone)
		m := policy.Market{
			Provider: o.series.Provider, Region: o.series.Region, Zone: policy.ZoneID(zone), Type: typeIDs[o.t.Name],
			OnDemand: o.onDemand, Band: policy.BandUnknown, PlacementScore: -1,
		}
		onDemand, spot := m, m
		base := o.series.Provider + "/" + o.series.Region + "/" + o.series.Zone + "/" + o.series.Type
		onDemand.Name = base + "/on-demand"
		onDemand.Offered, onDemand.Price, onDemand.PricedAt = true, o.onDemand, x.begin
		all = append(all, listing{market: onDemand, offer: i,
			price: PriceCurve{[]policy.Time{x.begin}, []policy.Money{o.onDemand}}})

		spot.Name, spot.Capacity = base+"/spot", policy.Spot
		l := listing{offer: i, price: x.curve(o), available: o.availability()}
		spot.Offered, spot.Price, spot.PricedAt = l.price.Price[0] != policy.NoPrice, max(0, l.price.Price[0]), min(l.price.At[0], x.begin)
		if o.series.Band != nil {
			spot.Band = policy.Band(max(-1, o.series.Band[o.first]))
		}
		if o.series.Score != nil {
			spot.PlacementScore = max(-1, o.series.Score[o.first])
		}
		l.market = spot
		recorded = recorded || l.available.At != nil
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b listing) int { return strings.Compare(a.market.Name, b.market.Name) })
	w.Markets, w.Prices = make([]policy.Market, len(all)), make([]PriceCurve, len(all))
	if recorded {
		w.Available = make([]AvailabilityCurve, len(all))
	}
	for i := range all {
		id := policy.MarketID(i)
		all[i].market.ID = id
		w.Markets[i], w.Prices[i] = all[i].market, all[i].price
		if recorded {
			w.Available[i] = all[i].available
		}
		if o := &x.offers[all[i].offer]; all[i].market.Capacity == policy.Spot {
			o.spotID = id
		} else {
			o.onDemandID = id
		}
	}
}

// curve returns the spot price over the run. It shares the memory of the trace
// when that can be.
func (x *selection) curve(o *offer) PriceCurve {
	at, spot := o.series.At[o.first:o.last], o.series.Spot[o.first:o.last]
	if at[0] > x.begin {
		// What the recording has from its own begin was sold before it, too.
		price := policy.NoPrice
		if at[0] <= x.tr.From+firstDay {
			price = o.spot
		}
		at = slices.Concat([]policy.Time{x.begin}, at)
		spot = slices.Concat([]policy.Money{price}, spot)
	}
	return PriceCurve{at, spot}
}

// availability returns the samples of a recorded availability; where a sample
// is unknown the one before it holds.
func (o *offer) availability() AvailabilityCurve {
	s := o.series
	if s.Available == nil {
		return AvailabilityCurve{}
	}
	// Of equal samples the first and the last are kept: the market changed
	// between the last of one kind and the first of the other.
	var c AvailabilityCurve
	last := policy.Time(0)
	for i := o.first; i < o.last; i++ {
		if s.Available[i] < 0 {
			continue
		}
		up, at, k := s.Available[i] > 0, s.At[i], len(c.Available)
		switch {
		case k > 0 && c.Available[k-1] == up:
			last = at
			continue
		case k > 0 && last > c.At[k-1]:
			c.At, c.Available = append(c.At, last), append(c.Available, !up)
		}
		c.At, c.Available, last = append(c.At, at), append(c.Available, up), at
	}
	return c
}

// warnings say which markets were left out, each kind once.
func (x *selection) warnings() []string {
	var all []string
	for _, k := range [...]struct {
		names []string
		why   string
	}{
		{x.unknownType, "the catalog does not hold their instance type"},
		{x.tooSmall, "the kubelet leaves nothing of their memory for pods"},
		{x.unpriced, "neither the trace nor the catalog has an on-demand price"},
		{x.notOffered, "they have no spot price in this window"},
		{x.otherProduct, "their prices are not those of a Linux node, or stand beside such"},
	} {
		if len(k.names) == 0 {
			continue
		}
		shown := k.names[:min(3, len(k.names))]
		more := ""
		if len(shown) < len(k.names) {
			more = ", …"
		}
		all = append(all, fmt.Sprintf("markets left out: %d: %s (%s%s)", len(k.names), k.why, strings.Join(shown, ", "), more))
	}
	return all
}
