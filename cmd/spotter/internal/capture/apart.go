package capture

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// apart says by the name of a node why it cannot be simulated: what its pods run on is
// nothing that a market of the catalog sells.
func (l *listed) apart() map[string]string {
	out := map[string]string{}
	for _, o := range l.objects[reflect.TypeFor[*corev1.Node]()] {
		if why := apartOf(o.(*corev1.Node)); why != "" { //nolint:forcetypeassert // it is filed by its type
			out[o.GetName()] = why
		}
	}
	return out
}

// sharing are labels by which the accelerators of a node are shared by time.
var sharing = []string{"cloud.google.com/gke-gpu-sharing-strategy", "nvidia.com/gpu.sharing-strategy"}

func apartOf(n *corev1.Node) string {
	switch {
	case n.Labels["eks.amazonaws.com/compute-type"] == "fargate":
		return "of Fargate, which has no Spot prices and is paid by the pod"
	case n.Labels[corev1.LabelOSStable] == "windows":
		return "that run Windows, whose prices are others"
	}
	var slicesOf []string
	for name, q := range n.Status.Capacity {
		slice := strings.HasPrefix(string(name), "nvidia.com/mig-") || strings.HasSuffix(string(name), ".shared")
		if slice && !q.IsZero() {
			slicesOf = append(slicesOf, string(name))
		}
	}
	if len(slicesOf) > 0 {
		slices.Sort(slicesOf)
		return "whose GPUs are cut into " + strings.Join(slicesOf, ", ")
	}
	if strings.Contains(n.Labels["nvidia.com/gpu.product"], "-MIG-") {
		return "whose GPUs are cut into " + n.Labels["nvidia.com/gpu.product"]
	}
	for _, key := range sharing {
		if v := n.Labels[key]; v != "" && v != "none" {
			return "whose GPUs are shared by time (" + key + ")"
		}
	}
	return ""
}

// readBeta reads the NodePools of a Karpenter before 1.0, as its own conversion makes those of
// v1 of them.
func (l *listed) readBeta(ctx context.Context, c client.Reader) {
	if len(l.objects[reflect.TypeFor[*karpv1.NodePool]()]) > 0 {
		return
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1beta1", Kind: "NodePoolList"})
	if err := c.List(ctx, &list); apierrors.IsForbidden(err) && !slices.ContainsFunc(l.missing, func(m string) bool { return strings.Contains(m, "nodepools") }) {
		l.missing = append(l.missing, "the right to list nodepools.karpenter.sh is missing: a NodePool allows the capacity types that its nodes have")
		return
	} else if err != nil || len(list.Items) == 0 {
		return // there are none, or it was said that they may not be read
	}
	for i := range list.Items {
		p := &karpv1.NodePool{}
		p.Name = list.Items[i].GetName()
		if text, err := json.Marshal(fromBeta(list.Items[i].Object)); err == nil && json.Unmarshal(text, &p.Spec) == nil {
			l.objects[reflect.TypeFor[*karpv1.NodePool]()] = append(l.objects[reflect.TypeFor[*karpv1.NodePool]()], p)
		}
	}
	l.missing = append(l.missing, "the NodePools are of karpenter.sh/v1beta1: they are read as v1 would have them, without their node classes and settings of the kubelet; Spotter itself needs Karpenter 1.0 or later")
}

// fromBeta returns the spec of a NodePool of v1beta1 as v1 has it (nodepool_conversion.go of
// Karpenter 1.0).
func fromBeta(object map[string]any) map[string]any {
	spec, _, _ := unstructured.NestedMap(object, "spec")
	move := func(value any, found bool, to ...string) {
		if found {
			_ = unstructured.SetNestedField(spec, value, to...) // a path that cannot be set was none
		}
	}
	version, found, _ := unstructured.NestedString(spec, "template", "spec", "nodeClassRef", "apiVersion")
	group, _, _ := strings.Cut(version, "/")
	move(group, found, "template", "spec", "nodeClassRef", "group")
	expire, found, _ := unstructured.NestedString(spec, "disruption", "expireAfter")
	move(expire, found, "template", "spec", "expireAfter")
	consolidation, _, _ := unstructured.NestedString(spec, "disruption", "consolidationPolicy")
	move(string(karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized), consolidation == "WhenUnderutilized", "disruption", "consolidationPolicy")
	_, stated, _ := unstructured.NestedString(spec, "disruption", "consolidateAfter")
	move("0s", !stated, "disruption", "consolidateAfter")
	return spec
}
