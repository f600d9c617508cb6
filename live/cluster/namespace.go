package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A namespaceTable contains the labels of namespaces, to which the affinity terms of pods may
// refer, and their pauses. When either changes, the affected pods are marked to be read again.
type namespaceTable struct {
	pods      *podSlots
	workloads *workloadTable
	labels    map[string]map[string]string
	paused    map[string]v1alpha1.Pause
}

func (t *namespaceTable) set(n *corev1.Namespace) {
	t.pause(n.Name, v1alpha1.PauseOf(n.Annotations))
	if before, known := t.labels[n.Name]; known && maps.Equal(before, n.Labels) {
		return
	}
	t.labels[n.Name] = n.Labels
	t.renamed()
}

func (t *namespaceTable) drop(n *corev1.Namespace) {
	t.pause(n.Name, v1alpha1.Pause{})
	delete(t.labels, n.Name)
	t.renamed()
}

func (t *namespaceTable) pause(name string, p v1alpha1.Pause) {
	if t.paused[name] == p {
		return
	}
	t.paused[name] = p
	t.pods.touchWhere(func(x *podEntry) bool { return x.object.Namespace == name })
}

// renamed marks the pods whose affinity terms select namespaces by label to be read again.
func (t *namespaceTable) renamed() {
	t.pods.touchWhere(func(x *podEntry) bool { return choosesSpaces(&x.object.Spec) })
	t.workloads.redeclare()
}

func choosesSpaces(s *corev1.PodSpec) bool {
	a := ptr.Deref(s.Affinity, corev1.Affinity{})
	near, apart := ptr.Deref(a.PodAffinity, corev1.PodAffinity{}), ptr.Deref(a.PodAntiAffinity, corev1.PodAntiAffinity{})
	terms := slices.Concat(near.RequiredDuringSchedulingIgnoredDuringExecution,
		apart.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, t := range slices.Concat(near.PreferredDuringSchedulingIgnoredDuringExecution,
		apart.PreferredDuringSchedulingIgnoredDuringExecution) {
		terms = append(terms, t.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
}

// selected returns the names of the namespaces that s selects, ascending.
func (t *namespaceTable) selected(s *metav1.LabelSelector) ([]string, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, l := range t.labels {
		if selector.Matches(labels.Set(l)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
