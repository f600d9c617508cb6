package stats

import (
	"slices"

	"github.com/spotter-dev/spotter/policy/portable"
)

// looks are the fractions of an error rate for the looks at a growing number of units. The first
// look has the largest fraction, because it decides most comparisons.
var looks = [...]float64{0.5, 0.25, 0.25}

// LooksMax is the maximum number of looks at a growing number of units.
const LooksMax = len(looks)

// LookRate returns the error rate of look i, from 0. The probability of an error in any look is at
// most rate, because the error rates sum to it (Bonferroni's inequality). This does not depend on
// the dependence between looks, nor on when to stop.
func LookRate(rate float64, i int) float64 { return looks[i] * rate }

// A Paired summarizes the losses of pairs: for each unit, how much worse one side is than the other
// under the same conditions. Higher losses are worse.
type Paired struct {
	// N is the number of units, Worse the number of units that lose more than the tolerance, and
	// Better the number of units that gain more than it.
	N, Worse, Better int

	Mean, Median float64

	// Interval is the interval of the median loss, nil if there are fewer than Need units.
	Interval *Interval
	Need     int

	// Exceeds reports whether the loss is larger than the tolerance, Within whether it is not. Both
	// are false if the units are not sufficient for a decision.
	Exceeds, Within bool
}

// A Test contains the parameters of a test of losses.
type Test struct {
	// Tolerance is the acceptable loss, ≥ 0.
	Tolerance float64

	// ExceedsRate and WithinRate are the error rates of Paired.Exceeds and Paired.Within.
	ExceedsRate, WithinRate float64

	// Rarely reports whether a loss in a quarter of the units counts as a loss.
	Rarely bool
}

// Paired tests losses. Units are independent and identically distributed. The test assumes no
// distribution of the losses: most may be 0 and a few very great. Each test is exact.
//
// The probability that Exceeds is wrong is at most ExceedsRate, half of it for each of two tests:
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
// Within is wrong if the median loss is beyond the tolerance or, if Rarely is set, at least a
// quarter of all units lose more than it. The probability that it is wrong is at most WithinRate:
// both must be ruled out, and the mean must be within the tolerance too. It may not detect a loss
// in fewer units; Worse is the observed number of such units.
//
// The interval has error rate ExceedsRate, which must be at most twice WithinRate.
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
