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
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Spot",type=string,JSONPath=`.status.spotShare`
// +kubebuilder:printcolumn:name="Savings",type=string,JSONPath=`.status.savingsPerHour`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 58",message="the name must have at most 58 characters, since names of node pools are made of it"
type CapacityPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CapacityPoolSpec   `json:"spec"`
	Status CapacityPoolStatus `json:"status,omitempty,omitzero"`
}

// AnnotationCapacityTypes on a CapacityPool says which capacity types the cluster's own NodePools
// or groups of the pool allowed when it was captured: "spot", "on-demand" or both with a comma
// between. It bounds no policy; as-is uses it.
const AnnotationCapacityTypes = "spotter.dev/capacity-types"

// AnnotationOwnShare on a CapacityPool is the part of its capacity that was spot when it
// was captured, above 0 and below 1, where NodePools or groups of one capacity type each, or
// who steered them, kept it there.
const AnnotationOwnShare = "spotter.dev/own-spot-share"

// A CapacityPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type CapacityPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityPool `json:"items"`
}

// A CapacityPoolSpec is what the user wants of a pool.
//
// +kubebuilder:validation:XValidation:rule="!has(self.backend.karpenter) || !has(self.template) || !has(self.template.labels) || self.template.labels.all(k, k != 'karpenter.sh/nodepool' && k != 'kubernetes.io/hostname' && (k == 'karpenter.sh/capacity-type' || !k.matches('^[^/]*karpenter[.]sh(/|$)')))",message="template.labels must not be karpenter.sh/nodepool, kubernetes.io/hostname or others of the domain karpenter.sh: Karpenter takes no NodePool with them"
type CapacityPoolSpec struct {
	// Backend is who provisions the nodes.
	Backend Backend `json:"backend"`

	// Markets restricts what may be bought; nothing stated allows all that
	// the backend sells.
	// +kubebuilder:default={}
	// +optional
	Markets Markets `json:"markets,omitempty"`

	// Capacity is how much may be held, and how much of it as spot.
	// +kubebuilder:default={}
	// +optional
	Capacity Capacity `json:"capacity,omitempty"`

	// NodeFee is what each node costs on top of its price, such as a licence or a
	// monitoring agent: dollars per hour as 0.02/h, or per month as $15/month. It
	// makes fewer and larger nodes pay.
	// +kubebuilder:validation:Pattern=`^\$?[0-9]+(\.[0-9]+)?(/(h|hr|hour|mo|month))?$`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	NodeFee string `json:"nodeFee,omitempty"`

	// Template is what every node of the pool carries.
	// +optional
	Template NodeTemplate `json:"template,omitempty"`

	// Policy decides for the pool; the default is portfolio.
	// +optional
	Policy *PolicyRef `json:"policy,omitempty"`

	// Disruption bounds how running nodes are touched.
	// +kubebuilder:default={}
	// +optional
	Disruption Disruption `json:"disruption,omitempty"`

	// Mode is how far decisions are carried out. Shadow decides and records
	// but does nothing. Approve does by choice only what a person has approved in
	// the SpotPlan of the pool's name; notices, and pods that wait for nodes, are
	// answered at once.
	// +kubebuilder:default=shadow
	// +optional
	Mode Mode `json:"mode,omitempty"`
}

// A Mode is how far decisions are carried out.
//
// +kubebuilder:validation:Enum=shadow;approve;active;off
type Mode string

// The modes.
const (
	ModeShadow  Mode = "shadow"
	ModeApprove Mode = "approve"
	ModeActive  Mode = "active"
	ModeOff     Mode = "off"
)

// Acts reports whether decisions change anything, be it once they are approved.
func (m Mode) Acts() bool { return m == ModeActive || m == ModeApprove }

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
	// +kubebuilder:validation:MaxLength=253
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
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 128 && size(self[k]) <= 256)",message="keys must have 1 to 128 characters and values at most 256"
	DiscoveryTags map[string]string `json:"discoveryTags"`

	// AllowGroupReplacement permits changes to a group for which the group itself
	// replaces instances, blind to disruption budgets: those of the distribution
	// of a mixed-instances group.
	// +optional
	AllowGroupReplacement bool `json:"allowGroupReplacement,omitempty"`
}

