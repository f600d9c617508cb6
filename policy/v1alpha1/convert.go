package v1alpha1

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/policy"
)

// BuysFrom reports whether the pool may buy from provider. Karpenter has
// implementations for every cloud that posts prices; Auto Scaling groups are
// those of AWS, and the auction is Rackspace's.
func (p *CapacityPool) BuysFrom(provider string) bool {
	switch b := &p.Spec.Backend; {
	case b.Rackspace != nil:
		return provider == policy.Rackspace
	case b.AutoScalingGroups != nil:
		return provider == "aws"
	}
	return provider != policy.Rackspace
}

// Pool returns the configuration that p states, with ID 0 and without markets,
// which depend on what is sold. p is valid and has its defaults.
func (p *CapacityPool) Pool() policy.Pool {
	s, d := &p.Spec, &p.Spec.Disruption
	budgets := d.budgets()
	if pause := PauseOf(p.Annotations); pause.On {
		budgets = append(budgets, pause.budget())
	}
	pool := policy.Pool{
		Name: p.Name,
		Mode: map[Mode]policy.Mode{ModeActive: policy.ModeActive, ModeApprove: policy.ModeActive,
			ModeOff: policy.ModeOff}[s.Mode],
		Policy:           s.Policy.spec(),
		Share:            s.Capacity.share(),
		OnDemandFallback: orElse(s.Capacity.OnDemandFallback, true),
		LossBudget:       orElse(s.Capacity.LossBudget, 0),
		HasLossBudget:    s.Capacity.LossBudget != nil,
		PriceMax:         policy.Dollars(orElse(s.Markets.MaxPrice, 0)),
		Choice:           s.Markets.choice(),
		CapacityTypes:    p.capacityTypes(),
		OwnShare:         p.ownShare(),
		Limits:           s.Capacity.limits(),
		Budgets:          budgets,
		Consolidation: map[ConsolidationPolicy]policy.Consolidation{
			ConsolidateWhenEmpty: policy.WhenEmpty, ConsolidateNever: policy.ConsolidateNever,
		}[d.ConsolidationPolicy],
		ConsolidateAfter: duration(d.ConsolidateAfter),
		ExpireAfter:      duration(d.ExpireAfter),
		SavingsThreshold: orElse(d.SavingsThreshold, 0),
		Cooldown:         duration(d.Cooldown),
		Labels:           labels(s.Template.Labels),
		Taints:           taints(s.Template.Taints),
	}
	pool.Fees.Fee, _ = policy.ParseFee(s.NodeFee) // it is valid, or empty for none
	pool.Provisioner, pool.Levers = s.Backend.provisioner()
	return pool
}

// capacityTypes reads the annotation that says what the pool buys by itself, ascending;
// nil without it.
func (p *CapacityPool) capacityTypes() (types []policy.CapacityType) {
	text, stated := p.Annotations[AnnotationCapacityTypes]
	if !stated {
		return nil
	}
	named := strings.Split(text, ",")
	for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
		if slices.Contains(named, c.String()) {
			types = append(types, c)
		}
	}
	return types
}

// ownShare reads the annotation with the Spot share at which the pool was captured; 0 without it.
func (p *CapacityPool) ownShare() float64 {
	share, err := strconv.ParseFloat(p.Annotations[AnnotationOwnShare], 64)
	if err != nil {
		return 0
	}
	return share
}

// provisioner returns who buys the nodes and how a share can be steered there:
// Karpenter by weights and limits of two node pools, and by single claims; the
// Cluster Autoscaler by the bounds and desired sizes of two groups.
func (b *Backend) provisioner() (policy.Provisioner, policy.Levers) {
	switch {
	case b.Karpenter != nil:
		return policy.ProvisionerKarpenter, policy.Levers{Weights: true, Limits: true, Launch: true}
	case b.AutoScalingGroups != nil:
		return policy.ProvisionerClusterAutoscaler, policy.Levers{Limits: true, Launch: true}
	}
	return policy.ProvisionerNone, policy.Levers{Launch: true}
}

// spec writes a policy and its parameters as the command line does, parameters
// in order of their keys; empty without a policy.
func (r *PolicyRef) spec() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(r.Name)
	for _, k := range slices.Sorted(maps.Keys(r.Parameters)) {
		b.WriteString(":" + k + "=" + r.Parameters[k])
	}
	return b.String()
}

func (c *Capacity) share() policy.ShareRange {
	if c.ExactRatio != nil {
		x := *c.ExactRatio
		return policy.ShareRange{Min: x, Max: x, Target: x, Exact: true, HasTarget: true}
	}
	if c.SpotShare == nil {
		return policy.ShareRange{Max: 1}
	}
	s := policy.ShareRange{Min: orElse(c.SpotShare.Min, 0), Max: orElse(c.SpotShare.Max, 1)}
	s.Target, s.HasTarget = orElse(c.SpotShare.Target, s.Min), c.SpotShare.Target != nil
	return s
}

