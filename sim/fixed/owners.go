package fixed

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// owners maps pods of a cluster to their workloads.
type owners struct {
	byName map[string]*workload // by kind, namespace and name
	pods   map[*workload]int32  // number of the workload's pods in the input
}

func ownerKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

func (c *Cluster) ownersOf() *owners {
	o := &owners{byName: map[string]*workload{}, pods: map[*workload]int32{}}
	for _, w := range c.workloads {
		o.byName[ownerKey(w.kind, w.namespace, w.name)] = w
	}
	for i := range c.pods {
		for w := o.of(c.pods[i].object); w != nil; w = o.above(w) {
			o.pods[w]++
		}
	}
	return o
}

// of returns the workload that controls a pod, or nil if it is not in the input. If the pod's
// ReplicaSet is not in the input, the Deployment with the name before the ReplicaSet's hash is
// returned.
func (o *owners) of(p *corev1.Pod) *workload {
	by := metav1.GetControllerOfNoCopy(p)
	if by == nil {
		return nil
	}
	namespace := namespaceOf(p)
	if w := o.byName[ownerKey(by.Kind, namespace, by.Name)]; w != nil || by.Kind != "ReplicaSet" {
		return w
	}
	for i := len(by.Name) - 1; i > 0; i-- {
		if by.Name[i] == '-' { // end of the Deployment's name
			return o.byName[ownerKey("Deployment", namespace, by.Name[:i])]
		}
	}
	return nil
}

// above returns the workload that controls w, or nil.
func (o *owners) above(w *workload) *workload {
	if w.by == nil {
		return nil
	}
	return o.byName[ownerKey(w.by.Kind, w.namespace, w.by.Name)]
}

// selectorOf returns the selector of a pod's controller, as the default spread constraints use it,
// or nil.
func (o *owners) selectorOf(p *corev1.Pod) *metav1.LabelSelector {
	w := o.of(p)
	if w == nil || w.kind == "Job" || w.kind == kindDaemonSet {
		return nil
	}
	return w.selector
}

// missing returns the pods that a workload wants in addition to those of the input. It returns none
// for a workload whose controller is in the input, since that controller accounts for them.
func (o *owners) missing(w *workload) (pods []pod) {
	if w.kind == kindDaemonSet || o.above(w) != nil {
		return nil
	}
	object := w.pod()
	for i := o.pods[w]; i < w.replicas; i++ {
		pods = append(pods, pod{fmt.Sprintf("%s-%d", w.name, i), object, w.problem})
	}
	return pods
}

// pod returns the object of the pods that w creates. Volume claim templates of a StatefulSet become
// ephemeral volumes, so each pod has its own.
func (w *workload) pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *w.template.ObjectMeta.DeepCopy(), Spec: *w.template.Spec.DeepCopy()}
	controller := true
	p.Namespace, p.OwnerReferences = w.namespace, []metav1.OwnerReference{{Kind: w.kind, Name: w.name,
		Controller: &controller}}
	for i := range w.claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: w.claims[i].Name, VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: w.claims[i].Spec}},
		}})
	}
	return p
}

func namespaceOf(o metav1.Object) string {
	if n := o.GetNamespace(); n != "" {
		return n
	}
	return "default"
}

// peersOf returns the selector of the pods over which the default constraints spread pods like p,
// or nil if there is no such selector. The selectors of its controller and of its Services are
// combined.
func (c *Cluster) peersOf(o *owners, p *corev1.Pod, labels []policy.Label) (*policy.Selector, error) {
	var all policy.Selector
	for _, s := range c.services {
		if namespaceOf(s) != namespaceOf(p) || len(s.Spec.Selector) == 0 {
			continue
		}
		x, err := kube.Selector(&metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		if err != nil {
			return nil, err
		}
		if x.Matches(labels) {
			all.Requirements = append(all.Requirements, x.Requirements...)
		}
	}
	if s := o.selectorOf(p); s != nil {
		x, err := kube.Selector(s)
		if err != nil {
			return nil, err
		}
		all.Requirements = append(all.Requirements, x.Requirements...)
	}
	if len(all.Requirements) == 0 {
		return nil, nil
	}
	all.Requirements = slices.Clip(all.Requirements)
	return &all, nil
}
