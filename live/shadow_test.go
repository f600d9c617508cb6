package live

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestRule13ShadowDoesNothing decides and carries nothing out: with the mode of the
// controller, and with that of the pool.
func TestRule13ShadowDoesNothing(t *testing.T) {
	for _, c := range []struct {
		name         string
		all          policy.Mode
		ofPool       v1alpha1.Mode
		drains       int
		mode, reason string
	}{
		{"both active", policy.ModeActive, v1alpha1.ModeActive, 4, "active", "Active"},
		{"controller in shadow", policy.ModeShadow, v1alpha1.ModeActive, 0, "shadow", "Shadow"},
		{"pool in shadow", policy.ModeActive, v1alpha1.ModeShadow, 0, "shadow", "Shadow"},
		{"pool off", policy.ModeActive, v1alpha1.ModeOff, 0, "off", "Off"},
	} {
		w := newFixture(t, 1, interceptor.Funcs{})
		w.cfg.Mode, w.decide = c.all, everything
		w.mode(t, c.ofPool)
		x := w.controller(t)
		w.take()
		step(t, x)
		if got := w.take(); len(got) != c.drains {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := w.pool(t).Status.Mode; string(got) != c.mode {
			t.Errorf("%s: the status says %q", c.name, got)
		}
		if got := w.condition(t, ConditionReady); got.Reason != c.reason {
			t.Errorf("%s: ready %s because of %s", c.name, got.Status, got.Reason)
		}
	}
}

// TestRule13ShadowSettlesNothing touches no drain that an active leader left, not to
// take it back either, whatever the kill switch says.
func TestRule13ShadowSettlesNothing(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	w.cfg.Mode = policy.ModeShadow
	c := w.controller(t)
	w.flip(t, "true")
	w.parts.Tenders = []Tender{tender(nil)}
	step(t, c)
	c.shutDown(context.Background())
	if got := w.take(); len(got) != 0 {
		t.Errorf("in shadow it did %v", got)
	}
}

// TestRule13ShadowSavings counts a move that is planned at every step once, and by
// the hour: two nodes that would cost $0.06 an hour less are $0.12 after an hour, as
// long as they stand.
func TestRule13ShadowSavings(t *testing.T) {
	w := newFixture(t, 2, interceptor.Funcs{})
	w.decide = drains
	w.mode(t, v1alpha1.ModeShadow)
	c := w.controller(t)
	for range 7 {
		step(t, c)
		w.clock.Step(10 * time.Minute)
	}
	b := c.store.book("web")
	if b.Shadow.Saved != 120_000 || b.Shadow.PerHour() != 120_000 || len(b.Shadow.Moves) != 2 {
		t.Errorf("after an hour %v were saved, %v an hour, by %d moves", b.Shadow.Saved, b.Shadow.PerHour(), len(b.Shadow.Moves))
	}
	w.gone("n000")
	step(t, c)
	saved := b.Shadow.Saved
	w.clock.Step(10 * time.Minute)
	step(t, c)
	if got := b.Shadow.Saved - saved; got != 10_000 {
		t.Errorf("with one node left ten minutes save %v", got)
	}
	w.mode(t, v1alpha1.ModeActive)
	step(t, c)
	if len(b.Shadow.Moves) != 0 {
		t.Errorf("a pool that is active has %d moves that were only thought of", len(b.Shadow.Moves))
	}
}

// TestShadowSaving takes the price of the replacement where the drain names none,
// and leaves out what is no choice.
func TestShadowSaving(t *testing.T) {
	s := snapshotOf(2)
	p := policy.Plan{
		Launches: []policy.Launch{{Replaces: 0, Markets: []policy.MarketID{1}}},
		Drains: []policy.Drain{
			{Node: 0, Why: policy.Why{Reason: policy.ReasonShare, Before: 100_000}},
			{Node: 1, Why: policy.Why{Reason: policy.ReasonEmpty, Before: 100_000}},
			{Node: 1, Why: policy.Why{Reason: policy.ReasonNotice, Before: 100_000}},
		},
	}
	if a, b := saving(&s, &p, &p.Drains[0]), saving(&s, &p, &p.Drains[1]); a != 60_000 || b != 100_000 {
		t.Errorf("replaced %v, emptied %v", a, b)
	}
	if !chosen(&s, &p.Drains[0]) || chosen(&s, &p.Drains[2]) {
		t.Error("a drain under notice is no choice")
	}
}
