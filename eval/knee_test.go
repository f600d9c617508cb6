package eval

import (
	"slices"
	"testing"
)

// TestKnee: the knee is the point after which the cost rises faster than the gain.
func TestKnee(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []Tradeoff
		front  []int
		knee   int
		ok     bool
	}{
		{"a bend", []Tradeoff{{0, 0}, {80, 1}, {88, 5}, {100, 10}}, []int{0, 1, 3}, 1, true},
		{"out of order, with one that is beaten", []Tradeoff{{100, 10}, {10, 8}, {80, 2}, {0, 0}}, []int{3, 2, 0}, 2, true},
		{"between two bends the further one", []Tradeoff{{0, 0}, {50, 1}, {90, 4}, {100, 10}}, []int{0, 1, 2, 3}, 2, true},
		{"a straight line", []Tradeoff{{0, 0}, {50, 5}, {100, 10}}, []int{0, 2}, 0, false},
		{"nearly one", []Tradeoff{{0, 0}, {52, 5}, {100, 10}}, []int{0, 1, 2}, 1, false},
		{"one that is best in both", []Tradeoff{{10, 0}, {5, 3}, {0, 9}}, []int{0}, 0, false},
		{"equal prices", []Tradeoff{{10, 1}, {20, 1}, {20, 2}}, []int{1}, 0, false},
		{"none", nil, nil, 0, false},
	} {
		front := Front(c.points)
		knee, ok := Knee(c.points)
		if !slices.Equal(front, c.front) || knee != c.knee || ok != c.ok {
			t.Errorf("%s: front %v, knee %d, %v; want %v, %d, %v", c.name, front, knee, ok, c.front, c.knee, c.ok)
		}
	}
}
