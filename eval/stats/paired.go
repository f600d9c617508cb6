package stats

import (
	"slices"

	"github.com/spotter-dev/spotter/policy/portable"
)

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

// A Paired summarises the losses of pairs: for each unit, how much worse one side is than the other
// under the same conditions. A greater loss is worse.
type Paired struct {
	// N is how many units there are, Worse how many of them lose more than the
	// tolerance, and Better how many gain more than it.
	N, Worse, Better int

	Mean, Median float64

	// Interval is that of the median loss, nil with fewer than Need units.
	Interval *Interval
	Need     int

	// Exceeds says that the loss is beyond the tolerance, Within that it is
	// not. Neither is said where the units do not decide it.
	Exceeds, Within bool
}

// A Test is what losses are held against.
type Test struct {
	// Tolerance is the loss that is let pass, ≥ 0.
	Tolerance float64

	// ExceedsRate and WithinRate are the error rates of the two statements.
	ExceedsRate, WithinRate float64

	// Rarely says that a loss in a quarter of the units counts as one.
	Rarely bool
}

// Paired tests losses. Units are independent and identically distributed. The test assumes no
// distribution of the losses: most may be 0 and a few very great. Each test is exact.
//
// Exceeds is wrong at most at its rate, half of it for each of two tests:
//   - the interval of the median loss is beyond the tolerance, which is the
//     sign test (Conover, Practical Nonparametric Statistics, §3.4);
//   - of the units that lose more than twice the tolerance or gain anything, more
//     lose than chance explains if losing is as likely as gaining (McNemar's test,
//     exact: Note on the Sampling Error of the Difference between Correlated
//     Proportions, 1947). It finds effects in few units, which the median does
//     not show. Both limits are equally far from the tolerance, so that losses
//     that are symmetric around it do not count. Rare and small losses do not
//     count either: the mean has to be beyond the tolerance too.
//
// Within is wrong at most at its rate, where the median loss is beyond the
// tolerance, or where Rarely is set and a quarter of all units or more lose more
// than it: both have to be ruled out, and the mean has to be within the
// tolerance too. A loss in fewer units may escape it; Worse says what was seen.
//
// The interval is made for ExceedsRate, which is at most twice WithinRate.
func (t Test) Paired(losses []float64) Paired {
	p := Paired{N: len(losses), Need: UnitsMin(t.ExceedsRate)}
	if p.N == 0 {
		return p
	}
	sorted := slices.Clone(losses)
	slices.Sort(sorted)
	p.Mean, p.Median = Mean(losses), portable.Quantile(sorted, 0.5)
	far, gain := 0, 0
	for _, x := range losses {
		if x > t.Tolerance {
			p.Worse++
		} else if x < -t.Tolerance {
			p.Better++
		}
		if x > 2*t.Tolerance {
			far++
		} else if x < 0 {
			gain++
		}
	}
	if i, ok := MedianInterval(sorted, t.ExceedsRate); ok {
		p.Interval, p.Need = &i, 0
		p.Within = i.High <= t.Tolerance && p.Mean <= t.Tolerance && (!t.Rarely ||
			p.Worse <= atMost(p.N, quarter, t.WithinRate))
		p.Exceeds = i.Low > t.Tolerance
	}
	if p.Mean > t.Tolerance && far > gain && gain <= atMost(far+gain, half, t.ExceedsRate/2) {
		p.Exceeds = true
	}
	return p
}
