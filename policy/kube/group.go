package kube

// GroupLabels returns the labels that name the NodePool or node group of a node, the most reliable
// first.
func GroupLabels() []string {
	return []string{
		"karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "kops.k8s.io/instancegroup",
		"cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "agentpool",
	}
}
