package machines

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// TestKept: a bound is broken by what a pool holds at least one of its nodes beyond it,
// for more than a twentieth of the window.
func TestKept(t *testing.T) {
	window := billing.Span{From: simtest.Start, To: simtest.Start.Add(100 * time.Hour)}
	type step struct {
		at             time.Duration
		spot, onDemand int64 // nodes of 4 vCPUs from then on
	}
	most := policy.ShareRange{Max: 0.8}
	range2080 := policy.ShareRange{Min: 0.2, Max: 0.8}
	exact := policy.ShareRange{Min: 0.9, Max: 0.9, Target: 0.9, Exact: true, HasTarget: true}
	const above = "pool p holds more on Spot than the 80% that spotShare.max allows"
	const below = "pool p holds less on Spot than the 20% that spotShare.min requires"
	const off = "pool p does not hold the 90% on Spot that exactRatio sets"
	for name, x := range map[string]struct {
		bounds  policy.ShareRange
		steps   []step
		refused time.Duration
		want    []string
	}{
		"one node of five too many":  {most, []step{{0, 5, 0}}, 0, []string{above}},
		"as near as four nodes come": {most, []step{{0, 4, 0}}, 0, nil},
		"at the bound":               {most, []step{{0, 8, 2}}, 0, nil},
		"for a moment":               {most, []step{{0, 10, 0}, {5 * time.Hour, 8, 2}}, 0, nil},
		"for a moment too long":      {most, []step{{0, 10, 0}, {5*time.Hour + time.Minute, 8, 2}}, 0, []string{above}},
		"before the window":          {most, []step{{-20 * time.Hour, 10, 0}, {0, 8, 2}}, 0, nil},
		"no bound":                   {policy.ShareRange{Max: 1}, []step{{0, 10, 0}}, 0, nil},
		"nothing on spot":            {range2080, []step{{0, 0, 10}}, 0, []string{below}},
		"after spot was refused":     {range2080, []step{{0, 5, 5}, {10 * time.Hour, 0, 10}, {20 * time.Hour, 5, 5}}, 10 * time.Hour, nil},
		"long after": {range2080, []step{{0, 5, 5}, {10 * time.Hour, 0, 10}, {22 * time.Hour, 5, 5}},
			10 * time.Hour, []string{below}},
		"exactly": {exact, []step{{0, 18, 2}}, 0, nil},
		"above and below, each for a while": {exact, []step{{0, 18, 2}, {10 * time.Hour, 20, 0}, {14 * time.Hour, 16, 4},
			{18 * time.Hour, 18, 2}}, 0, []string{off}},
	} {
		k := kept{bounds: x.bounds}
		spot, onDemand := int64(0), int64(0)
		for _, s := range x.steps {
			now := simtest.Start.Add(s.at)
			for ; spot < s.spot; spot++ {
				k.hold(now, window, 4, 1, true)
			}
			for ; spot > s.spot; spot-- {
				k.hold(now, window, 4, -1, true)
			}
			for ; onDemand < s.onDemand; onDemand++ {
				k.hold(now, window, 4, 1, false)
			}
			for ; onDemand > s.onDemand; onDemand-- {
				k.hold(now, window, 4, -1, false)
			}
			if x.refused != 0 && s.at == x.refused {
				k.refuse(now, window)
			}
		}
		k.advance(window.To, window)
		if got := k.broken("p", int64(window.To-window.From)); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
