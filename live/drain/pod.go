package drain

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/kube"
)

// The annotations of others by which a pod says that it is not to be moved.
const (
	annotationMirror      = "kubernetes.io/config.mirror"
	annotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
)

// stays reports whether p has no need to leave a node that is drained: who made
// it would make it there again, it is over, or it says that it does not mind.
func stays(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[annotationMirror]; mirror {
		return true
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}
	if o := metav1.GetControllerOf(p); o != nil && (o.Kind == "DaemonSet" || o.Kind == "Node") {
		return true
	}
	return slices.ContainsFunc(p.Spec.Tolerations, tolerates)
}

// tolerates reports whether t tolerates our taint, which has no value.
func tolerates(t corev1.Toleration) bool {
	if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule {
		return false
	}
	if t.Operator == corev1.TolerationOpExists {
		return t.Key == "" || t.Key == TaintDraining
	}
	return t.Key == TaintDraining && t.Value == "" && (t.Operator == "" || t.Operator == corev1.TolerationOpEqual)
}

// pinned returns a [backend.Held] if p itself forbids to be moved by choice.
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

// doNotDisrupt reports whether the annotation of p protects it now. One that Karpenter
// ignores does not, and a pod whose start is not known is protected.
func doNotDisrupt(p *corev1.Pod, now time.Time) bool {
	protects, lasts, err := kube.DoNotDisrupt(p.Annotations[kube.AnnotationDoNotDisrupt])
	if err != nil || !protects {
		return false
	}
	return lasts == 0 || p.Status.StartTime == nil || now.Sub(p.Status.StartTime.Time) < lasts
}

// ready reports whether p serves and is to go on doing so.
func ready(p *corev1.Pod) bool {
	if p.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// graceOf returns the seconds that p has to end.
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

// sortPods puts those first that must not come too late: by priority, then those
// that take longer to end.
func sortPods(pods []*corev1.Pod) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(-cmp.Compare(priority(a), priority(b)), -cmp.Compare(graceOf(a), graceOf(b)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// shortened returns the seconds that p gets where the node is taken at at: its
// own, or what is left, and never less than one, since none would kill the
// process and drop the pod from the API before it has ended. The margin is for
// the node to report the end.
func shortened(p *corev1.Pod, now, at time.Time) int64 {
	const margin = 2 * time.Second
	return min(graceOf(p), max(1, int64(at.Sub(now.Add(margin))/time.Second)))
}
