package drain

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
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
	for _, x := range []struct {
		name, reason string
		set          func(*fixture)
	}{
		{"node", "DoNotDisrupt", node(kube.AnnotationDoNotDisrupt, "true")},
		{"pod", "DoNotDisrupt", mark(kube.AnnotationDoNotDisrupt, "true")},
		{"pod for a time", "DoNotDisrupt", mark(kube.AnnotationDoNotDisrupt, "1h")},
		{"not safe", "NotSafeToEvict", mark(annotationSafeToEvict, "false")},
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
					p := w.pipeline(withLog(l))
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
					case !urgent && x.name != "node" && n > 1 || !urgent && x.name == "node" && n > 0:
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
