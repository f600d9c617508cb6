package kube

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A Priority contains the settings of a PriorityClass. The zero Priority applies to pods without a
// class.
type Priority struct {
	Name  string
	Value int32

	// Never reports whether pods of the class never preempt other pods.
	Never bool
}

// PriorityOf returns the settings of o.
func PriorityOf(o *schedulingv1.PriorityClass) Priority {
	return Priority{o.Name, o.Value, o.PreemptionPolicy != nil && *o.PreemptionPolicy == corev1.PreemptNever}
}

// Expendable reports whether pods of t exist to be preempted, as placeholders that keep capacity
// free do: their priority is negative, and the user states no cost of an outage. Pods of Jobs never
// are, because a Job loses work, whatever its priority; pods of DaemonSets are not either.
func Expendable(t *policy.Template, kind policy.WorkloadKind) bool {
	return t.Priority < 0 && t.OutagePenalty <= 0 && t.OutageCost == 0 && kind != policy.KindJob &&
		kind != policy.KindDaemonSet
}

// SystemPriorities returns the classes that exist in every cluster, indexed by name.
func SystemPriorities() map[string]Priority {
	return map[string]Priority{
		"system-cluster-critical": {Name: "system-cluster-critical", Value: 2_000_000_000},
		"system-node-critical":    {Name: "system-node-critical", Value: 2_000_001_000},
	}
}
