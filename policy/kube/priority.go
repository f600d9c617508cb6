package kube

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
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

// SystemPriorities returns the classes that every cluster has, by name.
func SystemPriorities() map[string]Priority {
	return map[string]Priority{
		"system-cluster-critical": {Name: "system-cluster-critical", Value: 2_000_000_000},
		"system-node-critical":    {Name: "system-node-critical", Value: 2_000_001_000},
	}
}
