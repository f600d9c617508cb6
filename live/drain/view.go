package drain

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A view is what the reconciliations of one moment read for each other.
type view struct {
	api       *clusterAPI
	evictions *evictionLog
	at        time.Time

	mu        sync.Mutex
	budgets   map[string][]policyv1.PodDisruptionBudget
	workloads map[types.UID]*workload
}

// checkNode returns the pods that would have to leave a node, or a
// [backend.Held] if there is something about it that no wait would change.
func (v *view) checkNode(ctx context.Context, name string) ([]*corev1.Pod, error) {
	n := &corev1.Node{}
	if err := v.api.client.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	if _, ours := readState(n); !ours {
		if n.Spec.Unschedulable {
			return nil, backend.Hold("Cordoned", "node %s was cordoned by another actor", name)
		}
		if n.Annotations[kube.AnnotationDoNotDisrupt] == "true" {
			return nil, backend.Hold("DoNotDisrupt", "node %s must not be disrupted", name)
		}
	}
	pods, err := v.api.leaving(ctx, name)
	if err != nil {
		return nil, err
	}
	return pods, v.checkPods(ctx, pods)
}

// checkPods returns a [backend.Held] if one of pods cannot be moved by choice.
func (v *view) checkPods(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if err := pinned(pod, v.api.now()); err != nil {
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

// budgetsOf returns the disruption budgets that select pod.
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
