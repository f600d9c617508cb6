package drain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

// TestUnreadChecks: where something that could forbid a drain cannot be read, no voluntary drain
// starts: nothing is marked and no pod is evicted, however long it lasts.
func TestUnreadChecks(t *testing.T) {
	for _, op := range []string{"get Node", "get Namespace", "list PodList", "list PodDisruptionBudgetList", "get DaemonSet"} {
		for name, err := range map[string]error{
			"internal": apierrors.NewInternalError(errors.New("etcd")), "timeout": context.DeadlineExceeded,
		} {
			t.Run(op+"/"+name, func(t *testing.T) {
				inFixture(t, func(t *testing.T, w *fixture) {
					w.node("a")
					w.node("b")
					w.app("web", "a", "a")
					w.budget("x", "web", 1)
					w.must(w.api.Create(context.Background(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: space,
						Name: "agent", UID: "set-agent"}}))
					w.pod("agent", "a", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" })
					p := w.pipeline(quick)
					stop := w.running(p)
					failed := 0
					strikes := on(op, 1, 0, err)
					w.faulty(func(called string) error {
						if called == op {
							failed++
						}
						if called == "patch Node" || called == "evict" {
							t.Errorf("%s is called", called)
						}
						return strikes(called)
					})
					s, d := planned("a")
					_ = p.Start(context.Background(), s, d) // it fails, or is ordered and waits
					time.Sleep(90 * time.Second)
					if failed == 0 {
						t.Errorf("%s is never called", op)
					}
					w.change("a", func(n *corev1.Node) {
						if n.Spec.Unschedulable || n.Annotations[AnnotationDrain] != "" {
							t.Errorf("the node is marked: %+v", n.ObjectMeta)
						}
					})
					w.faulty(nil)
					stop()
				})
			})
		}
	}
}

// TestDueOrder: drains come in the order in which the provider takes their nodes, then those by choice, the oldest first.
func TestDueOrder(t *testing.T) {
	table := &drainTable{drains: map[string]*drain{}}
	for _, x := range []struct {
		node               string
		reclaimAt, started policy.Time
	}{{"d", 0, 2}, {"c", 0, 1}, {"e", 0, 2}, {"a", 50, 9}, {"b", 70, 1}, {"f", 0, 3}} {
		d := &drain{node: x.node, order: order{reclaimAt: x.reclaimAt}}
		d.Since = x.started
		table.drains[x.node] = d
	}
	for range 20 { // the order of a map differs from one look to the next
		var got []string
		for _, d := range table.due() {
			got = append(got, d.node)
		}
		if want := "a b c d e f"; strings.Join(got, " ") != want {
			t.Fatalf("%v, want %s", got, want)
		}
	}
}
