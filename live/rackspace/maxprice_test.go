package rackspace_test

import (
	"errors"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// TestLaunchMaxPrice bids no more than the pool may pay for a node, and buys in no
// market that costs more, also on demand.
func TestLaunchMaxPrice(t *testing.T) {
	w := newFixture(t)
	w.server.SetPrice("gp.vs1.medium-iad", 25_000)
	s := w.snapshot()
	s.Pools[0].PriceMax = 33_000
	if err := w.b.Launch(w.ctx, s, w.launchOf(s, "t1", 90_000, "gp.vs1.medium-iad")); err != nil {
		t.Fatal(err)
	}
	if got := w.only().Spec.BidPerHour; got != "0.030" {
		t.Errorf("the bid is %s, want the highest on the grid that is within $0.033", got)
	}
	s.Pools[0].PriceMax = 24_000
	for _, bid := range []policy.Money{90_000, 0} {
		if err := w.b.Launch(w.ctx, s, w.launchOf(s, "t2", bid, "gp.vs1.medium-iad")); !errors.Is(err, driver.ErrNoCapacity) {
			t.Errorf("with a bid of %v: %v, want ErrNoCapacity", bid, err)
		}
	}
}
