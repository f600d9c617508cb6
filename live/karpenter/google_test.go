package karpenter

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestGoogleLead: a Node has the notice that its node class requested at its launch. Of a class that
// changed since, that is gone, or that was never read, nothing is known.
func TestGoogleLead(t *testing.T) {
	class := func(name, hash string, spec map[string]any) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: map[string]any{"kind": googleClass, "spec": spec}}
		u.SetName(name)
		u.SetAnnotations(map[string]string{googleClassHash: hash})
		return u
	}
	f := &classFinder{found: schema.GroupKind{Group: "karpenter.k8s.gcp", Kind: googleClass}}
	f.known.items = []unstructured.Unstructured{
		class("long", "7", map[string]any{"preemptionNoticeDuration": int64(120)}), class("none", "7", map[string]any{}),
		class("zero", "7", map[string]any{"preemptionNoticeDuration": int64(0)}),
		class("odd", "7", map[string]any{"preemptionNoticeDuration": int64(45)}),
		class("unhashed", "", map[string]any{"preemptionNoticeDuration": int64(120)}),
	}
	node := func(class, hash string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{googleClassLabel: class},
			Annotations: map[string]string{googleClassHash: hash}}}
	}
	for name, c := range map[string]struct {
		node *corev1.Node
		want time.Duration
	}{
		"requested": {node("long", "7"), 2 * time.Minute}, "not requested": {node("none", "7"), 30 * time.Second},
		"zero": {node("zero", "7"), 30 * time.Second}, "a value of a later version": {node("odd", "7"), 0},
		"launched before a change": {node("long", "6"), 0}, "without a hash": {node("unhashed", ""), 0},
		"an unknown class": {node("other", "7"), 0}, "no node of Karpenter": {&corev1.Node{}, 0},
	} {
		if got := f.googleLead(c.node); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := (&classFinder{}).googleLead(node("long", "7")); got != 0 {
		t.Errorf("before the classes are read: %v", got)
	}
}

// TestReadGoogle: the classes of Google Cloud are read at the start; those of another provider are
// not.
func TestReadGoogle(t *testing.T) {
	for _, kind := range []schema.GroupVersionKind{{Group: "karpenter.k8s.gcp", Version: "v1alpha1", Kind: googleClass},
		{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"}} {
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
		mapper.Add(kind, meta.RESTScopeRoot)
		u := nodeClass(true)
		u.SetGroupVersionKind(kind)
		c := kubefake.NewClientBuilder().WithScheme(testScheme(t)).WithRESTMapper(mapper).WithObjects(u).Build()
		cfg := DefaultConfig()
		f := &classFinder{cfg: &cfg, api: &apiReader{client: c, reader: c}}
		if err := f.readGoogle(t.Context()); err != nil || (len(f.known.items) > 0) != (kind.Kind == googleClass) {
			t.Errorf("%s: %v, read %d", kind.Kind, err, len(f.known.items))
		}
	}
}