// A RackspaceBackend buys nodes at Rackspace Spot; no provisioner stands
// between.
type RackspaceBackend struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Cloudspace string `json:"cloudspace"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Org string `json:"org"`

	// CredentialsSecretRef names the secret with the refresh token.
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) >= 1 && size(self.name) <= 253",message="name must not be empty"
	CredentialsSecretRef corev1.SecretReference `json:"credentialsSecretRef"`
}

// Capacity is how much a pool may hold, and how much of it as spot.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.spotShare) && has(self.exactRatio))",message="spotShare and exactRatio exclude each other"
type Capacity struct {
	// SpotShare bounds the part of the capacity that is spot.
	// +optional
	SpotShare *SpotShare `json:"spotShare,omitempty"`

	// ExactRatio is a Spot share that is held from both sides, in [0, 1]: within one node, of the
	// largest that may be bought, except while nodes start and terminate.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	ExactRatio *float64 `json:"exactRatio,omitempty"`

	// LossBudget is the part of the on-demand bill, in [0, 1], that Spot may cost the pool more
	// than it saves, outages included; 0 means no bound. If it is absent the policy decides;
	// portfolio then keeps a budget of its own. Raising it returns to Spot sooner after losses.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +optional
	LossBudget *float64 `json:"lossBudget,omitempty"`

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
// +kubebuilder:validation:XValidation:rule="!has(self.target) || ((!has(self.min) || self.min <= self.target) && (!has(self.max) || self.target <= self.max))",message="target must be between min and max"
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

// Limits are upper bounds of what a pool holds; an absent one sets no limit.
type Limits struct {
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : isQuantity(self) && !quantity(self).isLessThan(quantity('0'))",message="must be a quantity and not negative"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : isQuantity(self) && !quantity(self).isLessThan(quantity('0'))",message="must be a quantity and not negative"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : isQuantity(self) && !quantity(self).isLessThan(quantity('0'))",message="must be a quantity and not negative"
	// +optional
	GPU *resource.Quantity `json:"gpu,omitempty"`
}

// A NodeTemplate is what every node of a pool carries.
type NodeTemplate struct {
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 317 && size(self[k]) <= 63)",message="keys must have 1 to 317 characters and values at most 63"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="effects must be NoSchedule, PreferNoSchedule or NoExecute"
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:XValidation:rule="self.all(t, size(t.key) >= 1 && size(t.key) <= 317 && (!has(t.value) || size(t.value) <= 63))",message="keys must have 1 to 317 characters and values at most 63"
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// A PolicyRef names a policy and its parameters.
type PolicyRef struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Parameters are those of the policy, as `spotter sim --policy` takes them. A file that one of
	// them opens is given by name, and is in the folder models.dir of the controller's
	// configuration.
	// +kubebuilder:validation:MaxProperties=24
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) >= 1 && size(k) <= 63 && size(self[k]) <= 256)",message="keys must have 1 to 63 characters and values at most 256"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.contains(':'))",message="keys must hold no colon"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.contains(','))",message="keys must hold no comma"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.contains('='))",message="keys must hold no equals sign"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !self[k].contains(':'))",message="values must hold no colon"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !self[k].contains(','))",message="values must hold no comma"
	// +kubebuilder:validation:XValidation:rule="['bundle', 'runtime'].all(k, !(k in self) || self[k].matches('^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'))",message="bundle and runtime must be names, of letters, digits, '-', '_' and '.', and no paths"
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// A Disruption bounds how running nodes are touched by choice.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration)",message="schedule and duration must be set together"
type Disruption struct {
	// Budget is how many nodes may be disrupted at once, as a number or as a
	// percentage of the pool's nodes.
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : size(self) <= 8 && self.matches('^0*(100|[0-9]{1,2})%$')",message="must be a number or a percentage such as 10%, from 0% to 100%"
	// +optional
	Budget *intstr.IntOrString `json:"budget,omitempty"`

	// Schedule is a cron expression in UTC at which the budget comes into
	// force, and Duration how long it then holds. Both or neither are set;
	// without them it holds always.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*,/?-]+( +[0-9A-Za-z*,/?-]+){4})$')",message="must be five fields of cron, or @yearly, @monthly, @weekly, @daily or @hourly"
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and not negative"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// Windows are maintenance windows: where one is stated nodes are disrupted by choice
	// only while one is open. Notices are answered at any time.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Windows []Window `json:"windows,omitempty"`

	// Freezes are times during which no node is disrupted by choice.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Freezes []Freeze `json:"freezes,omitempty"`

	// ConsolidationPolicy is when the provisioner removes or replaces nodes.
	// +kubebuilder:default=WhenEmptyOrUnderutilized
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`

	// ConsolidateAfter is how long a node must be left alone before.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and not negative"
	// +optional
	ConsolidateAfter *metav1.Duration `json:"consolidateAfter,omitempty"`

	// ExpireAfter is the age at which a node is replaced; 0s means never. Karpenter and Auto
	// Scaling groups do so. Where only a policy launches nodes it depends on the policy: karpetrack
	// does so.
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and not negative"
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
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and not negative"
	// +optional
	Cooldown *metav1.Duration `json:"cooldown,omitempty"`
}

