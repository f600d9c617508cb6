package fit

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// zoneCorrelation returns the median over pairs of zones of the correlation of
// daily moves.
func zoneCorrelation(movers []*sight, from, to policy.Time) float64 {
	slices.SortStableFunc(movers, func(a, b *sight) int { return a.group - b.group })
	moves := make([][]float64, len(movers))
	for i, s := range movers {
		moves[i] = s.daily(from, to)
	}
	var all []float64
	for i, a := range movers {
		for k := i + 1; k < len(movers) && movers[k].group == a.group; k++ {
			if r := correlation(moves[i], moves[k]); !math.IsNaN(r) {
				all = append(all, r)
			}
		}
	}
	return middle(all, 0.5)
}

// correlation is Pearson's, where both are numbers.
func correlation(a, b []float64) float64 {
	var n, sa, sb, saa, sbb, sab float64
	for i, x := range a {
		y := b[i]
		if math.IsNaN(x) || math.IsNaN(y) {
			continue
		}
		n++
		sa, sb = sa+x, sb+y
		saa, sbb, sab = saa+float64(x*x), sbb+float64(y*y), sab+float64(x*y)
	}
	va := float64(n*saa) - float64(sa*sa)
	vb := float64(n*sbb) - float64(sb*sb)
	if !(va > 1e-18 && vb > 1e-18) || n < 10 {
		return math.NaN()
	}
	return (float64(n*sab) - float64(sa*sb)) / math.Sqrt(float64(va*vb))
}

// stillByLevel returns the share of markets that never move, in each fifth by
// level.
func stillByLevel(all []sight) [5]float64 {
	order := make([]*sight, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortStableFunc(order, func(a, b *sight) int {
		switch {
		case a.level < b.level:
			return -1
		case a.level > b.level:
			return 1
		}
		return 0
	})
	var still, count, out [5]float64
	for i, s := range order {
		k := i * len(out) / len(order)
		count[k]++
		if s.rate == 0 {
			still[k]++
		}
	}
	overall := sum(still[:]) / float64(len(all))
	for k := range out {
		// With few markets a fifth says little: four of the whole are added.
		out[k] = (still[k] + float64(4*overall)) / (count[k] + 4)
	}
	return out
}

// alike returns which share of the variance of a property the markets of a
// group have in common, after its values were made normal by their ranks.
func alike(all []sight, get func(*sight) float64) float64 {
	type entry struct {
		value float64
		index int
	}
	entries := make([]entry, len(all))
	for i := range all {
		entries[i] = entry{value: get(&all[i]), index: i}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	normal := make([]float64, len(all))
	for i := 0; i < len(entries); {
		k := i
		for k < len(entries) && entries[k].value == entries[i].value {
			k++
		}
		z := chance.NormalQuantile((float64(i+k) / 2) / float64(len(entries)+1))
		if i+k == 0 || len(entries) < 2 {
			return 0
		}
		for ; i < k; i++ {
			normal[entries[i].index] = z
		}
	}
	byGroup := map[int][]float64{}
	groups := 0
	squares := 0.0
	for i := range all {
		byGroup[all[i].group] = append(byGroup[all[i].group], normal[i])
		groups = max(groups, all[i].group+1)
		squares += float64(normal[i] * normal[i])
	}
	products, pairs := 0.0, 0.0
	for g := range groups {
		list := byGroup[g]
		for i, a := range list {
			for _, b := range list[:i] {
				products += float64(a * b)
				pairs++
			}
		}
	}
	if pairs == 0 || squares == 0 {
		return 0
	}
	return max(0, min(products/pairs/(squares/float64(len(all))), 0.98))
}
