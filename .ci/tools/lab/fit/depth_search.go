package fit

import (
	"fmt"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A depthFit looks for the variances of a law of depth.
type depthFit struct {
	law   *weather.Law
	want  *depthBehaviour
	zones [][]float64 // the expansion of each
	laws  []ZoneLaw
	hours float64 // of the recording

	x, best []float64 // see variances
	least   float64
}

// depthRounds is how many rounds the search goes, a step each way along every
// coordinate.
const depthRounds = 60

// run searches, from all paces alike, and leaves the best in the law.
func (f *depthFit) run() {
	f.x = make([]float64, len(depthPaces)+1)
	f.best = slices.Clone(f.x)
	steps := make([]float64, len(f.x))
	for i := range steps {
		steps[i] = searchStep
	}
	f.least = f.cost()
	for range depthRounds {
		for i := range f.x {
			if !f.along(i, &steps[i]) {
				steps[i] *= shorten
			}
		}
	}
	copy(f.x, f.best)
	f.variances()
}

// along tries a step each way along a coordinate and reports whether one brought
// something.
func (f *depthFit) along(i int, step *float64) bool {
	for range 2 {
		copy(f.x, f.best)
		f.x[i] += *step
		if c := f.cost(); c < f.least {
			f.least = c
			copy(f.best, f.x)
			*step *= lengthen
			return true
		}
		*step = -*step
	}
	return false
}

// variances sets those of the law at x: the logarithms of the variances of the
// paces and the logit of the share that zones have in common of all but the
// paces below commonPace.
func (f *depthFit) variances() {
	n := len(depthPaces)
	weights, sum := make([]float64, n), 0.0
	for i := range weights {
		weights[i] = portable.Exp(max(-6, min(6, f.x[i])))
		sum += weights[i]
	}
	shared := 0.0
	if len(f.zones) > 1 {
		shared = 1 / (1 + portable.Exp(-max(-8, min(8, f.x[n]))))
	}
	f.law.Common, f.law.Own = make([]float64, n), make([]float64, n)
	for i, w := range weights {
		w /= sum
		if depthPaces[i] >= commonPace {
			f.law.Common[i] = float64(w * shared)
		}
		f.law.Own[i] = w - f.law.Common[i]
	}
}

// commonPace is the pace in hours from which zones have a part in common.
const commonPace = 1

// cost returns how far the correlations at x are from those recorded, in squares
// of what would be tolerable, and of the distance from the start.
func (f *depthFit) cost() float64 {
	f.variances()
	sum, pair := 0.0, 0
	for i, zone := range f.zones {
		for k, r := range f.lags(zone) {
			if away := (r - f.want.lagged[i][k]) / 0.05; !math.IsNaN(away) {
				sum += float64(away*away) / float64(len(depthLags)*len(f.zones))
			}
		}
		for j := range f.zones[:i] {
			if away := (f.between(i, j) - f.want.pairs[pair]) / 0.05; !math.IsNaN(away) {
				sum += float64(away * away)
			}
			pair++
		}
	}
	held := 0.0
	for _, x := range f.x {
		held += float64(x * x)
	}
	return sum + float64(holdBack*held)
}

// slack returns the correlation of a zone's slack with itself a lag of hours
// later, or, with a sign, with that of another zone, on which what zones have in
// common acts by the sign.
func (f *depthFit) slack(hours, sign float64) float64 {
	sum := seasonAt(f.law, hours)
	for i, pace := range f.law.Paces {
		v := float64(sign * f.law.Common[i])
		if sign == itself {
			v = f.law.Common[i] + f.law.Own[i]
		}
		sum += float64(v * portable.Exp(-hours/pace))
	}
	return sum / (1 + seasonAt(f.law, 0))
}

// itself replaces the sign where a zone is compared with itself.
const itself = 0

// seasonAt returns the covariance of the offsets by hour and weekday with those a
// lag of hours later.
func seasonAt(l *weather.Law, hours float64) float64 {
	sum, lag := 0.0, int(math.Round(hours))
	for h, x := range l.Hour {
		sum += float64(x*l.Hour[(h+lag)%24]) / 24
	}
	for d, x := range l.Weekday {
		sum += float64(x*l.Weekday[(d+lag/24)%7]) / 7
	}
	return sum
}

// lags returns the autocorrelations of the depth of a zone as a recording of this
// length shows them: around its own mean, which slow levels carry away.
func (f *depthFit) lags(zone []float64) []float64 {
	mean := f.overall(zone, zone, itself)
	variance := covariance(zone, zone, 1) - mean
	out := make([]float64, len(depthLags))
	for k, lag := range depthLags {
		out[k] = (covariance(zone, zone, f.slack(lag, itself)) - mean) / variance
	}
	return out
}

// between returns the correlation of the depths of two zones.
func (f *depthFit) between(i, j int) float64 {
	x, y, sign := f.zones[i], f.zones[j], 1.0
	if f.laws[i].Opposed != f.laws[j].Opposed {
		sign = -1
	}
	vx := covariance(x, x, 1) - f.overall(x, x, itself)
	vy := covariance(y, y, 1) - f.overall(y, y, itself)
	return (covariance(x, y, f.slack(0, sign)) - f.overall(x, y, sign)) / math.Sqrt(float64(vx*vy))
}

// overallParts is into how many parts the length of the recording is cut to
// average over it.
const overallParts = 48

// overall returns the mean covariance of the depths of two zones over all pairs
// of instants of the recording: that of their means.
func (f *depthFit) overall(x, y []float64, sign float64) float64 {
	sum, weights := 0.0, 0.0
	for i := range overallParts {
		part := (float64(i) + 0.5) / overallParts
		lag := float64(part*part) * f.hours // closer together where more happens
		weight := float64(part * (1 - float64(part*part)))
		sum += float64(weight * covariance(x, y, f.slack(lag, sign)))
		weights += weight
	}
	return sum / weights
}

// figures lists what was fitted.
func (f *depthFit) figures(series []*trace.Series) []Figure {
	var out []Figure
	for i, zone := range f.zones {
		for k, r := range f.lags(zone) {
			name := fmt.Sprintf("autocorrelation of depth at %.2g h in %s", depthLags[k], series[i].Zone)
			out = append(out, Figure{Name: name, Recorded: f.want.lagged[i][k], Fitted: r})
		}
	}
	pair := 0
	for i := range f.zones {
		for j := range f.zones[:i] {
			name := "correlation of depth between " + series[i].Zone + " and " + series[j].Zone
			out = append(out, Figure{Name: name, Recorded: f.want.pairs[pair], Fitted: f.between(i, j)})
			pair++
		}
	}
	return out
}
