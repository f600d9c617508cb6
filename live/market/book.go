package market

import (
	"cmp"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A Book is what is known of markets. It may be used by any number of goroutines
// at once.
type Book struct {
	config *Config
	feeds  *feedReader

	mu    sync.Mutex
	known knowledge
	pools []*v1alpha1.CapacityPool // those of Use; nil before it

	table   table
	omitted string // what was said of offers that they leave out

	met map[string]*meeting // by the name of the market

	places map[string]v1alpha1.Place

	savedAt policy.Time // when the cache was last written, or began to be
}

// New returns a book that knows what its cache holds. It asks no feed yet.
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

// Use sets the pools. The tables then hold the markets in which one of them may buy by place, type
// and size, and those that [Book.Find] was called for; before the first call they hold all known
// markets. The pools have their defaults and are not written afterwards.
func (b *Book) Use(pools []*v1alpha1.CapacityPool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.EqualFunc(b.pools, pools, func(p, q *v1alpha1.CapacityPool) bool { return p == q }) && b.pools != nil {
		return
	}
	b.pools = append(make([]*v1alpha1.CapacityPool, 0, len(pools)), pools...)
	b.known.changed = true
}

// Place sets the region of a cluster by the name of its cloudspace. A cluster of which none was
// set is where its first pool finds the most markets.
func (b *Book) Place(cluster, provider, region string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.places[cluster] = v1alpha1.Place{Provider: provider, Region: region}
}

// NameZone says by which ID a zone goes, as nodes show that carry both. Feeds that
// name zones by their IDs are then joined with those that name them as nodes do.
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

// Fill writes into s what is known at now: Types, Zones, Markets and Sources; the caller appends the sources of its own. Types, Zones and
// the History of markets are shared and never written; all else is the snapshot's own.
// Forecasts are left empty.
//
// Identifiers change only here: see [Book.Generation].
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

// Settle takes in which nodes of s run, once they are there: until the next call they add
// to the node-hours of their markets. Where identifiers have changed since s was filled nothing
// is counted.
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

// Generation changes whenever a call of [Book.Fill] has changed the identifiers of types, zones or
// markets.
func (b *Book) Generation() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.table.generation
}

// Choose returns the markets that a pool takes, ascending: those of the last Fill
// that its manifest allows at their present prices and scores, by the very rules of
// a scenario. p is valid and has its defaults.
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

// Find returns the market of a node, policy.None where the tables do not hold it.
// The zone may go by its name or its ID, and the region may be empty where the zone says
// it or where there is one only. A market that can be described but is not in the tables
// will be after the next Fill.
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

// Lookup returns the market of that name, as [policy.Market.Name] is written, and
// policy.None where the tables do not hold it.
func (b *Book) Lookup(name string) policy.MarketID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.table.find(name)
}

// Meet counts an observation of the own cluster in a market. The tables need not hold it.
func (b *Book) Meet(e backend.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := policy.TimeOf(b.config.Clock.Now())
	if e.At == 0 || e.At > now {
		e.At = now
	}
	if e.Market == "" {
		return
	}
	m := b.met[e.Market]
	if m == nil {
		m = &meeting{}
		b.met[e.Market] = m
		b.table.link(e.Market, m)
	}
	m.take(e)
}
