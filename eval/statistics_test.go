package eval

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQuantile has figures of R's quantile(c(1, 2, 4, 8), …), type 7.
func TestQuantile(t *testing.T) {
	list := []float64{1, 2, 4, 8}
	for _, x := range []struct{ q, want float64 }{{0, 1}, {0.05, 1.15}, {0.25, 1.75}, {0.5, 3}, {0.75, 5}, {0.95, 7.4}, {1, 8}} {
		if got := quantile(list, x.q); math.Abs(got-x.want) > 1e-12 {
			t.Errorf("quantile %v of %v is %v, want %v", x.q, list, got, x.want)
		}
	}
	if got := quantile([]float64{5}, 0.95); got != 5 {
		t.Errorf("quantile of one value 5 is %v", got)
	}
}

func TestZeroBound(t *testing.T) {
	// With 59 good runs of 59 the bad ones are under 5 % at 95 %: 0.95^59 is
	// the first power below 0.05.
	for _, x := range []struct {
		n    int
		want float64
	}{{1, 0.95}, {20, 0.1391083}, {58, 0.0503393}, {59, 0.0495076}, {300, 0.0099361}} {
		if got := zeroBound(x.n); math.Abs(got-x.want) > 1e-6 {
			t.Errorf("bound with none of %d is %.7f, want %.7f", x.n, got, x.want)
		}
	}
}

// TestWeightedIsPlain compares median and mean with weights to those of the
// list in which every value stands as often as it weighs.
func TestWeightedIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(-5, 5).Draw(t, "v")) }), n, n).Draw(t, "values")
		counts := rapid.SliceOfN(rapid.Uint16Range(0, 4), n+3, n+3).Draw(t, "counts")
		cells := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}[:n+3]).Draw(t, "cells")[:n]
		var long []float64
		order := make([]int, n)
		for i := range values {
			order[i] = i
			for range counts[cells[i]] {
				long = append(long, values[i])
			}
		}
		slices.SortStableFunc(order, func(i, j int) int { return int(values[i] - values[j]) })
		median, mean, ok := weighted(counts, order, cells, values)
		if ok != (len(long) > 0) {
			t.Fatalf("known %v of %d values drawn", ok, len(long))
		}
		if !ok {
			return
		}
		want := summarize(long)
		if median != want.Median || math.Abs(mean-want.Mean) > 1e-12 {
			t.Fatalf("median %v, mean %v of %v; want %v, %v", median, mean, long, want.Median, want.Mean)
		}
	})
}

func clustersOf(windows, seeds int, names ...string) []cluster {
	var out []cluster
	for _, n := range names {
		for range windows {
			out = append(out, cluster{n, len(out) * seeds})
		}
	}
	return out
}

// TestBootstrapNesting: scenarios keep their number of draws in every
// resample, windows do so only when they are too few to be resampled.
func TestBootstrapNesting(t *testing.T) {
	const seeds = 3
	for _, windows := range []int{windowsMin - 1, windowsMin} {
		b := newBootstrap(clustersOf(windows, seeds, "x", "y"), seeds)
		varied := false
		for r := range resamples {
			counts := b.drawn[r*b.runs : (r+1)*b.runs]
			for scenario := range 2 {
				sum := 0
				for w := range windows {
					first := (scenario*windows + w) * seeds
					window := int(counts[first]) + int(counts[first+1]) + int(counts[first+2])
					if window%seeds != 0 {
						t.Fatalf("a window was drawn with %d seeds, want a multiple of %d", window, seeds)
					}
					varied = varied || window != seeds
					sum += window
				}
				if sum != windows*seeds {
					t.Fatalf("scenario %d has %d draws, want %d", scenario, sum, windows*seeds)
				}
			}
		}
		if varied != (windows >= windowsMin) {
			t.Errorf("%d windows: resampled is %v", windows, varied)
		}
	}
}

// TestBootstrapByName: a scenario is drawn alike in any company.
func TestBootstrapByName(t *testing.T) {
	const seeds, windows = 4, 9
	alone := newBootstrap(clustersOf(windows, seeds, "y"), seeds)
	both := newBootstrap(clustersOf(windows, seeds, "x", "y"), seeds)
	for r := range resamples {
		a := alone.drawn[r*alone.runs : (r+1)*alone.runs]
		b := both.drawn[r*both.runs+windows*seeds : (r+1)*both.runs]
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("resample %d of y differs beside x", r)
		}
	}
}

// TestIntervals: what never varies has no width; the interval of a mean has the
// width that theory gives; a wider level gives a wider interval.
func TestIntervals(t *testing.T) {
	const seeds = 100
	b := newBootstrap(clustersOf(1, seeds, "x"), seeds)
	cells, same, steps := make([]int, seeds), make([]float64, seeds), make([]float64, seeds)
	for i := range cells {
		cells[i], same[i], steps[i] = i, 7, float64(i)
	}
	median, mean := b.intervals(cells, same, 0.95)
	if *median != (Interval{7, 7}) || *mean != (Interval{7, 7}) {
		t.Errorf("intervals of a constant 7 are %v and %v", *median, *mean)
	}
	_, mean = b.intervals(cells, steps, 0.95)
	// The standard error of the mean of 0…99 is 28.87/√100; 1.96 of them either way.
	if math.Abs(mean.Low-(49.5-5.66)) > 0.5 || math.Abs(mean.High-(49.5+5.66)) > 0.5 {
		t.Errorf("95 %% interval of the mean of 0…99 is %v, want about [43.8, 55.2]", *mean)
	}
	if _, wide := b.intervals(cells, steps, 0.99); wide.Low >= mean.Low || wide.High <= mean.High {
		t.Errorf("interval at 99 %% %v does not hold that at 95 %% %v", *wide, *mean)
	}
	if median, mean := b.intervals(nil, nil, 0.95); median != nil || mean != nil {
		t.Errorf("intervals of no values are %v and %v", median, mean)
	}
}

func TestSummarizeNothing(t *testing.T) {
	if s := summarize(nil); s.N != 0 {
		t.Errorf("summary of nothing is %+v", s)
	}
}

func TestSeedList(t *testing.T) {
	if got := seedList([]uint64{1, 2, 3, 7, 9, 10}); got != "1-3,7,9-10" {
		t.Errorf("got %s", got)
	}
}
