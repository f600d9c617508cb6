package eval

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/test/nightly"
)

var seedFlag = flag.Uint64("seed", 0, "the seed of the experiments with a known truth; 0 takes the time")

// experiments is how many are drawn of each kind. A rate that is exactly as
// great as it may be shows as more than that in half of all tests; what is
// allowed for is four standard errors, which chance exceeds once in 30,000.
var experiments = nightly.Count(2_000, 10_000)

// allowed returns how many of the experiments may go wrong at a rate.
func allowed(rate float64) int {
	mean := float64(experiments) * rate
	return int(mean + 4*math.Sqrt(mean*(1-rate)))
}

// A truth is a distribution whose median is known.
type truth struct {
	name   string
	median float64
	draw   func(chance.Key) float64

	// symmetric says that the distribution is symmetric around its median.
	symmetric bool
}

// truths are: a normal one, one that is skewed, one that is mostly 0, one of few
// values, and one with a heavy tail on the lower side.
func truths() []truth {
	normal := func(k chance.Key) float64 { return k.Normal() }
	return []truth{
		{"normal", 0, normal, true},
		{"log-normal", 1, func(k chance.Key) float64 { return k.LogNormal(1.5) }, false},
		{"mostly 0", 0, func(k chance.Key) float64 {
			if k.At1(0).Float() < 0.7 {
				return 0
			}
			return k.At1(1).LogNormal(1)
		}, false},
		{"few values", 2, func(k chance.Key) float64 { return float64(k.IntN(5)) }, true},
		{"heavy below", -1, func(k chance.Key) float64 { return -portable.Exp(float64(2 * k.Normal())) }, false},
	}
}

// A layout draws the runs of an experiment with n units of a truth.
type layout struct {
	name string

	// symmetric says that the layout requires a symmetric truth.
	symmetric bool

	draw func(truth, chance.Key, int) [][]float64
}

// layouts are seeds of one window, and windows with five seeds each, whose
// medians have the truth's median: where a seed stretches the distance of its
// window from that, which leaves the window on its side; and, of a truth that is
// symmetric, where a seed adds something symmetric.
func layouts() []layout {
	windows := func(of func(x truth, effect float64, k chance.Key) float64) func(truth, chance.Key, int) [][]float64 {
		return func(x truth, k chance.Key, n int) [][]float64 {
			all := make([]float64, 5*n)
			out := make([][]float64, n)
			for i := range out {
				effect := x.draw(k.At2(uint64(i), 0))
				out[i] = all[5*i : 5*i+5]
				for s := range out[i] {
					out[i][s] = of(x, effect, k.At2(uint64(i), uint64(s+1)))
				}
			}
			return out
		}
	}
	return []layout{
		{"seeds", false, func(x truth, k chance.Key, n int) [][]float64 {
			values := make([]float64, n)
			for i := range values {
				values[i] = x.draw(k.At1(uint64(i)))
			}
			return [][]float64{values}
		}},
		{"windows stretched by seeds", false, windows(func(x truth, effect float64, k chance.Key) float64 {
			return x.median + float64((effect-x.median)*2*k.Float())
		})},
		{"windows and seeds added", true, windows(func(_ truth, effect float64, k chance.Key) float64 { return effect + k.Float() - 0.5 })},
	}
}

// TestCoverage draws experiments with a known truth. Where an interval is given
// it holds the median at least as often as the report says; a gate on its ends
// passes against the truth no more often than it may; and with too few units
// there is neither, whatever is drawn.
func TestCoverage(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d; -seed=%d draws these again", seed, seed)
	rate := (&Config{Policies: make([]string, 6)}).errorRate()
	for _, of := range layouts() {
		for _, x := range truths() {
			if of.symmetric && !x.symmetric {
				continue
			}
			for _, n := range []int{2, 5, 8, 20, 50} {
				t.Run(fmt.Sprintf("%s/%s/%d", of.name, x.name, n), func(t *testing.T) {
					holdsMedian(t, x, of, n, rate, chance.New(seed, "coverage", t.Name()))
				})
			}
		}
	}
}

// holdsMedian counts over all experiments of one kind.
func holdsMedian(t *testing.T, x truth, of layout, n int, rate float64, key chance.Key) {
	given, missed, passed := 0, 0, 0
	gates := []Gate{{Statistic: Low, Op: ">", Value: x.median}, {Statistic: High, Op: "<", Value: x.median}}
	for e := range experiments {
		s := Summarize(of.draw(x, key.At1(uint64(e)), n), rate)
		if i := s.MedianInterval; i != nil {
			given++
			if i.Low > x.median || i.High < x.median {
				missed++
			}
		}
		for _, g := range gates {
			if g.passes(s.Of(g.Statistic)) {
				passed++
			}
		}
	}
	if enough := n >= stats.UnitsMin(rate); given != 0 && !enough || given != experiments && enough {
		t.Errorf("%d of %d experiments have an interval", given, experiments)
	}
	if most := allowed(rate); missed > most || passed > most {
		t.Errorf("intervals miss the median in %d of %d experiments, and gates on their ends pass against the truth in %d; want at most %d", missed, given, passed, most)
	}
	t.Logf("coverage %.4f of %d, gates pass wrongly %.4f; nominal %.4f", 1-float64(missed)/float64(max(given, 1)), given,
		float64(passed)/float64(experiments), 1-rate)
}

// A loss is what a change costs in points: a draw of one unit, and whether it is
// worse beyond the tolerance, in net savings, in outage cost or in both.
type loss struct {
	name          string
	worse         bool
	savings, cost func(chance.Key) float64
}

