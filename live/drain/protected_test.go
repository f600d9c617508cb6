package drain

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestProtectedMidDrain: what forbids that a node or pod is disrupted is heeded before each
// eviction that no notice forces, also where it came after the drain had begun.
func TestProtectedMidDrain(t *testing.T) {
	node := func(key, value string) func(*fixture) {
		return func(w *fixture) { w.change("a", func(n *corev1.Node) { annotate(n, key, value) }) }
	}
	pod := func(change func(*corev1.Pod)) func(*fixture) {
		return func(w *fixture) {
			p := w.podsOn("a")[0]
			change(&p)
			w.must(w.api.Update(w.t.Context(), &p))
		}
	}
	mark := func(key, value string) func(*fixture) {
		return pod(func(p *corev1.Pod) { p.Annotations[key] = value })
	}
	authority, with := governed()
	namespace := func(w *fixture) {
		w.must(w.api.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: space, Annotations: map[string]string{v1alpha1.AnnotationPause: "2000-01-01T06:00:00Z"}}}))
	}
	for _, x := range []struct {
		name, reason string
		set          func(*fixture)
	}{
		{"node", "DoNotDisrupt", node(kube.AnnotationDoNotDisrupt, "true")},
		{"pod", "DoNotDisrupt", mark(kube.AnnotationDoNotDisrupt, "true")},
		{"pod for a time", "DoNotDisrupt", mark(kube.AnnotationDoNotDisrupt, "1h")},
		{"not safe", "NotSafeToEvict", mark(annotationSafeToEvict, "false")},
		{"paused node", "Paused", node(v1alpha1.AnnotationPause, "true")},
		{"paused namespace", "Paused", namespace},
		{"paused pool", "Closed", func(*fixture) { authority.paused = "true" }},
		{"frozen pool", "Closed", func(*fixture) {
			authority.freezes = []v1alpha1.Freeze{{From: metav1.NewTime(time.Now()), To: metav1.NewTime(time.Now().Add(time.Hour))}}
		}},
		{"bare", "BarePod", pod(func(p *corev1.Pod) { p.OwnerReferences = nil })},
	} {
		for _, urgent := range []bool{false, true} {
			t.Run(x.name, func(t *testing.T) {
				inFixture(t, func(t *testing.T, w *fixture) {
					w.node("a")
					w.node("b")
					w.app("web", "a", "a", "b")
					w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
					l := &log{}
					authority.paused, authority.freezes = "", nil
					p := w.pipeline(with, withLog(l))
					w.must(p.adopt(t.Context()))
					var changes []func(*policy.Node, *policy.Drain)
					if urgent {
						changes = append(changes, notice(2*time.Minute))
					}
					w.begin(p, "a", changes...)
					w.reach(p, "a", PhaseEvicting)
					x.set(w)
					w.faulty(nil)
					stop := w.running(p)
					time.Sleep(time.Minute)
					stop()
					switch n := len(w.evicted()); {
					case urgent && n != 2:
						t.Errorf("under a notice %d pods were evicted, want 2", n)
					case !urgent && (len(l.results) != 1 || l.results[0].Reason != x.reason || l.results[0].Outcome != OutcomeUndone):
						t.Errorf("%d pods were evicted, it ended as %+v", n, l.results)
					case !urgent && n > 0:
						t.Errorf("%d pods were evicted", n)
					}
					if !urgent {
						w.clean("after the protection")
					}
				})
			})
		}
	}
}

// TestPausedBefore: a drain by choice does not begin while its node or a namespace of its
// pods is paused, and does once the pause is over.
func TestPausedBefore(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a")
		p := w.pipeline()
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		w.change("a", func(n *corev1.Node) { annotate(n, v1alpha1.AnnotationPause, until) })
		if got := w.held(p, "a"); got != "Paused" {
			t.Errorf("held for %s", got)
		}
		time.Sleep(time.Hour)
		w.begin(p, "a")
	})
}

// TestChangedPod: an eviction by choice holds only for the pod as it was read: what was said
// of it since then is looked at first.
func TestChangedPod(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a")
		changed := false
		w.faulty(func(op string) error {
			if op == "evict" && !changed { // between the look and the eviction
				changed = true
				p := w.podsOn("a")[0]
				p.Annotations[kube.AnnotationDoNotDisrupt] = "true"
				w.must(w.api.Update(w.t.Context(), &p))
			}
			return nil
		})
		l := &log{}
		p := w.pipeline(withLog(l))
		stop := w.running(p)
		w.begin(p, "a")
		time.Sleep(time.Minute)
		stop()
		if n := len(w.evicted()); n > 0 || len(l.results) != 1 || l.results[0].Reason != "DoNotDisrupt" {
			t.Errorf("%d pods were evicted, it ended as %+v", n, l.results)
		}
		w.clean("after the change")
	})
}
