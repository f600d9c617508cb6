package forecaster

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
)

// The names of [Reading.Baselines].
const (
	Constant      = "constant"
	BandRate      = "band"
	ClosedForm    = "closed-form"
	PriceLogistic = "price-logistic"
	Logistic      = "logistic"
	LogisticOn    = "logistic-on-closed-form"
)

// BaselineNames are those of the baselines, in their order.
var BaselineNames = []string{Constant, BandRate, ClosedForm, PriceLogistic, Logistic, LogisticOn}

// signals are the features of [Logistic]: the band, how the price stands and moves, and
// what the cluster met in launches.
var signals = []string{
	"band", "band_unknown", "price_ratio", "price_change_1h", "price_change_4h", "price_spread",
	"since_refusal", "refusal_share", "others_since_trouble", "others_refusal_share", "zone_trouble", "region_trouble",
}

// Baselines returns the forecasters that a bundle is compared with: the mean of each
// stratum in the rows to train on; the rate of the published band, the mean over bands
// where none is; the closed form; and logistics that are fitted to the rows to train on,
// on the ratio of price and on-demand price, on the signals above, and on these and the
// closed form's hazard.
func (r *Reading) Baselines() []Named {
	return []Named{
		{Constant, r.fitted(nil)}, {BandRate, r.bandRate()}, {ClosedForm, r.closedForm()}, {PriceLogistic,
			r.fitted([]string{"price_ratio"})},
		{Logistic, r.fitted(signals)}, {LogisticOn, r.fitted(append(slices.Clone(signals), "closed_form_hazard"))},
	}
}

// bandRate returns what bands alone say of reclaims; of refusals no provider
// publishes anything.
func (r *Reading) bandRate() Answers {
	var a Answers
	band, unknown := slices.Index(r.About.FeatureNames, "band"), slices.Index(r.About.FeatureNames, "band_unknown")
	var hazards [policy.BandCount + 1]float64
	for i, p := range policy.MonthlyReclaims() {
		hazards[i] = -math.Log1p(-p) / policy.HoursPerMonth
		hazards[policy.BandCount] += hazards[i] / policy.BandCount
	}
	for k := labelRuntime; k <= labelRuntime6; k++ {
		for i := range len(r.rows) / rowColumns {
			row := r.features[i*r.columns : (i+1)*r.columns]
			b := policy.BandCount
			if row[unknown] == 0 {
				b = int(math.Round(float64(row[band]) * (policy.BandCount - 1)))
			}
			a[k] = append(a[k], -math.Expm1(-hazards[b]*Horizons[k].Hours()))
		}
	}
	return a
}

// closedForm returns what the closed form forecast. Its capacity score is of
// running nodes: that a launch is refused, times the depth of a shortage.
func (r *Reading) closedForm() Answers {
	var a Answers
	depth := models.DefaultConfig().ShortageDepth
	for k := range a {
		a[k] = make([]float64, len(r.rows)/rowColumns)
		for i := range a[k] {
			hazard, capacity := float64(r.closed[i*len(ClosedNames)]), float64(r.closed[i*len(ClosedNames)+2])
			switch k {
			case labelRuntime:
				a[k][i] = -math.Expm1(-hazard)
			case labelRuntime6:
				a[k][i] = -math.Expm1(-6 * hazard)
			default:
				a[k][i] = min(1, capacity/depth)
			}
		}
	}
	return a
}

// fitted returns what a logistic on some features forecasts, fitted to the rows to
// train on of each stratum by itself. That it is given the stratum, which no bundle
// is, is an advantage. Common types that were recorded take the fit of generated ones where
// none of them is to train on; another stratum that is not there has no forecast: NaN.
func (r *Reading) fitted(names []string) Answers {
	columns := make([]int, len(names))
	for i, name := range names {
		columns[i] = slices.Index(r.About.FeatureNames, name)
	}
	x := make([]float64, 1+len(columns))
	row := func(of []float32, i int) []float64 {
		x[0] = 1
		for k, c := range columns {
			x[1+k] = (float64(of[i*r.columns+c]) - r.About.Normalisation.Mean[c]) / r.About.Normalisation.Scale[c]
		}
		return x
	}
	var a Answers
	for k := range a {
		var fits [Strata][]float64
		for s := range fits {
			var at []int
			for i := range len(r.trainedRows) / rowColumns {
				if used(r.trainedRows[i*rowColumns:], Stratum(s), k, r.trained[i*labelColumns+k]) {
					at = append(at, i)
				}
			}
			fits[s] = fitLogistic(len(at), len(x), func(i int) ([]float64, float64) {
				return row(r.trainedFeatures, at[i]), float64(r.trained[at[i]*labelColumns+k])
			})
		}
		if fits[RecordedCPU] == nil {
			fits[RecordedCPU] = fits[GeneratedCPU]
		}
		a[k] = make([]float64, len(r.rows)/rowColumns)
		for i := range a[k] {
			a[k][i] = math.NaN()
			if w := fits[r.rows[i*rowColumns+rowStratum]]; w != nil {
				a[k][i] = sigmoid(w, row(r.features, i))
			}
		}
	}
	return a
}

// sigmoid returns 1/(1+exp(-w·x)).
func sigmoid(w, x []float64) float64 {
	z := 0.0
	for i := range w {
		z += float64(w[i] * x[i])
	}
	return 1 / (1 + math.Exp(-z))
}

// fitLogistic fits y = 1/(1+exp(-w·x)) by Newton's method, held back weakly, to rows of n
// columns, of which the first is 1. It returns nil without rows.
func fitLogistic(rows, n int, row func(i int) (x []float64, y float64)) []float64 {
	if rows == 0 {
		return nil
	}
	mean := 0.0
	for i := range rows {
		_, y := row(i)
		mean += y / float64(rows)
	}
	mean = min(max(mean, 1e-6), 1-1e-6)
	w := make([]float64, n)
	w[0] = math.Log(mean / (1 - mean))
	for range 30 {
		step := newtonStep(rows, row, w)
		largest := 0.0
		for i := range w {
			d := max(-2, min(step[i], 2))
			w[i] += d
			largest = max(largest, math.Abs(d))
		}
		if largest < 1e-7 {
			break
		}
	}
	return w
}

// newtonStep returns by how much w should change: the gradient of the logarithmic loss,
// over its second derivatives.
func newtonStep(rows int, row func(i int) ([]float64, float64), w []float64) []float64 {
	n := len(w)
	const hold = 1e-3
	h := make([][]float64, n) // with the gradient as the last column
	for i := range h {
		h[i] = make([]float64, n+1)
		if i > 0 {
			h[i][i], h[i][n] = hold, -hold*w[i]
		}
	}
	for r := range rows {
		x, y := row(r)
		p := sigmoid(w, x)
		weight := p*(1-p) + 1e-12
		for i, v := range x {
			h[i][n] += (y - p) * v
			for k := range i + 1 {
				h[i][k] += weight * v * x[k]
			}
		}
	}
	for i := range n {
		for k := range i {
			h[k][i] = h[i][k]
		}
	}
	// Gauss's elimination without pivots: h is positive definite.
	for i := range n {
		for k := i + 1; k < n; k++ {
			f := h[k][i] / h[i][i]
			for c := i; c <= n; c++ {
				h[k][c] -= f * h[i][c]
			}
		}
	}
	step := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		step[i] = h[i][n]
		for k := i + 1; k < n; k++ {
			step[i] -= h[i][k] * step[k]
		}
		step[i] /= h[i][i]
	}
	return step
}
