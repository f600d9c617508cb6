package rescheduler

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestNodeIndex: an index that is updated as nodes and pods change reports the same as a rebuilt
// one, whichever snapshots it read and whatever was moved in its space.
func TestNodeIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		if len(s.Nodes) == 0 || len(s.Pods) == 0 {
			return
		}
		var changes policy.Changes
		var kept nodeIndex
		var sp placement.Space
		c := DefaultConfig()
		for range rapid.IntRange(2, 8).Draw(t, "snapshots") {
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				policytest.Change(t, s, &changes)
			}
			changes.Publish(s)
			kept.read(s, &c)
			if !rapid.Bool().Draw(t, "round") {
				continue
			}
			sp.Load(s)
			kept.readSpace(s, &sp, &c)
			var want nodeIndex
			whole, anew := s.Whole(), placement.FromSnapshot(s)
			want.read(&whole, &c)
			want.readSpace(&whole, anew, &c)
			same := slices.Equal(kept.sources.All(), want.sources.All()) && slices.Equal(kept.leaving.All(), want.leaving.All())
			if !same || !slices.Equal(ids(&kept.emptiest), ids(&want.emptiest)) || !slices.Equal(ids(&kept.fullest), ids(&want.fullest)) {
				t.Fatalf("the index is\n%+v\nwant\n%+v", kept, want)
			}
			if p := &s.Pods[rapid.IntRange(0, len(s.Pods)-1).Draw(t, "moved")]; p.Phase > policy.PodPending {
				sp.Unbind(p, p.Node)
			}
		}
	})
}

func ids(x *ranking) (list []policy.NodeID) {
	for _, n := range x.order() {
		list = append(list, n.id)
	}
	return list
}
