package forecaster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A Judged is what a forecaster is worth on rows to report on, for one label and
// stratum, against others. Runtime is judged in markets that sold at t, where a
// launch would have got a node.
type Judged struct {
	Stratum Stratum
	Label   string
	Rows    int

	// Clusters are the days, or the generated realisations, that intervals are of.
	Clusters int

	// Observed and Predicted are the means of the label and of what was forecast.
	Observed, Predicted float64

	Brier, LogLoss float64

	// AUC is the probability that of a row with the label above 0 and one
	// without the former has the higher score; NaN where all rows are of one kind.
	AUC float64

	// Slope is that of the reliability plot, with the ends of its interval: of
	// observed on forecast, over bins joined until each has SlopeEvents, weighted by
	// rows; NaN with fewer than two of those. An end is NaN where a resample has no
	// slope.
	Slope [3]float64
	Bins  []models.Bin

	Against []Skill
}

// SlopeEvents is the least number of events in a bin that the slope is taken over:
// hours of a market in which something was lost, or closed.
const SlopeEvents = 50

// A Skill is how much better a forecaster is than another, as a part of the other's loss;
// above 0 it is better. Each figure has the ends of a 95% interval by the bootstrap over
// clusters.
type Skill struct {
	Over           string
	Brier, LogLoss [3]float64 // itself, the lower and the upper end
}

// A Reading is a data set as it was written, of which the rows to report on and
// those that a logistic is fitted to are read.
type Reading struct {
	About   About
	columns int

	features, labels, closed, agent []float32
	rows                            []int32

	trainedFeatures, trained []float32 // of the rows to train on: features, and labels
	trainedRows              []int32
}

// Read reads the data set in dir.
func Read(dir string) (*Reading, error) {
	text, err := os.ReadFile(filepath.Join(dir, AboutName))
	if err != nil {
		return nil, err
	}
	r := &Reading{}
	if err := json.Unmarshal(text, &r.About); err != nil {
		return nil, fmt.Errorf("%s: %w", AboutName, err)
	}
	if r.About.Features != models.MarketFeaturesV2 || !slices.Equal(r.About.FeatureNames,
		models.FeatureNames(models.MarketFeaturesV2)) {
		return nil, fmt.Errorf("%s: its features are %q and not %s as this program builds it", AboutName, r.About.Features,
			models.MarketFeaturesV2)
	}
	r.columns = len(r.About.FeatureNames)
	for _, f := range []struct {
		name    string
		columns int
		floats  *[]float32
	}{
		{"report.features", r.columns, &r.features}, {"report.labels", labelColumns, &r.labels}, {"report.closed",
			len(ClosedNames), &r.closed},
		{"report.agent", agentFeatures, &r.agent}, {"train.features", r.columns, &r.trainedFeatures}, {"train.labels",
			labelColumns, &r.trained},
	} {
		if *f.floats, err = readNPY[float32](dir, f.name+".npy", f.columns); err != nil {
			return nil, err
		}
	}
	if r.rows, err = readNPY[int32](dir, "report.rows.npy", rowColumns); err == nil {
		r.trainedRows, err = readNPY[int32](dir, "train.rows.npy", rowColumns)
	}
	if err != nil {
		return nil, err
	}
	n := len(r.rows) / rowColumns
	if len(r.features) != n*r.columns || len(r.labels) != n*labelColumns || len(r.closed) != n*len(ClosedNames) ||
		len(r.agent) != n*agentFeatures {
		return nil, errors.New("the tables to report on have not the same number of rows")
	}
	return r, nil
}

// Rows returns the features of the rows to report on: those of a bundle that reads
// [models.MarketFeaturesV2], and those of the SpotVortex agent.
func (r *Reading) Rows() (own, agent []float32, n int) {
	return r.features, r.agent, len(r.rows) / rowColumns
}

// Answers are the scores of a forecaster on the rows to report on, by label; nil
// where it has none.
type Answers [labelColumns][]float64

// A Named is a forecaster's answers with its name in output.
type Named struct {
	Name string
	Answers
}

// LabelColumn returns the column of a label, or -1 for an unknown name.
func LabelColumn(name string) int { return slices.Index(LabelNames, name) }

// used reports whether a row is one of a stratum that a label is judged by.
func used(row []int32, s Stratum, label int, value float32) bool {
	return Stratum(row[rowStratum]) == s && value == value && (label >= labelCapacity || row[rowOpen] == 1)
}

