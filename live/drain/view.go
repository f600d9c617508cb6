package drain

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A view caches the objects that simultaneous reconciliations read.
type view struct {
	api       *clusterAPI
	evictions *evictionLog
	at        time.Time

	mu        sync.Mutex
	budgets   map[string][]policyv1.PodDisruptionBudget
	workloads map[types.UID]*workload
}

// checkNode returns the pods that would have to leave a node of a pool. It returns a [backend.Held]
// if there is an obstacle that waiting does not remove. pool is empty if it is not known.
func (v *view) checkNode(ctx context.Context, name, pool string) ([]*corev1.Pod, error) {
	n := &corev1.Node{}
	if err := v.api.client.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	if _, _, ours := v.api.marks.read(n); !ours && n.Spec.Unschedulable {
		return nil, backend.Hold("Cordoned", "node %s was cordoned by another actor", name)
	}
	if err := v.checkProtection(ctx, n, pool); err != nil {
		return nil, err
	}
	pods, err := v.api.leaving(ctx, keyOf(n))
	if err != nil {
		return nil, err
	}
	return pods, v.checkPods(ctx, pods)
}

// checkPods returns a [backend.Held] if one of the pods cannot be moved voluntarily.
func (v *view) checkPods(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if err := v.pinned(ctx, pod); err != nil {
			return err
		}
		mine, err := v.budgetsOf(ctx, pod)
		if err != nil {
			return err
		}
		if err := undrainable(pod, mine); err != nil {
			return err
		}
	}
	return nil
}

// checkProtection returns a [backend.Held] if a node or its pool must not be disrupted voluntarily.
// The protection that the backend of a drain sets on the node does not count.
func (v *view) checkProtection(ctx context.Context, n *corev1.Node, pool string) error {
	why, _, _ := strings.Cut(n.Annotations[backend.AnnotationProtected], " ")
	if n.Annotations[kube.AnnotationDoNotDisrupt] == "true" && why != backend.ProtectedByDrain {
		return backend.Hold("DoNotDisrupt", "node %s must not be disrupted", n.Name)
	}
	if err := paused("node", n, v.api.now()); err != nil {
		return err
	}
	if v.api.cfg.Authority == nil || pool == "" {
		return nil
	}
	spec, err := v.api.cfg.Authority.Spec(ctx, pool)
	if err != nil || spec == nil {
		return err // judge has found that the pool no longer exists
	}
	for _, b := range spec.Pool().Budgets {
		if b.Closed != "" && kube.InForce(&b, policy.TimeOf(v.api.now())) {
			return backend.Hold("Closed", "no node of pool %s may be disrupted now: %s", pool, b.Closed)
		}
	}
	return nil
}

// pinned returns a [backend.Held] if a pod or its namespace must not be disrupted voluntarily.
func (v *view) pinned(ctx context.Context, pod *corev1.Pod) error {
	if err := pinned(pod, v.api.now()); err != nil {
		return err
	}
	ns := &corev1.Namespace{}
	err := v.api.call(ctx, func(ctx context.Context) error {
		return v.api.client.Get(ctx, client.ObjectKey{Name: pod.Namespace}, ns)
	})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return paused("namespace", ns, v.api.now())
}

// paused returns a [backend.Held] while [v1alpha1.AnnotationPause] on o is in effect.
func paused(kind string, o client.Object, now time.Time) error {
	if !v1alpha1.PauseOf(o.GetAnnotations()).At(policy.TimeOf(now)) {
		return nil
	}
	return backend.Hold("Paused", "%s %s carries %s", kind, o.GetName(), v1alpha1.AnnotationPause)
}

// budgetsOf returns the PodDisruptionBudgets that select pod.
func (v *view) budgetsOf(ctx context.Context, pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	all, ok := v.budgets[pod.Namespace]
	if !ok {
		list := &policyv1.PodDisruptionBudgetList{}
		err := v.api.call(ctx, func(ctx context.Context) error {
			return v.api.client.List(ctx, list, client.InNamespace(pod.Namespace))
		})
		if err != nil {
			return nil, fmt.Errorf("listing the disruption budgets of %s: %w", pod.Namespace, err)
		}
		all = list.Items
		v.budgets[pod.Namespace] = all
	}
	return budgetsOf(pod, all), nil
}
