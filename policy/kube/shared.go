package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelsOfOne are the labels that distinguish a pod from other pods of its workload. Templates omit
// them, since otherwise every pod would need its own template. The API server copies the last two
// from the node to which a pod is bound (PodTopologyLabels, enabled since Kubernetes 1.35).
var labelsOfOne = []string{
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index",
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
}

// SharedLabels returns the labels of a pod that the other pods of its workload have too.
func SharedLabels(of map[string]string) map[string]string {
	if !slices.ContainsFunc(labelsOfOne, func(l string) bool { _, has := of[l]; return has }) {
		return of
	}
	of = maps.Clone(of)
	maps.DeleteFunc(of, func(l, _ string) bool { return slices.Contains(labelsOfOne, l) })
	return of
}

// Unpinned returns s without the affinity to one node by name that the DaemonSet controller adds to
// each of its pods.
func Unpinned(s *corev1.PodSpec) *corev1.PodSpec {
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil ||
		s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return s
	}
	s = s.DeepCopy()
	n := s.Affinity.NodeAffinity
	var terms []corev1.NodeSelectorTerm
	for _, t := range n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		t.MatchFields = slices.DeleteFunc(t.MatchFields,
			func(f corev1.NodeSelectorRequirement) bool { return f.Key == metav1.ObjectNameField })
		if len(t.MatchFields)+len(t.MatchExpressions) > 0 {
			terms = append(terms, t)
		}
	}
	n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = terms
	if len(terms) == 0 {
		n.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	return s
}

// zoneKeys are the labels that name the zone of a volume.
var zoneKeys = []string{
	corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone,
	"topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone",
}

// ZoneOf returns the zone from which a volume can be reached. It is empty if there are several, or
// if the volume is not restricted to a zone.
func ZoneOf(p *corev1.PersistentVolume) string {
	if a := p.Spec.NodeAffinity; a != nil && a.Required != nil && len(a.Required.NodeSelectorTerms) == 1 {
		for _, e := range a.Required.NodeSelectorTerms[0].MatchExpressions {
			if slices.Contains(zoneKeys, e.Key) && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				return e.Values[0]
			}
		}
		return ""
	}
	return p.Labels[corev1.LabelTopologyZone]
}
