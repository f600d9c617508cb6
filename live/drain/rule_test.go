package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// on returns a fault that strikes the nth call of op and those after it up to
// last; 0 means for ever.
func on(op string, nth, last int, err error) func(string) error {
	n := 0
	return func(called string) error {
		if called != op {
			return nil
		}
		n++
		if n >= nth && (last == 0 || n <= last) {
			return err
		}
		return nil
	}
}

func (w *fixture) faulty(f func(string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// TestRule05Order holds the order of a drain that all backends share: the backend
// is told, the replacements come, the node is tainted, pods go, and only then is
// it given back.
func TestRule05Order(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a", "a")
		w.node("b")
		w.releaser.keep(backend.ReplacementReady, "t1")
		var calls []string
		w.faulty(func(op string) error {
			if op == "prepare" || op == "replaced" || op == "evict" || op == "release" || op == "patch Node" {
				calls = append(calls, op)
			}
			return nil
		})
		p := w.pipeline(func(c *Config) { c.Parallel = 1 })
		stop := w.running(p)
		w.begin(p, "a", after("t1"))
		time.Sleep(time.Minute)
		stop()
		want := []string{"patch Node", "prepare", "replaced", "patch Node", "evict", "evict", "patch Node", "release"}
		if !slices.Equal(calls, want) {
			t.Errorf("the order was %v,\nwant %v", calls, want)
		}
		w.clean("after the drain")
	})
}

// TestRule10Answers holds what follows from each answer to an eviction.
func TestRule10Answers(t *testing.T) {
	pod := schema.GroupResource{Resource: "pods"}
	several := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
		Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
	for _, x := range []struct {
		name   string
		fault  func(string) error
		reason string // of the end
		within time.Duration
		calm   bool // the node must never have been cordoned
	}{
		{"blocked for a while", on("evict", 1, 3, apierrors.NewTooManyRequests("no", 0)), "Drained", time.Minute, false},
		{"blocked for ever", on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)), "Deadline", 16 * time.Minute, false},
		{"told when to retry", on("evict", 1, 1, apierrors.NewTooManyRequests("no", 50)), "Drained", 75 * time.Second, false},
		{"gone", on("evict", 1, 1, apierrors.NewNotFound(pod, "p")), "Drained", time.Minute, false},
		{"another of its name", on("evict", 1, 1, apierrors.NewConflict(pod, "p", errors.New("UID"))), "Drained", time.Minute, false},
		{"forbidden", on("evict", 1, 0, apierrors.NewForbidden(pod, "p", errors.New("a webhook refuses"))), "EvictionForbidden", 5 * time.Second, false},
		{"several budgets", on("evict", 1, 0, several), "SeveralBudgets", 5 * time.Second, false},
		{"server fault", on("evict", 1, 2, apierrors.NewInternalError(errors.New("etcd"))), "Drained", time.Minute, false},
		{"timeout", on("evict", 1, 2, context.DeadlineExceeded), "Drained", time.Minute, false},
		{"rehearsal blocked", on("rehearse", 1, 2, apierrors.NewTooManyRequests("no", 0)), "Drained", time.Minute, false},
		{"rehearsal blocked for ever", on("rehearse", 1, 0, apierrors.NewTooManyRequests("no", 0)), "BudgetAllowsNone", 75 * time.Second, true},
		{"rehearsal forbidden", on("rehearse", 1, 0, apierrors.NewForbidden(pod, "p", errors.New("RBAC"))), "EvictionForbidden", 5 * time.Second, true},
		{"rehearsal of several budgets", on("rehearse", 1, 0, several), "SeveralBudgets", 5 * time.Second, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.node("a")
				w.app("web", "a")
				w.node("b")
				w.faulty(x.fault)
				l := &log{}
				p := w.pipeline(withLog(l))
				stop := w.running(p)
				w.begin(p, "a")
				cordoned := false
				for start := time.Now(); time.Since(start) < x.within; time.Sleep(time.Second) {
					if n := w.read("a"); n != nil && n.Spec.Unschedulable {
						cordoned = true
					}
				}
				stop()
				if len(l.results) != 1 || l.results[0].Reason != x.reason {
					t.Errorf("it ended as %+v, want %s", l.results, x.reason)
				}
				if cordoned && x.calm {
					t.Error("the node was cordoned before its pods were known to go")
				}
				w.clean("after the drain")
			})
		})
	}
}

