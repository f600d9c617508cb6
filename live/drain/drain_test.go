package drain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"k8s.io/apimachinery/pkg/types"
)

// begin orders a drain and fails the test if it is refused.
func (w *fixture) begin(p *Reconciler, node string, changes ...func(*policy.Node, *policy.Drain)) {
	w.t.Helper()
	s, d := planned(node, changes...)
	if err := p.Start(context.Background(), s, d); err != nil {
		w.t.Fatalf("draining %s: %v", node, err)
	}
}

// held returns the reason for which a drain is refused.
func (w *fixture) held(p *Reconciler, node string, changes ...func(*policy.Node, *policy.Drain)) string {
	w.t.Helper()
	s, d := planned(node, changes...)
	held := new(backend.Held)
	if err := p.Start(context.Background(), s, d); !errors.As(err, &held) {
		w.t.Fatalf("draining %s: %v, want it held", node, err)
	}
	return held.Reason
}

// phase returns the phase of a drain; empty without one.
func phase(p *Reconciler, node string) Phase {
	for _, s := range p.table.status() {
		if s.Node == node {
			return s.Phase
		}
	}
	return ""
}

// A log is a Meter that keeps what is reported to it.
type log struct {
	mu      sync.Mutex // while the pipeline runs
	results []Result
	answers []Answer
}

func (l *log) Entered(string, string, Phase) {}

func (l *log) Evicted(_ string, _ types.NamespacedName, _ string, answer Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, answer)
}

func (l *log) Ended(r Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results = append(l.results, r)
}

// withLog has a pipeline report to l.
func withLog(l *log) func(*Config) {
	return func(c *Config) { c.Meter, c.Parallel = l, 1 }
}

func TestDrain(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a", "a", "a")
		w.must(w.api.Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "ds", UID: "set-ds"}}))
		w.pod("ds", "a", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" })
		w.releaser.keep(backend.ReplacementWaiting, "t1")
		l := &log{}
		p := w.pipeline(withLog(l))
		stop := w.running(p)
		w.begin(p, "a", after("t1"))
		time.Sleep(time.Minute)
		if got := phase(p, "a"); got != PhaseWaiting {
			t.Errorf("it is %s before its replacement has come", got)
		}
		if w.read("a").Spec.Unschedulable {
			t.Error("it was cordoned before its replacement had come")
		}
		w.releaser.keep(backend.ReplacementReady, "t1")
		time.Sleep(3 * time.Second)
		n := w.read("a")
		if !n.Spec.Unschedulable || !tainted(n) || !strings.Contains(n.Annotations[AnnotationCordon], "the same for less") {
			t.Errorf("it is not cordoned as it should be: %v, taints %v", n.Annotations, n.Spec.Taints)
		}
		time.Sleep(time.Minute)
		stop()
		if w.read("a") != nil {
			t.Error("the node was not given back")
		}
		if len(w.evicted()) != 3 {
			t.Errorf("%d pods were evicted, want 3", len(w.evicted()))
		}
		if len(l.results) != 1 || l.results[0].Outcome != OutcomeDone {
			t.Errorf("it ended as %+v", l.results)
		}
		w.clean("after the drain")
	})
}

// A drain that is held must not keep what was launched for it.
func TestHeldDrainGivesUpItsReplacements(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.pod("", "a")
		w.releaser.keep(backend.ReplacementReady, "t1")
		p := w.pipeline()
		stop := w.running(p)
		if got := w.held(p, "a", after("t1")); got != "BarePod" {
			t.Errorf("held for %s", got)
		}
		time.Sleep(5 * time.Second)
		stop()
		w.clean("after the hold")
	})
}

func TestFailedReplacement(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a")
		w.releaser.keep(backend.ReplacementReady, "t1")
		w.releaser.keep(backend.ReplacementFailed, "t2")
		l := &log{}
		p := w.pipeline(withLog(l))
		stop := w.running(p)
		w.begin(p, "a", after("t1", "t2"))
		time.Sleep(5 * time.Second)
		stop()
		if len(l.results) != 1 || l.results[0].Reason != "ReplacementFailed" || l.results[0].Outcome != OutcomeHeld {
			t.Errorf("it ended as %+v", l.results)
		}
		if len(w.evicted()) > 0 {
			t.Error("pods were evicted without their replacement")
		}
		w.clean("after the failure")
	})
}

// A notice ends the wait for replacements and for budgets.
func TestNoticeMidDrain(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a", "a")
		w.releaser.keep(backend.ReplacementWaiting, "t1")
		p := w.pipeline()
		stop := w.running(p)
		w.begin(p, "a", after("t1"))
		time.Sleep(10 * time.Second)
		s, _ := planned("a", notice(2*time.Minute))
		p.Hurry(s)
		time.Sleep(time.Second)
		if len(w.evicted()) != 2 {
			t.Errorf("%d pods were evicted a second after the notice, want 2", len(w.evicted()))
		}
		if s, _ := readState(w.read("a")); s.ReclaimAt == 0 {
			t.Error("a new leader would not know of the notice")
		}
		time.Sleep(30 * time.Second)
		stop()
		w.clean("after the notice")
	})
}

