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

// A kind is a kind of object that a scenario may contain, with its apiVersion and a new object.
type kind struct {
	apiVersion string
	cluster    bool // has no namespace
	make       func() (any, *metav1.ObjectMeta)
}

var kinds = map[string]kind{
	"Scenario": {"spotter.dev/v1alpha1", true, func() (any, *metav1.ObjectMeta) {
		o := &manifest{}
		return o,
			&o.ObjectMeta
	}},
	"CapacityPool": {"spotter.dev/v1alpha1", true, func() (any,
		*metav1.ObjectMeta) {
		o := &v1alpha1.CapacityPool{}
		return o, &o.ObjectMeta
	}},
	"NodePool": {"karpenter.sh/v1", true, func() (any, *metav1.ObjectMeta) {
		o := &nodePool{}
		return o,
			&o.ObjectMeta
	}},
	"NodeOverlay": {"karpenter.sh/v1alpha1", true, func() (any,
		*metav1.ObjectMeta) {
		o := &nodeOverlay{}
		return o, &o.ObjectMeta
	}},
	"EC2NodeClass": {"karpenter.k8s.aws/v1", true, func() (any,
		*metav1.ObjectMeta) {
		o := &ec2NodeClass{}
		return o, &o.ObjectMeta
	}},
	"NodeClass": {"eks.amazonaws.com/v1", true, func() (any,
		*metav1.ObjectMeta) {
		o := &eksNodeClass{}
		return o, &o.ObjectMeta
	}},
	"KWOKNodeClass": {"karpenter.kwok.sh/v1alpha1", true, func() (any,
		*metav1.ObjectMeta) {
		o := &kwokNodeClass{}
		return o, &o.ObjectMeta
	}},
	"GPUBudget": {"spotter.dev/v1alpha1", false, func() (any,
		*metav1.ObjectMeta) {
		o := &v1alpha1.GPUBudget{}
		return o, &o.ObjectMeta
	}},
	"Deployment": {"apps/v1", false, func() (any, *metav1.ObjectMeta) {
		o := &appsv1.Deployment{}
		return o,
			&o.ObjectMeta
	}},
	"StatefulSet": {"apps/v1", false, func() (any, *metav1.ObjectMeta) {
		o := &appsv1.StatefulSet{}
		return o,
			&o.ObjectMeta
	}},
	"DaemonSet": {"apps/v1", false, func() (any, *metav1.ObjectMeta) {
		o := &appsv1.DaemonSet{}
		return o,
			&o.ObjectMeta
	}},
	"Job": {"batch/v1", false, func() (any, *metav1.ObjectMeta) {
		o := &batchv1.Job{}
		return o,
			&o.ObjectMeta
	}},
	"JobSet": {"jobset.x-k8s.io/v1alpha2", false, func() (any,
		*metav1.ObjectMeta) {
		o := &jobSet{}
		return o, &o.ObjectMeta
	}},
	"Pod": {"v1", false, func() (any, *metav1.ObjectMeta) { o := &corev1.Pod{}; return o, &o.ObjectMeta }},
	"CronJob": {"batch/v1", false, func() (any, *metav1.ObjectMeta) {
		o := &batchv1.CronJob{}
		return o,
			&o.ObjectMeta
	}},
	"PodDisruptionBudget": {"policy/v1", false,
		func() (any, *metav1.ObjectMeta) { o := &policyv1.PodDisruptionBudget{}; return o, &o.ObjectMeta }},
	"ReplicaSet": {"apps/v1", false, func() (any, *metav1.ObjectMeta) {
		o := &appsv1.ReplicaSet{}
		return o,
			&o.ObjectMeta
	}},
	"Rollout": {"argoproj.io/v1alpha1", false, func() (any, *metav1.ObjectMeta) {
		o := &rollout{}
		return o,
			&o.ObjectMeta
	}},
	"ScaledObject": {"keda.sh/v1alpha1", false, func() (any, *metav1.ObjectMeta) {
		o := &scaledObject{}
		return o,
			&o.ObjectMeta
	}},
	"LimitRange": {"v1", false, func() (any, *metav1.ObjectMeta) {
		o := &corev1.LimitRange{}
		return o,
			&o.ObjectMeta
	}},
	"RuntimeClass": {"node.k8s.io/v1", true,
		func() (any, *metav1.ObjectMeta) { o := &nodev1.RuntimeClass{}; return o, &o.ObjectMeta }},

	"HorizontalPodAutoscaler": {"autoscaling/v2", false, func() (any,
		*metav1.ObjectMeta) {
		o := &horizontalPodAutoscaler{}
		return o, &o.ObjectMeta
	}},

	"PriorityClass": {"scheduling.k8s.io/v1", true,
		func() (any, *metav1.ObjectMeta) { o := &schedulingv1.PriorityClass{}; return o, &o.ObjectMeta }},
}

// otherVersions are those of a kind that are read in addition to the one in kinds.
var otherVersions = map[string][]string{
	"HorizontalPodAutoscaler": {"autoscaling/v1", "autoscaling/v2beta2"},
	"CapacityPool":            {"spotter.dev/v1beta1"},
	"GPUBudget":               {"spotter.dev/v1beta1"},
}

// workloadKinds are the kinds of objects that want nodes.
var workloadKinds = []string{"CronJob", "DaemonSet", "Deployment", "Job", "JobSet", "Pod", "ReplicaSet", "Rollout",
	"StatefulSet"}
