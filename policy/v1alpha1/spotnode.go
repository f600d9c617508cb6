package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A SpotNode is a node that we provision ourselves, where no provisioner
// stands between. Users only read it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=snode,categories=spotter
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Market",type=string,JSONPath=`.spec.market`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SpotNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SpotNodeSpec   `json:"spec"`
	Status SpotNodeStatus `json:"status,omitempty,omitzero"`
}

// A SpotNodeList is a list of nodes.
//
// +kubebuilder:object:root=true
type SpotNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SpotNode `json:"items"`
}

// A SpotNodeSpec is the requested node. Only the bid may change.
//
// +kubebuilder:validation:XValidation:rule="self.pool == oldSelf.pool && self.market == oldSelf.market && self.token == oldSelf.token",message="pool, market and token cannot be changed"
type SpotNodeSpec struct {
	// Pool names the CapacityPool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=58
	Pool string `json:"pool"`

	// Market is "provider/region/zone/type/capacity-type".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Market string `json:"market"`

	// Token makes the order idempotent.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Token string `json:"token"`

	// BidPerHour is the most to pay, in $ as decimal text; empty where the
	// market takes no bids.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +optional
	BidPerHour string `json:"bidPerHour,omitempty"`
}

// A SpotNodePhase is where a node is in its life.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Running;Draining;Terminating
type SpotNodePhase string

// The phases, in order.
const (
	SpotNodePending      SpotNodePhase = "Pending"
	SpotNodeProvisioning SpotNodePhase = "Provisioning"
	SpotNodeRunning      SpotNodePhase = "Running"
	SpotNodeDraining     SpotNodePhase = "Draining"
	SpotNodeTerminating  SpotNodePhase = "Terminating"
)

// A SpotNodeStatus is what became of it.
type SpotNodeStatus struct {
	// ObservedGeneration is that of the spec which was last acted on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	Phase SpotNodePhase `json:"phase,omitempty"`
	// ProviderID is that of the Node object.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
