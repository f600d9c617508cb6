package portfolio

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// TestLedger: a market that refuses while Spotter's nodes run there is full until they leave or a
// growing wait has passed. A market without such nodes is tried again soon, and one with more of
// them than when it refused is not full.
func TestLedger(t *testing.T) {
	s := &policy.Snapshot{Now: policy.Time(time.Hour.Milliseconds())}
	s.Pools = []policy.Pool{{Name: "web", Markets: []policy.MarketID{0}}}
	s.Markets = []policy.Market{{Name: "spot", Capacity: policy.Spot, Offered: true}}
	x := &poolContext{e: &Policy{}, s: s, pool: &s.Pools[0]}
	step := func(after time.Duration, nodes int, refused bool, want int) {
		t.Helper()
		s.Now = s.Now.Add(after)
		s.Nodes = slices.Repeat([]policy.Node{{Phase: policy.NodeInitialized}}, nodes)
		if refused {
			s.Markets[0].Experience.Refused = s.Now
		}
		x.e.nodes.read(s, policy.Mark{})
		if got := readLedger(x, probeFirst).depthLeft(0); got != want {
			t.Errorf("%d nodes, refused %v: %d more are believed to be there, want %d", nodes, refused, got, want)
		}
	}
	const free = math.MaxInt
	step(0, 0, false, free)
	step(time.Minute, 0, true, 0)
	step(probeFirst, 0, false, free)
	step(time.Minute, 3, true, 0)
	step(time.Minute, 2, false, 1)
	step(probeFirst, 3, false, 1)
	step(time.Minute, 3, true, 0)
	step(probeFirst, 3, false, 0)
	step(probeFirst, 3, false, 1)
	step(time.Minute, 4, false, free)
	if len(x.memory.Depths) != 0 {
		t.Errorf("a market that was deeper than believed is remembered: %v", x.memory.Depths)
	}
}