// TestRule10WhoStays holds which pods a drain leaves alone.
func TestRule10WhoStays(t *testing.T) {
	for _, x := range []struct {
		name string
		set  func(*corev1.Pod)
		want bool
	}{
		{"ordinary", func(*corev1.Pod) {}, false},
		{"mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{annotationMirror: "x"} }, true},
		{"DaemonSet", func(p *corev1.Pod) { p.OwnerReferences = owner("DaemonSet") }, true},
		{"static", func(p *corev1.Pod) { p.OwnerReferences = owner("Node") }, true},
		{"StatefulSet", func(p *corev1.Pod) { p.OwnerReferences = owner("StatefulSet") }, false},
		{"succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		{"failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		{"tolerates everything", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), true},
		{"tolerates our taint", tolerating(corev1.Toleration{Key: TaintDraining, Operator: corev1.TolerationOpExists}), true},
		{"tolerates our taint's empty value", tolerating(corev1.Toleration{Key: TaintDraining}), true},
		{"tolerates another value", tolerating(corev1.Toleration{Key: TaintDraining, Value: "x"}), false},
		{"tolerates another effect", tolerating(corev1.Toleration{Key: TaintDraining, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}), false},
		{"tolerates another taint", tolerating(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists}), false},
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		x.set(p)
		if got := stays(p); got != x.want {
			t.Errorf("%s: stays %t, want %t", x.name, got, x.want)
		}
	}
}

func owner(kind string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: &yes}}
}

func tolerating(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{t} }
}

// TestRule10Protection holds which pods are moved by choice.
func TestRule10Protection(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		name        string
		annotations map[string]string
		started     time.Duration // ago; 0 means that it is not known
		bare        bool
		reason      string // empty means that it may be moved
	}{
		{name: "ordinary"},
		{name: "no controller", bare: true, reason: "BarePod"},
		{name: "no controller, but safe", bare: true, annotations: map[string]string{annotationSafeToEvict: "true"}},
		{name: "not safe", annotations: map[string]string{annotationSafeToEvict: "false"}, reason: "NotSafeToEvict"},
		{name: "do not disrupt", annotations: map[string]string{annotationDoNotDisrupt: "true"}, reason: "DoNotDisrupt"},
		{name: "for an hour, in it", annotations: map[string]string{annotationDoNotDisrupt: "1h"}, started: 59 * time.Minute, reason: "DoNotDisrupt"},
		{name: "for an hour, after it", annotations: map[string]string{annotationDoNotDisrupt: "1h"}, started: time.Hour},
		{name: "for an hour, not started", annotations: map[string]string{annotationDoNotDisrupt: "1h"}, reason: "DoNotDisrupt"},
		{name: "nonsense", annotations: map[string]string{annotationDoNotDisrupt: "maybe"}, started: time.Minute},
		{name: "a negative time", annotations: map[string]string{annotationDoNotDisrupt: "-1h"}, started: time.Minute},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "p", Annotations: x.annotations, OwnerReferences: owner("ReplicaSet")}}
		if x.bare {
			p.OwnerReferences = nil
		}
		if x.started > 0 {
			at := metav1.NewTime(now.Add(-x.started))
			p.Status.StartTime = &at
		}
		held := new(backend.Held)
		if err := pinned(p, now); (err == nil) != (x.reason == "") || errors.As(err, &held) && held.Reason != x.reason {
			t.Errorf("%s: %v, want %q", x.name, err, x.reason)
		}
	}
}

