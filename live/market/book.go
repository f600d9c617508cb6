package market

import (
	"cmp"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A Book contains the known data about markets. It is safe for concurrent use.
type Book struct {
	config *Config
	feeds  *feedReader

	mu    sync.Mutex
	known knowledge
	pools []*v1alpha1.CapacityPool // pools of the last call of Use; nil before the first

	table   table
	omitted string // the last message about omitted offers

	met map[string]*meeting // by name of the market

	places map[string]v1alpha1.Place

	savedAt policy.Time // when the last write of the cache started
}

// New returns a book with the data of its cache. It reads no feed yet.
func New(c Config) (*Book, error) {
	b := &Book{
		config: &c, known: newKnowledge(), met: map[string]*meeting{}, places: map[string]v1alpha1.Place{},
	}
	b.feeds = &feedReader{config: &c, book: b, states: make([]feedState, len(c.Feeds))}
	if err := b.load(); err != nil {
		return nil, err
	}
	b.tabulate()
	return b, nil
}

// Use sets the pools. The tables then contain the markets in which a pool may buy by place, type
// and size, and those that [Book.Find] was called for; before the first call they contain all known
// markets. The pools must have their defaults and must not be modified afterwards.
func (b *Book) Use(pools []*v1alpha1.CapacityPool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.EqualFunc(b.pools, pools, func(p, q *v1alpha1.CapacityPool) bool { return p == q }) && b.pools != nil {
		return
	}
	b.pools = append(make([]*v1alpha1.CapacityPool, 0, len(pools)), pools...)
	b.known.changed = true
}

// Place sets the region of a cluster by the name of its cloudspace. The default is the region in
// which the first pool of the cluster finds the most markets.
func (b *Book) Place(cluster, provider, region string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.places[cluster] = v1alpha1.Place{Provider: provider, Region: region}
}

// NameZone sets the ID of a zone, as learned from nodes that have both name and ID. Feeds that
// identify zones by ID are then joined with feeds that use the names that nodes have.
func (b *Book) NameZone(z Zone) {
	if z.Provider == "" || z.Region == "" || z.Name == "" || z.ID == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known.nameZone(place{z.Provider, z.Region}, z.ID, z.Name) {
		b.known.changed = true
	}
}

// Fill sets the Types, Zones, Markets and Sources of s to the data that is known at now; the caller
// appends its own sources. Types, Zones and the History of markets are shared and must not be
// modified; s owns the rest. Forecasts are left empty.
//
// Identifiers change only in this method: see [Book.Generation].
func (b *Book) Fill(s *policy.Snapshot, now policy.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known.changed {
		b.tabulate()
	}
	b.table.refresh(b.config, now)
	s.Types, s.Zones = b.table.types, b.table.zones
	s.Markets = slices.Clone(b.table.markets)
	s.Sources = b.feeds.sources()
}

// Settle counts the nodes of s in each market, once s contains its nodes. Until the next call, they
// add to the node-hours of their markets. Nothing is counted if identifiers have changed since s
// was filled.
func (b *Book) Settle(s *policy.Snapshot) {
	counts := make([]int64, len(s.Markets))
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Phase != policy.NodeGone && n.Market != policy.None {
			counts[n.Market]++
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.EqualFunc(s.Markets, b.table.markets, func(x, y policy.Market) bool { return x.Name == y.Name }) {
		return
	}
	for i, n := range counts {
		m := b.table.met[i]
		switch {
		case m == nil && n == 0:
			continue
		case m == nil:
			m = &meeting{}
			b.met[b.table.markets[i].Name], b.table.met[i] = m, m
		}
		m.meet(s.Now)
		m.running = n
	}
}

// Generation returns a number that changes whenever a call of [Book.Fill] has changed the
// identifiers of types, zones or markets.
func (b *Book) Generation() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.table.generation
}

// Choose returns the markets of a pool, in ascending order: those of the last Fill that its
// manifest allows at their present prices and scores, by the same rules as in a scenario. p must be
// valid and have its defaults.
func (b *Book) Choose(p *v1alpha1.CapacityPool) []policy.MarketID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []policy.MarketID
	for _, i := range p.Choose(b.table.offers, b.places) {
		for _, id := range b.table.sold[i] {
			if id != policy.None {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Find returns the market of a node, or policy.None if the tables do not contain it. The zone may
// be a name or an ID. The region may be empty if the zone implies it or if there is only one. A
// market that is not in the tables is in them after the next Fill, if its instance type is known.
func (b *Book) Find(provider, region, zone, instanceType string, c policy.CapacityType) policy.MarketID {
	b.mu.Lock()
	defer b.mu.Unlock()
	region = cmp.Or(region, b.table.regionOf(b.config.Regions, provider, zone))
	at := place{provider, region}
	key := offerKey{at, b.known.zoneName(at, zone), instanceType}
	if id := b.table.find(key.market(c)); id != policy.None {
		return id
	}
	if zone != "" && region != "" && !b.known.asked[key] && b.known.typeOf(provider, instanceType) != nil {
		b.known.asked[key] = true
		b.known.offerOf(key)
		b.known.changed = true
	}
	return policy.None
}

// Lookup returns the market with the given [policy.Market.Name], or policy.None if the tables do
// not contain it.
func (b *Book) Lookup(name string) policy.MarketID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.table.find(name)
}

// Meet counts an event of the own cluster in a market, even if the tables do not contain the
// market.
func (b *Book) Meet(e backend.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := policy.TimeOf(b.config.Clock.Now())
	if e.At == 0 || e.At > now {
		e.At = now
	}
	if e.Market != "" {
		b.meet(e)
		return
	}
	for key := range b.known.offers { // in any order: the markets are independent
		if b.covers(&e.Scope, key) {
			e.Market = key.market(e.Scope.Capacity)
			b.meet(e)
		}
	}
}

// covers reports whether a scope selects the markets of an offer.
func (b *Book) covers(s *backend.Scope, key offerKey) bool {
	match := func(want, is string) bool { return want == "" || want == is }
	if s.Provider == "" || s.Provider != key.provider || !match(s.Region, key.region) || !match(s.Zone, key.zone) ||
		!match(s.Type, key.kind) {
		return false
	}
	if s.Family == "" {
		return true
	}
	t := b.known.typeOf(key.provider, key.kind)
	return t != nil && t.Family == s.Family
}

// meet counts an event in its market.
func (b *Book) meet(e backend.Event) {
	m := b.met[e.Market]
	if m == nil {
		m = &meeting{}
		b.met[e.Market] = m
		b.table.link(e.Market, m)
	}
	m.take(e)
}
