package asg

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

func mixedGroup() fake.Group {
	return fake.Group{Name: "mixed", Min: 1, Max: 20, Desired: 4, Zones: zones, Types: []string{"m5.large"}, Mixed: true, OnDemandPercent: 50,
		Tags: map[string]string{"pool": "web"}, Suspended: []string{"AZRebalance"}}
}

func (w *fixture) steer(share float64) error {
	s := w.snapshot()
	for i := range s.Nodes {
		s.Nodes[i].Pool = 0
	}
	return w.backend.Steer(w.ctx(), s, &policy.Steer{Pool: 0, Share: share, Fallback: true})
}

// The purchase options of a live group are left alone: the group would replace
// instances without asking anybody.
func TestRule08PurchaseOptionsAreLeftAlone(t *testing.T) {
	w := newFixture(t, mixedGroup())
	err := w.steer(1)
	wantHeld(t, err, ReasonReplaces)
	if err == nil || !strings.Contains(err.Error(), "2 of its 4 instances") {
		t.Errorf("the reason does not say how many: %v", err)
	}
	w.allowReplacement()
	wantHeld(t, w.steer(1), ReasonReplaces) // there is no hook
	w.pass(5 * time.Minute)
	if ended := w.cloud.Ended(); len(ended) > 0 || slices.Contains(w.writes(), "autoscaling:UpdateAutoScalingGroup") {
		t.Errorf("ended %v", ended)
	}
}

// Where the owner allows it and a hook holds up the end of instances, only as many
// are replaced as may be disrupted.
func TestRule08PurchaseOptionsAsDrains(t *testing.T) {
	g := mixedGroup()
	g.TerminationHook = true
	w := newFixture(t, g)
	w.allowReplacement()
	w.must(w.steer(1))
	if ended := w.cloud.Ended(); len(ended) != 1 {
		t.Errorf("ended %v, and one node may be disrupted", ended)
	}
	if got := w.cloud.Group("mixed").OnDemandPercent; got != 25 {
		t.Errorf("%d%% on demand, want 25", got)
	}
	s := w.snapshot()
	s.Pools[0].Budgets[0].Nodes.N = 0
	wantHeld(t, w.backend.Steer(w.ctx(), s, &policy.Steer{Share: 1}), ReasonReplaces)
}

// The bounds of a group are the user's unless the pool says otherwise, never go
// below what the group holds, and come back.
func TestRule08BoundsAreTheUsers(t *testing.T) {
	w := newFixture(t, spotGroup(4), fixedGroup(4))
	w.must(w.steer(0.5))
	if g := w.cloud.Group("web-spot"); g.Max != 20 || g.Min != 1 {
		t.Fatalf("bounds became %d and %d", g.Min, g.Max)
	}
	if got := w.sink.Steers["web"]; !got.Set || got.Share != 0.5 {
		t.Errorf("reported to the sink %+v", got)
	}
	w.allow(AnnotationBounds + "=max")
	w.must(w.steer(0))
	if g := w.cloud.Group("web-spot"); g.Max != 4+boundSlack || g.Desired != 4 {
		t.Errorf("greatest size %d and desired %d, want %d and 4", g.Max, g.Desired, 4+boundSlack)
	}
	w.restart()
	w.must(w.steer(1))
	g := w.cloud.Group("web-spot")
	if _, left := g.Tags[TagMax]; g.Max != 20 || left {
		t.Errorf("greatest size %d (tag %v), want the user's 20", g.Max, left)
	}
	// A maximum that the user writes meanwhile is the new bound, even if Spotter's write before it
	// was lost.
	w.must(w.steer(0))
	w.cloud.SetDesired("web-spot", 5)
	w.cloud.SetFaults(fake.Faults{Once: map[string][]string{"autoscaling:UpdateAutoScalingGroup": {"AccessDenied"}}})
	wantHeld(t, w.steer(0), ReasonDenied)
	w.must(w.steer(1))
	if g := w.cloud.Group("web-spot"); g.Max != 20 {
		t.Errorf("greatest size %d after a write that was refused, want 20", g.Max)
	}
	w.must(w.steer(0))
	w.cloud.Edit("web-spot", func(g *fake.Group) { g.Max = 30 })
	w.allow()
	w.must(w.steer(0.2))
	if g := w.cloud.Group("web-spot"); g.Max != 30 {
		t.Errorf("greatest size %d, want the user's 30", g.Max)
	}
}

