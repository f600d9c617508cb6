package convert

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// An oldGPUBudget is a GPUWorkloadBudget, budget.zxuhan.dev/v1alpha1.
type oldGPUBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector metav1.LabelSelector `json:"selector"`
		Resource string               `json:"gpuResourceName"`
		Quota    struct {
			GPUHours    *resource.Quantity `json:"gpuHours"`
			WindowHours *int32             `json:"windowHours"`
		} `json:"quota"`
		Enforcement struct {
			Action string `json:"action"`
			Grace  *int32 `json:"gracePeriodSeconds"`
		} `json:"enforcement"`
	} `json:"spec"`

	// Status is the status that the old operator wrote. It is ignored.
	Status metav1.FieldsV1 `json:"status"`
}

// defaultGrace is the default grace period of the old operator, in seconds.
const defaultGrace = 30

func (r *reader) gpuBudget(o *scenarios.RawObject) {
	var old oldGPUBudget
	if err := o.Decode(&old); err != nil {
		r.fail(err)
		return
	}
	s := &source{file: o.File(), object: o}
	b := &v1alpha1.GPUBudget{ObjectMeta: named(&old.ObjectMeta)}
	b.APIVersion, b.Kind = v1alpha1.GroupVersion.String(), "GPUBudget"
	q, e := &old.Spec.Quota, &old.Spec.Enforcement
	b.Spec.Selector, b.Spec.ResourceName = old.Spec.Selector, cmp.Or(old.Spec.Resource, "nvidia.com/gpu")
	s.checkGPUBudget(&old)
	if q.GPUHours != nil {
		hours := q.GPUHours.AsApproximateFloat64()
		b.Spec.Quota.GPUHours = &hours
	}
	if q.WindowHours != nil {
		b.Spec.Quota.WindowHours = *q.WindowHours
	}
	grace := int32(defaultGrace)
	if e.Grace != nil {
		grace = *e.Grace
	}
	period := metav1.Duration{Duration: time.Duration(grace) * time.Second}
	b.Spec.Enforcement = v1alpha1.Enforcement{Action: v1alpha1.EnforcementAction(e.Action)}
	s.warnGPUBudget(b, &old, period)
	r.add(s, b)
}

// checkGPUBudget checks the same conditions as the old webhook.
func (s *source) checkGPUBudget(old *oldGPUBudget) {
	q := &old.Spec.Quota
	if len(old.Spec.Selector.MatchLabels)+len(old.Spec.Selector.MatchExpressions) == 0 {
		s.fail("spec.selector", "must not be empty: it would choose every pod of the namespace")
	}
	if old.Name == "" {
		s.fail("metadata.name", "must be set")
	}
	switch {
	case q.GPUHours == nil:
		s.fail("spec.quota.gpuHours", "must be set")
	case q.GPUHours.Sign() <= 0:
		s.fail("spec.quota.gpuHours", "%s is not above 0", q.GPUHours)
	}
	switch {
	case q.WindowHours == nil:
		s.fail("spec.quota.windowHours", "must be set")
	case *q.WindowHours < 1:
		s.fail("spec.quota.windowHours", "%d is not at least 1", *q.WindowHours)
	}
	switch v1alpha1.EnforcementAction(old.Spec.Enforcement.Action) {
	case v1alpha1.EnforceEvict, v1alpha1.EnforcePause, v1alpha1.EnforceAlertOnly:
	default:
		s.fail("spec.enforcement.action", "%q is not Evict, Pause or AlertOnly", old.Spec.Enforcement.Action)
	}
	if g := old.Spec.Enforcement.Grace; g != nil && *g < 0 {
		s.fail("spec.enforcement.gracePeriodSeconds", "%d is negative", *g)
	}
}

// warnGPUBudget sets the enforcement of b and warns about settings whose meaning changes.
func (s *source) warnGPUBudget(b *v1alpha1.GPUBudget, old *oldGPUBudget, period metav1.Duration) {
	s.warn("spec.quota.gpuHours",
		"%s: pods that were deleted, evicted or restarted count until their hours leave the window, where the "+
			"operator forgot them at once; so the same quota is spent sooner", old.Spec.Quota.GPUHours)
	const action, grace = "spec.enforcement.action", "spec.enforcement.gracePeriodSeconds"
	e := &b.Spec.Enforcement
	switch e.Action {
	case v1alpha1.EnforceEvict:
		e.OverQuotaDelay, e.PodGracePeriod = &period, &period
		s.warn(grace,
			"%v was both the delay over quota and the grace of an evicted pod, and becomes overQuotaDelay and podGracePeriod; "+
				"without podGracePeriod a pod has its own terminationGracePeriodSeconds", period.Duration)
		s.warn(action,
			"Evict keeps new pods out until there is room again, where the operator let their controllers recreate evicted pods; "+
				"gate: true keeps them out as soon as the budget is spent, and not only when evictions begin")
	case v1alpha1.EnforcePause:
		e.OverQuotaDelay = &period
		s.warn(action,
			"Pause was an annotation that nothing acted on, put on one pod again and again; from now on jobs are suspended and "+
				"new pods kept out until there is room again, and pods of other owners keep running")
	case v1alpha1.EnforceAlertOnly:
		if s.has(grace) {
			s.warn(grace, "%v is dropped: it had no effect with AlertOnly", period.Duration)
		}
	}
	if !s.has("metadata.namespace") {
		s.warn("metadata.namespace", "it is missing: the budget applies to the namespace into which it is applied")
	}
	if b.Spec.ResourceName == "cpu" {
		s.warn("spec.gpuResourceName", "cpu is counted in cores, so a GPU-hour is a core-hour")
	}
}
