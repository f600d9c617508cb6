package portfolio

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// TestNameOrder: whatever nodes come and go, the order is that of sorting all names again.
func TestNameOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x nameOrder
		s := &policy.Snapshot{}
		for range rapid.IntRange(1, 6).Draw(t, "decisions") {
			s.Nodes = slices.Grow(s.Nodes, 12)[:rapid.IntRange(0, 12).Draw(t, "nodes")]
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				if len(s.Nodes) > 0 {
					s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "slot")].Name = rapid.StringMatching("[ab]{0,4}").Draw(t, "name")
				}
			}
			x.read(s, policy.Mark{})
			if len(x.order) != len(s.Nodes) {
				t.Fatalf("%d of %d nodes are ordered", len(x.order), len(s.Nodes))
			}
			for i, id := range x.order {
				if x.rank[id] != int32(i) {
					t.Fatalf("node %d stands at %d and has the rank %d", id, i, x.rank[id])
				}
				if named := x.named(s.Nodes[id].Name); !slices.Contains(named, id) || s.Nodes[named[len(named)-1]].Name != s.Nodes[id].Name {
					t.Fatalf("nodes %v are named %q, of which node %d is one", named, s.Nodes[id].Name, id)
				}
				if i > 0 && s.Nodes[x.order[i-1]].Name > s.Nodes[id].Name {
					t.Fatalf("%q stands before %q", s.Nodes[x.order[i-1]].Name, s.Nodes[id].Name)
				}
			}
		}
	})
}
