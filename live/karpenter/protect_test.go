package karpenter

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// A noticed is a replacement that no drain waits for, as one is bought under a notice,
// and the node that it is for.
type noticed struct {
	*bench
	s        *policy.Snapshot
	claim    *karpv1.NodeClaim
	old, new *corev1.Node
}

func newNoticed(t *testing.T) *noticed {
	b, s := launchBench(t)
	x := &noticed{bench: b, s: s}
	_, x.old = b.karpenterNode("old", "web-spot", s, market(s, 1, 0, policy.Spot))
	x.mark(x.old, `{"phase":"evicting","reclaimAt":1}`)
	l := spotLaunch(s, "token-a")
	l.Replaces = withNode(s, x.old.Name, market(s, 1, 0, policy.Spot))
	if err := b.Launch(t.Context(), s, l); err != nil {
		t.Fatal(err)
	}
	x.claim = b.claim(ClaimName("token-a"))
	x.new = &corev1.Node{ObjectMeta: metav1.ObjectMeta{ // as Karpenter copies it
		Name: "new", Annotations: x.claim.Annotations, Labels: map[string]string{karpv1.NodePoolLabelKey: "web-spot"},
	}}
	if err := b.client.Create(t.Context(), x.new); err != nil {
		t.Fatal(err)
	}
	x.claim.Status.NodeName, x.claim.Status.ProviderID = "new", "kwok://new"
	b.status(x.claim)
	b.setCondition(x.claim, karpv1.ConditionTypeInitialized, "True")
	return x
}

// mark puts the state of a drain on a node.
func (x *noticed) mark(n *corev1.Node, state string) {
	x.t.Helper()
	x.annotate(n, map[string]string{drain.AnnotationDrain: state})
}

// annotate replaces the annotations of a node.
func (x *noticed) annotate(n *corev1.Node, a map[string]string) {
	x.t.Helper()
	again(x.bench, n)
	before := n.DeepCopy()
	n.Annotations = a
	if err := x.client.Patch(x.t.Context(), n, client.MergeFrom(before)); err != nil { // others write to nodes, too
		x.t.Fatal(err)
	}
}

// pod binds a pod to the new node.
func (x *noticed) pod() {
	x.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"},
		Spec:       corev1.PodSpec{NodeName: "new", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := x.client.Create(x.t.Context(), p); err != nil {
		x.t.Fatal(err)
	}
}

// protected tends once and reports whether the replacement is still protected.
func (x *noticed) protected() bool {
	x.t.Helper()
	if err := x.Tend(x.t.Context(), x.s); err != nil {
		x.t.Fatal(err)
	}
	ours := func(o client.Object) bool {
		a := o.GetAnnotations()
		return a[karpv1.DoNotDisruptAnnotationKey] != "" || a[ProtectedAnnotation] != ""
	}
	claim, node := ours(again(x.bench, x.claim)), ours(again(x.bench, x.new))
	if claim != node {
		x.t.Errorf("the claim is protected: %v; its Node: %v", claim, node)
	}
	return claim || node
}

// TestRule04NoticeProtectionEnds: no drain waits for a machine that was bought under a
// notice, so that none settles it. It is protected while the node that it is for is
// emptied, and no longer, whoever leads by then.
func TestRule04NoticeProtectionEnds(t *testing.T) {
	idle := DefaultConfig().ProtectIdle
	for _, c := range []struct {
		name        string
		then        func(*noticed)
		first, late bool // protected at once, and when nothing has moved for a while
	}{
		{"its node is being emptied", func(x *noticed) { x.pod() }, true, true},
		{"its pods have come", func(x *noticed) { x.pod(); x.lose() }, false, false},
		{"its pods have yet to be made again", func(x *noticed) { x.lose() }, true, false},
		{"the drain was never begun", func(x *noticed) { x.unmark() }, true, false},
		{"another drain waits for it", func(x *noticed) {
			x.pod()
			x.lose()
			_, other := x.karpenterNode("other", "web-spot", x.s, market(x.s, 1, 0, policy.Spot))
			x.mark(other, `{"phase":"evicting","after":["token-a"]}`)
		}, true, true},
		{"it is not there yet", func(x *noticed) { x.lose(); x.setCondition(x.claim, karpv1.ConditionTypeInitialized, "False") }, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newNoticed(t)
			if !x.protected() {
				t.Fatal("it is not protected while its node is emptied")
			}
			c.then(x)
			x.restart()
			if got := x.protected(); got != c.first {
				t.Errorf("protected %v, want %v", got, c.first)
			}
			x.clock.Step(idle - time.Second)
			if got := x.protected(); got != c.first {
				t.Errorf("a while later protected %v, want %v", got, c.first)
			}
			x.clock.Step(2 * time.Second)
			if got := x.protected(); got != c.late {
				t.Errorf("after %v protected %v, want %v", idle, got, c.late)
			}
		})
	}
}

