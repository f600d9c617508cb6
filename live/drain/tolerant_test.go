package drain

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

var toleratesAll = tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})

// TestTolerantPods: a pod that tolerates every taint is moved, and protected, as any other.
func TestTolerantPods(t *testing.T) {
	for _, x := range []struct {
		reason string // for which the drain does not begin; empty means that it does
		set    func(*fixture)
	}{
		{"BudgetAllowsNone", func(w *fixture) { w.pod("web", "a", toleratesAll); w.budget("x", "web", 0) }},
		{"BarePod", func(w *fixture) { w.pod("", "a", toleratesAll) }},
		{"DoNotDisrupt", func(w *fixture) {
			w.pod("web", "a", toleratesAll, func(p *corev1.Pod) { p.Annotations[kube.AnnotationDoNotDisrupt] = "true" })
		}},
		{"", func(w *fixture) { w.pod("web", "a", toleratesAll) }},
	} {
		t.Run(x.reason, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.node("a")
				w.node("b")
				x.set(w)
				p := w.pipeline()
				if x.reason != "" {
					if got := w.held(p, "a"); got != x.reason {
						t.Errorf("held for %s, want %s", got, x.reason)
					}
					return
				}
				stop := w.running(p)
				w.begin(p, "a")
				time.Sleep(time.Minute)
				stop()
				if len(w.evicted()) != 1 || w.read("a") != nil {
					t.Errorf("evicted %v, the node stands: %v", w.evicted(), w.read("a") != nil)
				}
				w.clean("after the drain")
			})
		})
	}
}

// TestClaimedOwners: only pods whose DaemonSet exists, and mirror pods of the node itself,
// stay on a node that is drained; a pod that claims either is evicted.
func TestClaimedOwners(t *testing.T) {
	yes := true
	owned := func(version, kind, name, uid string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}
		}
	}
	mirror := func(p *corev1.Pod) { p.Annotations[annotationMirror] = "hash" }
	for _, x := range []struct {
		name  string
		set   []func(*corev1.Pod)
		stays bool
	}{
		{"a DaemonSet", []func(*corev1.Pod){owned("apps/v1", "DaemonSet", "agent", "set-agent")}, true},
		{"a DaemonSet of another UID", []func(*corev1.Pod){owned("apps/v1", "DaemonSet", "agent", "other")}, false},
		{"a DaemonSet that does not exist", []func(*corev1.Pod){owned("apps/v1", "DaemonSet", "none", "none")}, false},
		{"another group's DaemonSet", []func(*corev1.Pod){owned("example.com/v1", "DaemonSet", "agent", "set-agent")}, false},
		{"a mirror pod", []func(*corev1.Pod){mirror, owned("v1", "Node", "a", "node-1")}, true},
		{"a mirror pod without a node", []func(*corev1.Pod){mirror}, false},
		{"a mirror pod of a node of another UID", []func(*corev1.Pod){mirror, owned("v1", "Node", "a", "other")}, false},
		{"a mirror pod of another node", []func(*corev1.Pod){mirror, owned("v1", "Node", "b", "node-2")}, false},
		{"a pod of a node", []func(*corev1.Pod){owned("v1", "Node", "a", "node-1")}, false},
		{"a pod that has ended", []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.node("a")
				w.node("b")
				w.must(w.api.Create(context.Background(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: space,
					Name: "agent", UID: "set-agent"}}))
				w.pod("x", "a", x.set...)
				p := w.pipeline()
				stop := w.running(p)
				w.begin(p, "a")
				time.Sleep(time.Minute)
				stop()
				if stayed := len(w.evicted()) == 0; stayed != x.stays {
					t.Errorf("it stays: %t, want %t", stayed, x.stays)
				}
				if w.read("a") != nil {
					t.Error("the node was not given back")
				}
			})
		})
	}
}

// TestComesBack: a workload that makes its pod again on the node that is drained stops the
// drain at a limit, and under a notice does not.
func TestComesBack(t *testing.T) {
	for _, urgent := range []bool{false, true} {
		inFixture(t, func(t *testing.T, w *fixture) {
			w.node("a")
			w.node("b")
			again := func() {
				w.pod("web", "a", toleratesAll, func(p *corev1.Pod) {
					p.Annotations[stopsAfter], p.CreationTimestamp = "3s", metav1.Now()
				})
			}
			again()
			l := &log{}
			p := w.pipeline(withLog(l))
			stop := w.running(p)
			var changes []func(*policy.Node, *policy.Drain)
			if urgent {
				changes = append(changes, notice(2*time.Minute))
			}
			w.begin(p, "a", changes...)
			time.Sleep(411 * time.Millisecond) // off the beat of the controllers
			for range 100 {
				time.Sleep(time.Second)
				ending := func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }
				if left := slices.DeleteFunc(w.podsOn("a"), ending); len(left) == 0 && w.read("a") != nil {
					again()
				}
			}
			stop()
			switch n := len(w.evicted()); {
			case urgent && n < 20:
				t.Errorf("under the notice %d pods were evicted", n)
			case !urgent && (n > 5 || len(l.results) != 1 || l.results[0].Reason != "ComesBack" || w.read("a") == nil):
				t.Errorf("%d pods were evicted, it ended as %+v", n, l.results)
			}
		})
	}
}
