package karpenter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The labels and the annotation that Karpenter gives a meaning.
const (
	LabelNodePool     = Group + "/nodepool"
	LabelCapacityType = Group + "/capacity-type"
	DoNotDisrupt      = Group + "/do-not-disrupt"
)

// Reserved is the capacity type of capacity reservations.
const Reserved = "reserved"

// capacityTypes are the values of LabelCapacityType.
var capacityTypes = []string{"on-demand", "spot", Reserved}

// wellKnown are the labels that Karpenter itself knows of nodes, ascending. Its providers know more.
var wellKnown = []string{
	LabelCapacityType, LabelNodePool, corev1.LabelArchStable, corev1.LabelOSStable,
	corev1.LabelInstanceTypeStable, corev1.LabelWindowsBuild, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
}

// WellKnown reports whether Karpenter itself knows a label of nodes.
func WellKnown(key string) bool { return slices.Contains(wellKnown, key) }

// normalized maps old names of labels to those of today.
var normalized = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
}

// Today returns the current name of a label that has been renamed, or key.
func Today(key string) string {
	if today, old := normalized[key]; old {
		return today
	}
	return key
}

// operators are those of requirements, in the order in which an error lists them.
var operators = []corev1.NodeSelectorOperator{
	corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
	corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, OpGte, OpLte,
}

// faults collects what is wrong.
type faults []string

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return errors.New(strings.Join(f, "; "))
}

// Validate returns what Karpenter's controller refuses of a template that the API server accepts,
// nil for nothing (RuntimeValidate in nodepool_validation.go).
func (t *NodeClaimTemplate) Validate() error {
	var f faults
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		f.label(key, t.Labels[key])
	}
	seen := map[[2]string]bool{}
	f.taints(t.Spec.Taints, "taints", seen)
	f.taints(t.Spec.StartupTaints, "startupTaints", seen)
	for i := range t.Spec.Requirements {
		var one faults
		if one.requirement(t.Spec.Requirements[i]); len(one) > 0 {
			f.add("requirement %d: %v", i+1, one.err())
		}
	}
	return f.err()
}

// label checks a label of the template.
func (f *faults) label(key, value string) {
	if key == LabelNodePool || restricted(key) {
		f.add("label %q: reserved for Karpenter and the kubelet", key)
	}
	for _, e := range validation.IsQualifiedName(key) {
		f.add("label %q: %s", key, e)
	}
	for _, e := range validation.IsValidLabelValue(value) {
		f.add("label %q: value %q: %s", key, value, e)
	}
}

// restricted reports whether neither a template may set a label nor a requirement may name it.
func restricted(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	ours := ok && (domain == Group || strings.HasSuffix(domain, "."+Group))
	return !WellKnown(key) && (ours || key == corev1.LabelHostname)
}

// taints checks the taints of a field. Seen are the keys and effects so far.
func (f *faults) taints(all []corev1.Taint, field string, seen map[[2]string]bool) {
	for i := range all {
		t := &all[i]
		for _, e := range validation.IsQualifiedName(t.Key) {
			f.add("%s: key %q: %s", field, t.Key, e)
		}
		if t.Value != "" {
			for _, e := range validation.IsQualifiedName(t.Value) {
				f.add("%s: value %q: %s", field, t.Value, e)
			}
		}
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute, "":
		default:
			f.add("%s: %q is not an effect", field, t.Effect)
		}
		pair := [2]string{t.Key, string(t.Effect)}
		if seen[pair] {
			f.add("%s: %s with the effect %q is listed twice", field, t.Key, t.Effect)
		}
		seen[pair] = true
	}
}

// requirement checks a requirement.
func (f *faults) requirement(r Requirement) {
	r.Key = Today(r.Key)
	if !slices.Contains(operators, r.Operator) {
		f.add("%s: operator %q is not one of %s", r.Key, r.Operator, operators)
	}
	if r.Key == LabelNodePool || restricted(r.Key) {
		f.add("%s: reserved for Karpenter and the kubelet", r.Key)
	}
	f.capacityTypes(&r)
	for _, e := range validation.IsQualifiedName(r.Key) {
		f.add("key %q: %s", r.Key, e)
	}
	for _, value := range r.Values {
		for _, e := range validation.IsValidLabelValue(value) {
			f.add("%s: value %q: %s", r.Key, value, e)
		}
	}
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		if len(r.Values) == 0 {
			f.add("%s: In needs a value", r.Key)
		}
		if r.MinValues != nil && len(r.Values) < *r.MinValues {
			f.add("%s: %d values are fewer than minValues, %d", r.Key, len(r.Values), *r.MinValues)
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, OpGte, OpLte:
		if n, err := strconv.Atoi(strings.Join(r.Values, ",")); len(r.Values) != 1 || err != nil || n < 0 {
			f.add("%s: %s needs one integer of at least 0, not %q", r.Key, r.Operator, r.Values)
		}
	}
}

// capacityTypes checks that a requirement on the capacity type names one that there is.
func (f *faults) capacityTypes(r *Requirement) {
	if r.Key != LabelCapacityType || r.Operator != corev1.NodeSelectorOpIn {
		return
	}
	known := 0
	for _, v := range r.Values {
		if slices.Contains(capacityTypes, v) {
			known++
		}
	}
	switch {
	case known == 0:
		f.add("%s: none of %q is a capacity type: %q", r.Key, r.Values, capacityTypes)
	case r.MinValues != nil && known < *r.MinValues:
		f.add("%s: %d of %q are capacity types, fewer than minValues, %d", r.Key, known, r.Values, *r.MinValues)
	}
}
