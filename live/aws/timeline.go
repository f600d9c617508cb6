package aws

import (
	"cmp"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A marketKey identifies a market within a region.
type marketKey struct{ zone, kind, product string }

// A point is a value in effect from an instant.
type point[T comparable] struct {
	at policy.Time
	v  T
}

// A timeline contains the values of a quantity over time, ascending. Each value differs from the
// one before.
type timeline[T comparable] []point[T]

// put adds points. Of two values at one instant it keeps the greater, so that the order of the
// responses does not matter.
func put[T cmp.Ordered](l timeline[T], points ...point[T]) timeline[T] {
	l = append(l, points...)
	slices.SortFunc(l, func(a, b point[T]) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.v, a.v)) })
	l = slices.CompactFunc(l, func(a, b point[T]) bool { return a.at == b.at })
	return slices.CompactFunc(l, func(a, b point[T]) bool { return a.v == b.v })
}

// upTo returns the number of points at or before an instant.
func (l timeline[T]) upTo(at policy.Time) int {
	n, _ := slices.BinarySearchFunc(l, at, func(p point[T], at policy.Time) int {
		if p.at <= at {
			return -1
		}
		return 1
	})
	return n
}

// at returns the value in effect at an instant; absent before the first point.
func (l timeline[T]) at(at policy.Time, absent T) T {
	if n := l.upTo(at); n > 0 {
		return l[n-1].v
	}
	return absent
}

// A market contains the known data of one market.
type market struct {
	spot     timeline[policy.Money]
	onDemand timeline[policy.Money]
	band     timeline[int8]
	score    timeline[int8]
}

// load adds the data of the market in a file of the trace.
func (m *market) load(s *trace.Series) {
	spot := make([]point[policy.Money], 0, len(s.At))
	var onDemand []point[policy.Money]
	var band, score []point[int8]
	for i, at := range s.At {
		spot = append(spot, point[policy.Money]{at, s.Spot[i]})
		if s.OnDemand != nil && s.OnDemand[i] > 0 {
			onDemand = append(onDemand, point[policy.Money]{at, s.OnDemand[i]})
		}
		if s.Band != nil && s.Band[i] >= 0 {
			band = append(band, point[int8]{at, s.Band[i]})
		}
		if s.Score != nil && s.Score[i] >= 0 {
			score = append(score, point[int8]{at, s.Score[i]})
		}
	}
	m.spot, m.onDemand = put(m.spot, spot...), put(m.onDemand, onDemand...)
	m.band, m.score = put(m.band, band...), put(m.score, score...)
}

// addSpot adds the events of a recording that started at from. The last event before from is the
// price in effect at from. It was already recorded unless AWS published it late. A late price takes
// effect at the start of the first day that is rewritten.
func (m *market) addSpot(events []point[policy.Money], from policy.Time) {
	first := 0
	for first < len(events) && events[first].at < from {
		first++
	}
	if first > 0 {
		prior := events[first-1]
		n := m.spot.upTo(from)
		switch {
		case n == 0:
			m.spot = put(m.spot, point[policy.Money]{from, prior.v})
		case m.spot[n-1].at < prior.at && m.spot[n-1].v != prior.v:
			m.spot = put(m.spot, point[policy.Money]{max(prior.at, dayOf(from)), prior.v})
		}
	}
	m.spot = put(m.spot, events[first:]...)
}

// addOnDemand adds a price observed at the instant seen. A price list does not contain past prices,
// so the first known price is also used before it, back to from.
func (m *market) addOnDemand(price policy.Money, from, seen policy.Time) {
	if len(m.onDemand) == 0 {
		m.onDemand = put(m.onDemand, point[policy.Money]{from, price})
		return
	}
	if first := m.onDemand[0]; first.at > from {
		m.onDemand = put(m.onDemand, point[policy.Money]{from, first.v})
	}
	m.onDemand = put(m.onDemand, point[policy.Money]{seen, price})
}

// day returns the rows of the market in [begin, end). The first row contains the values in effect
// at begin, or at the first price if that is later. It returns false if the market has no price
// before end.
func (m *market) day(begin, end policy.Time) (trace.Series, bool) {
	var s trace.Series
	if len(m.spot) == 0 || m.spot[0].at >= end {
		return s, false
	}
	begin = max(begin, m.spot[0].at)
	instants := map[policy.Time]bool{begin: true}
	within(instants, m.spot, begin, end)
	within(instants, m.onDemand, begin, end)
	within(instants, m.band, begin, end)
	within(instants, m.score, begin, end)
	for _, at := range slices.Sorted(maps.Keys(instants)) {
		s.At = append(s.At, at)
		s.Spot = append(s.Spot, m.spot.at(at, policy.NoPrice))
		s.OnDemand = append(s.OnDemand, m.onDemand.at(at, 0))
		s.Band = append(s.Band, m.band.at(at, -1))
		s.Score = append(s.Score, m.score.at(at, -1))
	}
	return s, true
}

// within adds the instants of the points in (begin, end) to instants.
func within[T comparable](instants map[policy.Time]bool, l timeline[T], begin, end policy.Time) {
	for i := l.upTo(begin); i < len(l) && l[i].at < end; i++ {
		instants[l[i].at] = true
	}
}

// A book contains the known data of one region.
type book struct {
	region  string
	zones   string // how zones are identified, for the metadata
	markets map[marketKey]*market
}

func (b *book) market(k marketKey) *market {
	m := b.markets[k]
	if m == nil {
		m = &market{}
		b.markets[k] = m
	}
	return m
}

// keys returns the keys of the markets, sorted.
func (b *book) keys() []marketKey {
	return slices.SortedFunc(maps.Keys(b.markets), func(a, b marketKey) int {
		return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.kind, b.kind), cmp.Compare(a.product, b.product))
	})
}

// day returns the series of a day's file.
func (b *book) day(begin, end policy.Time) []trace.Series {
	var all []trace.Series
	for _, k := range b.keys() {
		if s, ok := b.markets[k].day(begin, end); ok {
			s.Provider, s.Region, s.Zone, s.Type, s.Product = catalog.AWS, b.region, k.zone, k.kind, k.product
			all = append(all, s)
		}
	}
	return all
}
