package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A GPUBudget bounds what the pods of a namespace may use of an accelerator
// over a sliding window.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=gpub,categories=spotter
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.spec.resourceName`
// +kubebuilder:printcolumn:name="Consumed",type=string,JSONPath=`.status.consumed.gpuHours`
// +kubebuilder:printcolumn:name="Remaining",type=string,JSONPath=`.status.remaining.gpuHours`
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=`.status.trackedPods`
// +kubebuilder:printcolumn:name="Gate",type=string,JSONPath=`.status.gate`
// +kubebuilder:printcolumn:name="Reopens",type=string,JSONPath=`.status.reopensAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name must have at most 63 characters"
type GPUBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GPUBudgetSpec   `json:"spec"`
	Status GPUBudgetStatus `json:"status,omitempty,omitzero"`
}

// A GPUBudgetList is a list of budgets.
//
// +kubebuilder:object:root=true
type GPUBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GPUBudget `json:"items"`
}

// A GPUBudgetSpec is what the user grants.
type GPUBudgetSpec struct {
	// Selector chooses the pods that count; an empty one chooses all of the
	// namespace.
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) >= 1 && size(e.values) <= 64 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="operators must be In and NotIn with 1 to 64 values, or Exists and DoesNotExist without"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || self.matchLabels.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="the keys of matchLabels must be keys of labels"
	Selector metav1.LabelSelector `json:"selector"`

	// ResourceName is the accelerator that is counted. For nvidia.com/gpu, MIG slices
	// count as parts of a device by their compute slices, such as 3/7 for 3g.20gb, and
	// replicas (nvidia.com/gpu.shared) as the part that the node's label
	// nvidia.com/gpu.replicas gives. Devices by resource claims count for their pods.
	// +kubebuilder:default="nvidia.com/gpu"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!(self in ['memory', 'ephemeral-storage', 'pods'])",message="must be an accelerator, or cpu"
	// +optional
	ResourceName string `json:"resourceName,omitempty"`

	Quota Quota `json:"quota"`

	// +kubebuilder:default={}
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// Gate keeps new pods from being admitted as soon as the budget is spent. Evict and Pause do so
	// anyway when they start, since the controllers of the pods would create them again.
	// +optional
	Gate bool `json:"gate,omitempty"`

	// Accounting is what counts: Ledger is all that was used within the window,
	// also by pods that are gone; LiveObjects only what the pods used that are
	// there.
	// +kubebuilder:default=Ledger
	// +optional
	Accounting Accounting `json:"accounting,omitempty"`
}

// An Accounting is a way to count use.
//
// +kubebuilder:validation:Enum=Ledger;LiveObjects
type Accounting string

// The ways to count.
const (
	AccountLedger      Accounting = "Ledger"
	AccountLiveObjects Accounting = "LiveObjects"
)

// A Quota is what may be used within a window.
//
// +kubebuilder:validation:XValidation:rule="has(self.gpuHours) || has(self.dollars)",message="gpuHours or dollars must be set"
type Quota struct {
	// GPUHours is in devices × hours.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	// +optional
	GPUHours *float64 `json:"gpuHours,omitempty"`
	// Dollars is what the devices may cost: of the price of its node a pod is
	// charged the part that its devices are of the node's.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	// +optional
	Dollars *float64 `json:"dollars,omitempty"`
	// WindowHours is the length of the sliding window, at most a year.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8784
	WindowHours int32 `json:"windowHours"`
}

// An Enforcement is what happens when a budget is spent.
type Enforcement struct {
	// +kubebuilder:default=AlertOnly
	// +optional
	Action EnforcementAction `json:"action,omitempty"`

	// OverQuotaDelay is how long the budget must be spent before.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and not negative"
	// +optional
	OverQuotaDelay *metav1.Duration `json:"overQuotaDelay,omitempty"`

	// PodGracePeriod is the grace that an evicted pod gets; absent is its own.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and not negative"
	// +optional
	PodGracePeriod *metav1.Duration `json:"podGracePeriod,omitempty"`
}

// An EnforcementAction is what is done to pods over budget.
//
// +kubebuilder:validation:Enum=Evict;Pause;AlertOnly
type EnforcementAction string

// The actions.
const (
	EnforceEvict     EnforcementAction = "Evict"
	EnforcePause     EnforcementAction = "Pause"
	EnforceAlertOnly EnforcementAction = "AlertOnly"
)

// A GPUBudgetStatus is what has been used.
type GPUBudgetStatus struct {
	// ObservedGeneration is that of the spec which was last counted by.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// +optional
	Consumed Usage `json:"consumed,omitempty"`
	// +optional
	Remaining Usage `json:"remaining,omitempty"`
	// TrackedPods is the number of pods that count now.
	// +optional
	TrackedPods int32 `json:"trackedPods"`

	// Gate says whether new pods are admitted.
	// +optional
	Gate GateState `json:"gate,omitempty"`

	// ReopensAt is when a gate that is or would be closed is expected to open, if
	// that can be foreseen.
	// +optional
	ReopensAt *metav1.Time `json:"reopensAt,omitempty"`

	// CountedAt is the time up to which the use is counted.
	// +optional
	CountedAt *metav1.Time `json:"countedAt,omitempty"`

	// Conditions are Ready, Spent and GateEnforced.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The conditions of a GPUBudget. Ready says that it is counted, Spent that a quota
// is reached, and GateEnforced that pods would be or are kept out when it closes.
const (
	ConditionReady        = "Ready"
	ConditionSpent        = "Spent"
	ConditionGateEnforced = "GateEnforced"
)

// A GateState says whether new pods are admitted.
//
// +kubebuilder:validation:Enum=Open;Closed;WouldClose
type GateState string

// The states of a gate. WouldClose is that of a budget which is only watched:
// pods are admitted.
const (
	GateOpen       GateState = "Open"
	GateClosed     GateState = "Closed"
	GateWouldClose GateState = "WouldClose"
)

// A Usage is an amount of a budget, as decimal text so that it reads the same
// everywhere.
type Usage struct {
	// +optional
	GPUHours string `json:"gpuHours,omitempty"`
	// +optional
	Dollars string `json:"dollars,omitempty"`
}
