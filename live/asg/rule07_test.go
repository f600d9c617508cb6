package asg

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A swap from end to end: on-demand to spot, over a real connection.
func TestRule07Swap(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3)).overHTTP()
	old := w.cloud.Group("web-od").Instances[0].ID
	w.must(w.launch("t1", policy.Spot))
	w.must(w.backend.Prepare(w.ctx(), w.node(old)))
	if got := w.node(old).Annotations[ScaleDownDisabled]; got != "true" {
		t.Errorf("the source has %s=%q", ScaleDownDisabled, got)
	}
	fresh := w.awaitReady("web-spot", "t1")
	if i := w.instance("web-spot", fresh); !i.Protected {
		t.Error("the replacement is not protected while the swap goes on")
	}
	if got := w.node(fresh).Annotations[ScaleDownDisabled]; got != "true" {
		t.Errorf("the replacement has %s=%q", ScaleDownDisabled, got)
	}
	w.must(w.backend.Release(w.ctx(), w.node(old)))
	w.must(w.backend.Release(w.ctx(), w.node(old))) // again, while it is ending
	w.pass(2 * time.Minute)
	w.must(w.backend.Settle(w.ctx(), []string{"t1"}))
	w.clean()
	od, spot := w.cloud.Group("web-od"), w.cloud.Group("web-spot")
	if od.Desired != 2 || len(od.Instances) != 2 || spot.Desired != 4 || len(spot.Instances) != 4 {
		t.Errorf("on demand %d of %d and spot %d of %d, want 2 and 4", len(od.Instances), od.Desired, len(spot.Instances), spot.Desired)
	}
	if ended := w.cloud.Ended(); !slices.Equal(ended, []string{old}) {
		t.Errorf("ended %v, want only %s", ended, old)
	}
}

func (w *fixture) instance(group, id string) fake.Instance {
	w.t.Helper()
	for _, i := range w.cloud.Group(group).Instances {
		if i.ID == id {
			return i
		}
	}
	w.t.Fatalf("the group %s has no instance %s", group, id)
	return fake.Instance{}
}

// The size is raised from what it is at that moment, not from what was polled.
func TestRule07RaisedFromARead(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.poll()
	w.cloud.SetDesired("web-spot", 7)
	w.must(w.launch("t1", policy.Spot))
	if got := w.cloud.Group("web-spot").Desired; got != 8 {
		t.Errorf("desired %d after others raised it to 7, want 8", got)
	}
	calls := w.cloud.Calls()
	last := slices.IndexFunc(calls, func(c fake.Call) bool { return c.Action == "autoscaling:SetDesiredCapacity" })
	reads := 0
	for _, c := range calls[:last] {
		if c.Action == "autoscaling:DescribeAutoScalingGroups" && c.Form.Get("AutoScalingGroupNames.member.1") == "web-spot" {
			reads++
		}
	}
	if reads != 1 {
		t.Errorf("the group was read %d times before the write, want once", reads)
	}
}

// A token buys one node however often it is requested, also after restarts.
func TestRule07OneNodeForAToken(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	for range 3 {
		w.must(w.launch("t1", policy.Spot))
		w.restart()
		w.pass(20 * time.Second)
	}
	if got := w.cloud.Group("web-spot").Desired; got != 4 {
		t.Errorf("desired %d, want 4", got)
	}
}

func TestRule07OneInFlight(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.must(w.launch("t1", policy.Spot))
	wantHeld(t, w.launch("t2", policy.Spot), ReasonInFlight)
	w.awaitReady("web-spot", "t1")
	if since := w.cloud.Now().Sub(begin); since >= w.cfg.RaiseEvery {
		t.Fatalf("the first took %v", since)
	}
	// The cache of the Cluster Autoscaler may still lack the first.
	wantHeld(t, w.launch("t2", policy.Spot), ReasonInFlight)
	w.restart()
	wantHeld(t, w.launch("t2", policy.Spot), ReasonInFlight)
	w.pass(w.cfg.RaiseEvery)
	w.must(w.launch("t2", policy.Spot))
	if got := w.cloud.Group("web-spot").Desired; got != 5 {
		t.Errorf("desired %d, want 5", got)
	}
}

