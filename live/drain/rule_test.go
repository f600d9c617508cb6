package drain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
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

// TestRule05Order holds the order of a drain that all backends share: the backend prepares, the
// replacements join, the node is tainted, pods are evicted, and only then is the node released.
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
		{"when to retry is said", on("evict", 1, 1, apierrors.NewTooManyRequests("no", 50)), "Drained", 75 * time.Second, false},
		{"gone", on("evict", 1, 1, apierrors.NewNotFound(pod, "p")), "Drained", time.Minute, false},
		{"another of its name", on("evict", 1, 1, apierrors.NewConflict(pod, "p", errors.New("UID"))), "Drained", time.Minute, false},
		{"forbidden", on("evict", 1, 0, apierrors.NewForbidden(pod, "p", errors.New("a webhook refuses"))),
			"EvictionForbidden", 5 * time.Second, false},
		{"several budgets", on("evict", 1, 0, several), "SeveralBudgets", 5 * time.Second, false},
		{"server fault", on("evict", 1, 2, apierrors.NewInternalError(errors.New("etcd"))), "Drained", time.Minute, false},
		{"timeout", on("evict", 1, 2, context.DeadlineExceeded), "Drained", time.Minute, false},
		{"rehearsal blocked", on("rehearse", 1, 2, apierrors.NewTooManyRequests("no", 0)), "Drained", time.Minute, false},
		{"rehearsal blocked for ever", on("rehearse", 1, 0, apierrors.NewTooManyRequests("no", 0)), "BudgetAllowsNone", 75 * time.Second, true},
		{"rehearsal forbidden", on("rehearse", 1, 0, apierrors.NewForbidden(pod, "p", errors.New("RBAC"))),
			"EvictionForbidden", 5 * time.Second, true},
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
		{name: "do not disrupt", annotations: map[string]string{kube.AnnotationDoNotDisrupt: "true"}, reason: "DoNotDisrupt"},
		{name: "for an hour, in it", annotations: map[string]string{kube.AnnotationDoNotDisrupt: "1h"},
			started: 59 * time.Minute, reason: "DoNotDisrupt"},
		{name: "for an hour, after it", annotations: map[string]string{kube.AnnotationDoNotDisrupt: "1h"}, started: time.Hour},
		{name: "for an hour, not started", annotations: map[string]string{kube.AnnotationDoNotDisrupt: "1h"}, reason: "DoNotDisrupt"},
		{name: "nonsense", annotations: map[string]string{kube.AnnotationDoNotDisrupt: "maybe"}, started: time.Minute},
		{name: "a negative time", annotations: map[string]string{kube.AnnotationDoNotDisrupt: "-1h"}, started: time.Minute},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "p", Annotations: x.annotations,
			OwnerReferences: owner("ReplicaSet")}}
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
		w.pod("pinned", "a", func(p *corev1.Pod) { p.Annotations[kube.AnnotationDoNotDisrupt] = "true" })
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

// TestRule10Shortened holds that a pod which ends too slowly is given less time when the
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
		if r.evictor.turn(d, pod, &try{}) {
			t.Error("a pod that is terminating is asked again without a notice")
		}
		d.ReclaimAt = policy.TimeOf(now.Add(2 * time.Minute))
		if !r.evictor.turn(d, pod, &try{}) {
			t.Error("a pod that would end too late is not reported to hurry")
		}
		if r.evictor.turn(d, pod, &try{grace: 100}) {
			t.Error("it is reported twice")
		}
	})
}

// TestRule09HeldUnderNotice: under a notice a drain continues without a backend that holds it,
// unless another controller drains the node; then the node is left to that controller.
func TestRule09HeldUnderNotice(t *testing.T) {
	for _, x := range []struct {
		answer error
		left   bool
	}{
		{backend.Hold("DoNotDisrupt", "the user protects it"), false},
		{backend.Leave(policy.ActorKarpenter, "KarpenterActs", "Karpenter is ending it"), true},
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
			if len(w.evicted()) != 1 {
				t.Errorf("%v: %d pods were evicted, want 1", x.answer, len(w.evicted()))
			}
			if released := slices.Contains(w.releaser.called(), "release a"); released == x.left {
				t.Errorf("%v: that the node was released is %t", x.answer, released)
			}
			if x.left {
				w.clean("left to Karpenter")
			}
		})
	}
}
