package scenarios

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// An offer is one instance type in one zone, available as Spot and on demand.
type offer struct {
	series *trace.Series
	t      *policy.InstanceType

	// onDemand is the on-demand price, and basis its derivation if no price is published.
	onDemand policy.Money
	basis    string

	// The run uses the intervals [first, last) of the series.
	first, last int

	// spot is the Spot price at the start, or the first one after it.
	spot policy.Money

	spotID, onDemandID policy.MarketID
}

// A selection is the set of offers of a trace in a window, and the indices of those that each pool
// may use.
type selection struct {
	tr                *trace.Trace
	begin, start, end policy.Time
	types             map[string]*policy.InstanceType
	offers            []offer
	pools             [][]int

	// reserve is the minimum price of a node from an auction, per hour.
	reserve policy.Money

	// places maps each cluster to its provider and region. The key is the name of a cloudspace, or
	// "" for the cluster that contains all other pools.
	places map[string]v1alpha1.Place

	// poolOffers are the offers in the form that pools evaluate; nil until the first pool has
	// chosen.
	poolOffers []v1alpha1.Offer

	// Names of the markets that were left out, by reason.
	unknownType, tooSmall, unpriced, notOffered, otherProduct, halfPriced []string

	sizes    []map[*policy.InstanceType]policy.Resources // by pool, the allocatable resources of its nodes
	reserved []reservedOffer
	notes    []string // warnings about NodePools
}

