package capture

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// apart maps the name of each node that cannot be simulated to the reason: no market of the catalog
// sells what its pods run on.
func (l *listed) apart() map[string]string {
	out := map[string]string{}
	for _, n := range objectsOf[*corev1.Node](l) {
		if why := apartOf(n); why != "" {
			out[n.Name] = why
		}
	}
	return out
}

// sharing are labels of nodes whose accelerators are time-shared.
var sharing = []string{"cloud.google.com/gke-gpu-sharing-strategy", "nvidia.com/gpu.sharing-strategy"}

func apartOf(n *corev1.Node) string {
	switch {
	case n.Labels["eks.amazonaws.com/compute-type"] == "fargate":
		return "of Fargate, which has no Spot prices and is paid by the pod"
	case n.Labels[corev1.LabelOSStable] == "windows":
		return "that run Windows, whose prices are others"
	}
	var slicesOf []string
	for name, q := range n.Status.Capacity {
		slice := strings.HasPrefix(string(name), "nvidia.com/mig-") || strings.HasSuffix(string(name), ".shared")
		if slice && !q.IsZero() {
			slicesOf = append(slicesOf, string(name))
		}
	}
	if len(slicesOf) > 0 {
		slices.Sort(slicesOf)
		return "whose GPUs are cut into " + strings.Join(slicesOf, ", ")
	}
	if strings.Contains(n.Labels["nvidia.com/gpu.product"], "-MIG-") {
		return "whose GPUs are cut into " + n.Labels["nvidia.com/gpu.product"]
	}
	for _, key := range sharing {
		if v := n.Labels[key]; v != "" && v != "none" {
			return "whose GPUs are shared by time (" + key + ")"
		}
	}
	return ""
}
