package drain

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A workload is a controller of pods: the number of pods that it wants, and the number of ready
// pods that have not been evicted.
type workload struct {
	selector *metav1.LabelSelector
	wanted   int32
	ready    int32

	// free means that the number of required pods is not known.
	free bool
}

// spare reserves the eviction of pod, and returns its workload with one ready pod less. It returns
// nil if the workload cannot spare the pod. It reads workloads from the API server, since their
// current number of replicas counts.
//
// Like the plan, spare always allows the eviction of a pod that is not ready, and of a pod that is
// the only replica, for which waiting would not help. Jobs have no required number of ready pods.
func (v *view) spare(ctx context.Context, pod *corev1.Pod) (*workload, error) {
	mine, err := v.budgetsOf(ctx, pod)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	w, err := v.workloadOf(ctx, pod)
	if err != nil {
		return nil, err
	}
	if w.free || w.wanted <= 1 || !ready(pod) {
		return w, nil
	}
	if w.ready-1 < required(w.wanted, mine) {
		return nil, nil
	}
	w.ready--
	v.evictions.add(pod.UID) // before the eviction, since another drain may count the ready pods in the meantime
	return w, nil
}

// unspare reverts the effects of spare.
func (v *view) unspare(w *workload, pod *corev1.Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.evictions.remove(pod.UID)
	if !w.free && w.wanted > 1 && ready(pod) {
		w.ready++
	}
}

// workloadOf returns the workload of pod. The caller must hold mu.
func (v *view) workloadOf(ctx context.Context, pod *corev1.Pod) (*workload, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return &workload{free: true}, nil
	}
	if w, ok := v.workloads[owner.UID]; ok {
		return w, nil
	}
	w, uid, err := v.readWorkload(ctx, pod.Namespace, owner)
	if apierrors.IsNotFound(err) {
		w, err = &workload{free: true}, nil // its pods are no longer wanted
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", owner.Kind, pod.Namespace, owner.Name, err)
	}
	if known, ok := v.workloads[uid]; ok {
		w = known // another ReplicaSet of the same Deployment
	} else if !w.free {
		if w.ready, err = v.countReady(ctx, pod.Namespace, w.selector); err != nil {
			return nil, err
		}
	}
	v.workloads[owner.UID], v.workloads[uid] = w, w
	return w, nil
}

// readWorkload reads the controller owner or, for a ReplicaSet of a Deployment, the Deployment. It
// also returns the UID of the workload.
func (v *view) readWorkload(ctx context.Context, namespace string, owner *metav1.OwnerReference) (w *workload,
	uid types.UID, err error) {
	key := client.ObjectKey{Namespace: namespace, Name: owner.Name}
	get := func(o client.Object) error {
		return v.api.call(ctx, func(ctx context.Context) error { return v.api.reader.Get(ctx, key, o) })
	}
	switch owner.Kind {
	case "ReplicaSet":
		set := &appsv1.ReplicaSet{}
		if err := get(set); err != nil {
			return nil, owner.UID, err
		}
		above := metav1.GetControllerOf(set)
		if above == nil || above.Kind != "Deployment" {
			return serving(set.Spec.Replicas, set.Spec.Selector), owner.UID, nil
		}
		key.Name = above.Name
		deployment := &appsv1.Deployment{}
		if err := get(deployment); err != nil {
			return nil, above.UID, err
		}
		return serving(deployment.Spec.Replicas, deployment.Spec.Selector), above.UID, nil
	case "StatefulSet":
		set := &appsv1.StatefulSet{}
		if err := get(set); err != nil {
			return nil, owner.UID, err
		}
		return serving(set.Spec.Replicas, set.Spec.Selector), owner.UID, nil
	case "ReplicationController":
		rc := &corev1.ReplicationController{}
		if err := get(rc); err != nil {
			return nil, owner.UID, err
		}
		return serving(rc.Spec.Replicas, &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}), owner.UID, nil
	}
	return &workload{free: true}, owner.UID, nil
}

func serving(replicas *int32, selector *metav1.LabelSelector) *workload {
	w := &workload{wanted: 1, selector: selector}
	if replicas != nil {
		w.wanted = *replicas
	}
	return w
}

// countReady returns the number of ready pods that selector selects and that were not evicted
// recently.
func (v *view) countReady(ctx context.Context, namespace string, selector *metav1.LabelSelector) (int32, error) {
	chosen, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return 0, fmt.Errorf("reading a selector in %s: %w", namespace, err)
	}
	pods := &corev1.PodList{}
	err = v.api.call(ctx, func(ctx context.Context) error {
		return v.api.client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: chosen},
			client.UnsafeDisableDeepCopy)
	})
	if err != nil {
		return 0, fmt.Errorf("listing the pods of a workload in %s: %w", namespace, err)
	}
	v.evictions.mu.Lock()
	defer v.evictions.mu.Unlock()
	n := int32(0)
	for i := range pods.Items {
		if _, evicted := v.evictions.at[pods.Items[i].UID]; !evicted && ready(&pods.Items[i]) {
			n++
		}
	}
	return n, nil
}
