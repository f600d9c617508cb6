package fit

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// constant returns the spread of a property that is the same everywhere.
func constant(v float64) generate.Spread {
	s := generate.Spread{Quantiles: make([]float64, len(generate.Nodes))}
	for i := range s.Quantiles {
		s.Quantiles[i] = v
	}
	return s
}

// spreadOf tabulates values, which it sorts. It needs at least one.
func spreadOf(values []float64, shared float64) generate.Spread {
	slices.Sort(values)
	s := generate.Spread{Quantiles: make([]float64, len(generate.Nodes)), Shared: shared}
	for i, p := range generate.Nodes {
		s.Quantiles[i] = interpolate(values, p)
	}
	slices.Sort(s.Quantiles) // rounding could have swapped neighbours
	return s
}

// interpolate returns the quantile p of sorted, linear between neighbours.
func interpolate(sorted []float64, p float64) float64 {
	x := p*float64(len(sorted)) - 0.5
	i := int(math.Floor(x))
	switch {
	case i < 0:
		return sorted[0]
	case i >= len(sorted)-1:
		return sorted[len(sorted)-1]
	}
	w := x - float64(i)
	return sorted[i] + float64(w*(sorted[i+1]-sorted[i]))
}

// adjust moves the table by what change returns for each of its values, keeps
// it within bounds, and puts it in order again.
func adjust(s *generate.Spread, least, most float64, change func(i int, v float64) float64) {
	for i, v := range s.Quantiles {
		if w := change(i, v); !math.IsNaN(w) {
			s.Quantiles[i] = max(least, min(w, most))
		}
	}
	slices.Sort(s.Quantiles)
}