// lose has the old node go.
func (x *noticed) lose() {
	x.t.Helper()
	if err := x.client.Delete(x.t.Context(), x.old); err != nil {
		x.t.Fatal(err)
	}
}

// unmark takes the mark of a drain off the old node.
func (x *noticed) unmark() {
	x.t.Helper()
	x.annotate(x.old, nil)
}

// TestRule05DrainProtectionEnds: a node that is protected for a drain that is not at
// work on it is given to Karpenter again after a while.
func TestRule05DrainProtectionEnds(t *testing.T) {
	b, _, nodes := giveBench(t, 1)
	s := newSnapshot(b.now())
	if err := b.Prepare(t.Context(), again(b, nodes[0])); err != nil {
		t.Fatal(err)
	}
	b.restart() // by a crash before the mark of the drain was seen
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, "true"}, {DefaultConfig().ProtectIdle - time.Second, "true"}, {2 * time.Second, ""}} {
		b.clock.Step(c.after)
		if err := b.Tend(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if got := again(b, nodes[0]).Annotations[karpv1.DoNotDisruptAnnotationKey]; got != c.want {
			t.Errorf("%v later it is protected %q, want %q", c.after, got, c.want)
		}
	}
}

// TestRule04OrphanedProtectionEnds: a crash of Karpenter may leave a second machine of one
// NodeClaim, with our annotations, which the NodeClaim does not report.
func TestRule04OrphanedProtectionEnds(t *testing.T) {
	x := newNoticed(t)
	orphan := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "orphan", Annotations: x.claim.Annotations, Labels: map[string]string{karpv1.NodePoolLabelKey: "web-spot"},
	}}
	if err := x.client.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		step time.Duration
		want bool
	}{{0, true}, {DefaultConfig().ProtectIdle - time.Second, true}, {time.Second, false}} {
		x.clock.Step(c.step)
		if !x.protected() {
			t.Error("the replacement that is reported is no longer protected")
		}
		if _, _, got := protectedSince(again(x.bench, orphan).Annotations); got != c.want {
			t.Errorf("after %v more the orphan is protected %v, want %v", c.step, got, c.want)
		}
	}
}

// TestRule05ProtectionEndsInEveryMode: a node that a drain or a launch has protected is left to
// Karpenter again once no drain or launch needs it any more, also where no pool is active, or the
// pool does not exist.
func TestRule05ProtectionEndsInEveryMode(t *testing.T) {
	for name, change := range map[string]func(*bench, *policy.Snapshot){
		"shadow": func(_ *bench, s *policy.Snapshot) { s.Pools[0].Mode = policy.ModeShadow },
		"off":    func(_ *bench, s *policy.Snapshot) { s.Pools[0].Mode = policy.ModeOff },
		"deleted": func(b *bench, s *policy.Snapshot) {
			s.Pools = nil
			if err := b.client.Delete(t.Context(), capacityPool()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newNoticed(t)
			x.pod()
			_, drained := x.karpenterNode("drained", "web-spot", x.s, market(x.s, 0, 0, policy.Spot))
			x.clock.Step(time.Hour)
			if err := x.Prepare(t.Context(), again(x.bench, drained)); err != nil {
				t.Fatal(err)
			}
			x.unmark()
			x.lose() // its pods have come
			change(x.bench, x.s)
			x.clock.Step(DefaultConfig().ProtectIdle)
			if x.protected() {
				t.Error("the replacement is protected still")
			}
			if a := again(x.bench, drained).Annotations; a[karpv1.DoNotDisruptAnnotationKey] != "" || a[ProtectedAnnotation] != "" {
				t.Errorf("the node is protected still, and no drain is at work on it: %v", a)
			}
		})
	}
}

// TestRule04ProtectionEndsWithTheMode: a replacement whose pods have yet to come is given to
// Karpenter at once when its pool may not be changed any more.
func TestRule04ProtectionEndsWithTheMode(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ModeShadow, policy.ModeOff} {
		x := newNoticed(t)
		x.unmark()
		if !x.protected() {
			t.Fatal("it is not protected while its pods have yet to come")
		}
		x.s.Pools[0].Mode = mode
		if x.protected() {
			t.Errorf("it is protected in mode %d", mode)
		}
	}
}
