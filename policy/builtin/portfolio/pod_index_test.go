package portfolio

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestPodIndex: after any snapshots an index says of the next one what one says that is
// read for the first time.
func TestPodIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kept podIndex
		for range rapid.IntRange(2, 5).Draw(t, "decisions") {
			s := policytest.Snapshot().Draw(t, "snapshot")
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				for range rapid.IntRange(0, 4).Draw(t, "swaps") {
					if n := len(s.Pods); n > 1 { // pods are gone, come and go elsewhere
						i, k := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
						s.Pods[i], s.Pods[k] = s.Pods[k], s.Pods[i]
						s.Pods[i].ID, s.Pods[k].ID = s.Pods[k].ID, s.Pods[i].ID
					}
				}
				kept.read(s)
				var fresh podIndex
				fresh.read(s)
				if !slices.Equal(kept.all, fresh.all) || !slices.Equal(kept.daemons, fresh.daemons) ||
					!slices.Equal(kept.needed, fresh.needed) || !slices.Equal(kept.sets, fresh.sets) || !slices.Equal(kept.pending, fresh.pending) ||
					!slices.Equal(kept.standing, fresh.standing) || !slices.Equal(kept.ready, fresh.ready) ||
					!slices.Equal(kept.usable, fresh.usable) || !slices.Equal(kept.daemonsThere, fresh.daemonsThere) {
					t.Fatalf("kept %+v, read anew %+v", kept, fresh)
				}
				for n := range s.Nodes {
					if !slices.Equal(kept.nodes[n], fresh.nodes[n]) || !slices.Equal(kept.groups[n], fresh.groups[n]) {
						t.Fatalf("node %d has %v %v, read anew %v %v", n, kept.nodes[n], kept.groups[n], fresh.nodes[n], fresh.groups[n])
					}
				}
			}
		}
	})
}
