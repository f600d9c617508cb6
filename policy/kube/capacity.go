package kube

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A CapacityLabel is a user-defined label that distinguishes Spot nodes from others.
type CapacityLabel struct {
	// Key is the name of the label. Value is its value on Spot nodes; if it is empty, every value
	// except "false" means Spot.
	Key, Value string
}

// ParseCapacityLabel parses "name" or "name=value".
func ParseCapacityLabel(text string) (CapacityLabel, error) {
	key, value, has := strings.Cut(text, "=")
	switch {
	case key == "" || strings.ContainsAny(text, " \t,"):
		return CapacityLabel{}, fmt.Errorf("%q is not of the form name or name=value", text)
	case has && value == "":
		return CapacityLabel{}, fmt.Errorf("%q has no value after the =", text)
	}
	return CapacityLabel{key, value}, nil
}

// says returns the capacity type of a node with the given labels according to l, and reports
// whether the node has the label l.
func (l *CapacityLabel) says(labels map[string]string) (policy.CapacityType, bool) {
	v, has := labels[l.Key]
	switch {
	case !has:
		return policy.OnDemand, false
	case l.Value == "" && !strings.EqualFold(v, "false"), l.Value != "" && strings.EqualFold(v, l.Value):
		return policy.Spot, true
	}
	return policy.OnDemand, true
}

// A CapacityResolver derives the capacity type of nodes from their labels. The zero value knows the
// labels of the providers and of common tools.
type CapacityResolver struct {
	// Own lists labels that the user defined. They take precedence over all others; the first one
	// that a node has decides.
	Own []CapacityLabel
}

// capacityKeys are the labels whose value names the capacity type, the most reliable first. A node
// may have several.
var capacityKeys = []string{
	"karpenter.sh/capacity-type",
	"spotvortex.io/capacity-type",
	"eks.amazonaws.com/capacityType",
	"node.kubernetes.io/lifecycle",
	"kubernetes.azure.com/scalesetpriority",
	"cloud.google.com/gke-provisioning",
	"node.kubernetes.io/capacity-type",
	"node.kubernetes.io/instance-lifecycle",
	"spot.rackspace.com/capacity-type",
	"lifecycle",
	"kubernetes.io/role",
}

// capacityFlags are the labels that have the value "true" on Spot nodes. Other nodes lack them or
// have the value "false".
var capacityFlags = []string{
	"cloud.google.com/gke-spot",
	"cloud.google.com/gke-preemptible",
	"node-role.kubernetes.io/spot-worker",
}

// auctionFlag is a label of nodes that Karpetrack bought. Karpetrack buys only from Rackspace
// Spot's auctions and sets no other label for the capacity type. Any other label takes precedence,
// and "false" means only that another tool manages the node.
const auctionFlag = "karpetrack.io/managed"

// Resolve returns the capacity type of a node with the given labels, and reports whether the labels
// determine it. It returns OnDemand if they do not.
func (r *CapacityResolver) Resolve(labels map[string]string) (policy.CapacityType, bool) {
	for i := range r.Own {
		if c, ok := r.Own[i].says(labels); ok {
			return c, true
		}
	}
	for _, k := range capacityKeys {
		if v, has := labels[k]; has {
			if c, ok := CapacityType(v); ok {
				return c, true
			}
		}
	}
	for _, k := range capacityFlags {
		switch v, has := labels[k]; {
		case !has:
		case strings.EqualFold(v, "false"):
			return policy.OnDemand, true
		default:
			return policy.Spot, true
		}
	}
	if v, has := labels[auctionFlag]; has && !strings.EqualFold(v, "false") {
		return policy.Spot, true
	}
	return policy.OnDemand, false
}

// CapacityType returns the capacity type that a provider or tool calls word. Case is ignored, and
// underscores and spaces count as hyphens. The result is false for an unknown word.
func CapacityType(word string) (policy.CapacityType, bool) {
	switch strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(word)) {
	case "spot", "ec2spot", "ec2-spot", "spot-worker", "preemptible", "low":
		return policy.Spot, true
	case "on-demand", "ondemand", "ec2ondemand", "ec2-on-demand", "normal", "regular", "standard", "worker":
		return policy.OnDemand, true
	case "reserved", "capacity-block", "capacityblock":
		return policy.Reserved, true
	}
	return policy.OnDemand, false
}
