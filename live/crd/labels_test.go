package crd_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/test/testenv"
)

// candidates are labels of every domain that Karpenter knows of, and of others that look
// like them.
func candidates() []string {
	all := sets.New("team", "a/b", "kubernetes.io/hostname", "node.kubernetes.io/x", "kops.k8s.io/instancegroup",
		"karpenter.sh", "karpenter.sh.example.com/x", "mykarpenter.sh/x")
	all.Insert(karpv1.WellKnownLabels.UnsortedList()...)
	all.Insert(karpv1.RestrictedLabels.UnsortedList()...)
	all.Insert(karpv1.NodeInitializedLabelKey, karpv1.NodeRegisteredLabelKey, karpv1.NodeDoNotSyncTaintsLabelKey,
		karpv1.DoNotDisruptAnnotationKey)
	all.Insert(slices.Collect(maps.Keys(karpv1.NormalizedLabels))...)
	for domain := range karpv1.RestrictedLabelDomains {
		all.Insert(domain+"/x", "a."+domain+"/x", "x"+domain+"/x", domain+".a/x", "a/"+domain)
	}
	return sets.List(all)
}

// TestRestrictedLabels: a CapacityPool on Karpenter takes the labels that Karpenter takes
// in a NodePool, at the API server and by its own validation, and no others.
func TestRestrictedLabels(t *testing.T) {
	env := testenv.New(t, testenv.Options{CRDs: karpenterapis.CRDs})
	taken := 0
	for _, label := range candidates() {
		n := &karpv1.NodePool{}
		n.Name = "n"
		n.Spec.Template.Labels = map[string]string{label: "spot"}
		n.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
		n.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{}
		theirs := n.RuntimeValidate(t.Context())
		if theirs == nil {
			raw := object(t,
				`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"n"},"spec":{"template":{"spec":{"requirements":[],"nodeClassRef":{"group":"g","kind":"k","name":"n"}}}}}`)
			with(t, raw, "spec/template/metadata", fmt.Sprintf(`{"labels":{%q:"spot"}}`, label))
			theirs = env.Client.Create(t.Context(), raw, client.DryRunAll)
		}
		o := object(t, pool)
		with(t, o, "spec/template", fmt.Sprintf(`{"labels":{%q:"spot"}}`, label))
		atServer, byUs := env.Client.Create(t.Context(), o.DeepCopy(), client.DryRunAll), ours(o)
		if (theirs == nil) != (atServer == nil) || (theirs == nil) != (byUs == nil) {
			t.Errorf("%s:\nKarpenter: %v\nthe API server of a CapacityPool: %v\nour validation: %v", label, theirs, atServer, byUs)
		}
		if theirs == nil {
			taken++
		}
	}
	if n := len(candidates()); taken == 0 || taken == n {
		t.Errorf("%d of %d labels are taken: nothing was compared", taken, n)
	}
}
