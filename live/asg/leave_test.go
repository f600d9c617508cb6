package asg

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// An instance that is not in service belongs to its group, or to a user who put it on standby: no
// drain of its node starts.
func TestRule07OnlyInServiceLeaves(t *testing.T) {
	for _, state := range []string{fake.PendingWait, "Standby", "EnteringStandby", "Terminating:Wait"} {
		w := newFixture(t, spotGroup(3), fixedGroup(3))
		id := w.cloud.Group("web-od").Instances[0].ID
		w.cloud.Edit("web-od", func(g *fake.Group) { g.Instances[0].State = state })
		wantHeld(t, w.backend.Prepare(w.ctx(), w.node(id)), ReasonLifecycle)
		w.clean()
	}
}

// A node that is prepared already does not count as another leaving node: the next leader resumes
// its drain when the group is one above its least size.
func TestRule07PreparedAgain(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(2))
	id := w.cloud.Group("web-od").Instances[0].ID
	w.must(w.backend.Prepare(w.ctx(), w.node(id)))
	w.restart()
	w.must(w.backend.Prepare(w.ctx(), w.node(id)))
}

// An instance that is ending is out of the desired size: counted as leaving, too, it
// would hold the next at one above the least size.
func TestRule07EndingIsCountedOnce(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	a, b := w.cloud.Group("web-od").Instances[0].ID, w.cloud.Group("web-od").Instances[1].ID
	w.must(w.backend.Prepare(w.ctx(), w.node(a)))
	w.must(w.backend.Release(w.ctx(), w.node(a)))
	if got := w.cloud.Group("web-od"); got.Desired != 2 || len(got.Instances) != 3 {
		t.Fatalf("%d instances of %d: none is ending", len(got.Instances), got.Desired)
	}
	w.must(w.backend.Prepare(w.ctx(), w.node(b)))
}

// At the least size nothing is even sent: what AWS answers to it is not relied on.
func TestRule07NothingIsSentAtMinSize(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(1))
	id := w.cloud.Group("web-od").Instances[0].ID
	wantHeld(t, w.backend.Release(w.ctx(), w.node(id)), ReasonAtMin)
	if got := w.writes(); slices.Contains(got, "autoscaling:TerminateInstanceInAutoScalingGroup") {
		t.Errorf("wrote %v", got)
	}
}

// What AWS has accepted is done, although a read that is old still shows the instance
// in service: it is neither waited for nor sent again.
func TestRule07AcceptedIsDone(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(5))
	id := w.cloud.Group("web-od").Instances[0].ID
	n := w.node(id)
	w.poll()
	w.cloud.SetFaults(fake.Faults{Seed: 1, Stale: 1, Lag: 12 * time.Second})
	w.cloud.Advance(5 * time.Second)
	for range 4 {
		w.must(w.backend.Release(w.ctx(), n))
		w.cloud.Advance(5 * time.Second)
	}
	sent := 0
	for _, a := range w.writes() {
		if a == "autoscaling:TerminateInstanceInAutoScalingGroup" {
			sent++
		}
	}
	if sent != 1 {
		t.Errorf("the termination was sent %d times", sent)
	}
}

// Spotter does not terminate an instance that was moved out of its group. An instance that is being
// terminated elsewhere, or no longer exists, counts as released.
func TestRule07TakenOutOfItsGroup(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(5), fake.Group{Name: "others", Max: 9, Zones: zones,
		Types: []string{"m5.large"}, OnDemandPercent: 100})
	taken := w.cloud.Group("web-od").Instances[0]
	n := w.node(taken.ID)
	w.cloud.Edit("web-od", func(g *fake.Group) { g.Instances, g.Desired = g.Instances[1:], 4 })
	w.cloud.Edit("others", func(g *fake.Group) { g.Instances, g.Desired = []fake.Instance{taken}, 1 })
	wantHeld(t, w.backend.Release(w.ctx(), n), ReasonNoGroup)
	w.cloud.Edit("others", func(g *fake.Group) { g.Instances[0].State, g.Desired = fake.Terminating, 0 })
	w.must(w.backend.Release(w.ctx(), n))
	w.cloud.Edit("others", func(g *fake.Group) { g.Instances = nil })
	w.must(w.backend.Release(w.ctx(), n))
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// A launch that was refused keeps nothing from growing once the size is what it was
// and there is capacity again.
func TestLaunchAfterRefusal(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	market := func(set func(string)) {
		for _, zone := range zones {
			for _, kind := range spotGroup(0).Types {
				set(fake.Market(zone, kind, true))
			}
		}
	}
	market(func(m string) { w.cloud.Shut(m) })
	w.must(w.launch("t1", policy.Spot))
	for i := 0; w.replaced("t1") != backend.ReplacementFailed; i++ {
		if i > 60 {
			t.Fatal("the launch is not refused")
		}
		w.pass(5 * time.Second)
	}
	w.must(w.backend.Undo(w.ctx(), w.node(w.cloud.Group("web-od").Instances[0].ID), []string{"t1"}))
	w.cloud.Edit("web-spot", func(g *fake.Group) { g.Desired = 3 })
	market(func(m string) { w.cloud.Open(m) })
	w.pass(w.cfg.RaiseEvery + time.Minute)
	w.must(w.launch("t2", policy.Spot))
	w.awaitReady("web-spot", "t2")
}
