package fit

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// sinHalfPi returns the sine of x·π/2 for x in [0, 1], by its series: the
// functions of the standard library differ by machine.
func sinHalfPi(x float64) float64 {
	const halfPi = 1.5707963267948966
	y := float64(halfPi * x)
	term, total := y, y
	for n := 1.0; n < 8; n++ {
		term = -float64(term*y*y) / float64(2*n*(2*n+1))
		total += term
	}
	return min(total, 1)
}

// gapCounts count the times between changes.
type gapCounts struct{ all, skips, rests float64 }

// The bounds of a gap of about two ticks, in hours. Looks of four a day see one
// tick as up to ten.
const (
	skipLeast = 10.5
	skipMost  = 18
)

func (g *gapCounts) add(s *sight) {
	for j := 2; j < len(s.at); j++ {
		g.all++
		switch hours := s.at[j].Sub(s.at[j-1]).Hours(); {
		case hours > skipMost:
			g.rests++
		case hours > skipLeast:
			g.skips++
		}
	}
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// middle returns the quantile p of values. It reorders values so that those below the
// quantile precede those above it.
func middle(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	// interpolate looks at one place and the next.
	at := max(0, int(math.Floor(p*float64(len(values))-0.5)))
	choose(values, at)
	if rest := values[at+1:]; len(rest) > 0 {
		i := slices.Index(rest, slices.Min(rest))
		rest[0], rest[i] = rest[i], rest[0]
	}
	return interpolate(values, p)
}

// choose puts at place k what stood there if values were sorted, nothing greater before
// it and nothing less behind it (Hoare's selection).
func choose(values []float64, k int) {
	for first, last := 0, len(values)-1; first < last; {
		pivot, i, j := values[(first+last)/2], first, last
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			last = j
		case k >= i:
			first = i
		default:
			return
		}
	}
}

// coarse reports whether the steps of a market are so small against the unit of
// prices that their size says more of the unit.
func (s *sight) coarse() bool {
	return float64(s.size*portable.Exp(s.level)) < float64(3*s.unit)
}

// fineLeast is how many markets must not be coarse for the sizes of steps to be
// measured on them alone.
const fineLeast = 8

// describe fills in the figures of one market.
func (s *sight) describe() {
	hours, total := 0.0, 0.0
	for j, x := range s.x {
		hours += s.hours[j]
		total += float64(x * s.hours[j])
	}
	if hours == 0 {
		return
	}
	s.level = total / hours
	squares, n := 0.0, 0
	second := 0.0
	for j, x := range s.x {
		d := x - s.level
		squares += float64(s.hours[j] * d * d)
		if step, ok := s.step(j); ok {
			n++
			second += float64(step * step)
		}
	}
	s.wander = squares / hours
	s.rate = float64(n) / hours * 24
	if n > 0 {
		s.size = math.Sqrt(second / float64(n))
	}
}

// step returns the j-th change, unless the market was not offered before it.
func (s *sight) step(j int) (float64, bool) {
	if j == 0 || s.at[j].Sub(s.at[j-1]).Hours() > s.hours[j-1]+0.01 {
		return 0, false
	}
	step := s.x[j] - s.x[j-1]
	return step, step != 0
}

// momentum returns the sums of which the correlation of neighbouring steps is
// made.
func (s *sight) momentum() (products, squares float64) {
	last, chained := 0.0, false
	for j := range s.x {
		step, ok := s.step(j)
		if ok && chained {
			products += float64(last * step)
			squares += float64(float64(last*last)+float64(step*step)) / 2
		}
		last, chained = step, ok
	}
	return products, squares
}

// daily returns the moves from one midnight to the next, where the market was
// there at both, and else what is not a number.
func (s *sight) daily(from, to policy.Time) []float64 {
	moves := make([]float64, 0, (to-from)/day)
	last, j := math.NaN(), 0
	for d := (from + day - 1) / day * day; d <= to; d += day {
		for j < len(s.at) && s.at[j] <= d {
			j++
		}
		x := math.NaN()
		if j > 0 && d.Sub(s.at[j-1]).Hours() <= s.hours[j-1] {
			x = s.x[j-1]
		}
		moves = append(moves, x-last)
		last = x
	}
	return moves
}

// timeTable tabulates the logarithm over the time of all markets.
func timeTable(all []sight) table {
	// Logarithms are counted in steps of 0.0005, from −10 to 10.
	const cells, width = 40_000, 0.0005
	hours := make([]float64, cells)
	total := 0.0
	for i := range all {
		for j, x := range all[i].x {
			k := int(math.Floor(x/width)) + cells/2
			hours[max(0, min(k, cells-1))] += all[i].hours[j]
			total += all[i].hours[j]
		}
	}
	var t table
	k, below := 0, 0.0
	for i, p := range generate.Nodes {
		want := float64(max(0.002, min(p, 0.998)) * total)
		for k < cells-1 && below+hours[k] < want {
			below += hours[k]
			k++
		}
		t[i] = (float64(k-cells/2) + 0.5) * width
	}
	return t
}
