package karpenter

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	karpv1alpha1 "sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
)

// same fails where the JSON of two types has not the same fields.
func same(t *testing.T, path string, ours, theirs reflect.Type) {
	t.Helper()
	for ours.Kind() == reflect.Pointer || ours.Kind() == reflect.Slice {
		if ours.Kind() != theirs.Kind() {
			t.Fatalf("%s is a %v, of Karpenter a %v", path, ours, theirs)
		}
		ours, theirs = ours.Elem(), theirs.Elem()
	}
	if ours.Kind() != theirs.Kind() {
		t.Fatalf("%s is a %v, of Karpenter a %v", path, ours, theirs)
	}
	if ours == theirs || ours.Kind() != reflect.Struct || ours == reflect.TypeFor[NillableDuration]() {
		return
	}
	fields := func(of reflect.Type) (tags []string) {
		for i := range of.NumField() {
			tags = append(tags, of.Field(i).Tag.Get("json"))
		}
		return tags
	}
	for _, tag := range append(fields(ours), fields(theirs)...) {
		i, k := slices.Index(fields(ours), tag), slices.Index(fields(theirs), tag)
		if i < 0 || k < 0 {
			t.Errorf("%s: the field %q is of one only", path, tag)
			continue
		}
		same(t, path+"."+tag, ours.Field(i).Type, theirs.Field(k).Type)
	}
}

// TestFields: the types have the fields of Karpenter's.
func TestFields(t *testing.T) {
	same(t, "NodePool", reflect.TypeFor[NodePoolSpec](), reflect.TypeFor[karpv1.NodePoolSpec]())
	same(t, "NodeOverlay", reflect.TypeFor[NodeOverlaySpec](), reflect.TypeFor[karpv1alpha1.NodeOverlaySpec]())
}

// TestLabels: labels mean what they do in Karpenter.
func TestLabels(t *testing.T) {
	if want := karpv1.WellKnownLabels.UnsortedList(); len(want) != len(wellKnown) || !karpv1.WellKnownLabels.HasAll(wellKnown...) {
		t.Errorf("well known are %q, of Karpenter %q", wellKnown, want)
	}
	if !reflect.DeepEqual(normalized, karpv1.NormalizedLabels) {
		t.Errorf("normalized are %q, of Karpenter %q", normalized, karpv1.NormalizedLabels)
	}
	ours := []string{LabelNodePool, LabelCapacityType, DoNotDisrupt, Reserved, Never, string(OpGte), string(OpLte)}
	if theirs := []string{karpv1.NodePoolLabelKey, karpv1.CapacityTypeLabelKey, karpv1.DoNotDisruptAnnotationKey, karpv1.CapacityTypeReserved,
		karpv1.Never, string(karpv1.NodeSelectorOpGte), string(karpv1.NodeSelectorOpLte)}; !slices.Equal(ours, theirs) {
		t.Errorf("%q, of Karpenter %q", ours, theirs)
	}
}

// TestValidate: a template is refused if and only if Karpenter refuses it.
func TestValidate(t *testing.T) {
	labels := []string{"team", "karpenter.sh/nodepool", "karpenter.sh/capacity-type", "sub.karpenter.sh/x", "karpenter.sh/own", "kubernetes.io/hostname",
		"beta.kubernetes.io/arch", "kubernetes.io/arch", "node.kubernetes.io/instance-type", "a/b/c", "", "Ünder", "topology.kubernetes.io/zone"}
	values := []string{"", "a", "spot", "on-demand", "reserved", "-a", "with space", "3", "-3", "9999999999999999999"}
	operators := []corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte", "Like", ""}
	effects := []corev1.TaintEffect{"NoSchedule", "PreferNoSchedule", "NoExecute", "", "Never"}
	rapid.Check(t, func(t *rapid.T) {
		var theirs karpv1.NodeClaimTemplate
		taint := rapid.Custom(func(t *rapid.T) corev1.Taint {
			return corev1.Taint{Key: rapid.SampledFrom(labels).Filter(func(s string) bool { return s != "" }).Draw(t, "taint"),
				Value: rapid.SampledFrom(values).Draw(t, "value"), Effect: rapid.SampledFrom(effects).Draw(t, "effect")}
		})
		theirs.Spec.Taints = rapid.SliceOfN(taint, 0, 3).Draw(t, "taints")
		theirs.Spec.StartupTaints = rapid.SliceOfN(taint, 0, 2).Draw(t, "startupTaints")
		theirs.Labels = rapid.MapOfN(rapid.SampledFrom(labels), rapid.SampledFrom(values), 0, 1).Draw(t, "labels")
		theirs.Spec.Requirements = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) karpv1.NodeSelectorRequirementWithMinValues {
			r := karpv1.NodeSelectorRequirementWithMinValues{Key: rapid.SampledFrom(labels).Draw(t, "key"),
				Operator: rapid.SampledFrom(operators).Draw(t, "operator"), Values: rapid.SliceOfN(rapid.SampledFrom(values), 0, 3).Draw(t, "values")}
			if n := rapid.IntRange(0, 3).Draw(t, "minValues"); n > 0 {
				r.MinValues = &n
			}
			return r
		}), 0, 3).Draw(t, "requirements")
		var ours NodeClaimTemplate
		text, err := json.Marshal(theirs)
		if err != nil || json.Unmarshal(text, &ours) != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := (&karpv1.NodePool{Spec: karpv1.NodePoolSpec{Template: theirs}}).RuntimeValidate(context.Background())
		if got := ours.Validate(); (got == nil) != (want == nil) {
			t.Fatalf("%s:\n%v\nof Karpenter\n%v", text, got, want)
		}
	})
}

// TestDuration: a duration is read as Karpenter reads it.
func TestDuration(t *testing.T) {
	for _, text := range []string{`"Never"`, `"30s"`, `"1h30m"`, `"0s"`, `"-5m"`, `"never"`, `""`, `30`, `null`, `{}`} {
		var ours NillableDuration
		var theirs karpv1.NillableDuration
		got, want := ours.UnmarshalJSON([]byte(text)), theirs.UnmarshalJSON([]byte(text))
		if fmt.Sprint(got) != fmt.Sprint(want) || !reflect.DeepEqual(ours.Duration, theirs.Duration) {
			t.Errorf("%s: %v, %v; of Karpenter %v, %v", text, ours, got, theirs, want)
		}
	}
}
