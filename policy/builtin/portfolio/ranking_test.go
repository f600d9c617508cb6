package portfolio

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// TestRanking: of runs those nodes are left that cost most when all are sorted one by one.
func TestRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k ranking
		var rank []int32
		type node struct {
			base float64
			id   policy.NodeID
		}
		var all []node
		lists := make([][]policy.NodeID, 8)
		for id := range rapid.IntRange(0, 60).Draw(t, "nodes") {
			n := rapid.IntRange(0, len(lists)-1).Draw(t, "run")
			lists[n], rank = append(lists[n], policy.NodeID(id)), append(rank, int32(id))
		}
		for _, list := range lists {
			r := run{nodes: list, cost: 12, yields: float64(rapid.IntRange(0, 5).Draw(t, "yields")),
				stays: float64(rapid.IntRange(0, 12).Draw(t, "stays"))}
			k.add(&r)
			for _, id := range list {
				if r.yields > 0 {
					all = append(all, node{(r.cost - r.stays) / r.yields, id})
				}
			}
		}
		slices.SortFunc(all, func(a, b node) int { return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.id, b.id)) })
		most := rapid.IntRange(1, 70).Draw(t, "most")
		n := k.last(most, rank)
		var got []node
		for i := range k.runs {
			for _, id := range k.runs[i].nodes {
				got = append(got, node{k.runs[i].base, id})
			}
		}
		slices.SortFunc(got, func(a, b node) int { return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.id, b.id)) })
		if want := all[max(0, len(all)-most):]; !slices.Equal(got, want) || n != len(want) {
			t.Fatalf("ranked %d: %v, want %v", n, got, want)
		}
	})
}
