package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A SpotPlan is what the controller would do by choice in the CapacityPool of its name, whose
// mode, or that of the controller, is approve. A person approves it by its digest.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=splan,categories=spotter
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.status.digest`
// +kubebuilder:printcolumn:name="Changes",type=string,JSONPath=`.status.changes[*].change`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expires`
type SpotPlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	// +optional
	Spec   SpotPlanSpec   `json:"spec,omitempty"`
	Status SpotPlanStatus `json:"status,omitempty,omitzero"`
}

// A SpotPlanList is a list of plans.
//
// +kubebuilder:object:root=true
type SpotPlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SpotPlan `json:"items"`
}

// A SpotPlanSpec is what a person says of the plan. The controller never writes it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.approved) || !self.approved || has(self.digest) && size(self.digest) > 0",message="an approval must name the digest of the plan"
type SpotPlanSpec struct {
	// Approved has the plan carried out whose digest Digest is, until it expires.
	// +optional
	Approved bool `json:"approved,omitempty"`

	// Digest is that of the plan that was read, as its status has it.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]*$`
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`
}

// A SpotPlanState is where a plan is.
//
// +kubebuilder:validation:Enum=Pending;Approved;DigestMismatch;Expired
type SpotPlanState string

// The states of a plan.
const (
	PlanPending        SpotPlanState = "Pending"        // no person has approved it
	PlanApproved       SpotPlanState = "Approved"       // it is carried out
	PlanDigestMismatch SpotPlanState = "DigestMismatch" // another plan is approved, so that this one is not
	PlanExpired        SpotPlanState = "Expired"        // it is too old to be carried out
)

// A SpotPlanStatus is the plan.
type SpotPlanStatus struct {
	// State is whether it is carried out.
	// +optional
	State SpotPlanState `json:"state,omitempty"`

	// Digest is over all changes and the time of publication: another plan has another one.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Digest string `json:"digest,omitempty"`

	// Published is when the plan was made, and Expires when it is carried out no longer.
	// +optional
	Published metav1.Time `json:"published,omitzero"`
	// +optional
	Expires metav1.Time `json:"expires,omitzero"`

	// Changes are what would be done, at most 500 at a time.
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +optional
	Changes []SpotPlanChange `json:"changes,omitempty"`
}

// PlanChangesMax is how many changes one plan has at most.
const PlanChangesMax = 500

// A SpotPlanChange is one change. Prices, and the markets that the pool allows, may move
// until it is made.
type SpotPlanChange struct {
	// Change is what would be done, such as "drain node-1": the node is replaced where its
	// pods need one.
	// +kubebuilder:validation:MaxLength=512
	Change string `json:"change"`

	// SavingPerHour is what it saved when the plan was made, such as "$0.06".
	// +kubebuilder:validation:MaxLength=32
	// +optional
	SavingPerHour string `json:"savingPerHour,omitempty"`
}

// Sum returns the digest of the changes as they were published.
func (p *SpotPlan) Sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", p.Name, p.Status.Published.UTC().Format(time.RFC3339))
	for _, c := range p.Status.Changes {
		fmt.Fprintf(h, "%q\n", c.Change)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// StateAt returns where p is at now. What a person approved is compared with the digest of
// the changes and not with the one that the status states.
func (p *SpotPlan) StateAt(now time.Time) SpotPlanState {
	switch {
	case len(p.Status.Changes) == 0:
		return PlanPending
	case !now.Before(p.Status.Expires.Time):
		return PlanExpired
	case !p.Spec.Approved:
		return PlanPending
	case p.Spec.Digest != p.Sum():
		return PlanDigestMismatch
	}
	return PlanApproved
}

// Has reports whether change is one of p.
func (p *SpotPlan) Has(change string) bool {
	return slices.ContainsFunc(p.Status.Changes, func(c SpotPlanChange) bool { return c.Change == change })
}
