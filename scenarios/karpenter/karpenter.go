// Package karpenter has the fields of Karpenter's NodePool and NodeOverlay that scenarios read, and
// what its controller refuses of them. Karpenter's own package of these types
// (sigs.k8s.io/karpenter/pkg/apis/v1, v1.14) includes a client of the API server, which a program
// without a cluster needs for nothing; the tests hold this package equal to it.
package karpenter

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is the API group of Karpenter's objects.
const Group = "karpenter.sh"

// Never is a duration that does not end.
const Never = "Never"

// A NodePoolSpec is the specification of a NodePool.
type NodePoolSpec struct {
	Template   NodeClaimTemplate   `json:"template"`
	Disruption Disruption          `json:"disruption"`
	Limits     corev1.ResourceList `json:"limits,omitempty"`
	Weight     *int32              `json:"weight,omitempty"`

	// Replicas is the number of nodes of a static NodePool.
	Replicas *int64 `json:"replicas,omitempty"`
}

// A NodeClaimTemplate is what every node of a NodePool is like.
type NodeClaimTemplate struct {
	ObjectMeta `json:"metadata,omitempty"`
	Spec       NodeClaimTemplateSpec `json:"spec"`
}

// An ObjectMeta has the metadata that a node gets.
type ObjectMeta struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A NodeClaimTemplateSpec is the specification of a NodeClaimTemplate.
type NodeClaimTemplateSpec struct {
	Taints        []corev1.Taint      `json:"taints,omitempty"`
	StartupTaints []corev1.Taint      `json:"startupTaints,omitempty"`
	Requirements  []Requirement       `json:"requirements"`
	NodeClassRef  *NodeClassReference `json:"nodeClassRef"`

	// TerminationGracePeriod is the maximum time from the deletion of a node to its termination.
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
	ExpireAfter            NillableDuration `json:"expireAfter,omitempty"`
}

// The operators of requirements beyond those of Kubernetes.
const (
	OpGte corev1.NodeSelectorOperator = "Gte"
	OpLte corev1.NodeSelectorOperator = "Lte"
)

// A Requirement restricts the values of a node label.
type Requirement struct {
	Key      string                      `json:"key"`
	Operator corev1.NodeSelectorOperator `json:"operator,omitempty"`
	Values   []string                    `json:"values,omitempty"`

	// MinValues is the minimum number of values that a launch must allow.
	MinValues *int `json:"minValues,omitempty"`
}

// A NodeClassReference names the object with a provider's settings of nodes.
type NodeClassReference struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Group string `json:"group"`
}

// A Disruption says which nodes Karpenter may replace by itself, and how many at once.
type Disruption struct {
	ConsolidateAfter    NillableDuration    `json:"consolidateAfter"`
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	Budgets             []Budget            `json:"budgets,omitempty"`
}

// A ConsolidationPolicy is a value of spec.disruption.consolidationPolicy.
type ConsolidationPolicy string

// The consolidation policies.
const (
	WhenEmpty                ConsolidationPolicy = "WhenEmpty"
	WhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	Balanced                 ConsolidationPolicy = "Balanced"
)

// A DisruptionReason is a value of spec.disruption.budgets.reasons.
type DisruptionReason string

// The reasons for which a node is disrupted.
const (
	Underutilized DisruptionReason = "Underutilized"
	Empty         DisruptionReason = "Empty"
	Drifted       DisruptionReason = "Drifted"
)

// A Budget limits how many nodes are disrupted at once.
type Budget struct {
	Reasons []DisruptionReason `json:"reasons,omitempty"`

	// Nodes is a number, or a percentage such as 10%.
	Nodes    string           `json:"nodes"`
	Schedule *string          `json:"schedule,omitempty"`
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// A NillableDuration is a duration, or nil for Never.
type NillableDuration struct{ *time.Duration }

// UnmarshalJSON reads a duration of Go, or Never.
func (d *NillableDuration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil || s == Never {
		return err
	}
	parsed, err := time.ParseDuration(s)
	if err == nil {
		d.Duration = &parsed
	}
	return err
}

// A NodeOverlaySpec is the specification of a NodeOverlay.
type NodeOverlaySpec struct {
	Requirements    []OverlayRequirement `json:"requirements,omitempty"`
	PriceAdjustment *string              `json:"priceAdjustment,omitempty"`
	Price           *string              `json:"price,omitempty"`
	Capacity        corev1.ResourceList  `json:"capacity,omitempty"`
	Weight          *int32               `json:"weight,omitempty"`
}

// An OverlayRequirement restricts the values of a label of the nodes that a NodeOverlay is for.
type OverlayRequirement struct {
	Key      string                      `json:"key"`
	Operator corev1.NodeSelectorOperator `json:"operator,omitempty"`
	Values   []string                    `json:"values,omitempty"`
}