func TestRule07HeldAtMaxSize(t *testing.T) {
	full := spotGroup(3)
	full.Max = 3
	w := newFixture(t, full, fixedGroup(3))
	wantHeld(t, w.launch("t1", policy.Spot), ReasonAtMax)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

func TestRule07HeldAtMinSize(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(2))
	a, b := w.cloud.Group("web-od").Instances[0].ID, w.cloud.Group("web-od").Instances[1].ID
	w.must(w.backend.Prepare(w.ctx(), w.node(a)))
	// One may go, and is going: the other is what the group must keep.
	wantHeld(t, w.backend.Prepare(w.ctx(), w.node(b)), ReasonAtMin)
	w.must(w.backend.Undo(w.ctx(), w.node(a), nil))
	w.must(w.backend.Prepare(w.ctx(), w.node(b)))
	// The Cluster Autoscaler takes the other meanwhile.
	w.cloud.Terminate(a)
	wantHeld(t, w.backend.Release(w.ctx(), w.node(b)), ReasonAtMin)
	w.must(w.backend.Undo(w.ctx(), w.node(b), nil))
	w.clean()
	w.poll()
	if !w.sink.Machines[b].AtGroupMin {
		t.Error("it was not reported to the sink that the group is at its least size")
	}
}

// A node that the provider takes is prepared although its group is at its least
// size: it goes in any case.
func TestRule07UnderANotice(t *testing.T) {
	w := newFixture(t, spotGroup(1), fixedGroup(3))
	w.poll()
	id := w.cloud.Group("web-spot").Instances[0].ID
	wantHeld(t, w.backend.Prepare(w.ctx(), w.node(id)), ReasonAtMin)
	w.backend.Notice(backend.Notice{Machine: id, ReclaimAt: policy.TimeOf(begin.Add(2 * time.Minute))})
	w.must(w.backend.Prepare(w.ctx(), w.node(id)))
}

func TestRule07Zones(t *testing.T) {
	g := fixedGroup(6)
	g.Suspended = nil
	w := newFixture(t, g, spotGroup(1))
	first, second := w.cloud.Group("web-od").Instances[0], fake.Instance{}
	for _, i := range w.cloud.Group("web-od").Instances[1:] {
		if i.Zone == first.Zone {
			second = i
		}
	}
	w.must(w.backend.Prepare(w.ctx(), w.node(first.ID)))
	wantHeld(t, w.backend.Prepare(w.ctx(), w.node(second.ID)), ReasonZones)
	for _, i := range w.cloud.Group("web-od").Instances {
		if i.Zone != first.Zone {
			w.must(w.backend.Prepare(w.ctx(), w.node(i.ID)))
			break
		}
	}
	w.cloud.Edit("web-od", func(g *fake.Group) { g.Suspended = []string{"AZRebalance"} })
	w.must(w.backend.Prepare(w.ctx(), w.node(second.ID)))
	for _, a := range w.writes() {
		t.Errorf("wrote %s: processes are never suspended", a)
	}
}

func TestRule07ClusterAutoscalersNode(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	id := w.cloud.Group("web-od").Instances[0].ID
	n := w.node(id)
	n.Spec.Taints = []corev1.Taint{{Key: TaintToBeDeleted, Effect: corev1.TaintEffectNoSchedule}}
	w.must(w.kube.Update(w.ctx(), n))
	wantHeld(t, w.backend.Prepare(w.ctx(), w.node(id)), ReasonAutoscaler)
	w.poll()
	if got := w.sink.Machines[id].ActedBy; got != policy.ActorClusterAutoscaler {
		t.Errorf("it was reported to the sink that %v acts on it", got)
	}
}

// What the user said of a node stays as it is, before, during and after.
func TestRule07UsersAnnotationStays(t *testing.T) {
	for _, value := range []string{"true", "false"} {
		w := newFixture(t, spotGroup(3), fixedGroup(3))
		id := w.cloud.Group("web-od").Instances[0].ID
		n := w.node(id)
		n.Annotations = map[string]string{ScaleDownDisabled: value}
		w.must(w.kube.Update(w.ctx(), n))
		w.must(w.backend.Prepare(w.ctx(), w.node(id)))
		if got := w.node(id).Annotations[ScaleDownDisabled]; got != value {
			t.Errorf("during the swap it is %q, want %q", got, value)
		}
		w.must(w.backend.Undo(w.ctx(), w.node(id), nil))
		if got := w.node(id).Annotations; len(got) != 1 || got[ScaleDownDisabled] != value {
			t.Errorf("after the swap the annotations are %v", got)
		}
	}
	// One that the user sets after we did stays as well.
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	id := w.cloud.Group("web-od").Instances[0].ID
	w.must(w.backend.Prepare(w.ctx(), w.node(id)))
	n := w.node(id)
	n.Annotations[ScaleDownDisabled] = "false"
	w.must(w.kube.Update(w.ctx(), n))
	w.must(w.backend.Undo(w.ctx(), w.node(id), nil))
	if got := w.node(id).Annotations; len(got) != 1 || got[ScaleDownDisabled] != "false" {
		t.Errorf("the user's later value became %v", got)
	}
}

