package karpenter

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// NodePoolName returns the name of the NodePool of ours that buys the capacity type
// for a CapacityPool.
func NodePoolName(pool string, c policy.CapacityType) string {
	if c == policy.Spot {
		return pool + "-spot"
	}
	return pool + "-od"
}

// capacities are the capacity types that have a NodePool, in the order in which
// these are written.
var capacities = [...]policy.CapacityType{policy.Spot, policy.OnDemand}

// object is a part of a manifest.
type object = map[string]any

// template returns the part of a NodePool's template that its hash covers: what is
// fixed once it has nodes.
func template(pool *v1alpha1.CapacityPool, class karpv1.NodeClassReference) object {
	labels := object{}
	for k, v := range pool.Spec.Template.Labels {
		labels[k] = v
	}
	labels[PoolLabel] = pool.Name
	spec := object{
		"nodeClassRef": object{"group": class.Group, "kind": class.Kind, "name": class.Name},
		"expireAfter":  karpv1.Never,
	}
	if d := pool.Spec.Disruption.ExpireAfter; d == nil {
		spec["expireAfter"] = seconds(expireAfter)
	} else if d.Duration > 0 {
		spec["expireAfter"] = seconds(d.Duration)
	}
	if t := taints(pool.Spec.Template.Taints); len(t) > 0 {
		spec["taints"] = t
	}
	return object{"metadata": object{"labels": labels}, "spec": spec}
}

// expireAfter is what the API server gives a pool that states none.
const expireAfter = 720 * time.Hour

func taints(in []corev1.Taint) []any {
	var out []any
	for _, t := range in {
		x := object{"key": t.Key, "effect": string(t.Effect)}
		if t.Value != "" {
			x["value"] = t.Value
		}
		out = append(out, x)
	}
	return out
}

// fixedTemplate returns the template of a NodePool that has nodes, as it is, in the
// fields that are ours.
func fixedTemplate(live *karpv1.NodePool) object {
	t := &live.Spec.Template
	labels := object{}
	for k, v := range t.Labels {
		labels[k] = v
	}
	spec := object{"expireAfter": karpv1.Never}
	if r := t.Spec.NodeClassRef; r != nil {
		spec["nodeClassRef"] = object{"group": r.Group, "kind": r.Kind, "name": r.Name}
	}
	if d := t.Spec.ExpireAfter.Duration; d != nil {
		spec["expireAfter"] = seconds(*d)
	}
	if x := taints(t.Spec.Taints); len(x) > 0 {
		spec["taints"] = x
	}
	return object{"metadata": object{"labels": labels}, "spec": spec}
}

// manifest returns the NodePool of ours to apply: exactly the fields that we own.
func manifest(name string, pool *v1alpha1.CapacityPool, h half, fixed object, reqs []karpv1.NodeSelectorRequirementWithMinValues) *unstructured.Unstructured {
	t := object{"metadata": fixed["metadata"], "spec": maps.Clone(fixed["spec"].(object))}
	t["spec"].(object)["requirements"] = requirementList(reqs)
	spec := object{"weight": int64(h.weight), "disruption": disruption(&pool.Spec.Disruption, h.emptyOnly), "template": t}
	if l := limitList(h.limits); len(l) > 0 {
		spec["limits"] = l
	}
	u := &unstructured.Unstructured{Object: object{"spec": spec}}
	u.SetGroupVersionKind(nodePoolKind)
	u.SetName(name)
	u.SetLabels(map[string]string{PoolLabel: pool.Name})
	return u
}

// adopted returns what is applied to a NodePool that somebody else made: its weight
// and its limits.
func adopted(name string, h half) *unstructured.Unstructured {
	spec := object{"weight": int64(h.weight)}
	if l := limitList(h.limits); len(l) > 0 {
		spec["limits"] = l
	}
	u := &unstructured.Unstructured{Object: object{"spec": spec}}
	u.SetGroupVersionKind(nodePoolKind)
	u.SetName(name)
	return u
}

func limitList(in corev1.ResourceList) object {
	out := object{}
	for k, q := range in {
		out[string(k)] = q.String()
	}
	return out
}

func requirementList(reqs []karpv1.NodeSelectorRequirementWithMinValues) []any {
	var out []any
	for _, r := range reqs {
		x := object{"key": r.Key, "operator": string(r.Operator)}
		if len(r.Values) > 0 {
			values := make([]any, len(r.Values))
			for i, v := range r.Values {
				values[i] = v
			}
			x["values"] = values
		}
		if r.MinValues != nil {
			x["minValues"] = int64(*r.MinValues)
		}
		out = append(out, x)
	}
	return out
}

// disruption returns when Karpenter may remove nodes by itself. Karpenter has no
// policy that never consolidates: a node is then never alone for long enough.
func disruption(d *v1alpha1.Disruption, emptyOnly bool) object {
	out := object{
		"consolidationPolicy": string(karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized),
		"consolidateAfter":    "0s",
		"budgets":             []any{budget(d)},
	}
	if emptyOnly || d.ConsolidationPolicy == v1alpha1.ConsolidateWhenEmpty {
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

func budget(d *v1alpha1.Disruption) object {
	nodes := intstr.FromString("10%")
	if d.Budget != nil {
		nodes = *d.Budget
	}
	out := object{"nodes": nodes.String()}
	if d.Schedule != "" && d.Duration != nil {
		// Karpenter takes whole minutes.
		minutes := (d.Duration.Duration + time.Minute - 1) / time.Minute
		out["schedule"], out["duration"] = d.Schedule, fmt.Sprintf("%dm", minutes)
	}
	return out
}

// seconds writes d in whole seconds, rounded up, as Karpenter takes durations.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%ds", (max(0, d)+time.Second-1)/time.Second)
}

// within reports whether live has all that wanted says, whatever it has besides.
// Lists are compared as a whole.
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

// upToDate reports whether applying u would leave the NodePool live as it is but for
// what it was to buy and when: also that no limit of ours is there that u has not.
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
