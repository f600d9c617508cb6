package drain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/kube"
)

// Annotations of other controllers that keep a pod from being moved.
const (
	annotationMirror      = corev1.MirrorPodAnnotationKey
	annotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// A nodeKey identifies one node. A later node with the same name has another UID.
type nodeKey struct {
	name string
	uid  types.UID
}

func (d *drain) key() nodeKey { return nodeKey{d.node, d.uid} }

func keyOf(n *corev1.Node) nodeKey { return nodeKey{n.Name, n.UID} }

// stays reports whether p need not leave a node that is being drained: it has ended, or the kubelet
// or a DaemonSet would create it there again. A client that may create pods can set any owner, so
// the DaemonSet must exist, and a mirror pod must name exactly this node. Tolerations do not count.
// c is used to read DaemonSets.
func stays(ctx context.Context, c client.Reader, p *corev1.Pod, node nodeKey) (bool, error) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true, nil
	}
	o := metav1.GetControllerOf(p)
	if o == nil {
		return false, nil
	}
	if _, mirror := p.Annotations[annotationMirror]; mirror && o.Kind == "Node" {
		return o.Name == node.name && o.UID == node.uid, nil
	}
	if group, _, _ := strings.Cut(o.APIVersion, "/"); group != appsv1.GroupName || o.Kind != "DaemonSet" {
		return false, nil
	}
	set := &appsv1.DaemonSet{}
	key := client.ObjectKey{Namespace: p.Namespace, Name: o.Name}
	err := c.Get(ctx, key, set)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading DaemonSet %s: %w", key, err)
	}
	return set.UID == o.UID, nil
}

// leaving returns the pods that must leave their node, in the order of their eviction.
func leaving(ctx context.Context, c client.Reader, all *corev1.PodList, node nodeKey) ([]*corev1.Pod, error) {
	var pods []*corev1.Pod
	for i := range all.Items {
		pod := &all.Items[i]
		stays, err := stays(ctx, c, pod, node)
		if err != nil {
			return nil, err
		}
		if !stays {
			pods = append(pods, pod)
		}
	}
	sortPods(pods)
	return pods, nil
}

// Busy reports whether a node has pods that a drain would have to move, according to the API
// server. DaemonSets are read from the cache.
func Busy(ctx context.Context, cache, api client.Reader, n *corev1.Node) (bool, error) {
	all := &corev1.PodList{}
	if err := api.List(ctx, all, client.MatchingFields{"spec.nodeName": n.Name}); err != nil {
		return false, fmt.Errorf("listing the pods of node %s: %w", n.Name, err)
	}
	pods, err := leaving(ctx, cache, all, keyOf(n))
	return len(pods) > 0, err
}

// pinned returns a [backend.Held] if p itself must not be moved voluntarily.
func pinned(p *corev1.Pod, now time.Time) error {
	safe, said := p.Annotations[annotationSafeToEvict]
	switch {
	case said && safe == "false":
		return backend.Hold("NotSafeToEvict", "pod %s/%s is marked as not safe to evict", p.Namespace, p.Name)
	case doNotDisrupt(p, now):
		return backend.Hold("DoNotDisrupt", "pod %s/%s must not be disrupted", p.Namespace, p.Name)
	case metav1.GetControllerOf(p) == nil && !(said && safe == "true"):
		return backend.Hold("BarePod", "pod %s/%s has no controller that would recreate it", p.Namespace, p.Name)
	}
	return nil
}

// doNotDisrupt reports whether the annotation of p protects it now. A value that Karpenter ignores
// does not protect. If the protection is limited in time, a pod with an unknown start is protected.
func doNotDisrupt(p *corev1.Pod, now time.Time) bool {
	protects, lasts, err := kube.DoNotDisrupt(p.Annotations[kube.AnnotationDoNotDisrupt])
	if err != nil || !protects {
		return false
	}
	return lasts == 0 || p.Status.StartTime == nil || now.Sub(p.Status.StartTime.Time) < lasts
}

// ready reports whether p is ready and not being deleted.
func ready(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// graceOf returns the termination grace period of p in seconds.
func graceOf(p *corev1.Pod) int64 {
	if p.Spec.TerminationGracePeriodSeconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds
	}
	return *p.Spec.TerminationGracePeriodSeconds
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// sortPods sorts pods by descending priority, then by descending grace period.
func sortPods(pods []*corev1.Pod) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(-cmp.Compare(priority(a), priority(b)), -cmp.Compare(graceOf(a), graceOf(b)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// shortened returns the grace period of p, in seconds, on a node that is reclaimed at at: its own
// or the remaining time, whichever is shorter. It is at least one second, since zero would kill the
// process and delete the pod from the API before it has ended. The margin gives the node time to
// report the end.
func shortened(p *corev1.Pod, now, at time.Time) int64 {
	const margin = 2 * time.Second
	return min(graceOf(p), max(1, int64(at.Sub(now.Add(margin))/time.Second)))
}