// A replacement is waited for without an instance, while that is held, without a Node, and while
// the Node is not ready.
func TestRule07Stages(t *testing.T) {
	g := spotGroup(3)
	g.LaunchHook = true
	w := newFixture(t, g, fixedGroup(3))
	w.unready, w.join = true, 30*time.Second
	w.must(w.launch("t1", policy.Spot))
	want := func(how backend.Replacement) {
		t.Helper()
		if got := w.replaced("t1"); got != how {
			t.Fatalf("the replacement is %v, want %v", got, how)
		}
	}
	want(backend.ReplacementWaiting)
	w.pass(10 * time.Second)
	want(backend.ReplacementWaiting)
	w.pass(30 * time.Second)
	id := w.backend.groups.get("web-spot").launch("t1").instance
	if s := w.instance("web-spot", id).State; s != fake.PendingWait {
		t.Fatalf("instance is in %s", s)
	}
	want(backend.ReplacementWaiting)
	w.cloud.Complete("web-spot", id)
	w.pass(5 * time.Second)
	want(backend.ReplacementWaiting)
	w.pass(35 * time.Second)
	want(backend.ReplacementWaiting)
	n := w.node(id)
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	w.must(w.kube.Status().Update(w.ctx(), n))
	want(backend.ReplacementReady)
}

// Each of them fails when it takes too long, and the very instance goes.
func TestRule07RollbackOfOneInstance(t *testing.T) {
	for name, c := range map[string]struct {
		hook, unready bool
		join          time.Duration
	}{
		"held in Pending:Wait": {hook: true},
		"never joins":          {join: -1},
		"never ready":          {unready: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := spotGroup(3)
			g.LaunchHook = c.hook
			w := newFixture(t, g, fixedGroup(3))
			w.unready, w.join = c.unready, c.join
			w.must(w.launch("t1", policy.Spot))
			before := backend.ReplacementWaiting
			for range 200 {
				if before = w.replaced("t1"); before != backend.ReplacementWaiting {
					break
				}
				w.pass(15 * time.Second)
			}
			if before != backend.ReplacementFailed {
				t.Fatalf("the replacement is %v, want it failed", before)
			}
			id := w.backend.groups.get("web-spot").launch("t1").instance
			w.must(w.backend.Undo(w.ctx(), nil, []string{"t1"}))
			w.pass(2 * time.Minute)
			w.clean()
			got := w.cloud.Group("web-spot")
			if got.Desired != 3 || len(got.Instances) != 3 || !slices.Equal(w.cloud.Ended(), []string{id}) {
				t.Errorf("%d of %d instances, ended %v, want 3 and only %s ended", len(got.Instances), got.Desired, w.cloud.Ended(), id)
			}
		})
	}
}

// A launch that is refused cannot be taken back by lowering the size, as the group
// would choose what to end: its instance is ended when it comes.
func TestRule07RollbackWithoutInstance(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.shutSpot(true)
	w.must(w.launch("t1", policy.Spot))
	w.pass(20 * time.Second)
	if got := w.replaced("t1"); got != backend.ReplacementFailed {
		t.Fatalf("a refused launch is %v", got)
	}
	w.must(w.backend.Undo(w.ctx(), nil, []string{"t1"}))
	if got := w.cloud.Group("web-spot").Desired; got != 4 {
		t.Errorf("desired %d: it was lowered", got)
	}
	w.restart() // the next leader knows of it
	w.shutSpot(false)
	w.pass(90 * time.Second)
	w.must(w.backend.Cleanup(w.ctx(), nil, nil))
	if len(w.cloud.Ended()) != 0 {
		t.Errorf("ended %v, although the instance is a ready node by now", w.cloud.Ended())
	}
	w.clean()

	w.join = -1
	w.shutSpot(true)
	w.must(w.launch("t2", policy.Spot))
	w.pass(20 * time.Second)
	w.must(w.backend.Undo(w.ctx(), nil, []string{"t2"}))
	w.shutSpot(false)
	w.pass(90 * time.Second)
	w.must(w.backend.Cleanup(w.ctx(), nil, nil))
	w.pass(2 * time.Minute)
	if got := w.cloud.Group("web-spot"); got.Desired != 4 || len(w.cloud.Ended()) != 1 {
		t.Errorf("desired %d and ended %v, want 4 and the late instance", got.Desired, w.cloud.Ended())
	}
	w.clean()
}

