package v1alpha1

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/policy"
)

// Markets restricts what a pool may buy. Each list that is empty, and each
// bound that is absent, restricts nothing.
//
// Types with accelerators and bare-metal types are left out unless the pool requests them by
// minGPUs, or by instance type, family or category, as Karpenter prefers the others.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minVCPU) || !has(self.maxVCPU) || self.minVCPU <= self.maxVCPU",message="minVCPU must not be above maxVCPU"
type Markets struct {
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Regions []string `json:"regions,omitempty"`
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Zones []string `json:"zones,omitempty"`
	// Families such as "m5".
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Families []string `json:"families,omitempty"`
	// InstanceTypes such as "m5.large".
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	InstanceTypes []string `json:"instanceTypes,omitempty"`
	// Categories are the letters before the generation, such as "m"; on Rackspace
	// Spot gp, ch, mh, gpu and bm, or the words of its feed for them.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Categories []string `json:"categories,omitempty"`
	// Architectures as in kubernetes.io/arch; none means amd64.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=amd64;arm64
	// +kubebuilder:default={amd64}
	// +optional
	Architectures []string `json:"architectures,omitempty"`

	// MinVCPU and MaxVCPU bound the size of one node. Without an upper bound
	// the cheapest packing may be one huge node, and its loss takes all
	// replicas of a service at once.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MinVCPU *int32 `json:"minVCPU,omitempty"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxVCPU *int32 `json:"maxVCPU,omitempty"`

	// MinMemory is the least memory of one node as sold.
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : isQuantity(self) && !quantity(self).isLessThan(quantity('0'))",message="must be a quantity and not negative"
	// +optional
	MinMemory *resource.Quantity `json:"minMemory,omitempty"`

	// MinGPUs is the least number of accelerators of one node.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MinGPUs *int32 `json:"minGPUs,omitempty"`

	// MaxPrice is the most that one node may cost, in $ per hour, at the moment in which it is
	// bought: as Spot and on demand, at the price of that moment. If no market is below it, pods
	// wait and a Hold says so. A bid is never above it. Running nodes stay even if the price of
	// their market rises above it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +optional
	MaxPrice *float64 `json:"maxPrice,omitempty"`

	// MinPlacementScore is the least placement score of a Spot market, where the provider publishes
	// one. A policy that ranks markets (leftover) checks it at every decision; for the others it is
	// checked once.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	MinPlacementScore *int32 `json:"minPlacementScore,omitempty"`

	// MaxInstanceTypes limits the number of types, keeping the cheapest per vCPU. A policy that
	// ranks markets chooses them again as prices change.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	MaxInstanceTypes *int32 `json:"maxInstanceTypes,omitempty"`

	// MaxZones limits the number of zones, keeping those with the most markets. A policy that ranks
	// markets chooses them again as prices change.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	MaxZones *int32 `json:"maxZones,omitempty"`
}

// Take reports whether a node of type t in the region and zone may be bought, judged by its place
// and size. m has its defaults.
func (m *Markets) Take(region, zone string, t *policy.InstanceType) bool {
	return allows(m.Regions, region) && allows(m.Zones, zone) && m.TakeType(t)
}

// TakeType reports whether a node of type t may be bought.
func (m *Markets) TakeType(t *policy.InstanceType) bool {
	switch {
	case !allows(m.InstanceTypes, t.Name), !allows(m.Families, t.Family),
		!allowsCategory(m.Categories, t.Category), !allows(m.Architectures, t.Arch):
		return false
	case m.MinVCPU != nil && t.VCPU < int64(*m.MinVCPU), m.MaxVCPU != nil && t.VCPU > int64(*m.MaxVCPU):
		return false
	case m.MinMemory != nil && nominal(t) < m.MinMemory.Value():
		return false
	case m.MinGPUs != nil && t.Capacity.GPU < int64(*m.MinGPUs):
		return false
	}
	return m.asksFor(t)
}

// asksFor reports whether a type that is exotic was requested. A type that is not exotic always
// counts as requested.
func (m *Markets) asksFor(t *policy.InstanceType) bool {
	if len(m.InstanceTypes) > 0 {
		return true
	}
	if strings.Contains(t.Name, ".metal") {
		return false
	}
	if t.Provider == policy.Rackspace && t.Category == "bm" && len(m.Families)+len(m.Categories) == 0 {
		return false
	}
	return t.Capacity.GPU == 0 || len(m.Families) > 0 || len(m.Categories) > 0 || m.MinGPUs != nil && *m.MinGPUs > 0
}

// nominal is the memory as sold. A type of the catalog states it in a label,
// since Capacity is what the kernel sees of it.
func nominal(t *policy.InstanceType) int64 {
	const mib = 1 << 20
	if v, ok := policy.FindLabel(t.Labels, "karpenter.k8s.aws/instance-memory"); ok {
		n := int64(0)
		for _, c := range v {
			n = n*10 + int64(c-'0')
		}
		return n * mib
	}
	return t.Capacity.Memory
}

// allows reports whether list holds v or restricts nothing.
func allows(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }

// allowsCategory is allows for categories, those of Rackspace Spot in the words of
// its feed as well.
func allowsCategory(list []string, v string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(c string) bool { return c == v || Category(c) == v })
}

// Category returns the short name of what Rackspace Spot calls a category in its
// feed, such as "gp" for "General Purpose"; any other word comes back as it is.
func Category(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "gp", "general purpose":
		return "gp"
	case "ch", "compute heavy":
		return "ch"
	case "mh", "memory heavy":
		return "mh"
	case "bm", "bare metal":
		return "bm"
	case "gpu", "gpu accelerated":
		return "gpu"
	}
	return word
}
