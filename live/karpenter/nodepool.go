package karpenter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// NodePoolName returns the name of the NodePool that Spotter manages for a CapacityPool and a
// capacity type.
func NodePoolName(pool string, c policy.CapacityType) string {
	if c == policy.Spot {
		return pool + "-spot"
	}
	return pool + "-od"
}

// capacities lists the capacity types that have a NodePool, in the order in which the NodePools are
// written.
var capacities = [...]policy.CapacityType{policy.Spot, policy.OnDemand}

// An object is a part of a manifest.
type object = map[string]any

// template returns the part of a NodePool's template that Karpenter's hash covers. It must not
// change once the NodePool has nodes.
func template(pool *v1alpha1.CapacityPool, class karpv1.NodeClassReference) karpv1.NodeClaimTemplate {
	t := karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{NodeClassRef: &class,
		Taints: pool.Spec.Template.Taints}}
	t.Labels = map[string]string{}
	maps.Copy(t.Labels, pool.Spec.Template.Labels)
	t.Labels[PoolLabel] = pool.Name
	d := expireAfter
	if x := pool.Spec.Disruption.ExpireAfter; x != nil {
		d = wholeSeconds(x.Duration)
	}
	if d > 0 {
		t.Spec.ExpireAfter.Duration = &d
	}
	return t
}

// expireAfter is the expiry that the API server sets for a pool without one.
const expireAfter = 720 * time.Hour

// fixedTemplate returns the present template of a NodePool that has nodes, reduced to the fields
// that Spotter owns.
func fixedTemplate(live *karpv1.NodePool) karpv1.NodeClaimTemplate {
	was := &live.Spec.Template
	t := karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{NodeClassRef: was.Spec.NodeClassRef,
		Taints: was.Spec.Taints, ExpireAfter: was.Spec.ExpireAfter}}
	t.Labels = was.Labels
	return t
}

// templateObject returns the template and its requirements in the form in which they are applied,
// with exactly the fields that Spotter owns.
func templateObject(t karpv1.NodeClaimTemplate, reqs []karpv1.NodeSelectorRequirementWithMinValues) object {
	labels := object{}
	for k, v := range t.Labels {
		labels[k] = v
	}
	spec := object{"expireAfter": karpv1.Never, "requirements": list(reqs)}
	if r := t.Spec.NodeClassRef; r != nil {
		spec["nodeClassRef"] = object{"group": r.Group, "kind": r.Kind, "name": r.Name}
	}
	if d := t.Spec.ExpireAfter.Duration; d != nil {
		spec["expireAfter"] = seconds(*d)
	}
	if len(t.Spec.Taints) > 0 {
		spec["taints"] = list(t.Spec.Taints)
	}
	return object{"metadata": object{"labels": labels}, "spec": spec}
}

// list converts parts of a manifest to unstructured objects without the fields that are not set.
func list[T any](in []T) []any {
	var out []any
	for i := range in {
		x, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&in[i])
		if err != nil {
			panic(fmt.Sprintf("karpenter: %+v has no JSON: %v", in[i], err))
		}
		out = append(out, x)
	}
	return out
}

// manifest returns Spotter's NodePool to apply: exactly the fields that Spotter owns.
func manifest(name string, pool *v1alpha1.CapacityPool, h target, t karpv1.NodeClaimTemplate,
	reqs []karpv1.NodeSelectorRequirementWithMinValues) *unstructured.Unstructured {
	u := adoptedManifest(name, h)
	u.SetLabels(map[string]string{PoolLabel: pool.Name})
	spec := u.Object["spec"].(object)
	spec["disruption"], spec["template"] = disruption(&pool.Spec.Disruption, h), templateObject(t, reqs)
	return u
}

// adoptedManifest returns the manifest to apply to an adopted NodePool: its weight and its limits.
func adoptedManifest(name string, h target) *unstructured.Unstructured {
	spec := object{"weight": int64(h.weight)}
	if l := limitList(h.limits); len(l) > 0 {
		spec["limits"] = l
	}
	u := &unstructured.Unstructured{Object: object{"spec": spec}}
	u.SetGroupVersionKind(nodePoolKind)
	u.SetName(name)
	return u
}

// Written returns the fields of a NodePool created by another manager that Spotter has written, in
// ascending order.
func Written(n *karpv1.NodePool) []string {
	var fields []string
	for _, m := range n.ManagedFields {
		if n.Labels[PoolLabel] != "" || m.Manager != string(fieldOwner) ||
			m.Operation != metav1.ManagedFieldsOperationApply || m.FieldsV1 == nil {
			continue
		}
		var has struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if json.Unmarshal(m.FieldsV1.Raw, &has) != nil {
			continue
		}
		for f := range has.Spec {
			fields = append(fields, "spec."+strings.TrimPrefix(f, "f:"))
		}
	}
	slices.Sort(fields)
	return fields
}

