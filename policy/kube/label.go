package kube

import "strings"

// InstanceLabel returns the name that a label of nodes has in the catalog: nodes of EKS Auto
// Mode carry what their instance type is like under a prefix of their own. All other labels
// keep their names.
func InstanceLabel(key string) string {
	if name, auto := strings.CutPrefix(key, "eks.amazonaws.com/instance-"); auto {
		return "karpenter.k8s.aws/instance-" + name
	}
	return key
}
