package asg

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/policy"
)

// settings returns, for all groups, the settings that a restore puts back.
func (w *fixture) settings() map[string]string {
	all := map[string]string{}
	for _, g := range w.groups() {
		protected := 0
		for _, i := range g.Instances {
			if i.Protected {
				protected++
			}
		}
		all[g.Name] = fmt.Sprint(g.Min, g.Max, g.OnDemandPercent, g.Tags, protected)
		if g.Nodegroup != "" {
			all[g.Name] += fmt.Sprint(w.cloud.NodegroupTags(g.Name))
		}
	}
	return all
}

func (w *fixture) restoreAll(dryRun bool) []Restored {
	w.t.Helper()
	all, err := Restore(w.ctx(), w.cfg, []string{region}, w.base, w.kube, dryRun)
	w.must(err)
	return all
}

// TestRestore: after a life of steers, launches and drains that ends anywhere, restoring
// leaves the groups as they were before Spotter came, but for what they hold. The user's
// own tags stay, and so do groups of other clusters that carry tags of their Spotter.
func TestRestore(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprintf("pools deleted %t", gone), func(t *testing.T) {
			own := spotGroup(4)
			own.Tags = map[string]string{"pool": "web", "team": "shop"}
			mixed := mixedGroup()
			mixed.TerminationHook = true
			managed := fake.Group{Name: "managed", Min: 1, Max: 20, Desired: 2, Zones: zones, Types: []string{"m5.large"}, OnDemandPercent: 100,
				Nodegroup: "ng", Cluster: "prod", Tags: map[string]string{"pool": "web"}, Suspended: []string{"AZRebalance"}}
			w := newFixture(t, own, fixedGroup(4), mixed, managed)
			foreign := fake.Group{Name: "foreign", Max: 9, Desired: 1, Zones: zones, Types: []string{"m5.large"}, OnDemandPercent: 100,
				Tags: map[string]string{TagSteer: "share=1 since=1", TagMax: "user=20 ours=9 was=20"}}
			w.cloud.AddGroup(foreign)
			before := w.settings()
			w.allow(AnnotationBounds + "=max")
			w.allowReplacement()
			w.must(w.steer(0.75))
			w.must(w.launch("t1", policy.Spot))
			w.awaitReady("mixed", "t1") // the first of the groups that buy spot
			w.must(w.backend.Prepare(w.ctx(), w.node(w.cloud.Group("web-od").Instances[0].ID)))
			for name, was := range before {
				if now := w.settings()[name]; now == was && name != "web-od" {
					t.Errorf("nothing was changed of %s: %s", name, was)
				}
			}
			if gone {
				w.must(w.kube.Delete(w.ctx(), capacityPool("web")))
			}
			then := w.settings()
			w.cloud.Forget()
			said := w.restoreAll(true)
			if writes := w.writes(); len(writes) > 0 {
				t.Errorf("a dry run wrote %v", writes)
			}
			done := w.restoreAll(false)
			if !slices.EqualFunc(said, done, func(a, b Restored) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
				t.Errorf("it did %v, and said %v before", done, said)
			}
			for name, was := range before {
				if now := w.settings()[name]; now != was {
					t.Errorf("group %s is %s, was %s before, and %s in between", name, now, was, then[name])
				}
			}
			if again := w.restoreAll(false); len(again) > 0 {
				t.Errorf("the second time it finds %v", again)
			}
			if g := w.cloud.Group("foreign"); len(g.Tags) != 2 || g.Max != 9 {
				t.Errorf("the group of another cluster is %+v", g)
			}
		})
	}
}

// What the user has chosen since stays, and only our record of it is removed.
func TestRestoreKeepsTheUsersChoice(t *testing.T) {
	w := newFixture(t, spotGroup(4), fixedGroup(4))
	w.allow(AnnotationBounds + "=max")
	w.must(w.steer(0.5))
	w.cloud.Edit("web-spot", func(g *fake.Group) { g.Max = 17 })
	w.restoreAll(false)
	if g := w.cloud.Group("web-spot"); g.Max != 17 || g.Tags[TagMax] != "" {
		t.Errorf("the maximum is %d, with the tag %q", g.Max, g.Tags[TagMax])
	}
}

// One group that cannot be restored keeps no other from it, and is done the next time.
func TestRestoreInPart(t *testing.T) {
	w := newFixture(t, spotGroup(4), fixedGroup(4))
	w.allow(AnnotationBounds + "=max")
	w.must(w.steer(0.5))
	w.cloud.SetFaults(fake.Faults{Deny: map[string]string{"autoscaling:UpdateAutoScalingGroup": "AccessDenied"}})
	done, err := Restore(w.ctx(), w.cfg, []string{region}, w.base, w.kube, false)
	if err == nil || !strings.Contains(err.Error(), "maximum size") {
		t.Errorf("it says %v", err)
	}
	if len(done) != 1 || len(done[0].What) != 1 {
		t.Errorf("it did %v, want the tag of the steer alone", done)
	}
	w.cloud.SetFaults(fake.Faults{})
	w.restoreAll(false)
	if g := w.cloud.Group("web-spot"); g.Max != 20 || g.Tags[TagMax] != "" {
		t.Errorf("the maximum is %d, with the tag %q", g.Max, g.Tags[TagMax])
	}
}

// A group that mixes is still steered once it buys all as spot.
func TestMixedGroupStaysMixed(t *testing.T) {
	mixed := mixedGroup()
	mixed.TerminationHook = true
	w := newFixture(t, mixed)
	w.allowReplacement()
	for _, share := range []float64{1, 0.25, 0.5} {
		for range 3 { // as many instances at a time as may be disrupted
			w.must(w.steer(share))
		}
		if got, want := w.cloud.Group("mixed").OnDemandPercent, int(100*(1-share)); got != want {
			t.Errorf("at a share of %v it buys %d %% on demand, want %d", share, got, want)
		}
	}
	if tag := w.cloud.Group("mixed").Tags[TagOnDemand]; tag != "" {
		t.Errorf("at the user's own percentage the tag is %q", tag)
	}
}