func limitList(in corev1.ResourceList) object {
	out := object{}
	for k, q := range in {
		out[string(k)] = q.String()
	}
	return out
}

// disruption returns the disruption settings of a NodePool. Karpenter has no consolidation policy
// that never consolidates; consolidateAfter "Never" has this effect.
func disruption(d *v1alpha1.Disruption, h target) object {
	budgets := []any{budget(d)}
	if h.closed {
		budgets = append(budgets, closedBudget())
	}
	out := object{
		"consolidationPolicy": string(karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized),
		"consolidateAfter":    "0s",
		"budgets":             budgets,
	}
	if h.emptyOnly || d.ConsolidationPolicy == v1alpha1.ConsolidateWhenEmpty {
		out["consolidationPolicy"] = string(karpv1.ConsolidationPolicyWhenEmpty)
	}
	switch {
	case d.ConsolidationPolicy == v1alpha1.ConsolidateNever:
		out["consolidateAfter"] = karpv1.Never
	case d.ConsolidateAfter != nil:
		out["consolidateAfter"] = seconds(d.ConsolidateAfter.Duration)
	}
	return out
}

// closedBudget returns a budget that allows no disruption.
func closedBudget() object { return object{"nodes": "0"} }

// closedAt reports whether a maintenance window or freeze of the pool forbids voluntary disruption
// at t. Karpenter has neither, so its NodePools are rewritten when one starts or ends.
func closedAt(pool *v1alpha1.CapacityPool, t policy.Time) bool {
	budgets := pool.Pool().Budgets
	return slices.ContainsFunc(budgets, func(b policy.DisruptionBudget) bool {
		return b.Closed != "" &&
			kube.InForce(&b, t)
	})
}

// closing reports whether applying u would stop all disruption of the NodePool live, which
// Karpenter may still disrupt.
func closing(u, live *unstructured.Unstructured) bool {
	closed := func(u *unstructured.Unstructured) bool {
		all, _, _ := unstructured.NestedSlice(u.Object, "spec", "disruption", "budgets")
		return slices.ContainsFunc(all, func(x any) bool { return within(closedBudget(), x) && within(x, closedBudget()) })
	}
	return closed(u) && !closed(live)
}

func budget(d *v1alpha1.Disruption) object {
	nodes := intstr.FromString("10%")
	if d.Budget != nil {
		nodes = *d.Budget
	}
	out := object{"nodes": nodes.String()}
	if d.Schedule != "" && d.Duration != nil {
		minutes := (d.Duration.Duration + time.Minute - 1) / time.Minute
		out["schedule"], out["duration"] = d.Schedule, fmt.Sprintf("%dm", minutes)
	}
	return out
}

// wholeSeconds rounds d up to whole seconds, the precision of Karpenter's durations. A negative d
// becomes 0.
func wholeSeconds(d time.Duration) time.Duration {
	return (max(0, d) + time.Second - 1).Truncate(time.Second)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", wholeSeconds(d)/time.Second) }

// within reports whether live contains all fields of wanted with the same values. live may contain
// more fields. Lists must have equal length and elements.
func within(wanted, live any) bool {
	switch w := wanted.(type) {
	case object:
		l, ok := live.(object)
		if !ok {
			return false
		}
		for k := range w {
			if !within(w[k], l[k]) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		return ok && slices.EqualFunc(w, l, func(a, b any) bool { return within(a, b) && within(b, a) })
	}
	return wanted == live
}

// upToDate reports whether applying u would leave the NodePool live unchanged, except for the
// annotations with the steer and the time of the write. live must not have limits or labels that u
// lacks.
func upToDate(u, live *unstructured.Unstructured) bool {
	wanted, _, _ := unstructured.NestedMap(u.Object, "spec")
	there, _, _ := unstructured.NestedMap(live.Object, "spec")
	limits, _ := wanted["limits"].(object)
	old, _ := there["limits"].(object)
	labels, _, _ := unstructured.NestedMap(wanted, "template", "metadata", "labels")
	oldLabels, _, _ := unstructured.NestedMap(there, "template", "metadata", "labels")
	closed := u.GetAnnotations()[NarrowingAnnotation] == live.GetAnnotations()[NarrowingAnnotation]
	return closed && within(wanted, there) && len(limits) == len(old) && (labels == nil || len(labels) == len(oldLabels))
}
