package scenarios

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// These are the fields of Kueue's objects that a run depends on, of the versions v1beta1 and v1beta2
// of its API; Cohorts also of v1alpha1. Fields of type anything are accepted and have no effect.

type clusterQueue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              clusterQueueSpec `json:"spec"`
}

type clusterQueueSpec struct {
	ResourceGroups    []quotaGroup          `json:"resourceGroups"`
	CohortName        string                `json:"cohortName"`
	Cohort            string                `json:"cohort"` // v1beta1
	QueueingStrategy  string                `json:"queueingStrategy"`
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	FlavorFungibility *flavorFungibility    `json:"flavorFungibility"`
	Preemption        *queuePreemption      `json:"preemption"`
	StopPolicy        string                `json:"stopPolicy"`
	AdmissionChecks   anything              `json:"admissionChecks"` // v1beta1
	AdmissionStrategy anything              `json:"admissionChecksStrategy"`
	FairSharing       anything              `json:"fairSharing"`
	AdmissionScope    anything              `json:"admissionScope"`
}

type quotaGroup struct {
	CoveredResources []string       `json:"coveredResources"`
	Flavors          []flavorQuotas `json:"flavors"`
}

type flavorQuotas struct {
	Name      string          `json:"name"`
	Resources []resourceQuota `json:"resources"`
}

type resourceQuota struct {
	Name           string             `json:"name"`
	NominalQuota   *resource.Quantity `json:"nominalQuota"`
	BorrowingLimit *resource.Quantity `json:"borrowingLimit"`
	LendingLimit   *resource.Quantity `json:"lendingLimit"`
}

type flavorFungibility struct {
	WhenCanBorrow  string `json:"whenCanBorrow"`
	WhenCanPreempt string `json:"whenCanPreempt"`
	Preference     string `json:"preference"`
}

type queuePreemption struct {
	WithinClusterQueue  string            `json:"withinClusterQueue"`
	ReclaimWithinCohort string            `json:"reclaimWithinCohort"`
	BorrowWithinCohort  *cohortPreemption `json:"borrowWithinCohort"`
}

type cohortPreemption struct {
	Policy               string `json:"policy"`
	MaxPriorityThreshold *int32 `json:"maxPriorityThreshold"`
}

type queueCohort struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              queueCohortSpec `json:"spec"`
}

type queueCohortSpec struct {
	ParentName     string       `json:"parentName"`
	Parent         string       `json:"parent"` // v1alpha1
	ResourceGroups []quotaGroup `json:"resourceGroups"`
	FairSharing    anything     `json:"fairSharing"`
}

type localQueue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              localQueueSpec `json:"spec"`
}

type localQueueSpec struct {
	ClusterQueue string   `json:"clusterQueue"`
	StopPolicy   string   `json:"stopPolicy"`
	FairSharing  anything `json:"fairSharing"`
}

type resourceFlavor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              resourceFlavorSpec `json:"spec"`
}

type resourceFlavorSpec struct {
	NodeLabels   map[string]string   `json:"nodeLabels"`
	NodeTaints   []corev1.Taint      `json:"nodeTaints"`
	Tolerations  []corev1.Toleration `json:"tolerations"`
	TopologyName anything            `json:"topologyName"`
}

type workloadPriorityClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Value             int32  `json:"value"`
	Description       string `json:"description"`
}

// New versions of Kueue add fields.
func (*clusterQueueSpec) openEnded()   {}
func (*quotaGroup) openEnded()         {}
func (*flavorQuotas) openEnded()       {}
func (*resourceQuota) openEnded()      {}
func (*flavorFungibility) openEnded()  {}
func (*queuePreemption) openEnded()    {}
func (*cohortPreemption) openEnded()   {}
func (*queueCohortSpec) openEnded()    {}
func (*localQueueSpec) openEnded()     {}
func (*resourceFlavorSpec) openEnded() {}
