package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Join returns t with the availability that law gives to its markets, drawn
// with the seed and the span of o, which the span of t cuts.
func Join(t *trace.Trace, law AvailabilityLaw, o AvailabilityOptions) (*trace.Trace, error) {
	series, err := Availability(law, t.Series, o)
	if err != nil {
		return nil, err
	}
	for i := range series {
		cut(&series[i], t.To)
	}
	joined, err := trace.New(t.Name, series)
	if err != nil {
		return nil, fmt.Errorf("adding availability: %w", err)
	}
	parameters, err := json.Marshal(&law)
	if err != nil {
		return nil, fmt.Errorf("adding availability: %w", err)
	}
	joined.From, joined.To, joined.WholeFrom, joined.WholeTo = t.From, t.To, t.From, t.To
	joined.Synthetic, joined.About = t.Synthetic, t.About+"; synthetic availability"
	joined.Meta = maps.Clone(t.Meta)
	if joined.Meta == nil {
		joined.Meta = map[string]string{}
	}
	joined.Meta["availability"] = string(parameters)
	joined.Meta["availability_seed"] = fmt.Sprint(o.Seed)
	return joined, nil
}

// cut drops the spells of s that begin at the end or later.
func cut(s *trace.Series, end policy.Time) {
	n, _ := slices.BinarySearch(s.At, end)
	if n == len(s.At) {
		return
	}
	s.At, s.Spot = s.At[:n], s.Spot[:n]
	if s.OnDemand != nil {
		s.OnDemand = s.OnDemand[:n]
	}
	if s.ProbeGap != nil {
		s.ProbeGap = s.ProbeGap[:n]
	}
	for _, column := range [...]*[]int8{&s.Available, &s.Band, &s.Score} {
		if *column != nil {
			*column = (*column)[:n]
		}
	}
	for _, column := range [...]*[]float64{&s.Hazard, &s.TrueHazard} {
		if *column != nil {
			*column = (*column)[:n]
		}
	}
}
