package capture

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	betaNodePool = `
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: mixed}
spec:
  weight: 4
  template:
    spec:
      kubelet: {maxPods: 21}
      nodeClassRef: {name: linux}
      requirements: [{key: karpenter.k8s.aws/instance-category, operator: In, values: [r]}]
  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 100h}
`
	betaNodeClass = `
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: linux}
spec: {amiFamily: AL2023, role: nodes}
`
)

// TestReadBeta files NodePools and EC2NodeClasses of v1beta1 as objects of v1.
func TestReadBeta(t *testing.T) {
	for _, c := range []struct {
		pool    string
		pools   int
		missing string
	}{
		{betaNodePool, 1, "they and their EC2NodeClasses are written as v1"},
		{strings.Replace(betaNodePool, "  weight: 4", "  replicas: 4", 1), 0, `field "spec.replicas": karpenter.sh/v1beta1 has no such field`},
	} {
		var objects []client.Object
		for _, text := range []string{c.pool, betaNodeClass} {
			u := &unstructured.Unstructured{}
			read(t, text, &u.Object)
			objects = append(objects, u)
		}
		l := &listed{objects: map[reflect.Type][]client.Object{}}
		l.readBeta(t.Context(), fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(objects...).Build())
		pools, classes := l.objects[reflect.TypeFor[*karpv1.NodePool]()], l.objects[reflect.TypeFor[*unstructured.Unstructured]()]
		if !slices.ContainsFunc(l.missing, func(m string) bool { return strings.Contains(m, c.missing) }) ||
			len(pools) != c.pools || len(classes) != c.pools {
			t.Fatalf("%d NodePools and %d classes of v1, want %d; %q, want %q", len(pools), len(classes), c.pools, l.missing, c.missing)
		}
		if c.pools == 0 {
			continue
		}
		p := pools[0].(*karpv1.NodePool)
		ref := p.Spec.Template.Spec.NodeClassRef
		if ref.Group != "karpenter.k8s.aws" || ref.Kind != "EC2NodeClass" ||
			p.Spec.Template.Spec.ExpireAfter.Hours() != 100 || p.Spec.Disruption.ConsolidateAfter.Duration == nil ||
			p.Spec.Disruption.ConsolidationPolicy != karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized {
			t.Errorf("NodePool %+v of class %+v", p.Spec, ref)
		}
		if n, _, _ := unstructured.NestedFieldNoCopy(classes[0].(*unstructured.Unstructured).Object, "spec", "kubelet",
			"maxPods"); n != int64(21) && n != 21 {
			t.Errorf("the class holds %v pods (%T), want 21", n, n)
		}
	}
}

// TestDefaultsOfNodePools fills in durations that an object leaves out, and keeps Never.
func TestDefaultsOfNodePools(t *testing.T) {
	const text = "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: NAME}, spec: {disruption: {AFTER}, template: {spec: {nodeClassRef: {kind: KIND}, EXPIRE}}}}"
	for name, c := range map[string]struct{ after, kind, expire, want string }{
		"nothing": {"", "EC2NodeClass", "", "0s 720h0m0s"},
		"auto":    {"", "NodeClass", "", "0s 336h0m0s"},
		"never":   {"consolidateAfter: Never", "EC2NodeClass", "expireAfter: Never", "Never Never"},
		"half":    {"consolidateAfter: 30s", "EC2NodeClass", "", "30s 720h0m0s"},
		"all":     {"consolidateAfter: 30s", "EC2NodeClass", "expireAfter: 5h", "30s 5h0m0s"},
	} {
		u, p := &unstructured.Unstructured{}, &karpv1.NodePool{}
		for _, into := range []any{&u.Object, p} {
			read(t, strings.NewReplacer("NAME", name, "AFTER", c.after, "KIND", c.kind, "EXPIRE", c.expire).Replace(text), into)
		}
		l := &listed{objects: map[reflect.Type][]client.Object{reflect.TypeOf(p): {p}}}
		l.fillDefaults(t.Context(), fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(u).Build())
		show := func(d karpv1.NillableDuration) string {
			if d.Duration == nil {
				return karpv1.Never
			}
			return d.Duration.String()
		}
		if got := show(p.Spec.Disruption.ConsolidateAfter) + " " + show(p.Spec.Template.Spec.ExpireAfter); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
