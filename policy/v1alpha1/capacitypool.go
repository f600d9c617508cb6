package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A CapacityPool is capacity managed as one: what may be bought, how much of
// it as spot, and which policy decides.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cpool,categories=spotter
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.policy.name`
// +kubebuilder:printcolumn:name="Spot",type=string,JSONPath=`.status.spotShare`
// +kubebuilder:printcolumn:name="Savings",type=string,JSONPath=`.status.savingsPerHour`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CapacityPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CapacityPoolSpec   `json:"spec"`
	Status CapacityPoolStatus `json:"status,omitempty"`
}

// A CapacityPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type CapacityPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityPool `json:"items"`
}

// A CapacityPoolSpec is what the user wants of a pool.
type CapacityPoolSpec struct {
	// Backend is who provisions the nodes.
	Backend Backend `json:"backend"`

	// Markets restricts what may be bought; nothing stated allows all that
	// the backend sells.
	// +optional
	Markets Markets `json:"markets,omitempty"`

	// Capacity is how much may be held, and how much of it as spot.
	// +optional
	Capacity Capacity `json:"capacity,omitempty"`

	// Template is what every node of the pool carries.
	// +optional
	Template NodeTemplate `json:"template,omitempty"`

	// Policy decides for the pool; none stated leaves it to the default.
	// +optional
	Policy *PolicyRef `json:"policy,omitempty"`

	// Disruption bounds how running nodes are touched.
	// +optional
	Disruption Disruption `json:"disruption,omitempty"`

	// Mode is how far decisions are carried out. Shadow decides and records
	// but does nothing.
	// +kubebuilder:default=shadow
	// +optional
	Mode Mode `json:"mode,omitempty"`
}

// A Mode is how far decisions are carried out.
//
// +kubebuilder:validation:Enum=shadow;active;off
type Mode string

// The modes.
const (
	ModeShadow Mode = "shadow"
	ModeActive Mode = "active"
	ModeOff    Mode = "off"
)

// A Backend is who provisions the nodes of a pool: exactly one is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.karpenter), has(self.autoScalingGroups), has(self.rackspace)].filter(x, x).size() == 1",message="exactly one of karpenter, autoScalingGroups and rackspace must be set"
type Backend struct {
	// +optional
	Karpenter *KarpenterBackend `json:"karpenter,omitempty"`
	// +optional
	AutoScalingGroups *AutoScalingGroupsBackend `json:"autoScalingGroups,omitempty"`
	// +optional
	Rackspace *RackspaceBackend `json:"rackspace,omitempty"`
}

// A KarpenterBackend lets Karpenter provision: one of the two is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.nodeClassName) != has(self.nodeClassSelector)",message="exactly one of nodeClassName and nodeClassSelector must be set"
type KarpenterBackend struct {
	// NodeClassName names the node class of the node pools that are made.
	// +kubebuilder:validation:MinLength=1
	// +optional
	NodeClassName string `json:"nodeClassName,omitempty"`

	// NodeClassSelector chooses node classes by label.
	// +optional
	NodeClassSelector *metav1.LabelSelector `json:"nodeClassSelector,omitempty"`
}

// An AutoScalingGroupsBackend lets the Cluster Autoscaler provision from pairs
// of groups.
type AutoScalingGroupsBackend struct {
	// DiscoveryTags are the tags that the groups carry.
	// +kubebuilder:validation:MinProperties=1
	DiscoveryTags map[string]string `json:"discoveryTags"`
}

// A RackspaceBackend buys nodes at Rackspace Spot; no provisioner stands
// between.
type RackspaceBackend struct {
	// +kubebuilder:validation:MinLength=1
	Cloudspace string `json:"cloudspace"`
	// +kubebuilder:validation:MinLength=1
	Org string `json:"org"`

	// CredentialsSecretRef names the secret with the refresh token.
	CredentialsSecretRef corev1.SecretReference `json:"credentialsSecretRef"`
}

// Markets restricts what a pool may buy. Each list that is empty, and each
// bound that is absent, restricts nothing.
//
// Types with accelerators and bare-metal types are left out unless the pool
// asks for them by minGPUs, or by instance type, family or category, as
// Karpenter prefers the others.
type Markets struct {
	// +optional
	Regions []string `json:"regions,omitempty"`
	// +optional
	Zones []string `json:"zones,omitempty"`
	// Families such as "m5".
	// +optional
	Families []string `json:"families,omitempty"`
	// InstanceTypes such as "m5.large".
	// +optional
	InstanceTypes []string `json:"instanceTypes,omitempty"`
	// Categories are the letters before the generation, such as "m"; on Rackspace
	// Spot gp, ch, mh, gpu and bm, or the words of its feed for them.
	// +optional
	Categories []string `json:"categories,omitempty"`
	// Architectures as in kubernetes.io/arch; none means amd64.
	// +kubebuilder:validation:items:Enum=amd64;arm64
	// +optional
	Architectures []string `json:"architectures,omitempty"`

	// MinVCPU and MaxVCPU bound the size of one node. Without an upper bound
	// the cheapest packing may be one huge node, and its loss takes all
	// replicas of a service at once.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinVCPU *int32 `json:"minVCPU,omitempty"`
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxVCPU *int32 `json:"maxVCPU,omitempty"`

	// MinMemory is the least memory of one node as sold.
	// +optional
	MinMemory *resource.Quantity `json:"minMemory,omitempty"`

	// MinGPUs is the least number of accelerators of one node.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinGPUs *int32 `json:"minGPUs,omitempty"`

	// MaxPrice is the most that one node may cost, in $ per hour.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +optional
	MaxPrice *float64 `json:"maxPrice,omitempty"`

	// MinPlacementScore is the least placement score of a spot market, where
	// the provider publishes one. A policy that ranks markets (leftover) asks
	// for it at every decision; for the others it is asked for once.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	MinPlacementScore *int32 `json:"minPlacementScore,omitempty"`

	// MaxInstanceTypes keeps only so many types, the cheapest per vCPU. A policy
	// that ranks markets chooses them anew as prices move.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxInstanceTypes *int32 `json:"maxInstanceTypes,omitempty"`

	// MaxZones keeps only so many zones, those with the most markets. A policy
	// that ranks markets chooses them anew as prices move.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxZones *int32 `json:"maxZones,omitempty"`
}

// Capacity is how much a pool may hold, and how much of it as spot.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.spotShare) && has(self.exactRatio))",message="spotShare and exactRatio exclude each other"
type Capacity struct {
	// SpotShare bounds the part of the capacity that is spot.
	// +optional
	SpotShare *SpotShare `json:"spotShare,omitempty"`

	// ExactRatio is a spot share to be held from both sides, in [0, 1].
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	ExactRatio *float64 `json:"exactRatio,omitempty"`

	// OnDemandFallback lets a refused spot launch go to on-demand.
	// +kubebuilder:default=true
	// +optional
	OnDemandFallback *bool `json:"onDemandFallback,omitempty"`

	// Limits are what the pool may hold in all.
	// +optional
	Limits *Limits `json:"limits,omitempty"`
}

// A SpotShare is a range in [0, 1]; absent bounds are 0 and 1.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",message="min must not be above max"
type SpotShare struct {
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	Min *float64 `json:"min,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	Max *float64 `json:"max,omitempty"`
	// Target is where the user wants it, inside the range.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	Target *float64 `json:"target,omitempty"`
}

