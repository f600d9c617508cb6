package market

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A table contains the data from which snapshots are filled. Its identifiers do not change.
type table struct {
	generation uint64

	types   []policy.InstanceType
	zones   []string
	markets []policy.Market

	// regions is the result of regionsOf.
	regions map[zoneAt]string

	// rows contains the data of each market, and met the own cluster's observations in it, nil if
	// it has no observations.
	rows []row
	met  []*meeting

	// offers are the offers from which pools choose, ordered by provider, region, zone and type.
	// sold contains the Spot market, or policy.None, and the on-demand market of each.
	offers []v1alpha1.Offer
	from   []row // the data of each offer
	sold   [][2]policy.MarketID
}

// A row refers to the data about a market.
type row struct {
	offer *offer
	price *listed
	band  *banded // nil if none was published
}

// tabulate rebuilds the tables. The generation changes only if an identifier changes.
func (b *Book) tabulate() {
	b.known.changed = false
	keys := make([]offerKey, 0, len(b.known.offers))
	for key := range b.known.offers {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	t := table{generation: b.table.generation, regions: regionsOf(keys)}
	var omitted omissions
	var types []*policy.InstanceType
	owner := map[string]string{} // provider by name of a type
	for _, key := range keys {
		kind := b.known.typeOf(key.provider, key.kind)
		if kind == nil {
			omitted.unknown = append(omitted.unknown, key)
			continue
		}
		if !b.wants(key, kind) {
			continue
		}
		price := b.known.listedFor(typeAt{key.place, key.kind})
		if price == nil {
			omitted.unpriced = append(omitted.unpriced, key)
			continue
		}
		switch first, taken := owner[kind.Name]; {
		case !taken:
			owner[kind.Name] = key.provider
			types = append(types, kind)
		case first != key.provider:
			omitted.twice = append(omitted.twice, key) // the name of a type is its identifier
			continue
		}
		t.zones = append(t.zones, key.zone)
		t.from = append(t.from, row{b.known.offers[key], price, b.known.bands[typeAt{key.place, key.kind}]})
		t.offers = append(t.offers, v1alpha1.Offer{
			Provider: key.provider, Region: key.region, Zone: key.zone, Type: kind, Spot: policy.NoPrice, Score: -1,
		})
	}
	slices.Sort(t.zones)
	t.zones = slices.Compact(t.zones)
	slices.SortFunc(types, func(a, b *policy.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	ids := make(map[string]policy.TypeID, len(types))
	for i, kind := range types {
		t.types = append(t.types, *kind)
		t.types[i].ID = policy.TypeID(i)
		ids[kind.Name] = policy.TypeID(i)
	}
	t.list(ids)
	if !t.same(&b.table) {
		t.generation++
	}
	b.table = t
	b.logOmitted(&omitted)
	for i := range t.markets {
		b.table.met[i] = b.met[t.markets[i].Name]
	}
}

// omissions are offers that the tables omit although they may be sold.
type omissions struct{ unknown, unpriced, twice []offerKey }

// logOmitted logs the omitted offers if they have changed.
func (b *Book) logOmitted(o *omissions) {
	var said string
	for _, x := range []struct {
		why  string
		keys []offerKey
	}{
		{"their type is unknown or leaves nothing for pods", o.unknown},
		{"their on-demand price is unknown", o.unpriced},
		{"another provider has a type of the same name", o.twice},
	} {
		if n := len(x.keys); n > 0 {
			k := x.keys[0]
			said += fmt.Sprintf("%d because %s, the first %s/%s/%s/%s; ", n, x.why, k.provider, k.region, k.zone, k.kind)
		}
	}
	if said = strings.TrimSuffix(said, "; "); said != b.omitted {
		b.omitted = said
		if said != "" {
			b.config.Log.Warn("some offers are not used as markets", "left out", said)
		}
	}
}

// wants reports whether the tables must contain an offer: a pool may buy it, a node runs on it, or
// Find was called for it.
func (b *Book) wants(key offerKey, kind *policy.InstanceType) bool {
	if b.pools == nil || b.known.asked[key] {
		return true
	}
	for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
		if m := b.met[key.market(c)]; m != nil && m.running > 0 {
			return true
		}
	}
	return slices.ContainsFunc(b.pools, func(p *v1alpha1.CapacityPool) bool {
		return p.BuysFrom(key.provider) && p.Spec.Markets.Take(key.region, key.zone, kind)
	})
}

// list creates the markets of all offers, sorted by name.
func (t *table) list(ids map[string]policy.TypeID) {
	type listing struct {
		market policy.Market
		offer  int
	}
	var all []listing
	for i := range t.from {
		r, key := &t.from[i], t.from[i].offer.key
		zone, _ := slices.BinarySearch(t.zones, key.zone)
		m := policy.Market{
			Provider: key.provider, Region: key.region, Zone: policy.ZoneID(zone), Type: ids[key.kind],
			OnDemandModelled: r.price.modelled, Band: policy.BandUnknown, PlacementScore: -1,
		}
		for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
			if c == policy.Spot && len(r.offer.spot.points) == 0 {
				continue
			}
			m.Name, m.Capacity = key.market(c), c
			all = append(all, listing{m, i})
		}
	}
	slices.SortFunc(all, func(a, b listing) int { return cmp.Compare(a.market.Name, b.market.Name) })
	t.sold = slices.Repeat([][2]policy.MarketID{{policy.None, policy.None}}, len(t.from))
	t.markets, t.rows = make([]policy.Market, len(all)), make([]row, len(all))
	t.met = make([]*meeting, len(all))
	for i := range all {
		m, of := &all[i].market, all[i].offer
		m.ID = policy.MarketID(i)
		t.markets[i], t.rows[i] = *m, t.from[of]
		if m.Capacity == policy.Spot {
			t.sold[of][0] = m.ID
		} else {
			t.sold[of][1] = m.ID
		}
	}
}

// same reports whether t and u have the same identifiers.
func (t *table) same(u *table) bool {
	return slices.Equal(t.zones, u.zones) &&
		slices.EqualFunc(t.types, u.types, func(a, b policy.InstanceType) bool {
			return a.Name == b.Name &&
				a.Provider == b.Provider
		}) &&
		slices.EqualFunc(t.markets, u.markets, func(a, b policy.Market) bool { return a.Name == b.Name })
}

// refresh updates the prices, signals and observations in the tables to now.
func (t *table) refresh(c *Config, now policy.Time) {
	for i := range t.markets {
		m, r := &t.markets[i], &t.rows[i]
		m.OnDemand, _, _ = r.price.curve.at(now)
		m.OnDemandModelled = r.price.modelled
		if m.Capacity == policy.Spot {
			refreshSpot(m, r.offer, now, c.StaleAfter)
		} else {
			m.Offered, m.Price = !m.OnDemandModelled, m.OnDemand // a derived price is not offered
			_, m.PricedAt, _ = r.price.curve.at(now)
			m.History = r.price.curve.history(now)
		}
		m.Band = policy.BandUnknown
		if r.band != nil && now.Sub(r.band.at) <= bandsStaleAfter {
			m.Band = r.band.band
		}
		m.PlacementScore = -1
		if r.offer.score >= 0 && now.Sub(r.offer.scoredAt) <= signalsStaleAfter {
			m.PlacementScore = r.offer.score
		}
		if x := t.met[i]; x != nil {
			x.meet(now)
			m.Experience = x.seen
		}
	}
	for i := range t.offers {
		o, r := &t.offers[i], &t.from[i]
		o.Modelled = r.price.modelled
		o.OnDemand, _, _ = r.price.curve.at(now)
		if id := t.sold[i][0]; id != policy.None {
			o.Spot, o.Score = policy.NoPrice, t.markets[id].PlacementScore
			if t.markets[id].Price > 0 {
				o.Spot = t.markets[id].Price
			}
		}
	}
}

// refreshSpot updates the price of a Spot market. A market whose price was reported too long ago,
// or that sells nothing, is not offered. Its last price is still used for the accounts of the nodes
// that run there.
func refreshSpot(m *policy.Market, o *offer, now policy.Time, staleAfter time.Duration) {
	price, since, known := o.spot.at(now)
	m.Offered = known && price > 0 && now.Sub(o.reported) <= staleAfter
	if price <= 0 {
		price = o.spot.lastOffered(now)
	}
	m.Price, m.PricedAt = price, since
	m.Reserve, m.BidPercentiles = o.reserve, o.bids
	m.History = o.spot.history(now)
}

// link connects the market with this name, if the tables contain it, to its observations.
func (t *table) link(name string, m *meeting) {
	if id := t.find(name); id != policy.None {
		t.met[id] = m
	}
}

// find returns the market with this name, or policy.None if the table does not contain it.
func (t *table) find(name string) policy.MarketID {
	i, ok := slices.BinarySearchFunc(t.markets, name, func(m policy.Market,
		name string) int {
		return strings.Compare(m.Name, name)
	})
	if !ok {
		return policy.None
	}
	return policy.MarketID(i)
}
