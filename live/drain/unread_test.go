package drain

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1 "k8s.io/api/core/v1"
)

// TestUnreadChecks: where something that could forbid a drain cannot be read, none by choice begins: nothing is marked
// and no pod is evicted, however long it lasts.
func TestUnreadChecks(t *testing.T) {
	for _, op := range []string{"get Node", "get Namespace", "list PodList", "list PodDisruptionBudgetList"} {
		for name, err := range map[string]error{
			"internal": apierrors.NewInternalError(errors.New("etcd")), "timeout": context.DeadlineExceeded,
		} {
			t.Run(op+"/"+name, func(t *testing.T) {
				inFixture(t, func(t *testing.T, w *fixture) {
					w.node("a")
					w.node("b")
					w.app("web", "a", "a")
					w.budget("x", "web", 1)
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