// Limits are upper bounds of what a pool holds; absent ones are none.
type Limits struct {
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// +optional
	GPU *resource.Quantity `json:"gpu,omitempty"`
}

// A NodeTemplate is what every node of a pool carries.
type NodeTemplate struct {
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// A PolicyRef names a policy and its parameters.
type PolicyRef struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// A Disruption bounds how running nodes are touched by choice.
type Disruption struct {
	// Budget is how many nodes may be disrupted at once, as a number or as a
	// percentage of the pool's nodes.
	// +kubebuilder:default="10%"
	// +optional
	Budget *intstr.IntOrString `json:"budget,omitempty"`

	// Schedule is a cron expression in UTC at which the budget comes into
	// force, and Duration how long it then holds. Both or neither are set;
	// without them it holds always.
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// ConsolidationPolicy is when the provisioner removes or replaces nodes.
	// +kubebuilder:default=WhenEmptyOrUnderutilized
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`

	// ConsolidateAfter is how long a node must be left alone before.
	// +optional
	ConsolidateAfter *metav1.Duration `json:"consolidateAfter,omitempty"`

	// ExpireAfter is the age at which a node is replaced; 0s means never.
	// Karpenter and Auto Scaling groups see to it. Where only a policy launches
	// nodes it is up to the policy, and of ours karpetrack does so.
	// +kubebuilder:default="720h"
	// +optional
	ExpireAfter *metav1.Duration `json:"expireAfter,omitempty"`

	// SavingsThreshold is the least relative saving, in [0, 1], for which a
	// node is replaced. Raising it moves fewer nodes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	SavingsThreshold *float64 `json:"savingsThreshold,omitempty"`

	// Cooldown is the least time between two changes; absent leaves it to the
	// policy.
	// +optional
	Cooldown *metav1.Duration `json:"cooldown,omitempty"`
}

// A ConsolidationPolicy is when a provisioner removes or replaces nodes.
//
// +kubebuilder:validation:Enum=WhenEmptyOrUnderutilized;WhenEmpty;Never
type ConsolidationPolicy string

// The consolidation policies; all but the last are Karpenter's.
const (
	ConsolidateWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	ConsolidateWhenEmpty                ConsolidationPolicy = "WhenEmpty"
	ConsolidateNever                    ConsolidationPolicy = "Never"
)

// A CapacityPoolStatus is what was last seen and decided.
type CapacityPoolStatus struct {
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// SelectedMarkets are the markets that may be bought now.
	// +optional
	SelectedMarkets []MarketStatus `json:"selectedMarkets,omitempty"`

	// SpotShare is the share held, as a percentage such as "62%".
	// +optional
	SpotShare string `json:"spotShare,omitempty"`

	// SavingsPerHour is what the pool costs less than on demand, such as
	// "$1.25".
	// +optional
	SavingsPerHour string `json:"savingsPerHour,omitempty"`

	// LastDecisionID is that of the decision last taken, for `spotter explain`.
	// +optional
	LastDecisionID string `json:"lastDecisionID,omitempty"`
}

// A MarketStatus is one market and its price.
type MarketStatus struct {
	// Name is "provider/region/zone/type/capacity-type".
	Name string `json:"name"`
	// PricePerHour is such as "$0.0312".
	PricePerHour string `json:"pricePerHour"`
}
