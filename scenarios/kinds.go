package scenarios

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A kind describes a supported kind of object: its apiVersion and a constructor.
type kind struct {
	apiVersion string
	cluster    bool // cluster-scoped
	make       func() metav1.Object
}

// newObject returns a new object of type T.
func newObject[T any, P interface {
	*T
	metav1.Object
}]() metav1.Object {
	return P(new(T))
}

var kinds = map[string]kind{
	"CapacityPool":            {"spotter.dev/v1alpha1", true, newObject[v1alpha1.CapacityPool]},
	"ClusterQueue":            {"kueue.x-k8s.io/v1beta2", true, newObject[clusterQueue]},
	"Cohort":                  {"kueue.x-k8s.io/v1beta2", true, newObject[queueCohort]},
	"CronJob":                 {"batch/v1", false, newObject[batchv1.CronJob]},
	"DaemonSet":               {"apps/v1", false, newObject[appsv1.DaemonSet]},
	"Deployment":              {"apps/v1", false, newObject[appsv1.Deployment]},
	"EC2NodeClass":            {"karpenter.k8s.aws/v1", true, newObject[ec2NodeClass]},
	classGCE:                  {"karpenter.k8s.gcp/v1alpha1", true, newObject[gceNodeClass]},
	"GPUBudget":               {"spotter.dev/v1alpha1", false, newObject[v1alpha1.GPUBudget]},
	"HorizontalPodAutoscaler": {"autoscaling/v2", false, newObject[horizontalPodAutoscaler]},
	"Job":                     {"batch/v1", false, newObject[batchv1.Job]},
	"JobSet":                  {"jobset.x-k8s.io/v1alpha2", false, newObject[jobSet]},
	"KWOKNodeClass":           {"karpenter.kwok.sh/v1alpha1", true, newObject[kwokNodeClass]},
	"LimitRange":              {"v1", false, newObject[corev1.LimitRange]},
	"LocalQueue":              {"kueue.x-k8s.io/v1beta2", false, newObject[localQueue]},
	"NodeClass":               {"eks.amazonaws.com/v1", true, newObject[eksNodeClass]},
	"NodeOverlay":             {"karpenter.sh/v1alpha1", true, newObject[nodeOverlay]},
	"NodePool":                {"karpenter.sh/v1", true, newObject[nodePool]},
	"Pod":                     {"v1", false, newObject[corev1.Pod]},
	"PodDisruptionBudget":     {"policy/v1", false, newObject[policyv1.PodDisruptionBudget]},
	"PriorityClass":           {"scheduling.k8s.io/v1", true, newObject[schedulingv1.PriorityClass]},
	"ReplicaSet":              {"apps/v1", false, newObject[appsv1.ReplicaSet]},
	"ResourceFlavor":          {"kueue.x-k8s.io/v1beta2", true, newObject[resourceFlavor]},
	"Rollout":                 {"argoproj.io/v1alpha1", false, newObject[rollout]},
	"RuntimeClass":            {"node.k8s.io/v1", true, newObject[nodev1.RuntimeClass]},
	"ScaledObject":            {"keda.sh/v1alpha1", false, newObject[scaledObject]},
	"Scenario":                {"spotter.dev/v1alpha1", true, newObject[manifest]},
	"StatefulSet":             {"apps/v1", false, newObject[appsv1.StatefulSet]},
	"WorkloadPriorityClass":   {"kueue.x-k8s.io/v1beta2", true, newObject[workloadPriorityClass]},
}

// describedKinds are the kinds in responses of AWS, by the key that contains them. A manifest
// cannot have these kinds.
var describedKinds = map[string]kind{
	"AutoScalingGroups": {"", true, newObject[awsGroup]},
	"nodegroup":         {"", true, newObject[eksGroup]},
}

// otherVersions are the supported versions of a kind in addition to the one in kinds.
var otherVersions = map[string][]string{
	"HorizontalPodAutoscaler": {"autoscaling/v1", "autoscaling/v2beta2"},
	"CapacityPool":            {"spotter.dev/v1beta1"},
	"GPUBudget":               {"spotter.dev/v1beta1"},
	"ClusterQueue":            {"kueue.x-k8s.io/v1beta1"},
	"Cohort":                  {"kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1alpha1"},
	"LocalQueue":              {"kueue.x-k8s.io/v1beta1"},
	"ResourceFlavor":          {"kueue.x-k8s.io/v1beta1"},
	"WorkloadPriorityClass":   {"kueue.x-k8s.io/v1beta1"},
}

// workloadKinds are the kinds of objects whose pods require nodes.
var workloadKinds = []string{"CronJob", "DaemonSet", "Deployment", "Job", "JobSet", "Pod", "ReplicaSet", "Rollout",
	"StatefulSet"}
