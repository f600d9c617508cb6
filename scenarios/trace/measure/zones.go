package measure

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

const day = policy.Time(24 * time.Hour / time.Millisecond)

// returnsMin is the minimum number of days with returns of both markets for a correlation.
const returnsMin = 10

// A group identifies markets that differ only in their zone.
type group struct{ provider, region, kind, product string }

// zoneCorrelation returns the median correlation over pairs of zones of the same group, and the
// number of pairs.
func zoneCorrelation(t *trace.Trace, paths []path) (float64, int) {
	members := map[group][]int{}
	var groups []group
	returns := make([][]float64, len(t.Series))
	for i := range t.Series {
		if returns[i] = dailyReturns(&paths[i], t.From, t.To); returns[i] == nil {
			continue
		}
		s := &t.Series[i]
		g := group{s.Provider, s.Region, s.Type, s.Product}
		if members[g] == nil {
			groups = append(groups, g)
		}
		members[g] = append(members[g], i)
	}
	var all []float64
	for _, g := range groups {
		for k, a := range members[g] {
			for _, b := range members[g][:k] {
				if r := correlation(returns[a], returns[b]); !math.IsNaN(r) {
					all = append(all, r)
				}
			}
		}
	}
	slices.Sort(all)
	return portable.Quantile(all, 0.5), len(all)
}

// dailyReturns returns the differences of the logarithms of the prices at 00:00 UTC, NaN where
// either is unknown. It returns nil for a market whose price never changed.
func dailyReturns(p *path, from, to policy.Time) []float64 {
	var returns []float64
	last, i := math.NaN(), 0
	moved := false
	for at := (from + day - 1) / day * day; at <= to; at += day {
		for i < len(p.at) && p.at[i] <= at {
			i++
		}
		level := math.NaN()
		if i > 0 && p.spot[i-1] > 0 {
			level = portable.Log(float64(p.spot[i-1]))
		}
		r := level - last
		returns = append(returns, r)
		moved = moved || r != 0 && !math.IsNaN(r)
		last = level
	}
	if !moved {
		return nil
	}
	return returns
}

// correlation returns Pearson's correlation coefficient over the days on which both returns are
// known, or NaN if there are too few.
func correlation(a, b []float64) float64 {
	n, sa, sb := 0, 0.0, 0.0
	for i, x := range a {
		if y := b[i]; !math.IsNaN(x) && !math.IsNaN(y) {
			n++
			sa, sb = sa+x, sb+y
		}
	}
	if n < returnsMin {
		return math.NaN()
	}
	ma, mb := sa/float64(n), sb/float64(n)
	var va, vb, cov float64
	for i, x := range a {
		if y := b[i]; !math.IsNaN(x) && !math.IsNaN(y) {
			dx, dy := x-ma, y-mb
			va, vb, cov = va+float64(dx*dx), vb+float64(dy*dy), cov+float64(dx*dy)
		}
	}
	if va <= 0 || vb <= 0 {
		return math.NaN()
	}
	return cov / math.Sqrt(float64(va*vb))
}