func (w *fixture) shutSpot(shut bool) {
	var all []string
	for _, z := range zones {
		for _, kind := range []string{"m5.large", "m5a.large"} {
			all = append(all, fake.Market(z, kind, true))
		}
	}
	if shut {
		w.cloud.Shut(all...)
	} else {
		w.cloud.Open(all...)
	}
}

// A replacement that runs pods is not ended although its drain was given up.
func TestRule07BusyReplacementStays(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.unready = true
	w.must(w.launch("t1", policy.Spot))
	w.pass(time.Minute)
	w.replaced("t1")
	id := w.backend.groups.get("web-spot").launch("t1").instance
	w.bind("p", id)
	w.must(w.backend.Undo(w.ctx(), nil, []string{"t1"}))
	if ended := w.cloud.Ended(); len(ended) > 0 {
		t.Errorf("ended %v with a pod on it", ended)
	}
	w.clean()
}

func TestRule07ReleaseWaitsForVolumes(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	id := w.cloud.Group("web-od").Instances[0].ID
	name := "pv"
	v := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va"},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "ebs.csi.aws.com", NodeName: nodeName(id),
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}}
	w.must(w.kube.Create(w.ctx(), v))
	if err := w.backend.Release(w.ctx(), w.node(id)); !errors.Is(err, backend.ErrNotYet) {
		t.Fatalf("with a volume attached: %v", err)
	}
	w.pass(w.cfg.VolumesMax - 5*time.Second)
	if err := w.backend.Release(w.ctx(), w.node(id)); !errors.Is(err, backend.ErrNotYet) {
		t.Fatalf("just before the limit: %v", err)
	}
	w.pass(5 * time.Second)
	w.must(w.backend.Release(w.ctx(), w.node(id)))
}

// An answer that got lost, and reads that are old, lower the size only once.
func TestRule07TerminatedOnce(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(5))
	id := w.cloud.Group("web-od").Instances[0].ID
	n := w.node(id)
	w.poll()
	w.cloud.SetFaults(fake.Faults{Seed: 1, Stale: 1, Lag: 12 * time.Second,
		Once: map[string][]string{"autoscaling:TerminateInstanceInAutoScalingGroup": {"lost"}}})
	w.cloud.Advance(5 * time.Second)
	if err := w.backend.Release(w.ctx(), n); !errors.Is(err, backend.ErrNotYet) {
		t.Fatalf("a lost answer: %v", err)
	}
	for range 8 {
		w.cloud.Advance(5 * time.Second)
		if err := w.backend.Release(w.ctx(), n); err != nil && !errors.Is(err, backend.ErrNotYet) {
			t.Fatal(err)
		}
	}
	if got := w.cloud.Group("web-od").Desired; got != 4 {
		t.Errorf("desired %d, want 4", got)
	}
}

// A lost answer to the raise does not raise twice.
func TestRule07RaisedOnce(t *testing.T) {
	for _, codes := range [][]string{{"lost"}, {"InternalFailure"}, {"lost", "lost"}} {
		w := newFixture(t, spotGroup(3), fixedGroup(3))
		w.cloud.SetFaults(fake.Faults{Once: map[string][]string{"autoscaling:SetDesiredCapacity": codes}})
		if err := w.launch("t1", policy.Spot); err != nil {
			t.Errorf("%v: %v", codes, err)
		}
		if got := w.cloud.Group("web-spot").Desired; got != 4 {
			t.Errorf("%v: desired %d, want 4", codes, got)
		}
		calls := w.cloud.Calls()
		for i := range calls[1:] {
			if calls[i].Action == "autoscaling:SetDesiredCapacity" && calls[i+1].Action == calls[i].Action {
				t.Errorf("%v: the size was sent again without another read", codes)
			}
		}
		w.awaitReady("web-spot", "t1")
	}
}

// A refused raise leaves nothing behind.
func TestRule07RefusedRaise(t *testing.T) {
	for code, reason := range map[string]string{"ScalingActivityInProgress": ReasonBusy, "ResourceContention": ReasonBusy,
		"Throttling": ReasonThrottled, "AccessDenied": ReasonDenied, "ExpiredToken": ReasonExpired} {
		w := newFixture(t, spotGroup(3), fixedGroup(3))
		w.cloud.SetFaults(fake.Faults{Deny: map[string]string{"autoscaling:SetDesiredCapacity": code}})
		wantHeld(t, w.launch("t1", policy.Spot), reason)
		w.clean()
		c := w.backend.Conditions("web")
		if len(c) != 1 || c[0].Reason != reason || !strings.Contains(c[0].Message, "web-spot") {
			t.Errorf("%s: conditions %+v", code, c)
		}
	}
}
