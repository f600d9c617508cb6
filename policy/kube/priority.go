package kube

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A Priority is what a PriorityClass gives. The zero Priority is that of pods
// without a class.
type Priority struct {
	Name  string
	Value int32

	// Never says that pods of the class preempt no others.
	Never bool
}

// PriorityOf returns what o gives.
func PriorityOf(o *schedulingv1.PriorityClass) Priority {
	return Priority{o.Name, o.Value, o.PreemptionPolicy != nil && *o.PreemptionPolicy == corev1.PreemptNever}
}

// Expendable reports whether pods of t are there to be preempted: their priority is negative, as
// that of placeholders which keep capacity free, and the user states no cost of an outage. What
// a Job loses is its work, whatever its priority.
func Expendable(t *policy.Template, kind policy.WorkloadKind) bool {
	return t.Priority < 0 && t.OutagePenalty <= 0 && t.OutageCost == 0 && kind != policy.KindJob &&
		kind != policy.KindDaemonSet
}

// SystemPriorities returns the classes that every cluster has, by name.
func SystemPriorities() map[string]Priority {
	return map[string]Priority{
		"system-cluster-critical": {Name: "system-cluster-critical", Value: 2_000_000_000},
		"system-node-critical":    {Name: "system-node-critical", Value: 2_000_001_000},
	}
}
