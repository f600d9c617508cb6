package fit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

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
		s := &series[i]
		n, _ := slices.BinarySearch(s.At, t.To)
		s.Cut(0, n)
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
	joined.Synthetic, joined.Scripted, joined.About = t.Synthetic, t.Scripted, t.About+"; synthetic availability"
	joined.Meta = maps.Clone(t.Meta)
	if joined.Meta == nil {
		joined.Meta = map[string]string{}
	}
	joined.Meta["availability"] = string(parameters)
	joined.Meta["availability_seed"] = fmt.Sprint(o.Seed)
	return joined, nil
}
