package eval

import (
	"cmp"
	"slices"
)

// A Tradeoff is what one value of a swept setting gives, and what it costs in another respect.
type Tradeoff struct {
	// Gain is what more is better of, as dollars saved; Price what less is better of, as evictions.
	Gain, Price float64
}

// Front returns the places of the points on the convex front, by ascending price: those that no
// mixture of others beats in both respects.
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
			continue // more expensive, and no better
		}
		for len(front) > 1 && !above(points[front[len(front)-2]], points[front[len(front)-1]], points[i]) {
			front = front[:len(front)-1]
		}
		front = append(front, i)
	}
	return front
}

// above reports whether b is above the line from a to c, whose prices ascend.
func above(a, b, c Tradeoff) bool {
	return float64((b.Gain-a.Gain)*(c.Price-a.Price)) > float64((c.Gain-a.Gain)*(b.Price-a.Price))
}

// kneeMin is the least distance of a knee from the chord, as a part of either range. A front that
// is closer to the chord is a straight line, where no value is better than another.
const kneeMin = 0.05

// Knee returns the place of the point of the convex front that is furthest from the chord between
// the ends of the front, both ranges scaled to 1, and whether there is one.
func Knee(points []Tradeoff) (int, bool) {
	front := Front(points)
	if len(front) < 3 {
		return 0, false
	}
	first, last := points[front[0]], points[front[len(front)-1]]
	knee, most := 0, 0.0
	for _, i := range front[1 : len(front)-1] {
		// Scaled, the chord is the diagonal, and all are equally inclined to it.
		d := (points[i].Gain-first.Gain)/(last.Gain-first.Gain) - (points[i].Price-first.Price)/(last.Price-first.Price)
		if d > most {
			knee, most = i, d
		}
	}
	return knee, most >= kneeMin
}