// A Window recurs.
type Window struct {
	// Schedule is a cron expression in UTC at which the window opens.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*,/?-]+( +[0-9A-Za-z*,/?-]+){4})$')",message="must be five fields of cron, or @yearly, @monthly, @weekly, @daily or @hourly"
	Schedule string `json:"schedule"`

	// Duration is how long it stays open.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be a duration such as 4h, and above 0"
	Duration metav1.Duration `json:"duration"`
}

// A Freeze is one interval of time.
//
// +kubebuilder:validation:XValidation:rule="self.from < self.to",message="from must be before to"
type Freeze struct {
	// From is when it starts, such as 2026-12-20T00:00:00Z, and To when it is over.
	From metav1.Time `json:"from"`
	To   metav1.Time `json:"to"`

	// Reason is shown where a drain is held for it.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f-\x9f]*$`
	// +optional
	Reason string `json:"reason,omitempty"`
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
	// ObservedGeneration is that of the spec which was last decided on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions say how the pool fares. Ready sums them up.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Mode is how far decisions are carried out at present: the lesser of what the
	// pool and the controller are set to.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// Controller is the namespace of the release that may change the pool. Another one may
	// once its controllers no longer lead.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Controller string `json:"controller,omitempty"`

	// Nodes is the number of nodes held, of which SpotNodes are spot and
	// OnDemandNodes on demand.
	// +optional
	Nodes int32 `json:"nodes"`
	// +optional
	SpotNodes int32 `json:"spotNodes"`
	// +optional
	OnDemandNodes int32 `json:"onDemandNodes"`

	// SelectedMarkets are the markets that may be bought now, the first of them
	// where there are more than 256.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	SelectedMarkets []MarketStatus `json:"selectedMarkets,omitempty"`

	// SpotShare is the share held, as a percentage such as "62%".
	// +optional
	SpotShare string `json:"spotShare,omitempty"`

	// SavingsPerHour is what the pool costs less than on demand, such as
	// "$1.25".
	// +optional
	SavingsPerHour string `json:"savingsPerHour,omitempty"`

	// LossBudget is what Spot may still cost the pool, rounded down to two digits, such as
	// "$1.20 left", or until when the pool stays on demand since that is used up, such as
	// "used up, on demand until 2026-11-29T20:00:00Z". It is absent where the policy keeps none.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	LossBudget string `json:"lossBudget,omitempty"`

	// LastDecisionID is that of the decision last taken, for `spotter explain`.
	// +kubebuilder:validation:MaxLength=128
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