// A provider that announces to take a node and does not must not leave it
// cordoned.
func TestNoticeThatDoesNotComeTrue(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a", "a")
		w.budget("web", "web", 0)
		l := &log{}
		p := w.pipeline(withLog(l))
		stop := w.running(p)
		w.begin(p, "a", notice(2*time.Minute))
		time.Sleep(11 * time.Minute)
		if !w.read("a").Spec.Unschedulable {
			t.Error("it was uncordoned too early")
		}
		time.Sleep(2 * time.Minute)
		stop()
		if len(l.results) != 1 || l.results[0].Reason != "NotTaken" {
			t.Errorf("it ended as %+v", l.results)
		}
		w.clean("after the notice")
	})
}

func TestVolumes(t *testing.T) {
	for _, x := range []struct {
		name    string
		comeOff time.Duration
		want    time.Duration
	}{
		{"detached", time.Minute, 68 * time.Second},
		{"never detached", 7 * time.Minute, 6*time.Minute + 8*time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.node("a")
				w.app("db", "a")
				w.node("b")
				volume := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "a"}}
				w.must(w.api.Create(context.Background(), volume))
				p := w.pipeline()
				stop := w.running(p)
				w.begin(p, "a")
				start := time.Now()
				go func() {
					time.Sleep(x.comeOff)
					w.must(w.api.Delete(context.Background(), volume))
				}()
				time.Sleep(x.want - 10*time.Second)
				if slices.Contains(w.releaser.called(), "release a") {
					t.Error("it was given back with a volume attached")
				}
				time.Sleep(10 * time.Second)
				if !slices.Contains(w.releaser.called(), "release a") {
					t.Errorf("it was not given back %v after the start", time.Since(start))
				}
				time.Sleep(x.comeOff)
				stop()
				w.clean("after the drain")
			})
		})
	}
}

// The backend may postpone a release; once it has accepted the release, nothing is undone.
func TestReleaseNotYet(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.releaser.notYet = 20
		p := w.pipeline()
		stop := w.running(p)
		w.begin(p, "a")
		time.Sleep(15 * time.Second)
		if got := phase(p, "a"); got != PhaseReleasing {
			t.Errorf("it is %s while the backend is not ready", got)
		}
		time.Sleep(15 * time.Second)
		stop()
		if w.read("a") != nil {
			t.Error("the node was not given back")
		}
		w.clean("after the drain")
	})
}

// What no wait would change is reported at once.
func TestHolds(t *testing.T) {
	for _, x := range []struct {
		reason string
		set    func(*fixture)
		order  func(*policy.Node, *policy.Drain)
	}{
		{reason: "BarePod", set: func(w *fixture) { w.pod("", "a") }},
		{reason: "NotSafeToEvict", set: func(w *fixture) {
			w.pod("web", "a", func(p *corev1.Pod) { p.Annotations[annotationSafeToEvict] = "false" })
		}},
		{reason: "DoNotDisrupt", set: func(w *fixture) {
			w.pod("web", "a", func(p *corev1.Pod) { p.Annotations[kube.AnnotationDoNotDisrupt] = "true" })
		}},
		{reason: "DoNotDisrupt", set: func(w *fixture) {
			w.change("a", func(n *corev1.Node) { annotate(n, kube.AnnotationDoNotDisrupt, "true") })
		}},
		{reason: "DoNotDisrupt", set: func(w *fixture) {
			w.change("a", func(n *corev1.Node) {
				annotate(n, kube.AnnotationDoNotDisrupt, "true")
				annotate(n, backend.AnnotationProtected, "replacement 2000-01-01T00:00:00Z")
			})
		}},
		{reason: "SeveralBudgets", set: func(w *fixture) { w.app("web", "a"); w.budget("x", "web", 1); w.budget("y", "web", 1) }},
		{reason: "BudgetAllowsNone", set: func(w *fixture) { w.app("web", "a"); w.budget("x", "web", 0) }},
		{reason: "Cordoned", set: func(w *fixture) { w.change("a", func(n *corev1.Node) { n.Spec.Unschedulable = true }) }},
		{reason: "InProgress", set: func(*fixture) {}, order: func(n *policy.Node, _ *policy.Drain) { n.ActedBy = policy.ActorKarpenter }},
	} {
		t.Run(x.reason, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.node("a")
				x.set(w)
				p := w.pipeline()
				change := x.order
				if change == nil {
					change = func(*policy.Node, *policy.Drain) {}
				}
				if got := w.held(p, "a", change); got != x.reason {
					t.Errorf("held for %s", got)
				}
				if len(p.table.status()) > 0 {
					t.Error("it was begun all the same")
				}
			})
		})
	}
}

