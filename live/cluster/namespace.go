package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// A namespaceTable holds the labels of namespaces, by which pods may choose whom they
// want to be near. Those that do are read again when labels change.
type namespaceTable struct {
	pods      *podSlots
	workloads *workloadTable
	labels    map[string]map[string]string
}

func (t *namespaceTable) set(n *corev1.Namespace) {
	if before, known := t.labels[n.Name]; known && maps.Equal(before, n.Labels) {
		return
	}
	t.labels[n.Name] = n.Labels
	t.renamed()
}

func (t *namespaceTable) drop(n *corev1.Namespace) {
	delete(t.labels, n.Name)
	t.renamed()
}

// renamed reads the pods again that choose others by the labels of namespaces.
func (t *namespaceTable) renamed() {
	t.pods.touchWhere(func(x *podEntry) bool { return choosesSpaces(&x.object.Spec) })
	t.workloads.redeclare()
}

func choosesSpaces(s *corev1.PodSpec) bool {
	a := ptr.Deref(s.Affinity, corev1.Affinity{})
	near, apart := ptr.Deref(a.PodAffinity, corev1.PodAffinity{}), ptr.Deref(a.PodAntiAffinity, corev1.PodAntiAffinity{})
	terms := slices.Concat(near.RequiredDuringSchedulingIgnoredDuringExecution, apart.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, t := range slices.Concat(near.PreferredDuringSchedulingIgnoredDuringExecution, apart.PreferredDuringSchedulingIgnoredDuringExecution) {
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
