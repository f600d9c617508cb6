package forecaster

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// binsMost is how many bins of equally many rows a reliability plot has.
const binsMost = 10

// reliability returns the bins of the plot, and the slope over these joined with
// their neighbours until each has enough events.
func (r *Reading) reliability(at []int, k int, own []float64) ([]models.Bin, [3]float64) {
	order := slices.Clone(at)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(own[a], own[b]) })
	var bins []models.Bin
	var joined [][]int
	var open []int
	for b := range binsMost {
		part := order[b*len(order)/binsMost : (b+1)*len(order)/binsMost]
		if len(part) == 0 {
			continue
		}
		bins = append(bins, r.bin(part, k, own))
		open = append(open, part...)
		if r.events(open, k) >= SlopeEvents {
			joined, open = append(joined, open), nil
		}
	}
	if len(joined) > 0 {
		joined[len(joined)-1] = append(joined[len(joined)-1], open...)
	}
	if len(joined) < 2 {
		return bins, [3]float64{math.NaN(), math.NaN(), math.NaN()}
	}
	return bins, r.slope(joined, k, own)
}

// A binned is what a cluster has in one bin of a reliability plot.
type binned struct{ rows, predicted, observed float64 }

// slope returns the slope over bins of rows, and its interval over clusters. The
// bins stay as they are in every resample.
func (r *Reading) slope(joined [][]int, k int, own []float64) [3]float64 {
	sums := map[int32][]binned{}
	for b, part := range joined {
		for _, i := range part {
			c := r.rows[i*rowColumns+rowCluster]
			if sums[c] == nil {
				sums[c] = make([]binned, len(joined))
			}
			x := &sums[c][b]
			x.rows, x.predicted, x.observed = x.rows+1, x.predicted+own[i], x.observed+float64(r.labels[i*labelColumns+k])
		}
	}
	order := slices.Sorted(maps.Keys(sums))
	key := chance.New(1, "bootstrap", "slope")
	var slopes []float64
	for n := range resamples + 1 {
		total := make([]binned, len(joined))
		for i, c := range order {
			if n > 0 {
				c = order[key.At2(uint64(n), uint64(i)).IntN(len(order))]
			}
			for b, x := range sums[c] {
				t := &total[b]
				t.rows, t.predicted, t.observed = t.rows+x.rows, t.predicted+x.predicted, t.observed+x.observed
			}
		}
		slopes = append(slopes, slopeOf(total))
	}
	return interval(slopes)
}

// slopeOf returns the slope of what was observed on what was forecast, a bin
// counting as much as it has rows; NaN where all bins are forecast alike.
func slopeOf(bins []binned) float64 {
	var w, x, y, xx, xy float64
	for _, b := range bins {
		if b.rows == 0 {
			continue
		}
		w, x, y = w+b.rows, x+b.predicted, y+b.observed
		xx, xy = xx+b.predicted*b.predicted/b.rows, xy+b.predicted*b.observed/b.rows
	}
	spread := w*xx - x*x
	if spread <= 1e-9*x*x { // no more than sums are rounded by
		return math.NaN()
	}
	return (w*xy - x*y) / spread
}

// bin returns the means of rows.
func (r *Reading) bin(part []int, k int, own []float64) models.Bin {
	bin := models.Bin{Cases: len(part)}
	for _, i := range part {
		bin.Predicted += own[i] / float64(len(part))
		bin.Observed += float64(r.labels[i*labelColumns+k]) / float64(len(part))
	}
	return bin
}

// events counts the hours of markets in which a label is above 0: what many rows
// of one hour are one event.
func (r *Reading) events(part []int, k int) int {
	type hour struct{ cluster, market, hour int32 }
	seen := map[hour]bool{}
	for _, i := range part {
		if row := r.rows[i*rowColumns:]; r.labels[i*labelColumns+k] > 0 {
			seen[hour{row[rowCluster], row[rowMarket], row[rowMinutes] / 60}] = true
		}
	}
	return len(seen)
}