// lossMin bounds scores for the logarithmic loss.
const lossMin = 1.0 / 65536

// losses returns the squared and the logarithmic loss of a score.
func losses(p, y float64) (brier, log float64) {
	q := min(max(p, lossMin), 1-lossMin)
	return (p - y) * (p - y), -y*math.Log(q) - (1-y)*math.Log(1-q)
}

// Judge compares answers on the rows to report on with others, in their order.
func (r *Reading) Judge(own Answers, others []Named) []Judged {
	var out []Judged
	for s := range Strata {
		for k, label := range LabelNames {
			if own[k] == nil {
				continue
			}
			j := Judged{Stratum: s, Label: label}
			at := r.take(&j, s, k, own[k])
			if j.Rows == 0 {
				continue
			}
			for _, o := range others {
				if a := o.Answers[k]; a != nil && !math.IsNaN(a[at[0]]) {
					j.Against = append(j.Against, r.skill(o.Name, at, k, own[k], a))
				}
			}
			out = append(out, j)
		}
	}
	return out
}

// take fills j but for its skills and returns the rows that it is of: those with a forecast.
func (r *Reading) take(j *Judged, s Stratum, k int, own []float64) []int {
	var at []int
	clusters := map[int32]bool{}
	for i := range own {
		row := r.rows[i*rowColumns : (i+1)*rowColumns]
		y := float64(r.labels[i*labelColumns+k])
		if !used(row, s, k, float32(y)) || math.IsNaN(own[i]) {
			continue
		}
		at = append(at, i)
		clusters[row[rowCluster]] = true
		b, l := losses(own[i], y)
		j.Observed, j.Predicted = j.Observed+y, j.Predicted+own[i]
		j.Brier, j.LogLoss = j.Brier+b, j.LogLoss+l
	}
	n := float64(max(1, len(at)))
	j.Rows, j.Clusters = len(at), len(clusters)
	j.Observed, j.Predicted, j.Brier, j.LogLoss = j.Observed/n, j.Predicted/n, j.Brier/n, j.LogLoss/n
	j.AUC = r.auc(at, k, own)
	j.Bins, j.Slope = r.reliability(at, k, own)
	return at
}

// auc returns the area under the curve, rows with the label above 0 against
// those without.
func (r *Reading) auc(at []int, k int, own []float64) float64 {
	order := slices.Clone(at)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(own[a], own[b]) })
	var above, below, sum float64
	for i := 0; i < len(order); {
		var pos, neg float64
		e := i
		for ; e < len(order) && own[order[e]] == own[order[i]]; e++ {
			if r.labels[order[e]*labelColumns+k] > 0 {
				pos++
			} else {
				neg++
			}
		}
		sum += pos * (below + neg/2)
		above, below = above+pos, below+neg
		i = e
	}
	return sum / (above * below)
}

// resamples is how often the bootstrap draws.
const resamples = 2000

// skill compares own with other on rows at.
func (r *Reading) skill(name string, at []int, k int, own, other []float64) Skill {
	sums := map[int32]*[4]float64{}
	var order []int32
	for _, i := range at {
		c := r.rows[i*rowColumns+rowCluster]
		x := sums[c]
		if x == nil {
			x = &[4]float64{}
			sums[c] = x
			order = append(order, c)
		}
		y := float64(r.labels[i*labelColumns+k])
		b, l := losses(own[i], y)
		ob, ol := losses(other[i], y)
		x[0], x[1], x[2], x[3] = x[0]+b, x[1]+ob, x[2]+l, x[3]+ol
	}
	slices.Sort(order)
	key := chance.New(1, "bootstrap", name)
	var brier, log []float64
	for n := range resamples + 1 {
		var t [4]float64
		for i := range order {
			c := order[i]
			if n > 0 {
				c = order[key.At2(uint64(n), uint64(i)).IntN(len(order))]
			}
			for q := range t {
				t[q] += sums[c][q]
			}
		}
		brier, log = append(brier, 1-t[0]/t[1]), append(log, 1-t[2]/t[3])
	}
	return Skill{Over: name, Brier: interval(brier), LogLoss: interval(log)}
}

// interval returns the first of x and the 2.5th and 97.5th percentile of the
// others.
func interval(x []float64) [3]float64 {
	first, rest := x[0], slices.Sorted(slices.Values(x[1:]))
	n := len(rest)
	return [3]float64{first, rest[n*25/1000], rest[n-1-n*25/1000]}
}
