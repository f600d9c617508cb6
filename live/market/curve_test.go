package market

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// plainHistory is what history returns, from all points and the slow way.
func plainHistory(points map[policy.Time]policy.Money, now policy.Time) []policy.Money {
	var all []policy.Money
	for k := historySize - 1; k >= 0; k-- {
		at := now - now%gridStep - policy.Time(k)*gridStep
		var newest policy.Time
		for t := range points {
			if t <= at && t > newest {
				newest = t
			}
		}
		if newest != 0 {
			all = append(all, points[newest])
		}
	}
	return all
}

// Whatever order points come in, and whenever old ones are forgotten, the price now
// and the history are those of all points; and what was handed out never changes.
func TestCurveIsAllThatWasReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const begin = 1_000 * gridStep
		c, reported := &curve{}, map[policy.Time]policy.Money{}
		now := begin
		var given [][]policy.Money
		var copies [][]policy.Money
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += policy.Time(rapid.IntRange(0, 3*int(gridStep)).Draw(t, "pass"))
			for range rapid.IntRange(0, 3).Draw(t, "points") {
				// A point may be reported up to an hour late.
				at := now - policy.Time(rapid.IntRange(0, 6*int(gridStep)).Draw(t, "late"))
				price := policy.Money(rapid.IntRange(1, 4).Draw(t, "price"))
				if price == 4 {
					price = policy.NoPrice
				}
				if was, ok := reported[at]; !ok || was < price {
					reported[at] = price
				}
				c.put(at, price)
			}
			if rapid.Bool().Draw(t, "prune") {
				c.prune(now)
			}
			got := c.history(now)
			given, copies = append(given, got), append(copies, slices.Clone(got))
			if want := plainHistory(reported, now); !slices.Equal(got, want) {
				t.Fatalf("history at %d: %v, want %v", now, got, want)
			}
		}
		for i := range given {
			if !slices.Equal(given[i], copies[i]) {
				t.Fatalf("history %d was changed after it was handed out", i)
			}
		}
	})
}

// A price that is reported again stays as old as it is, also after the first report was
// forgotten.
func TestCurveKeepsSinceWhen(t *testing.T) {
	c := &curve{}
	begin := 1_000 * gridStep
	c.put(begin, 7)
	for k := policy.Time(1); k < 200; k++ {
		c.put(begin+k*gridStep, 7)
		c.prune(begin + k*gridStep)
	}
	if price, since, ok := c.at(begin + 200*gridStep); price != 7 || since != begin || !ok {
		t.Errorf("price %v since %v, want 7 since %v", price, since, begin)
	}
	if n := len(c.points); n > historySize+3 {
		t.Errorf("%d points are kept of a day and a half", n)
	}
}
