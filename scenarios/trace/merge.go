package trace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Merge returns the trace of what a and b say together: all markets of both,
// and of a market that both have, everything that changed in either. Where the
// two speak of one thing at one instant, b holds. What a row leaves unknown, it
// does not speak of, so that a price of b ends no placement score of a; what was
// known before therefore goes on, also in a market that only one of them has.
//
// To merge b again, or its first part, changes nothing. Neither a nor b is
// changed.
func Merge(a, b *Trace) (*Trace, error) {
	if a.Synthetic != b.Synthetic {
		return nil, fmt.Errorf("%w: of %s and %s, one was generated and one recorded", ErrValue, a.Name, b.Name)
	}
	var series []Series
	nothing := new(Series)
	i, k := 0, 0
	for i < len(a.Series) || k < len(b.Series) {
		order := -1
		switch {
		case i == len(a.Series):
			order = 1
		case k < len(b.Series):
			order = compareSeries(&a.Series[i], &b.Series[k])
		}
		switch {
		case order < 0:
			series = append(series, mergeSeries(&a.Series[i], nothing))
			i++
		case order > 0:
			series = append(series, mergeSeries(&b.Series[k], nothing))
			k++
		default:
			series = append(series, mergeSeries(&a.Series[i], &b.Series[k]))
			i, k = i+1, k+1
		}
	}
	t, err := New(a.Name, series)
	if err != nil {
		return nil, err
	}
	t.From, t.To = min(a.From, b.From), max(a.To, b.To)
	t.WholeFrom, t.WholeTo = t.From, t.To
	t.Synthetic, t.Unmarked = a.Synthetic, a.Unmarked || b.Unmarked
	if t.About = b.About; t.About == "" {
		t.About = a.About
	}
	if len(a.Meta)+len(b.Meta) > 0 {
		t.Meta = map[string]string{}
		maps.Copy(t.Meta, a.Meta)
		maps.Copy(t.Meta, b.Meta)
	}
	t.Warnings = slices.Clone(a.Warnings)
	for _, w := range b.Warnings {
		if !slices.Contains(t.Warnings, w) {
			t.Warnings = append(t.Warnings, w)
		}
	}
	return t, nil
}

// mergeSeries merges two series of one market.
func mergeSeries(a, b *Series) Series {
	m := Series{Provider: a.Provider, Region: a.Region, Zone: a.Zone, Type: a.Type, Product: a.Product}
	state := blank
	i, k := 0, 0
	for i < len(a.At) || k < len(b.At) {
		at := timeMax
		if i < len(a.At) {
			at = a.At[i]
		}
		if k < len(b.At) {
			at = min(at, b.At[k])
		}
		gap := int32(0)
		if i < len(a.At) && a.At[i] == at {
			state.speak(a, i)
			gap = a.probeGap(i)
			i++
		}
		if k < len(b.At) && b.At[k] == at {
			state.speak(b, k)
			gap = max(gap, b.probeGap(k))
			k++
		}
		if n := len(m.At); n == 0 || m.sample(n-1) != state {
			m.push(at, state, gap, true)
		}
	}
	return m
}

// speak puts into v what spell i of s begins to say: each value that is known
// and differs from the one before. A value that only goes on says nothing new,
// and must not end what the other source has said since.
func (v *sample) speak(s *Series, i int) {
	now, before := s.sample(i), blank
	if i > 0 {
		before = s.sample(i - 1)
	}
	if i == 0 || now.spot != before.spot {
		v.spot = now.spot
	}
	say(&v.onDemand, now.onDemand, before.onDemand, 0)
	say(&v.available, now.available, before.available, -1)
	say(&v.band, now.band, before.band, -1)
	say(&v.score, now.score, before.score, -1)
	say(&v.hazard, now.hazard, before.hazard, -1)
	say(&v.trueHazard, now.trueHazard, before.trueHazard, -1)
	for k := range v.bids {
		say(&v.bids[k], now.bids[k], before.bids[k], policy.Money(0))
	}
}

func say[T comparable](v *T, now, before, unknown T) {
	if now != unknown && now != before {
		*v = now
	}
}
