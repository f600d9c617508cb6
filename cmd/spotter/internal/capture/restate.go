package capture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// restate returns a manifest of a pool in a snapshot. Its markets are the types and zones that the
// pool may buy at that moment, since the rules that allow them are unknown.
func (c *source) restate(p *policy.Pool) *v1alpha1.CapacityPool {
	m := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}
	s := &m.Spec
	switch p.Provisioner {
	case policy.ProvisionerKarpenter:
		s.Backend.Karpenter = &v1alpha1.KarpenterBackend{NodeClassName: "default"}
	case policy.ProvisionerClusterAutoscaler:
		s.Backend = groupBackend(p.Name)
	default:
		s.Backend = rackspaceBackend()
	}
	s.Markets = c.marketsOf(p)
	s.Capacity = capacityOf(p)
	s.Policy = policyOf(p.Policy)
	s.Disruption = disruptionOf(p)
	s.Mode = map[policy.Mode]v1alpha1.Mode{policy.ModeActive: v1alpha1.ModeActive,
		policy.ModeShadow: v1alpha1.ModeShadow, policy.ModeOff: v1alpha1.ModeOff}[p.Mode]
	for _, l := range p.Labels {
		if s.Template.Labels == nil {
			s.Template.Labels = map[string]string{}
		}
		s.Template.Labels[l.Key] = l.Value
	}
	for _, t := range p.Taints {
		s.Template.Taints = append(s.Template.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: effects[t.Effect]})
	}
	m.Default()
	if len(p.Budgets) > 1 || p.Consolidation == policy.Balanced {
		c.out.Left = append(c.out.Left,
			fmt.Sprintf("disruption budgets of pool %s after its first one, and a consolidationPolicy of Balanced: a CapacityPool has neither", c.names.pool(p.Name)))
	}
	c.assume("what pool %s may buy is the %d types and %d zones that it could buy then", c.names.pool(p.Name),
		len(s.Markets.InstanceTypes), len(s.Markets.Zones))
	return m
}

// The maximum number of entries in a manifest.
const (
	typesMax = 1024
	zonesMax = 64
)

// marketsOf returns the markets that a pool may buy and those of its nodes.
func (c *source) marketsOf(p *policy.Pool) (m v1alpha1.Markets) {
	types, zones, regions, arches := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	note := func(id policy.MarketID) {
		x := &c.s.Markets[id]
		t := &c.s.Types[x.Type]
		types[t.Name], zones[c.s.Zones[x.Zone]], regions[x.Region], arches[t.Arch] = true, true, true, true
	}
	for i := range c.s.Nodes { // first, so that the limits never exclude them
		if n := &c.s.Nodes[i]; n.Live() && n.Pool == p.ID && n.Market >= 0 {
			note(n.Market)
		}
	}
	for _, id := range p.Markets {
		if len(types) < typesMax && len(zones) < zonesMax {
			note(id)
		}
	}
	m.InstanceTypes, m.Zones = slices.Sorted(maps.Keys(types)), slices.Sorted(maps.Keys(zones))
	m.Regions, m.Architectures = slices.Sorted(maps.Keys(regions)), slices.Sorted(maps.Keys(arches))
	if p.PriceMax > 0 {
		most := p.PriceMax.Float()
		m.MaxPrice = &most
	}
	if n := p.Choice.TypesMax; n > 0 {
		m.MaxInstanceTypes = &n
	}
	if n := p.Choice.ZonesMax; n > 0 {
		m.MaxZones = &n
	}
	if p.Choice.HasScoreMin {
		n := int32(p.Choice.ScoreMin)
		m.MinPlacementScore = &n
	}
	return m
}

func capacityOf(p *policy.Pool) v1alpha1.Capacity {
	k := v1alpha1.Capacity{OnDemandFallback: &p.OnDemandFallback}
	if p.Share.Exact {
		k.ExactRatio = &p.Share.Target
	} else {
		k.SpotShare = &v1alpha1.SpotShare{Min: &p.Share.Min, Max: &p.Share.Max}
		if p.Share.HasTarget {
			k.SpotShare.Target = &p.Share.Target
		}
	}
	if p.HasLossBudget {
		k.LossBudget = &p.LossBudget
	}
	if l := p.Limits; l.CPU > 0 || l.Memory > 0 || l.GPU > 0 {
		k.Limits = &v1alpha1.Limits{}
		for _, x := range []struct {
			to *(*resource.Quantity)
			q  *resource.Quantity
		}{
			{&k.Limits.CPU, resource.NewMilliQuantity(l.CPU, resource.DecimalSI)}, {&k.Limits.Memory,
				resource.NewQuantity(l.Memory, resource.BinarySI)},
			{&k.Limits.GPU, resource.NewQuantity(l.GPU, resource.DecimalSI)},
		} {
			if !x.q.IsZero() {
				*x.to = x.q
			}
		}
	}
	return k
}

// policyOf parses "name:key=value". It returns nil for an empty specification.
func policyOf(spec string) *v1alpha1.PolicyRef {
	if spec == "" {
		return nil
	}
	parts := strings.Split(spec, ":")
	r := &v1alpha1.PolicyRef{Name: parts[0]}
	for _, kv := range parts[1:] {
		k, v, _ := strings.Cut(kv, "=")
		if r.Parameters == nil {
			r.Parameters = map[string]string{}
		}
		r.Parameters[k] = v
	}
	return r
}

func disruptionOf(p *policy.Pool) v1alpha1.Disruption {
	d := v1alpha1.Disruption{
		ConsolidationPolicy: map[policy.Consolidation]v1alpha1.ConsolidationPolicy{
			policy.WhenEmpty: v1alpha1.ConsolidateWhenEmpty, policy.ConsolidateNever: v1alpha1.ConsolidateNever,
			policy.WhenEmptyOrUnderutilized: v1alpha1.ConsolidateWhenEmptyOrUnderutilized,
		}[p.Consolidation],
		ConsolidateAfter: span(p.ConsolidateAfter), ExpireAfter: &metav1.Duration{Duration: p.ExpireAfter}, Cooldown: span(p.Cooldown),
	}
	if p.SavingsThreshold > 0 {
		d.SavingsThreshold = &p.SavingsThreshold
	}
	if len(p.Budgets) > 0 {
		b := &p.Budgets[0] // a manifest has only one
		d.Budget, d.Schedule, d.Duration = intOrString(b.Nodes), b.Schedule, span(b.Duration)
	}
	return d
}

// span returns a duration, or nil for 0.
func span(d time.Duration) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}

// intOrString returns a count or a percentage, or nil if q is not set.
func intOrString(q policy.Quantity) *intstr.IntOrString {
	if !q.Set {
		return nil
	}
	v := intstr.FromInt32(q.N)
	if q.Percent {
		v = intstr.FromString(v.String() + "%")
	}
	return &v
}
