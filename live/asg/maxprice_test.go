package asg

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestLaunchMaxPrice leaves a group alone that may choose a type or a zone which
// costs more now than the pool may pay for a node.
func TestLaunchMaxPrice(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	s := w.snapshot()
	s.Pools[0].PriceMax = 50_000
	l := &policy.Launch{Token: "t1", Replaces: 0}
	dear := &s.Markets[0]
	for i := range s.Markets {
		m := &s.Markets[i]
		if m.Offered, m.Price = true, 40_000; m.Capacity == policy.Spot {
			l.Markets = append(l.Markets, m.ID)
			dear = m
		}
	}
	dear.Price = 50_001
	wantHeld(t, w.backend.Launch(w.ctx(), s, l), ReasonTooDear)
	if got := w.cloud.Group("web-spot").Desired; got != 3 {
		t.Errorf("the group is to hold %d", got)
	}
	dear.Price = 50_000
	w.must(w.backend.Launch(w.ctx(), s, l))
	if got := w.cloud.Group("web-spot").Desired; got != 4 {
		t.Errorf("the group is to hold %d, want one more", got)
	}
}
