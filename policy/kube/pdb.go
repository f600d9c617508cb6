package kube

import (
	"cmp"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// PDB converts o, including the status that the API server last reported. Errors in the spec are
// reported to fail.
func PDB(o *policyv1.PodDisruptionBudget, fail Fail) policy.PDB {
	namespace := cmp.Or(o.Namespace, "default")
	b := policy.PDB{
		Name:           namespace + "/" + o.Name,
		Namespace:      namespace,
		MinAvailable:   v1alpha1.Quantity(o.Spec.MinAvailable),
		MaxUnavailable: v1alpha1.Quantity(o.Spec.MaxUnavailable),
		AlwaysAllowUnhealthy: o.Spec.UnhealthyPodEvictionPolicy != nil &&
			*o.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow,
		Allowed:  max(0, o.Status.DisruptionsAllowed),
		Healthy:  o.Status.CurrentHealthy,
		Desired:  o.Status.DesiredHealthy,
		Expected: o.Status.ExpectedPods,
	}
	var err error
	if b.Selector, err = Selector(o.Spec.Selector); err != nil {
		fail.tell([]string{"spec", "selector"}, "%v", err)
	}
	switch {
	case o.Spec.MinAvailable != nil && o.Spec.MaxUnavailable != nil:
		fail.tell([]string{"spec", "maxUnavailable"}, "minAvailable is set too")
	case o.Spec.MinAvailable == nil && o.Spec.MaxUnavailable == nil:
		fail.tell([]string{"spec"}, "minAvailable or maxUnavailable must be set")
	case o.Spec.MinAvailable != nil && !b.MinAvailable.Set:
		fail.tell([]string{"spec", "minAvailable"}, "%q is not a number or percentage", o.Spec.MinAvailable.String())
	case o.Spec.MaxUnavailable != nil && !b.MaxUnavailable.Set:
		fail.tell([]string{"spec", "maxUnavailable"}, "%q is not a number or percentage", o.Spec.MaxUnavailable.String())
	}
	return b
}