// Gentle drains take the pods of a workload one after the other where no budget
// says so.
func TestGentle(t *testing.T) {
	for _, gentle := range []bool{true, false} {
		inFixture(t, func(t *testing.T, w *fixture) {
			w.node("a")
			w.app("web", "a", "a", "a")
			w.app("one", "a")
			w.node("b")
			p := w.pipeline()
			stop := w.running(p)
			w.begin(p, "a", func(_ *policy.Node, d *policy.Drain) { d.Gentle = gentle })
			least := 3
			for range 120 {
				time.Sleep(500 * time.Millisecond)
				n := 0
				for _, p := range w.pods() {
					if p.Labels[appLabel] == "web" && ready(&p) {
						n++
					}
				}
				least = min(least, n)
			}
			stop()
			if want := map[bool]int{true: 2, false: 0}[gentle]; least != want {
				t.Errorf("gentle %t: at least %d pods were ready, want %d", gentle, least, want)
			}
			if w.read("a") != nil {
				t.Errorf("gentle %t: the node was not given back", gentle)
			}
			w.clean("gentle %t", gentle)
		})
	}
}

// A node that is deleted while it is drained takes its drain with it, and what
// was kept for it is settled.
func TestNodeDeletedUnderUs(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a")
		w.releaser.keep(backend.ReplacementWaiting, "t1")
		l := &log{}
		p := w.pipeline(withLog(l))
		stop := w.running(p)
		w.begin(p, "a", after("t1"))
		time.Sleep(10 * time.Second)
		w.reclaim("a")
		w.node("a") // another of the same name
		time.Sleep(10 * time.Second)
		stop()
		if len(p.table.status()) > 0 || len(l.results) != 1 {
			t.Errorf("drains %v, results %v", p.table.status(), l.results)
		}
		w.clean("after the deletion")
	})
}

// A replacement that two nodes are emptied onto is kept until both have moved, and
// given free when both are undone at once.
func TestSharedReplacement(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a")
		w.pod("stuck", "b", func(p *corev1.Pod) {
			p.Annotations[stopsAfter] = "100h"
			grace := int64(1 << 20)
			p.Spec.TerminationGracePeriodSeconds = &grace
		})
		w.releaser.keep(backend.ReplacementReady, "t1")
		kept := func() bool {
			w.releaser.mu.Lock()
			defer w.releaser.mu.Unlock()
			return w.releaser.kept["t1"]
		}
		p := w.pipeline()
		stop := w.running(p)
		w.begin(p, "a", after("t1"))
		w.begin(p, "b", after("t1"))
		time.Sleep(time.Minute)
		if w.read("a") != nil || phase(p, "b") != PhaseEvicting || !kept() {
			t.Errorf("node a stands: %v, b is %s, its replacement is kept: %v", w.read("a") != nil, phase(p, "b"), kept())
		}
		w.node("c")
		w.pod("stuck-too", "c", func(p *corev1.Pod) {
			p.Annotations[stopsAfter] = "100h"
			grace := int64(1 << 20)
			p.Spec.TerminationGracePeriodSeconds = &grace
		})
		w.begin(p, "c", after("t1"))
		time.Sleep(10 * time.Second)
		if phase(p, "c") != PhaseEvicting {
			t.Errorf("c is %s", phase(p, "c"))
		}
		stop()
		if _, err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if kept() {
			t.Error("the replacement is still kept when both drains are undone")
		}
		w.clean("after all")
	})
}

// A pod that never ends does not keep the node cordoned for ever.
func TestStuckPod(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a")
		w.pod("stuck", "a", func(p *corev1.Pod) {
			p.Annotations[stopsAfter] = "100h"
			grace := int64(1 << 20)
			p.Spec.TerminationGracePeriodSeconds = &grace
		})
		l := &log{}
		p := w.pipeline(withLog(l))
		stop := w.running(p)
		w.begin(p, "a")
		time.Sleep(14 * time.Minute)
		if phase(p, "a") != PhaseEvicting {
			t.Errorf("it is %s, want it to wait for the pod", phase(p, "a"))
		}
		time.Sleep(2 * time.Minute)
		stop()
		if len(l.results) != 1 || l.results[0].Reason != "Deadline" || !strings.Contains(l.results[0].Message, "stuck") {
			t.Errorf("it ended as %+v", l.results)
		}
		w.clean("after the deadline")
	})
}

// A notice that arrives during evictions is written down, so that a new leader continues the drain
// and does not undo it.
func TestNoticeIsKept(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a")
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		p := w.pipeline()
		w.begin(p, "a")
		w.must(p.Pass(context.Background()))
		s, _ := planned("a", notice(2*time.Minute))
		p.Hurry(s)
		w.must(p.Pass(context.Background()))
		if s, _ := readState(w.read("a")); s.ReclaimAt == 0 || s.Phase != PhaseEvicting {
			t.Errorf("the node carries %+v", s)
		}
	})
}
