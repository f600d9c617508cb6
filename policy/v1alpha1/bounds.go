package v1alpha1

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The maximum sizes of lists and texts: the API server limits the cost of rules on them. The
// validation here refuses the same objects.
const (
	poolNameMax   = 58 // node pools are named for it, with a suffix of five
	budgetNameMax = 63
	nameMax       = 253
	wordMax       = 63  // a region, type, label value or policy
	keyMax        = 317 // a qualified name: a domain, a slash and a name

	placesMax, familiesMax, typesMax    = 64, 256, 1024
	labelsMax, taintsMax, parametersMax = 64, 32, 24
	vcpuMax, gpusMax                    = 100_000, 1000
	tagsMax, tagKeyMax, tagValueMax     = 16, 128, 256
	scheduleMax, parameterValueMax      = 128, 256
	requirementsMax, valuesMax          = 32, 64
	windowsMax, freezesMax, reasonMax   = 16, 32, 128
)

// atMost refuses a text that is too long.
func atMost(at *field.Path, s string, most int) field.ErrorList {
	if len([]rune(s)) <= most {
		return nil
	}
	return field.ErrorList{field.TooLong(at, s, most)}
}

// words refuses a list that is too long, and entries that are empty or too long.
func words(at *field.Path, list []string, most int) field.ErrorList {
	if len(list) > most {
		return field.ErrorList{field.TooMany(at, len(list), most)}
	}
	var errs field.ErrorList
	for i, w := range list {
		errs = append(errs, required(at.Index(i), w)...)
		errs = append(errs, atMost(at.Index(i), w, wordMax)...)
	}
	return errs
}

// entries refuses a map with too many entries, and keys and values that are empty
// or too long.
func entries(at *field.Path, m map[string]string, most, key, value int) field.ErrorList {
	if len(m) > most {
		return field.ErrorList{field.TooMany(at, len(m), most)}
	}
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(m)) {
		errs = append(errs, required(at, k)...)
		errs = append(errs, atMost(at, k, key)...)
		errs = append(errs, atMost(at.Key(k), m[k], value)...)
	}
	return errs
}

// validate also holds keys and values to the form of labels, for which the API
// server's rules have no room.
func (t *NodeTemplate) validate(at *field.Path) field.ErrorList {
	labels := at.Child("labels")
	errs := entries(labels, t.Labels, labelsMax, keyMax, wordMax)
	if len(errs) > 0 {
		return errs
	}
	for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
		errs = append(errs, label(labels.Key(k), k, t.Labels[k])...)
	}
	if len(t.Taints) > taintsMax {
		return append(errs, field.TooMany(at.Child("taints"), len(t.Taints), taintsMax))
	}
	for i, x := range t.Taints {
		taint := at.Child("taints").Index(i)
		if slices.ContainsFunc(t.Taints[:i], func(y corev1.Taint) bool { return y.Key == x.Key && y.Effect == x.Effect }) {
			errs = append(errs, field.Duplicate(taint, x.Key))
		}
		errs = append(errs, label(taint, x.Key, x.Value)...)
		errs = append(errs, oneOf(taint.Child("effect"), x.Effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	}
	return errs
}

// restricted refuses labels with which Karpenter takes no NodePool.
func restricted(at *field.Path, labels map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		domain, _, _ := strings.Cut(k, "/")
		if k == "karpenter.sh/nodepool" || k == corev1.LabelHostname ||
			strings.HasSuffix(domain, "karpenter.sh") && k != "karpenter.sh/capacity-type" {
			errs = append(errs, field.Forbidden(at.Key(k), "Karpenter takes no NodePool with this label"))
		}
	}
	return errs
}

// label refuses what is no key, or no value, of a label.
func label(at *field.Path, key, value string) field.ErrorList {
	var errs field.ErrorList
	for _, wrong := range validation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(at, key, wrong))
	}
	for _, wrong := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(at, value, wrong))
	}
	return errs
}

// selector refuses a selector that is too large or that cannot select anything definite.
func selector(at *field.Path, s *metav1.LabelSelector) field.ErrorList {
	switch {
	case len(s.MatchLabels) > requirementsMax:
		return field.ErrorList{field.TooMany(at.Child("matchLabels"), len(s.MatchLabels), requirementsMax)}
	case len(s.MatchExpressions) > requirementsMax:
		return field.ErrorList{field.TooMany(at.Child("matchExpressions"), len(s.MatchExpressions), requirementsMax)}
	}
	for i, r := range s.MatchExpressions {
		if len(r.Values) > valuesMax {
			return field.ErrorList{field.TooMany(at.Child("matchExpressions").Index(i).Child("values"), len(r.Values),
				valuesMax)}
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		return field.ErrorList{field.Invalid(at, metav1.FormatLabelSelector(s), err.Error())}
	}
	return nil
}

// period refuses a duration that is negative.
func period(at *field.Path, d *metav1.Duration) field.ErrorList {
	if d == nil || d.Duration >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, d.Duration.String(), "must not be negative")}
}