func (m *Markets) choice() policy.MarketChoice {
	c := policy.MarketChoice{TypesMax: orElse(m.MaxInstanceTypes, 0), ZonesMax: orElse(m.MaxZones, 0)}
	if m.MinPlacementScore != nil {
		c.ScoreMin, c.HasScoreMin = int8(*m.MinPlacementScore), true
	}
	return c
}

// RanksMarkets reports whether the policy that the manifest names chooses among
// the pool's markets itself, each time it decides: the bounds on types, zones
// and placement scores are then left to it.
func (p *CapacityPool) RanksMarkets() bool {
	return p.Spec.Policy != nil && p.Spec.Policy.Name == "leftover"
}

func (c *Capacity) limits() policy.Resources {
	var r policy.Resources
	if l := c.Limits; l != nil {
		r.CPU = milli(l.CPU)
		r.Memory = whole(l.Memory)
		r.GPU = whole(l.GPU)
	}
	return r
}

// budgets returns the budget of d, and one that allows no node for its maintenance windows
// and for each of its freezes. Before an observer has read the clock windows are closed.
func (d *Disruption) budgets() []policy.DisruptionBudget {
	b := policy.DisruptionBudget{Schedule: d.Schedule, Duration: duration(d.Duration), Active: d.Schedule == ""}
	if d.Budget != nil {
		b.Nodes = Quantity(d.Budget)
	}
	all := []policy.DisruptionBudget{b}
	if len(d.Windows) > 0 {
		b := policy.DisruptionBudget{Nodes: policy.Quantity{Set: true}, Active: true,
			Closed: "maintenance window: none is open"}
		for _, w := range d.Windows {
			b.Windows = append(b.Windows, policy.Window{Schedule: w.Schedule, Duration: w.Duration.Duration})
		}
		all = append(all, b)
	}
	for _, f := range d.Freezes {
		b := policy.DisruptionBudget{Nodes: policy.Quantity{Set: true}, From: policy.TimeOf(f.From.Time),
			To: policy.TimeOf(f.To.Time)}
		if b.Closed = "freeze: until " + b.To.Std().Format("2006-01-02 15:04 UTC"); f.Reason != "" {
			b.Closed += ", " + f.Reason
		}
		all = append(all, b)
	}
	return all
}

// Quantity returns v as a count or percentage; Set is false for nil and for
// what is neither.
func Quantity(v *intstr.IntOrString) policy.Quantity {
	if v == nil {
		return policy.Quantity{}
	}
	c, wrong := quantity(v)
	return policy.Quantity{Set: wrong == "", Percent: c.percent, N: c.n}
}

func labels(m map[string]string) []policy.Label {
	var all []policy.Label
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, policy.Label{Key: k, Value: m[k]})
	}
	return all
}

func taints(in []corev1.Taint) []policy.Taint {
	var out []policy.Taint
	for _, t := range in {
		out = append(out, policy.Taint{Key: t.Key, Value: t.Value, Effect: Effect(t.Effect)})
	}
	slices.SortFunc(out, func(a, b policy.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect))
	})
	return out
}

// Effect returns the effect of a taint or toleration; an empty one is any.
func Effect(e corev1.TaintEffect) policy.TaintEffect {
	switch e {
	case corev1.TaintEffectNoSchedule:
		return policy.NoSchedule
	case corev1.TaintEffectPreferNoSchedule:
		return policy.PreferNoSchedule
	case corev1.TaintEffectNoExecute:
		return policy.NoExecute
	}
	return policy.EffectAny
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func milli(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.MilliValue()
}

func whole(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}

// Budget returns what b states, with a selector that the caller has read, and
// with an open gate. b is valid and has its defaults.
func (b *GPUBudget) Budget(namespace string, selector policy.Selector) policy.Budget {
	q, e := &b.Spec.Quota, &b.Spec.Enforcement
	return policy.Budget{
		Name: namespace + "/" + b.Name, Namespace: namespace, Selector: selector, Resource: b.Spec.ResourceName,
		GPUHours: orElse(q.GPUHours, 0), HasGPUHours: q.GPUHours != nil,
		Dollars: policy.Dollars(orElse(q.Dollars, 0)), HasDollars: q.Dollars != nil,
		Window:      time.Duration(q.WindowHours) * time.Hour,
		LiveObjects: b.Spec.Accounting == AccountLiveObjects,
		Action: map[EnforcementAction]policy.BudgetAction{
			EnforceEvict: policy.BudgetEvict, EnforcePause: policy.BudgetPause,
		}[e.Action],
		OverQuotaDelay: duration(e.OverQuotaDelay),
		PodGrace:       duration(e.PodGracePeriod), HasPodGrace: e.PodGracePeriod != nil,
		Gate: b.Spec.Gate,
	}
}