// TestRule10Notice holds what a notice changes: everything may be evicted, the
// critical first, with a grace period that fits and is never 0. What a budget
// blocks goes down with the node.
func TestRule10Notice(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		long, high := int64(600), int32(1000)
		w.pod("", "a")
		w.pod("slow", "a", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &long })
		w.pod("critical", "a", func(p *corev1.Pod) { p.Spec.Priority = &high })
		w.pod("pinned", "a", func(p *corev1.Pod) { p.Annotations[annotationDoNotDisrupt] = "true" })
		w.app("web", "a")
		w.budget("x", "web", 0)
		l := &log{}
		p := w.pipeline(withLog(l))
		stop := w.running(p)
		w.begin(p, "a", notice(2*time.Minute))
		time.Sleep(2*time.Minute - 500*time.Millisecond) // between two looks
		w.reclaim("a")
		time.Sleep(10 * time.Second)
		stop()
		if len(w.evicted()) != 4 {
			t.Fatalf("%d pods were evicted, want 4: %v", len(w.evicted()), w.evicted())
		}
		if !strings.HasPrefix(w.evicted()[0].pod, "critical") {
			t.Errorf("%s went first", w.evicted()[0].pod)
		}
		for _, e := range w.evicted() {
			slow := strings.HasPrefix(e.pod, "slow")
			if slow && (e.grace == nil || *e.grace < 100 || *e.grace > 118) || !slow && e.grace != nil {
				t.Errorf("pod %s got a grace of %v", e.pod, e.grace)
			}
		}
		if !slices.Contains(l.answers, AnswerBlocked) {
			t.Error("the pod with a budget was never asked for")
		}
		if len(l.results) != 1 || !l.results[0].Urgent {
			t.Errorf("it ended as %+v", l.results)
		}
		w.clean("after the reclaim")
	})
}

// A grace period fits before the reclaim and is never 0, which would drop the
// pod from the API before it has ended.
func TestRule10Grace(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		own  int64
		left time.Duration
		want int64
	}{
		{30, 2 * time.Minute, 30}, {600, 2 * time.Minute, 118}, {30, 12 * time.Second, 10},
		{30, 2 * time.Second, 1}, {30, -time.Hour, 1}, {0, time.Minute, 0},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &x.own}}
		if got := shortened(p, now, now.Add(x.left)); got != x.want {
			t.Errorf("own %d, %v left: %d, want %d", x.own, x.left, got, x.want)
		}
	}
}

// TestRule10Shortened holds that a pod which ends too slowly is told so when the
// notice comes, once.
func TestRule10Shortened(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		now := time.Now()
		long := int64(600)
		p := w.pipeline()
		r := p.newRound()
		end := metav1.NewTime(now.Add(9 * time.Minute))
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: "x", DeletionTimestamp: &end},
			Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: &long},
		}
		d := &drain{tries: nil}
		if r.turn(d, pod, &try{}) {
			t.Error("a pod that is terminating is asked again without a notice")
		}
		d.ReclaimAt = policy.TimeOf(now.Add(2 * time.Minute))
		if !r.turn(d, pod, &try{}) {
			t.Error("a pod that would end too late is not told to hurry")
		}
		if r.turn(d, pod, &try{grace: 100}) {
			t.Error("it is told twice")
		}
	})
}