// Steering a pool to the same again writes nothing.
func TestRule08SteerOnce(t *testing.T) {
	w := newFixture(t, spotGroup(4), fixedGroup(4))
	w.must(w.steer(0.5))
	w.cloud.Forget()
	w.must(w.steer(0.5))
	w.restart()
	w.must(w.steer(0.5))
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
	if got := w.sink.Steers["web"]; got.Since != policy.TimeOf(begin) {
		t.Errorf("reported at %v, want %v", got.Since, begin)
	}
}

func managedGroup(n int) fake.Group {
	return fake.Group{Name: "managed", Min: 1, Max: 20, Desired: n, Zones: zones,
		Types: []string{"m5.large", "m5a.large"}, Mixed: true, OnDemandPercent: 0,
		Tags: map[string]string{"pool": "web"}, Suspended: []string{"AZRebalance"}, Nodegroup: "spot-workers", Cluster: "prod"}
}

// A managed node group is sized through EKS, and of its Auto Scaling group only
// the drained instance is terminated.
func TestRule08ManagedNodeGroup(t *testing.T) {
	w := newFixture(t, managedGroup(3), fixedGroup(3)).overHTTP()
	old := w.cloud.Group("managed").Instances[0].ID
	w.must(w.launch("t1", policy.Spot))
	w.must(w.backend.Prepare(w.ctx(), w.node(old)))
	w.restart()
	fresh := w.awaitReady("managed", "t1")
	if got := w.node(fresh).Annotations[ScaleDownDisabled]; got != "true" {
		t.Errorf("the replacement has %s=%q", ScaleDownDisabled, got)
	}
	w.must(w.backend.Release(w.ctx(), w.node(old)))
	w.pass(2 * time.Minute)
	w.must(w.backend.Settle(w.ctx(), []string{"t1"}))
	w.clean()
	if g := w.cloud.Group("managed"); g.Desired != 3 || len(g.Instances) != 3 {
		t.Errorf("%d of %d instances, want 3", len(g.Instances), g.Desired)
	}
	for _, a := range w.writes() {
		if strings.HasPrefix(a, "autoscaling:") && a != "autoscaling:TerminateInstanceInAutoScalingGroup" {
			t.Errorf("%s was called on the group of a managed node group", a)
		}
	}
}

// One update at a time: the next waits until EKS is done with the one before.
func TestRule08OneUpdateAtATime(t *testing.T) {
	w := newFixture(t, managedGroup(3))
	w.cfg.InFlightMax, w.cfg.RaiseEvery = 5, 0
	w.restart()
	w.must(w.launch("t1", policy.Spot))
	wantHeld(t, w.launch("t2", policy.Spot), ReasonBusy)
	if left := w.cloud.NodegroupTags("managed"); left[TagLaunch+"t2"] != "" {
		t.Errorf("the refused launch is written down: %v", left)
	}
	w.pass(w.cloud.Delays.Update)
	w.must(w.launch("t2", policy.Spot))
	if got := w.cloud.Group("managed").Desired; got != 5 {
		t.Errorf("desired %d, want 5", got)
	}
}

// EKS itself rebalances the Spot instances of its node groups.
func TestRule08RebalanceIsEKSs(t *testing.T) {
	w := newFixture(t, managedGroup(3), spotGroup(3))
	w.poll()
	id, other := w.cloud.Group("managed").Instances[0].ID, w.cloud.Group("web-spot").Instances[0].ID
	if got := w.backend.Notice(backend.Notice{Machine: id}); got != policy.ActorEKS {
		t.Errorf("a recommendation for a managed node is %v's, want EKS's", got)
	}
	if got := w.backend.Notice(backend.Notice{Machine: "aws:///us-east-1a/" + other}); got != policy.ActorNone {
		t.Errorf("a recommendation for a node of a group of its own is %v's", got)
	}
	wantHeld(t, w.backend.Prepare(w.ctx(), w.node(id)), ReasonEKS)
	w.must(w.backend.Prepare(w.ctx(), w.node(other)))
	w.poll()
	if got := w.sink.Machines[id].ActedBy; got != policy.ActorEKS {
		t.Errorf("it was reported to the sink that %v acts on it", got)
	}
}

