package capture

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A priorityClass is a priority class as its pods show it.
type priorityClass struct {
	value int32
	never bool
}

// prioritise sets the priority of a template in s. If pods of one class show different values, the
// class has the values of the first.
func (c *podWriter) prioritise(s *corev1.PodSpec, t *policy.Template) {
	if t.PriorityClass == "" {
		if t.Priority != 0 {
			s.Priority = &t.Priority
		}
	} else {
		s.PriorityClassName = c.names.class(t.PriorityClass)
		if _, known := c.classes[t.PriorityClass]; !known {
			c.classes[t.PriorityClass] = priorityClass{t.Priority, t.PreemptionNever}
		}
	}
	switch never := c.classes[t.PriorityClass].never; {
	case t.PreemptionNever && !never:
		s.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	case !t.PreemptionNever && never:
		s.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
	}
}

// priorityClasses returns the priority classes of the pods, without those that every cluster has.
func (c *podWriter) priorityClasses() (out []any) {
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		if strings.HasPrefix(name, "system-") {
			continue
		}
		k := c.classes[name]
		p := &schedulingv1.PriorityClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
			ObjectMeta: metav1.ObjectMeta{Name: c.names.class(name)}, Value: k.value,
		}
		if k.never {
			p.PreemptionPolicy = ptr.To(corev1.PreemptNever)
		}
		out = append(out, p)
	}
	return out
}

// disruptionBudgets returns the PodDisruptionBudgets that select a captured pod.
func (c *workWriter) disruptionBudgets() (out []any) {
	idle := 0
	for i := range c.s.PDBs {
		b := &c.s.PDBs[i]
		if !c.pdbs[b.ID] {
			idle++
			continue
		}
		namespace, name := split(c.names.qualified(b.Name, "pdb"))
		x := &policyv1.PodDisruptionBudget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: c.names.selector(&b.Selector), MinAvailable: intOrString(b.MinAvailable), MaxUnavailable: intOrString(b.MaxUnavailable),
			},
		}
		if b.AlwaysAllowUnhealthy {
			x.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
		}
		out = append(out, x)
	}
	if idle > 0 {
		c.leave(idle, "PodDisruptionBudgets that select no pod that is captured")
	}
	return out
}

// gpuBudgets returns the GPU budgets: those with a manifest as it states them, the others as they
// are in the snapshot.
func (c *source) gpuBudgets() (out []any) {
	stated := map[string]bool{}
	for i := range c.o.GPUBudgets {
		b := c.o.GPUBudgets[i].DeepCopy()
		b.Default()
		if len(b.Validate()) > 0 {
			c.leave(1, "GPUBudgets that are not valid, such as %s/%s", b.Namespace, b.Name)
			continue
		}
		stated[b.Namespace+"/"+b.Name] = true
		out = append(out, c.gpuBudget(b.Namespace+"/"+b.Name, &b.Spec))
	}
	for i := range c.s.Budgets {
		if b := &c.s.Budgets[i]; !stated[b.Name] {
			out = append(out, c.gpuBudget(b.Name, restateGPUBudget(b)))
		}
	}
	return out
}

func (c *source) gpuBudget(name string, spec *v1alpha1.GPUBudgetSpec) *v1alpha1.GPUBudget {
	namespace, short := split(c.names.qualified(name, "budget"))
	b := &v1alpha1.GPUBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "spotter.dev/v1alpha1", Kind: "GPUBudget"},
		ObjectMeta: metav1.ObjectMeta{Name: short, Namespace: namespace}, Spec: *spec,
	}
	c.names.hideSelector(&b.Spec.Selector)
	return b
}

// restateGPUBudget returns the manifest of a GPU budget of a snapshot. Names are not anonymised.
func restateGPUBudget(b *policy.Budget) *v1alpha1.GPUBudgetSpec {
	s := &v1alpha1.GPUBudgetSpec{
		ResourceName: b.Resource, Gate: b.Gate, Quota: v1alpha1.Quota{WindowHours: int32(b.Window.Hours())},
		Enforcement: v1alpha1.Enforcement{
			Action: map[policy.BudgetAction]v1alpha1.EnforcementAction{
				policy.BudgetAlert: v1alpha1.EnforceAlertOnly, policy.BudgetPause: v1alpha1.EnforcePause, policy.BudgetEvict: v1alpha1.EnforceEvict,
			}[b.Action],
			OverQuotaDelay: span(b.OverQuotaDelay),
		},
	}
	if sel := newNames(false).selector(&b.Selector); sel != nil {
		s.Selector = *sel
	}
	if b.HasGPUHours {
		s.Quota.GPUHours = &b.GPUHours
	}
	if b.HasDollars {
		s.Quota.Dollars = ptr.To(b.Dollars.Float())
	}
	if b.HasPodGrace {
		s.Enforcement.PodGracePeriod = &metav1.Duration{Duration: b.PodGrace}
	}
	if b.LiveObjects {
		s.Accounting = v1alpha1.AccountLiveObjects
	}
	return s
}

// A commitment is a commitment in the form of a scenario.
type commitment struct {
	Name         string   `json:"name"`
	InstanceType string   `json:"instanceType,omitempty"`
	Count        *int64   `json:"count,omitempty"`
	Spend        *float64 `json:"spend,omitempty"`
	Discount     *float64 `json:"discount,omitempty"`
	Region       string   `json:"region,omitempty"`
	Zone         string   `json:"zone,omitempty"`
	Family       string   `json:"family,omitempty"`
	Fee          *float64 `json:"fee,omitempty"`
}

// commitmentsOf returns the reserved instances. A snapshot records of savings plans, and of
// size-flexible reserved instances, only what they cover and not what was bought.
func (c *source) commitmentsOf() (out []commitment) {
	for i := range c.s.Commitments {
		k := &c.s.Commitments[i]
		if k.Unit != policy.CoverNodes || k.Type == "" {
			c.leave(1, "commitments that are not of one instance type: state them in spec.commitments")
			continue
		}
		x := commitment{Name: c.names.of("commitment", k.Name), InstanceType: k.Type, Count: &k.Amount, Region: k.Region,
			Zone: k.Zone}
		if k.Fee != policy.NoPrice {
			x.Fee = ptr.To(k.Fee.Float())
		}
		out = append(out, x)
	}
	return slices.Clip(out)
}