// TestRule10Unhealthy holds that the policy for unhealthy pods is read as the API
// server reads it.
func TestRule10Unhealthy(t *testing.T) {
	always, never := policyv1.AlwaysAllow, policyv1.IfHealthyBudget
	budget := func(policy *policyv1.UnhealthyPodEvictionPolicyType, healthy, desired, allowed int32) []*policyv1.PodDisruptionBudget {
		return []*policyv1.PodDisruptionBudget{{
			Spec:   policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: policy},
			Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: healthy, DesiredHealthy: desired, DisruptionsAllowed: allowed, ExpectedPods: 5},
		}}
	}
	for _, x := range []struct {
		name  string
		ready bool
		mine  []*policyv1.PodDisruptionBudget
		held  bool
	}{
		{"ready, allowed", true, budget(nil, 3, 2, 1), false},
		{"ready, not allowed", true, budget(&always, 2, 2, 0), true},
		{"unready, always", false, budget(&always, 1, 2, 0), false},
		{"unready, healthy enough", false, budget(&never, 2, 2, 0), false},
		{"unready, not healthy enough", false, budget(&never, 1, 2, 0), true},
		{"unready, nothing desired", false, budget(nil, 0, 0, 0), true},
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		if x.ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		if err := blocked(p, x.mine); (err != nil) != x.held {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestRule11Ownership holds that what a person does to a node is respected.
func TestRule11Ownership(t *testing.T) {
	for _, x := range []struct {
		name   string
		person func(*corev1.Node)
		closed bool // unschedulable at the end
	}{
		{"uncordoned", func(n *corev1.Node) { n.Spec.Unschedulable = false }, false},
		{"cordon taken over", func(n *corev1.Node) { delete(n.Annotations, AnnotationCordon); annotate(n, "test/cordoned", "x") }, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.node("a")
				w.app("web", "a")
				w.change("a", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}}
				})
				w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
				l := &log{}
				p := w.pipeline(withLog(l))
				stop := w.running(p)
				w.begin(p, "a")
				time.Sleep(10 * time.Second)
				if n := w.read("a"); !n.Spec.Unschedulable || len(n.Spec.Taints) != 2 {
					t.Fatalf("not cordoned: %v", n.Spec)
				}
				w.change("a", x.person)
				time.Sleep(5 * time.Second)
				stop()
				n := w.read("a")
				if n.Spec.Unschedulable != x.closed || len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "theirs" {
					t.Errorf("it is left as %+v", n.Spec)
				}
				if len(l.results) != 1 || l.results[0].Reason != "TakenOver" {
					t.Errorf("it ended as %+v", l.results)
				}
				w.clean("after the person")
			})
		})
	}
}

// TestRule11NoticeOnCordonedNode holds that a person's cordon stays theirs also
// where the provider takes the node and then does not.
func TestRule11NoticeOnCordonedNode(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.pod("stuck", "a", func(p *corev1.Pod) {
			p.Annotations[stopsAfter] = "1h"
			long := int64(4000)
			p.Spec.TerminationGracePeriodSeconds = &long
		})
		w.app("web", "a")
		w.budget("x", "web", 0)
		w.change("a", func(n *corev1.Node) { n.Spec.Unschedulable = true; annotate(n, "test/cordoned", "x") })
		p := w.pipeline()
		stop := w.running(p)
		w.begin(p, "a", notice(time.Minute), func(n *policy.Node, _ *policy.Drain) { n.ActedBy = policy.ActorPerson })
		time.Sleep(5 * time.Second)
		if _, ours := w.read("a").Annotations[AnnotationCordon]; ours {
			t.Error("a cordon of somebody else is claimed")
		}
		time.Sleep(15 * time.Minute)
		stop()
		if !w.read("a").Spec.Unschedulable {
			t.Error("a person's cordon was taken away")
		}
		w.clean("after the notice")
	})
}

// TestRule11Conflict holds that taints and cordons that others write at the same
// time survive: the list of taints is one.
func TestRule11Conflict(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		n := 0
		w.faulty(func(op string) error {
			switch {
			case op == "evict":
				return apierrors.NewTooManyRequests("no", 0)
			case op == "patch Node" && n < 7:
				n++
				w.change("a", func(x *corev1.Node) {
					x.Spec.Taints = append(x.Spec.Taints, corev1.Taint{Key: fmt.Sprintf("theirs-%d", n), Effect: corev1.TaintEffectNoSchedule})
				})
			}
			return nil
		})
		w.app("web", "a")
		p := w.pipeline()
		w.begin(p, "a")
		for range 10 {
			w.tick()
			_ = p.Pass(context.Background())
			time.Sleep(time.Second)
		}
		p.cfg.Authority = &fakeAuthority{decision: permit.Stopped}
		_, err := p.settled(context.Background())
		w.must(err)
		if x := w.read("a"); n != 7 || len(x.Spec.Taints) != n {
			t.Errorf("of %d taints %v are left", n, x.Spec.Taints)
		}
		w.clean("after the conflicts")
	})
}

