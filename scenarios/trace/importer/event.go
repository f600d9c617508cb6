package importer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A says is the set of properties that a row has values for.
type says uint8

const (
	saysSpot says = 1 << iota
	saysOnDemand
	saysAvailable
	saysBand
	saysScore
	saysBids
	saysDepth
)

// An event is a row: its values apply to a market from at on.
type event struct {
	market                 int32 // index in collection.markets
	says                   says
	available, band, score int8
	order                  int32 // order in which events were read
	requested, launched    int32
	gap                    int32 // seconds since the previous observation of the market
	bids                   int32 // index in collection.bids; 0 if unknown
	at                     policy.Time
	spot, onDemand         policy.Money
}

// An assembly converts a collection to a trace.
type assembly struct {
	*collection
	*notes

	last says // the properties in the last interval of the current series
}

// trace sorts the events and returns a trace of them.
func (a *assembly) trace(srcs []string) (*trace.Trace, error) {
	if len(a.events) == 0 {
		if len(a.report.BadRows) > 0 {
			return nil, fmt.Errorf("%w: none of %d rows can be used; the first: %s", trace.ErrEmpty, a.report.Rows,
				a.report.BadRows[0])
		}
		return nil, fmt.Errorf("%w: %s has no rows", trace.ErrEmpty, strings.Join(srcs, ", "))
	}
	a.lookUpPrices()
	slices.SortFunc(a.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.market, b.market), cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	noteProbes(a.events)
	var series []trace.Series
	for i := range a.events {
		e := &a.events[i]
		if i == 0 || e.market != a.events[i-1].market {
			series = append(series, a.markets[e.market].series())
			a.last = 0
		}
		a.push(&series[len(series)-1], e)
	}
	said := a.modelPrices(series)
	names := make([]string, len(srcs))
	for i, src := range srcs {
		names[i] = filepath.Base(src)
	}
	t, err := trace.New(clip(strings.Join(names, "+"), 200), series)
	if err != nil {
		return nil, err
	}
	t.From, t.To = a.from, a.to
	t.WholeFrom, t.WholeTo = t.From, t.To
	t.About, t.Scripted = a.about(names), a.fromScript()
	if said != "" {
		t.About += "; " + said
		t.Meta = map[string]string{trace.MetaModelled: said}
		t.Warnings = append(t.Warnings, said)
	}
	if a.ids && a.names {
		a.warn("zones are given by ID and by name; names differ between accounts, so the two cannot be joined")
	}
	if a.zeros > 0 {
		a.warn("%d on-demand prices are written 0 and taken as unknown", a.zeros)
	}
	t.Warnings = append(t.Warnings, a.warnings...)
	a.fill(t)
	return t, nil
}

// push adds an event to the series of its market. Values that the event does not have remain
// unchanged.
func (a *assembly) push(s *trace.Series, e *event) {
	v, gap, said := e.apply(s.Last(), a.bids), e.gap, e.says
	if n := len(s.At); n > 0 && s.At[n-1] == e.at {
		if a.last&e.says != 0 {
			a.report.Duplicates++
		} else {
			a.report.Joined++
		}
		if s.Last() == v {
			a.last |= e.says
			return
		}
		gap, said = max(gap, s.ProbeGapAt(n-1)), said|a.last
		s.Cut(0, n-1)
	}
	a.last = said
	if len(s.At) > 0 && s.Last() == v {
		a.report.Repeats++
		a.last = 0
		return
	}
	s.Append(e.at, v, gap)
}

// apply returns v with the values that the event has.
func (e *event) apply(v trace.Sample, bids [][3]policy.Money) trace.Sample {
	if e.says&saysSpot != 0 {
		v.Spot = e.spot
	}
	if e.says&saysOnDemand != 0 {
		v.OnDemand = e.onDemand
	}
	if e.says&saysAvailable != 0 {
		v.Available, v.Requested, v.Launched = e.available, -1, -1
	}
	if e.says&saysBand != 0 {
		v.Band = e.band
	}
	if e.says&saysScore != 0 {
		v.Score = e.score
	}
	if e.says&saysBids != 0 {
		v.Bids = bids[e.bids]
	}
	if e.says&saysDepth != 0 {
		v.Requested, v.Launched = e.requested, e.launched
	}
	return v
}

// about describes the recording in one line.
func (a *assembly) about(names []string) string {
	prices, availability := false, false
	for i := range a.events {
		prices = prices || a.events[i].says&saysSpot != 0
		availability = availability || a.events[i].says&saysAvailable != 0
	}
	what := "recorded prices"
	switch {
	case a.fromScript():
		what = trace.AboutScripted
	case prices && availability:
		what = "recorded prices and availability"
	case availability:
		what = "recorded availability"
	}
	if len(names) > 4 {
		names = append(slices.Clone(names[:3]), fmt.Sprintf("%d more", len(names)-3))
	}
	return what + ", imported from " + strings.Join(names, ", ")
}
