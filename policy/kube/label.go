package kube

import "strings"

// InstanceLabel returns the name that the catalog uses for a label of nodes. Nodes of EKS Auto Mode
// describe their instance type under a different prefix than nodes of Karpenter. All other labels
// keep their names.
func InstanceLabel(key string) string {
	if name, auto := strings.CutPrefix(key, "eks.amazonaws.com/instance-"); auto {
		return "karpenter.k8s.aws/instance-" + name
	}
	return key
}