// The fence is asked before every write, and what it forbids is not written.
func TestRule14Fence(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3), managedGroup(3))
	lost := errors.New("another leads")
	w.cfg.Fence = func(context.Context) error { return lost }
	w.restart()
	id := w.cloud.Group("web-od").Instances[0].ID
	for name, err := range map[string]error{
		"Launch": w.launch("t1", policy.Spot), "Steer": w.steer(0.3), "Release": w.backend.Release(w.ctx(), w.node(id)),
	} {
		if !errors.Is(err, lost) {
			t.Errorf("%s: %v, want it fenced", name, err)
		}
	}
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// The actions that are called are those that the documentation lists, all of them.
func TestActions(t *testing.T) {
	called := map[string]bool{}
	collect := func(w *fixture) {
		for _, c := range w.cloud.Calls() {
			called[c.Action] = true
			if listed := slices.Contains(ReadActions, c.Action); c.Write() == listed || c.Write() != slices.Contains(WriteActions, c.Action) {
				t.Errorf("%s is in the wrong list, or in none", c.Action)
			}
		}
	}
	for _, spot := range []fake.Group{spotGroup(3), managedGroup(3)} {
		w := newFixture(t, spot, fixedGroup(3))
		x := &swapper{fixture: w, token: "t1", source: w.cloud.Group("web-od").Instances[0].ID}
		if !x.run() {
			t.Fatalf("the swap failed: %v", x.errs)
		}
		collect(w)
	}
	g := mixedGroup()
	g.TerminationHook = true
	w := newFixture(t, g)
	w.allowReplacement()
	w.must(w.steer(1))
	collect(w)
	for _, a := range slices.Concat(ReadActions, WriteActions) {
		if !called[a] {
			t.Errorf("%s is listed and never called", a)
		}
	}
}

// The policy of a cluster lets no group of another be changed, nor one of another
// region, and the tags of others not at all.
func TestPolicyIsOfTheCluster(t *testing.T) {
	w := newFixture(t, spotGroup(3))
	group := fake.Judged{Action: "autoscaling:SetDesiredCapacity", Region: region,
		Tags:     map[string]string{"kubernetes.io/cluster/prod": "owned"},
		Resource: "arn:aws:autoscaling:us-east-1:111122223333:autoScalingGroup:0:autoScalingGroupName/web-spot"}
	if !allows(region)(group) {
		t.Error("the group of the cluster may not be changed")
	}
	for name, change := range map[string]func(*fake.Judged){
		"another cluster": func(j *fake.Judged) { j.Tags = map[string]string{"kubernetes.io/cluster/test": "owned", "pool": "web"} },
		"another region":  func(j *fake.Judged) { j.Resource = strings.Replace(j.Resource, region, farRegion, 1) },
		"another action":  func(j *fake.Judged) { j.Action = "autoscaling:DeleteAutoScalingGroup" },
		"another tag":     func(j *fake.Judged) { j.Action, j.TagKeys = "autoscaling:CreateOrUpdateTags", []string{"Name"} },
		"a node group of another cluster": func(j *fake.Judged) {
			j.Action, j.Resource = "eks:UpdateNodegroupConfig", "arn:aws:eks:us-east-1:111122223333:nodegroup/test/web/0"
		},
	} {
		other := group
		change(&other)
		if allows(region)(other) {
			t.Errorf("%s is allowed", name)
		}
	}
	foreign := spotGroup(3)
	foreign.Name = "web-test"
	w.cloud.AddGroup(foreign)
	w.poll()
	if err := w.backend.groups.cloud.setDesired(t.Context(), w.backend.groups.get("web-test"), 4, "t"); err == nil {
		t.Error("a group without the tag of the cluster is changed")
	}
}
