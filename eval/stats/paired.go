package stats

import "slices"

// looks are the parts of an error rate that the looks at a growing number of
// units may spend. The first has the most: most is decided there.
var looks = [...]float64{0.5, 0.25, 0.25}

// LooksMax is how often a growing number of units may be looked at.
const LooksMax = len(looks)

// LookRate returns the error rate that look number i, from 0 on, has of rate.
// All of them together make a wrong statement at most at rate, since their
// chances add up to it (Bonferroni's inequality), however the looks depend on
// each other and whenever the looking ends.
func LookRate(rate float64, i int) float64 { return looks[i] * rate }

// A Paired is what the losses of pairs come to: of each unit, how much worse one
// side is than the other under the same conditions, so that more is worse.
type Paired struct {
	// N is how many units there are, Worse how many of them lose more than the
	// tolerance, and Better how many gain more than it.
	N, Worse, Better int

	Mean, Median float64

	// Interval is that of the median loss, nil with fewer than Need units.
	Interval *Interval
	Need     int

	// Exceeds says that the loss is beyond the tolerance, Within that it is
	// not. Neither is said where the units do not tell.
	Exceeds, Within bool
}

// NewPaired tests losses against a tolerance ≥ 0. Units are independent of each
// other and drawn alike; no shape is asked of the losses: most may be 0 and a
// few very great. Each test is exact.
//
// Exceeds is wrong at most at rate, half of it for each of two tests:
//   - the interval of the median loss lies beyond the tolerance, which is the
//     sign test (Conover, Practical Nonparametric Statistics, §3.4);
//   - of the units that lose or gain more than the tolerance so many lose that
//     they do not lose as often as they gain (McNemar's test, exact: Note on the
//     Sampling Error of the Difference between Correlated Proportions, 1947).
//     It finds what happens in few units, of which the median knows nothing.
//     What is rare and small is no loss: the mean has to be beyond the
//     tolerance too.
//
// Within is wrong at most at rate, where the median loss is beyond the tolerance
// or rarely is set and a quarter of all units or more lose more than it: both
// have to be ruled out, and the mean has to be within the tolerance too. A loss
// in fewer units than a quarter may escape it; Worse says what was seen.
func NewPaired(losses []float64, tolerance, rate float64, rarely bool) Paired {
	p := Paired{N: len(losses), Need: UnitsMin(rate)}
	if p.N == 0 {
		return p
	}
	sorted := slices.Clone(losses)
	slices.Sort(sorted)
	p.Mean, p.Median = Mean(losses), Quantile(sorted, 0.5)
	for _, x := range losses {
		if x > tolerance {
			p.Worse++
		} else if x < -tolerance {
			p.Better++
		}
	}
	if i, ok := MedianInterval(sorted, rate); ok {
		p.Interval, p.Need = &i, 0
		p.Within = i.High <= tolerance && p.Mean <= tolerance && (!rarely || p.Worse <= atMost(p.N, quarter, rate))
		p.Exceeds = i.Low > tolerance
	}
	if p.Mean > tolerance && p.Worse > p.Better && p.Better <= atMost(p.Worse+p.Better, half, rate/2) {
		p.Exceeds = true
	}
	return p
}