func newSelection(tr *trace.Trace, begin, start, end policy.Time) *selection {
	x := &selection{tr: tr, begin: begin, start: start, end: end, types: map[string]*policy.InstanceType{},
		places: map[string]v1alpha1.Place{}}
	x.offers = make([]offer, 0, len(tr.Series))
	for i := range tr.Series {
		s := &tr.Series[i]
		if !isLinux(s.Product) {
			x.otherProduct = append(x.otherProduct, s.Name())
			continue
		}
		if k := len(x.offers) - 1; k >= 0 && sameMarket(x.offers[k].series, s) {
			// Series are ordered by product: the Linux one precedes the one for Amazon VPC, and
			// replaces one without a product.
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

// isLinux reports whether the prices of a product are prices of a Linux node.
func isLinux(product string) bool {
	return product == "" || product == trace.ProductLinux || product == trace.ProductLinux+" (Amazon VPC)"
}

func sameMarket(a, b *trace.Series) bool {
	return a.Provider == b.Provider && a.Region == b.Region && a.Zone == b.Zone && a.Type == b.Type
}

// add adds s to the offers if its instance type, its on-demand price and a Spot price are known.
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
	if o.onDemand, o.basis = x.onDemandOf(s); o.onDemand <= 0 {
		x.unpriced = append(x.unpriced, s.Name())
		return
	}
	if halfPriced(s, t, o.onDemand) {
		x.halfPriced = append(x.halfPriced, s.Name())
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

// onDemandOf returns the on-demand price at the start: the price in the trace (the first one if
// none applies yet), or else the catalog's price, or 0. Basis describes the derivation of a price
// that is not published.
func (x *selection) onDemandOf(s *trace.Series) (price policy.Money, basis string) {
	for i, p := range s.OnDemand {
		if s.At[i] > x.start && price > 0 {
			break
		}
		if p > 0 {
			price = p
		}
	}
	if price == 0 {
		price, basis = catalog.OnDemandOrModelled(s.Provider, s.Region, s.Type)
	}
	return price, basis
}

// halfPriced reports whether the recorded prices of s are for the machine without its accelerators,
// as Google lists them: less than half of the catalog's price for the whole.
func halfPriced(s *trace.Series, t *policy.InstanceType, onDemand policy.Money) bool {
	if t.Capacity.GPU == 0 || s.OnDemand == nil {
		return false
	}
	whole, ok := catalog.OnDemand(s.Provider, s.Region, s.Type)
	return ok && 2*onDemand < whole
}

// firstPrice returns the first price at which a node can be bought, or policy.NoPrice. Some price
// lists contain 0 for types that are not sold.
func firstPrice(prices []policy.Money) policy.Money {
	for _, p := range prices {
		if p > 0 {
			return p
		}
	}
	return policy.NoPrice
}

// choose returns the indices of the offers that a pool may use, ascending. Prices and scores are
// those at the start.
func (x *selection) choose(p *pool) ([]int, error) {
	if x.poolOffers == nil {
		x.poolOffers = make([]v1alpha1.Offer, len(x.offers))
		for i := range x.offers {
			x.poolOffers[i] = x.offers[i].poolOffer()
		}
	}
	if p.own != nil {
		return x.chooseOwn(p)
	}
	return p.capacity.Choose(x.poolOffers, x.places), nil
}

// poolOffer returns o in the form that pools evaluate.
func (o *offer) poolOffer() v1alpha1.Offer {
	w := v1alpha1.Offer{
		Provider: o.series.Provider, Region: o.series.Region, Zone: o.series.Zone, Type: o.t,
		OnDemand: o.onDemand, Modelled: o.basis != "", Spot: o.spot, Score: -1,
	}
	if o.series.Score != nil {
		w.Score = o.series.Score[o.first]
	}
	return w
}

// tabulate writes the types, zones and markets of all pools into w, ordered by name, and records in
// each offer the ids of its markets.
func (x *selection) tabulate(w *BoundScenario) {
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

// A listing is a market with its entries in the tables of a bound scenario.
type listing struct {
	market    policy.Market
	price     PriceCurve
	available AvailabilityCurve
	signals   SignalCurve
	offer     int
}

func (x *selection) list(w *BoundScenario, used []bool, typeIDs map[string]policy.TypeID) {
	all := make([]listing, 0, 2*len(x.offers))
	recorded, signalled := false, false
	for i := range x.offers {
		if !used[i] {
			continue
		}
		o := &x.offers[i]
		zone, _ := slices.BinarySearch(w.Zones, o.series.Zone)
		m := policy.Market{
			Provider: o.series.Provider, Region: o.series.Region, Zone: policy.ZoneID(zone), Type: typeIDs[o.t.Name],
			OnDemand: o.onDemand, OnDemandModelled: o.basis != "", Band: policy.BandUnknown, PlacementScore: -1,
		}
		onDemand, spot := m, m
		base := o.series.Provider + "/" + o.series.Region + "/" + o.series.Zone + "/" + o.series.Type
		onDemand.Name = base + "/on-demand"
		onDemand.Offered, onDemand.Price, onDemand.PricedAt = true, o.onDemand, x.begin
		all = append(all, listing{market: onDemand, offer: i,
			price: PriceCurve{[]policy.Time{x.begin}, []policy.Money{o.onDemand}}})

		spot.Name, spot.Capacity = base+"/spot", policy.Spot
		if spot.Auction() {
			spot.Reserve = x.reserve
		}
		l := listing{offer: i, price: x.curve(o), available: o.availability()}
		spot.Offered, spot.Price, spot.PricedAt = l.price.Price[0] != policy.NoPrice, max(0,
			l.price.Price[0]), min(l.price.At[0], x.begin)
		o.publish(&spot)
		l.market = spot
		l.signals = x.signals(o)
		recorded, signalled = recorded || l.available.At != nil, signalled || l.signals.At != nil
		all = append(all, l)
	}
	for i := range x.reserved {
		all = append(all, x.reserved[i].market(all))
	}
	slices.SortFunc(all, func(a, b listing) int { return strings.Compare(a.market.Name, b.market.Name) })
	w.Markets, w.Prices = make([]policy.Market, len(all)), make([]PriceCurve, len(all))
	if recorded {
		w.Available = make([]AvailabilityCurve, len(all))
	}
	if signalled {
		w.Signals = make([]SignalCurve, len(all))
	}
	for i := range all {
		id := policy.MarketID(i)
		all[i].market.ID = id
		w.Markets[i], w.Prices[i] = all[i].market, all[i].price
		if recorded {
			w.Available[i] = all[i].available
		}
		if signalled {
			w.Signals[i] = all[i].signals
		}
		switch o := &x.offers[all[i].offer]; all[i].market.Capacity {
		case policy.Spot:
			o.spotID = id
		case policy.OnDemand:
			o.onDemandID = id
		}
	}
}

// publish copies the published signals that apply at the start into m.
func (o *offer) publish(m *policy.Market) {
	if o.series.Band != nil {
		m.Band = policy.Band(max(-1, o.series.Band[o.first]))
	}
	if o.series.Score != nil {
		m.PlacementScore = max(-1, o.series.Score[o.first])
	}
	for k, bids := range o.series.Bids {
		if bids != nil {
			m.BidPercentiles[k] = bids[o.first]
		}
	}
}

// signals returns the signals published over the run. It shares the memory of the trace if
// possible.
func (x *selection) signals(o *offer) SignalCurve {
	s := o.series
	within := func(column []int8) []int8 {
		if column == nil {
			return nil
		}
		return column[o.first:o.last]
	}
	c := SignalCurve{Score: within(s.Score)}
	known := c.Score != nil
	for k, bids := range s.Bids {
		if bids != nil {
			c.Bids[k], known = bids[o.first:o.last], true
		}
	}
	if s.Available != nil && s.Band != nil {
		c.Band, known = carried(within(s.Band)), true
	}
	if s.Hazard != nil {
		c.Hazard, known = s.Hazard[o.first:o.last], true
	}
	if known {
		c.At = s.At[o.first:o.last]
	}
	if known && x.soldBefore(o) {
		c.At = slices.Clone(c.At)
		c.At[0] = x.begin
	}
	return c
}

// soldBefore reports whether the market was offered before its first entry in the recording. The
// run must start before that entry, and the entry must be at most a day after the start of the
// recording: a recording names each market at its first change, so a market that appears on the
// first day counts as offered from the start.
func (x *selection) soldBefore(o *offer) bool {
	first := o.series.At[o.first]
	return first > x.begin && first <= x.tr.WholeFrom+day
}

// carried returns column with each unknown value replaced by the last known value before it, since
// a published value applies until the next one.
func carried(column []int8) []int8 {
	own := false
	for i := 1; i < len(column); i++ {
		if column[i] >= 0 || column[i-1] < 0 {
			continue
		}
		if !own {
			column, own = slices.Clone(column), true
		}
		column[i] = column[i-1]
	}
	return column
}

// curve returns the Spot price over the run. It shares the memory of the trace if possible.
func (x *selection) curve(o *offer) PriceCurve {
	at, spot := o.series.At[o.first:o.last], o.series.Spot[o.first:o.last]
	if slices.Contains(spot, 0) {
		spot = slices.Clone(spot)
		for i, p := range spot {
			if p == 0 {
				spot[i] = policy.NoPrice
			}
		}
	}
	if at[0] > x.begin {
		price := policy.NoPrice
		if x.soldBefore(o) {
			price = o.spot
		}
		at = slices.Concat([]policy.Time{x.begin}, at)
		spot = slices.Concat([]policy.Money{price}, spot)
	}
	return PriceCurve{at, spot}
}

// availability returns the changes of a recorded availability. Unknown values are ignored.
func (o *offer) availability() AvailabilityCurve {
	s := o.series
	if s.Available == nil {
		return AvailabilityCurve{}
	}
	var c AvailabilityCurve
	deep := s.Launched != nil
	for i := o.first; i < o.last; i++ {
		deep = deep && (s.Available[i] < 0 || s.Launched[i] >= 0)
	}
	for i := o.first; i < o.last; i++ {
		up, k := s.Available[i] > 0, len(c.Available)
		if s.Available[i] < 0 || k > 0 && c.Available[k-1] == up && (!deep || c.Nodes[k-1] == s.Launched[i]) {
			continue
		}
		c.At, c.Available = append(c.At, s.At[i]), append(c.Available, up)
		if deep {
			c.Nodes = append(c.Nodes, s.Launched[i])
		}
		if s.ProbeGap != nil {
			c.Gap = append(c.Gap, policy.Time(s.ProbeGap[i])*1000)
		}
	}
	return c
}
