package karpenter

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A claimConverter converts NodeClaims to machines and to names of markets.
type claimConverter struct {
	cfg *Config
	api *apiReader
}

// machine returns the machine of a claim. A claim of Spotter without a machine is reported with the
// first market that it requests, so that its capacity is expected.
func (x *claimConverter) machine(c *karpv1.NodeClaim) backend.Machine {
	m := backend.Machine{
		Name: c.Name, ProviderID: c.Status.ProviderID, Node: c.Status.NodeName, Token: c.Annotations[TokenAnnotation],
		Launched: policy.TimeOf(c.CreationTimestamp.Time), Phase: policy.NodeLaunching, Labels: kube.Labels(c.Labels),
	}
	m.Allocatable, _ = kube.NodeResources(c.Status.Allocatable)
	for _, t := range c.Spec.Taints {
		m.Taints = append(m.Taints, policy.Taint{Key: t.Key, Value: t.Value, Effect: v1alpha1.Effect(t.Effect)})
	}
	m.Pool = x.api.poolOf(c)
	zone := c.Labels[corev1.LabelTopologyZone]
	if t := c.Labels[corev1.LabelInstanceTypeStable]; t != "" && zone != "" {
		provider, region := x.provider(c), x.region(c, zone)
		m.Market = strings.Join([]string{provider, region, kube.MarketZone(provider, region, zone), t,
			c.Labels[karpv1.CapacityTypeLabelKey]}, "/")
	} else if asked := c.Annotations[MarketsAnnotation]; asked != "" {
		m.Market, _, _ = strings.Cut(asked, ",")
	}
	switch {
	case !c.DeletionTimestamp.IsZero():
		m.Phase = policy.NodeDeleting
	case claimIs(c, karpv1.ConditionTypeInitialized):
		m.Phase = policy.NodeInitialized
	case claimIs(c, karpv1.ConditionTypeRegistered):
		m.Phase = policy.NodeRegistered
	}
	switch { // for a node that Spotter drains, its annotation determines ActedBy
	case !c.DeletionTimestamp.IsZero() && m.Token != "" && !launched(c):
		m.ActedBy = policy.ActorUs
	case !c.DeletionTimestamp.IsZero(), claimIs(c, karpv1.ConditionTypeDisruptionReason):
		m.ActedBy = policy.ActorKarpenter
	}
	return m
}

// provider returns the provider of the machine of a claim: the configured provider if there is one,
// else the provider in its provider ID, else the provider of its node class.
func (x *claimConverter) provider(c *karpv1.NodeClaim) string {
	if x.cfg.Provider != "" {
		return x.cfg.Provider
	}
	scheme, _, found := strings.Cut(c.Status.ProviderID, "://")
	if !found && c.Spec.NodeClassRef != nil {
		scheme = map[string]string{
			"karpenter.k8s.aws": "aws", "eks.amazonaws.com": "aws", "karpenter.azure.com": "azure", "karpenter.k8s.gcp": "gcp", "karpenter.kwok.sh": "kwok",
		}[c.Spec.NodeClassRef.Group]
	}
	if scheme == "gce" {
		return "gcp"
	}
	return scheme
}

// region returns the region of a claim in a zone, empty if it is unknown.
func (x *claimConverter) region(c *karpv1.NodeClaim, zone string) string {
	if r := c.Labels[corev1.LabelTopologyRegion]; r != "" {
		return r
	}
	provider := x.provider(c)
	if provider == "gcp" || provider == "azure" { // europe-west1-b, westeurope-1
		if i := strings.LastIndexByte(zone, '-'); i > 0 {
			return zone[:i]
		}
	}
	if i := slices.IndexFunc(x.cfg.Regions, func(r string) bool { return strings.HasPrefix(zone, r) }); i >= 0 {
		return x.cfg.Regions[i] // includes local zones, such as us-west-2-lax-1a
	}
	if provider == "aws" { // us-east-1a
		return strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz")
	}
	if len(x.cfg.Regions) == 1 {
		return x.cfg.Regions[0]
	}
	return ""
}

// regionAsked returns the region in which a claim without a machine may get one, empty if it is
// unknown.
func (x *claimConverter) regionAsked(c *karpv1.NodeClaim) string {
	zone := c.Labels[corev1.LabelTopologyZone]
	for _, r := range c.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && r.Key == corev1.LabelTopologyZone && len(r.Values) > 0 && zone == "" {
			zone = r.Values[0]
		}
	}
	return x.region(c, zone)
}

// asked returns the names of the markets that a claim of Karpenter requests. The region in the
// names is empty if it is unknown.
func (x *claimConverter) asked(c *karpv1.NodeClaim) []string {
	values := map[string][]string{}
	for _, r := range c.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn {
			values[r.Key] = r.Values
		}
	}
	var all []string
	for _, t := range values[corev1.LabelInstanceTypeStable] {
		for _, z := range values[corev1.LabelTopologyZone] {
			for _, k := range values[karpv1.CapacityTypeLabelKey] {
				provider, region := x.provider(c), x.region(c, z)
				all = append(all, strings.Join([]string{provider, region, kube.MarketZone(provider, region, z), t, k}, "/"))
			}
		}
	}
	return all
}