// losses are cases at the edge of the tolerance: those that are not worse are only just within
// it, and those that are worse are only just beyond it.
func losses() []loss {
	around := func(middle, spread float64) func(chance.Key) float64 {
		return func(k chance.Key) float64 { return middle + float64(spread*k.Normal()) }
	}
	rare := func(worse, better, points float64) func(chance.Key) float64 {
		return func(k chance.Key) float64 {
			switch u := k.Float(); {
			case u < worse:
				return points
			case u < worse+better:
				return -points
			}
			return 0
		}
	}
	skewed := func(k chance.Key) float64 { return LossMax + 1 - k.LogNormal(1.5) }
	return []loss{
		{"noise around 0", false, around(0, 2), rare(0, 0, 0)},
		{"all at the tolerance", false, around(LossMax, 1), around(LossMax, 1)},
		{"skewed at the tolerance", false, skewed, skewed},
		{"rare outages on both sides", false, rare(0, 0, 0), rare(0.1, 0.1, 9)},
		{"many outages on both sides", false, rare(0.4, 0.4, 9), rare(0.4, 0.4, 9)},
		{"equal", false, rare(0, 0, 0), rare(0, 0, 0)},
		{"all just beyond the tolerance", true, around(LossMax+1e-9, 1), rare(0, 0, 0)},
		{"skewed beyond the tolerance", true, func(k chance.Key) float64 { return skewed(k) + 1e-9 }, around(-5, 1)},
		{"an outage in every fourth", true, rare(0, 0, 0), rare(0.25, 0, LossMax+0.01)},
		{"a great outage in every fourth", true, rare(0, 0, 0), rare(0.25, 0, 9)},
	}
}

// TestComparisonErrors draws comparisons with a known truth, of as many looks as
// they take. What is not worse fails no more often than the error rate, and what
// is worse passes no more often.
func TestComparisonErrors(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d; -seed=%d draws these again", seed, seed)
	for _, x := range losses() {
		for _, n := range []int{2, 5, 8, 20, 50} {
			t.Run(fmt.Sprintf("%s/%d", x.name, n), func(t *testing.T) {
				key := chance.New(seed, "comparison", t.Name())
				wrong := 0
				for e := range experiments {
					v := looked(x, n, key.At1(uint64(e)), errorRate)
					if v == Worse && !x.worse || v == NoWorse && x.worse {
						wrong++
					}
				}
				if most := allowed(errorRate); wrong > most {
					t.Errorf("%d of %d outcomes are wrong, want at most %d", wrong, experiments, most)
				}
				t.Logf("wrong %.4f, nominal %.4f", float64(wrong)/float64(experiments), errorRate)
			})
		}
	}
}

// looked returns the outcome of a loss after up to all looks, from n seeds on.
func looked(x loss, n int, key chance.Key, rate float64) Outcome {
	var savings, cost []float64
	for look := 0; ; look++ {
		for i := len(savings); i < n<<look; i++ {
			savings, cost = append(savings, x.savings(key.At2(uint64(i), 0))), append(cost, x.cost(key.At2(uint64(i), 1)))
		}
		c := Change{Pairs: len(savings), Changed: 1}
		c.test(savings, cost, stats.LookRate(rate, look))
		if c.Outcome != Undecided || look+1 == stats.LooksMax {
			return c.Outcome
		}
	}
}

// TestComparisonFinds: with twenty seeds a loss of several points in each run is
// found, among six policies in six scenarios, and with one policy an outage in
// every fourth run, which no median shows.
func TestComparisonFinds(t *testing.T) {
	each := loss{savings: func(k chance.Key) float64 { return 3 + k.Normal() }, cost: func(chance.Key) float64 { return 0 }}
	rare := loss{savings: func(chance.Key) float64 { return 0 }, cost: func(k chance.Key) float64 {
		if k.Float() < 0.25 {
			return 8
		}
		return 0
	}}
	for _, x := range []struct {
		name string
		loss loss
		rate float64
	}{{"a loss in each run", each, errorRate / 36}, {"an outage in every fourth", rare, errorRate}} {
		found := 0
		for e := range 1000 {
			if looked(x.loss, 20, chance.New(1, "found", x.name).At1(uint64(e)), x.rate) == Worse {
				found++
			}
		}
		if found < 990 {
			t.Errorf("%s is found in %d of 1000 comparisons", x.name, found)
		}
	}
}

// TestTruths: the medians that coverage is measured against are those of what is
// drawn.
func TestTruths(t *testing.T) {
	for _, x := range truths() {
		for _, of := range layouts() {
			if of.symmetric && !x.symmetric {
				continue
			}
			const n = 20_001
			var medians []float64
			if of.name == "seeds" {
				medians = of.draw(x, chance.New(1, "truth", x.name), n)[0]
			} else {
				for _, values := range of.draw(x, chance.New(1, "truth", x.name), n) {
					medians = append(medians, stats.Median(values))
				}
			}
			slices.Sort(medians)
			at, _ := slices.BinarySearch(medians, x.median)
			above := len(medians) - at
			for at > 0 && medians[at-1] == x.median {
				at--
			}
			upTo := at
			for upTo < n && medians[upTo] == x.median {
				upTo++
			}
			// At least half of them, less four standard errors, are at or below the median, and
			// as many at or above it.
			if least := n/2 - 283; upTo < least || above < least {
				t.Errorf("%s over %s: of %d medians %d are at most %v and %d at least", x.name, of.name, n, upTo, x.median, above)
			}
		}
	}
}
