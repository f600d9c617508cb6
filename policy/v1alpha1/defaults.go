package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Default fills in what the user left out, as the API server does.
func (p *CapacityPool) Default() {
	s := &p.Spec
	if s.Mode == "" {
		s.Mode = ModeShadow
	}
	if len(s.Markets.Architectures) == 0 {
		s.Markets.Architectures = []string{"amd64"}
	}
	if s.Capacity.OnDemandFallback == nil {
		yes := true
		s.Capacity.OnDemandFallback = &yes
	}
	d := &s.Disruption
	if d.Budget == nil {
		tenth := intstr.FromString("10%") // as Karpenter's default
		d.Budget = &tenth
	}
	if d.ConsolidationPolicy == "" {
		d.ConsolidationPolicy = ConsolidateWhenEmptyOrUnderutilized
	}
	if d.ExpireAfter == nil {
		d.ExpireAfter = &metav1.Duration{Duration: 720 * time.Hour} // as Karpenter's default
	}
}

// Default fills in what the user left out, as the API server does.
func (b *GPUBudget) Default() {
	if b.Spec.ResourceName == "" {
		b.Spec.ResourceName = "nvidia.com/gpu"
	}
	if b.Spec.Enforcement.Action == "" {
		b.Spec.Enforcement.Action = EnforceAlertOnly
	}
	if b.Spec.Accounting == "" {
		b.Spec.Accounting = AccountLedger
	}
}