// TestRule14Fence holds that nothing is written once somebody else may lead.
func TestRule14Fence(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a", "b")
		lost := errors.New("the lease is gone")
		p := w.pipeline(func(c *Config) { c.Authority = &fakeAuthority{err: lost} })
		w.begin(p, "a")
		w.begin(p, "b")
		for range 5 {
			if err := p.Pass(context.Background()); !errors.Is(err, lost) {
				t.Errorf("the pass says %v", err)
			}
		}
		if len(w.evicted()) > 0 || len(w.releaser.called()) > 0 {
			t.Errorf("evicted %v, called %v", w.evicted(), w.releaser.called())
		}
		w.clean("behind the fence")
	})
}

// TestRule20Halt holds what the kill switch undoes and what it leaves.
func TestRule20Halt(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		for _, name := range []string{"empty", "notice", "stuck", "waiting"} {
			w.node(name)
		}
		w.app("web", "stuck", "notice", "waiting")
		w.budget("x", "web", 1)
		w.releaser.keep(backend.ReplacementWaiting, "t1")
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		authority := &fakeAuthority{decision: permit.Active}
		p := w.pipeline(func(c *Config) { c.Authority = authority })
		w.must(p.adopt(t.Context()))
		ctx := context.Background()
		w.begin(p, "empty")
		w.begin(p, "notice", notice(2*time.Minute))
		w.begin(p, "stuck")
		w.begin(p, "waiting", after("t1"))
		for range 3 {
			w.must(p.Pass(ctx))
			time.Sleep(time.Second)
		}
		authority.say(permit.Stopped)
		s, err := p.settled(ctx)
		w.must(err)
		if want := []string{"stuck", "waiting"}; !slices.Equal(s.Undone, want) {
			t.Errorf("undone %v, want %v", s.Undone, want)
		}
		want := []string{"empty: it is empty and was given back", "notice: the provider takes it"}
		if !slices.Equal(s.Left, want) {
			t.Errorf("left %v, want %v", s.Left, want)
		}
		if !w.read("notice").Spec.Unschedulable || w.read("stuck").Spec.Unschedulable || w.read("waiting").Spec.Unschedulable {
			t.Error("the wrong nodes are cordoned")
		}
		w.faulty(nil)
		before := len(w.evicted())
		w.must(p.Pass(ctx))
		if len(w.evicted()) != before {
			t.Error("a pod was evicted behind the kill switch")
		}
		authority.say(permit.Active)
		time.Sleep(urgentRetry)
		w.must(p.Pass(ctx))
		if len(w.evicted()) != before+1 {
			t.Error("the node under notice was forgotten")
		}
		w.begin(p, "stuck")
	})
}

// TestRule20Shutdown holds that a graceful end finishes what is empty and undoes
// the rest.
func TestRule20Shutdown(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("empty")
		w.node("full")
		w.app("web", "full")
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		p := w.pipeline()
		w.begin(p, "full")
		w.must(p.Pass(context.Background()))
		w.begin(p, "empty")
		s, err := p.Shutdown(context.Background())
		w.must(err)
		if !slices.Equal(s.Undone, []string{"full"}) || !slices.Equal(s.Left, []string{"empty: it is empty and was given back"}) {
			t.Errorf("settled %+v", s)
		}
		w.releaser.take()
		time.Sleep(6 * time.Second)
		w.releaser.take()
		w.clean("after the end")
	})
}

// TestRule09HeldUnderNotice: under a notice a drain goes on without a backend that holds
// it, unless somebody else drains the node.
func TestRule09HeldUnderNotice(t *testing.T) {
	for _, x := range []struct {
		answer  error
		evicted int
	}{
		{backend.Hold("DoNotDisrupt", "the user protects it"), 1},
		{backend.Leave(policy.ActorKarpenter, "KarpenterActs", "Karpenter is ending it"), 0},
	} {
		inFixture(t, func(t *testing.T, w *fixture) {
			w.node("a")
			w.pod("", "a")
			w.faulty(on("prepare", 1, 0, x.answer))
			p := w.pipeline()
			stop := w.running(p)
			w.begin(p, "a", notice(2*time.Minute))
			time.Sleep(time.Minute)
			stop()
			if len(w.evicted()) != x.evicted {
				t.Errorf("%v: %d pods were evicted, want %d", x.answer, len(w.evicted()), x.evicted)
			}
		})
	}
}
