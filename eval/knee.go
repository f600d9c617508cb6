package eval

import (
	"cmp"
	"slices"
)

// A Tradeoff is the benefit of one value of a swept setting, and its cost in another respect.
type Tradeoff struct {
	// Gain is better if higher, for example dollars saved; Price is better if lower, for example
	// evictions.
	Gain, Price float64
}

// Front returns the indexes of the points on the convex front, by ascending price: the points that
// no mixture of other points beats in both respects.
func Front(points []Tradeoff) []int {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(points[a].Price, points[b].Price), cmp.Compare(points[b].Gain, points[a].Gain))
	})
	var front []int
	for _, i := range order {
		if n := len(front); n > 0 && points[i].Gain <= points[front[n-1]].Gain {
			continue // not cheaper, and no better
		}
		for len(front) > 1 && !above(points[front[len(front)-2]], points[front[len(front)-1]], points[i]) {
			front = front[:len(front)-1]
		}
		front = append(front, i)
	}
	return front
}

// above reports whether b is above the line from a to c. The prices of a, b and c must ascend.
func above(a, b, c Tradeoff) bool {
	return float64((b.Gain-a.Gain)*(c.Price-a.Price)) > float64((c.Gain-a.Gain)*(b.Price-a.Price))
}

// kneeMin is the minimum distance of a knee from the chord, as a fraction of either range. A front
// that is closer to the chord is nearly straight, so no value on it is preferable.
const kneeMin = 0.05

// Knee returns the index of the point on the convex front that is furthest from the chord between
// the ends of the front, with both ranges scaled to 1. It returns false if the front has no knee.
func Knee(points []Tradeoff) (int, bool) {
	front := Front(points)
	if len(front) < 3 {
		return 0, false
	}
	first, last := points[front[0]], points[front[len(front)-1]]
	knee, most := 0, 0.0
	for _, i := range front[1 : len(front)-1] {
		// After scaling, the chord is the diagonal, so this difference is proportional to the
		// distance.
		d := (points[i].Gain-first.Gain)/(last.Gain-first.Gain) - (points[i].Price-first.Price)/(last.Price-first.Price)
		if d > most {
			knee, most = i, d
		}
	}
	return knee, most >= kneeMin
}
