package portfolio

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// TestRanking: sets of nodes come in the order of their nodes sorted one by one.
func TestRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k ranking
		for range 2 {
			k.begin(3)
			var all []rankedNode
			for i := range rapid.IntRange(0, 60).Draw(t, "nodes") {
				r := rankedNode{node: policy.NodeID(i), yields: float64(rapid.IntRange(1, 5).Draw(t, "yields")), stays: float64(rapid.IntRange(0, 12).Draw(t, "stays"))}
				m := rapid.IntRange(0, 2).Draw(t, "market")
				r.cost = float64(12 + m)
				r.base = (r.cost - r.stays) / r.yields
				all = append(all, r)
				k.add(&r, policy.MarketID(m))
			}
			slices.SortFunc(all, func(a, b rankedNode) int { return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.node, b.node)) })
			most := rapid.IntRange(1, 70).Draw(t, "most")
			if got, want := k.last(most), all[max(0, len(all)-most):]; !slices.Equal(got, want) {
				t.Fatalf("ranked %v, want %v", got, want)
			}
		}
	})
}
