package karpetrack

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestNodeIndex: an index that is updated as nodes and pods change holds the same nodes as a
// rebuilt one, and its bounds are below all of them, whatever was queried before.
func TestNodeIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		if len(s.Nodes) == 0 || len(s.Pods) == 0 {
			return
		}
		var changes policy.Changes
		var kept nodeIndex
		var sp placement.Space
		for range rapid.IntRange(2, 8).Draw(t, "snapshots") {
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				policytest.Change(t, s, &changes)
			}
			s.Now = s.Now.Add(time.Minute)
			changes.Publish(s)
			kept.read(s)
			var anew nodeIndex
			whole := s.Whole()
			if anew.read(&whole); !slices.Equal(kept.coming.All(), anew.coming.All()) || !slices.Equal(kept.noticed.All(), anew.noticed.All()) {
				t.Fatalf("the index is\n%+v\nwant\n%+v", kept, anew)
			}
			age := time.Duration(rapid.IntRange(1, 500).Draw(t, "minutes")) * time.Minute
			for p := range s.Pools {
				pool := policy.PoolID(p)
				if got, want := kept.aged(s, pool, age), agedAnew(s, pool, age); !slices.Equal(got, want) {
					t.Fatalf("nodes %v of pool %d are %v old, want %v", got, p, age, want)
				}
			}
			if !rapid.Bool().Draw(t, "load") {
				continue
			}
			sp.Load(s)
			kept.readSpace(s, &sp)
			checkAsked(t, s, &kept, &sp)
			if p := &s.Pods[rapid.IntRange(0, len(s.Pods)-1).Draw(t, "moved")]; p.Phase > policy.PodPending {
				sp.Unbind(p, p.Node)
				for pool := range s.Pools { // while a pod is moved tentatively
					kept.asked(&sp, policy.PoolID(pool), func(policy.MarketID, policy.Resources) bool { return true }, func(policy.NodeID) {})
				}
			}
		}
	})
}

// agedAnew lists the nodes that aged returns for a rebuilt index.
func agedAnew(s *policy.Snapshot, pool policy.PoolID, age time.Duration) (nodes []policy.NodeID) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; movable(s, n) && n.Pool == pool && s.Now.Sub(n.Launched) >= age {
			nodes = append(nodes, n.ID)
		}
	}
	return nodes
}

// checkAsked compares what kept lists with s.
func checkAsked(t *rapid.T, s *policy.Snapshot, kept *nodeIndex, sp *placement.Space) {
	for p := range s.Pools {
		pool := policy.PoolID(p)
		low, answers := make(map[policy.MarketID]policy.Resources), make(map[policy.MarketID]bool)
		var got, want []policy.NodeID
		kept.asked(sp, pool, func(m policy.MarketID, need policy.Resources) bool {
			low[m], answers[m] = need, rapid.Bool().Draw(t, "may")
			return answers[m]
		}, func(id policy.NodeID) { got = append(got, id) })
		for i := range s.Nodes {
			n := &s.Nodes[i]
			need := sp.Requested(n.ID)
			if !movable(s, n) || n.Pool != pool || need.Pods == 0 {
				continue
			}
			least, asked := low[n.Market]
			if !asked || !least.Within(need) {
				t.Fatalf("node %d of market %d asks for %v, below %v", i, n.Market, need, least)
			}
			if answers[n.Market] {
				want = append(want, n.ID)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("pool %d has nodes %v, want %v", p, got, want)
		}
	}
}
