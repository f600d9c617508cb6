package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// selection draws what binds a pod to nodes: selector, affinity, tolerations.
func (g *generator) selection(s *corev1.PodSpec) {
	if g.seldom(8) {
		s.NodeSelector = map[string]string{labelTier: "gold"}
	}
	for range g.IntN(3) {
		if g.one(2) {
			t := corev1.Toleration{Key: fmt.Sprintf("taint-%d", g.IntN(2)), Operator: corev1.TolerationOpExists}
			if g.one(2) {
				t.Operator, t.Value = corev1.TolerationOpEqual, pick(g, []string{"a", "b"})
			}
			t.Effect = pick(g, []corev1.TaintEffect{"", "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule})
			s.Tolerations = append(s.Tolerations, t)
		}
	}
	var a corev1.NodeAffinity
	if g.seldom(6) {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		for range 1 + g.IntN(2) {
			r := a.RequiredDuringSchedulingIgnoredDuringExecution
			r.NodeSelectorTerms = append(r.NodeSelectorTerms, g.nodeTerm())
		}
	}
	if g.one(4) {
		for range 1 + g.IntN(3) {
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: int32(pick(g, []int{1, 10, 50, 100})), Preference: g.nodeTerm()})
		}
	}
	if a.RequiredDuringSchedulingIgnoredDuringExecution != nil ||
		a.PreferredDuringSchedulingIgnoredDuringExecution != nil {
		s.Affinity = &corev1.Affinity{NodeAffinity: &a}
	}
}

func (g *generator) nodeTerm() corev1.NodeSelectorTerm {
	var t corev1.NodeSelectorTerm
	if g.one(10) {
		t.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name",
			Operator: pick(g, []corev1.NodeSelectorOperator{"In", "NotIn"}), Values: []string{g.anyNode()}}}
		return t
	}
	for range 1 + g.IntN(2) {
		r := corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn,
			Values: []string{pick(g, zones), pick(g, zones)}}
		switch g.IntN(6) {
		case 0:
			r = corev1.NodeSelectorRequirement{Key: labelTier, Operator: corev1.NodeSelectorOpNotIn,
				Values: []string{pick(g, []string{"gold", "silver"})}}
		case 1:
			r = corev1.NodeSelectorRequirement{Key: labelGeneration, Operator: pick(g,
				[]corev1.NodeSelectorOperator{"Gt", "Lt"}), Values: []string{"5"}}
		case 2:
			r = corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone,
				Operator: pick(g, []corev1.NodeSelectorOperator{"Exists", "DoesNotExist", "Exists"})}
		case 3:
			r = corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: pick(g,
				[]corev1.NodeSelectorOperator{"In", "NotIn"}), Values: []string{g.anyNode(), g.anyNode()}}
		}
		t.MatchExpressions = append(t.MatchExpressions, r)
	}
	return t
}

func (g *generator) anyNode() string { return g.st.Nodes[g.IntN(len(g.st.Nodes))].Name }

func (g *generator) anyKey() string {
	return pick(g, []string{corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyZone, labelTier})
}

// selector draws a selector of pods, often of the pod's own.
func (g *generator) selector(labels map[string]string) *metav1.LabelSelector {
	switch g.IntN(6) {
	case 0:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: labelApp, Operator: metav1.LabelSelectorOpIn, Values: []string{pick(g, apps), pick(g, apps)}}}}
	case 1:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: labelVersion, Operator: pick(g, []metav1.LabelSelectorOperator{"Exists", "DoesNotExist"})}}}
	case 2:
		return &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: pick(g, apps)}}
	}
	if labels == nil {
		return &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: pick(g, apps)}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: labels[labelApp]}}
}

// topology draws what binds a pod to others.
func (g *generator) topology(s *corev1.PodSpec, labels map[string]string) {
	if g.seldom(2) {
		for range 1 + g.IntN(2) {
			s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, g.spread(labels))
		}
	}
	terms := func(odds int) (list []corev1.PodAffinityTerm) {
		if g.seldom(odds) {
			for range 1 + g.IntN(2) {
				list = append(list, g.podTerm(labels))
			}
		}
		return list
	}
	weighted := func(odds int) (list []corev1.WeightedPodAffinityTerm) {
		for _, t := range terms(odds) {
			list = append(list, corev1.WeightedPodAffinityTerm{Weight: int32(pick(g, []int{1, 10, 50, 100})),
				PodAffinityTerm: t})
		}
		return list
	}
	near := &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(10),
		PreferredDuringSchedulingIgnoredDuringExecution: weighted(6)}
	far := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(7),
		PreferredDuringSchedulingIgnoredDuringExecution: weighted(6)}
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	s.Affinity.PodAffinity, s.Affinity.PodAntiAffinity = near, far
}

func (g *generator) spread(labels map[string]string) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(1 +
			g.IntN(3)), TopologyKey: g.anyKey(), WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: g.selector(labels),
	}
	if g.one(2) {
		c.WhenUnsatisfiable = corev1.DoNotSchedule
		if g.one(4) {
			c.MinDomains = ptr.To(int32(1 + g.IntN(4)))
		}
	}
	if g.one(5) {
		c.MatchLabelKeys = []string{labelVersion}
	}
	if g.one(4) {
		c.NodeAffinityPolicy = ptr.To(pick(g, []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor,
			corev1.NodeInclusionPolicyIgnore}))
	}
	if g.one(4) {
		c.NodeTaintsPolicy = ptr.To(pick(g, []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor,
			corev1.NodeInclusionPolicyIgnore}))
	}
	if g.one(100) {
		c.LabelSelector, c.MatchLabelKeys = &metav1.LabelSelector{}, nil
	}
	return c
}

func (g *generator) podTerm(labels map[string]string) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: g.anyKey(), LabelSelector: g.selector(labels)}
	switch g.IntN(8) {
	case 0:
		t.Namespaces = []string{pick(g, spaces)}
	case 1:
		t.NamespaceSelector = &metav1.LabelSelector{}
	case 2:
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": pick(g, []string{"d", "t", "x"})}}
	case 3:
		// The API server adds the requirement; the scheduler reads that.
		if v, ok := labels[labelVersion]; ok {
			t.MatchLabelKeys = []string{labelVersion}
			t.LabelSelector.MatchExpressions = append(t.LabelSelector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: labelVersion, Operator: metav1.LabelSelectorOpIn, Values: []string{v}})
		}
	}
	return t
}
