package kube

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A CapacityLabel is a label by which a user distinguishes Spot nodes from others.
type CapacityLabel struct {
	// Key is the label's name. Value is its value on Spot nodes; if it is empty, every value but
	// "false" means Spot.
	Key, Value string
}

// ParseCapacityLabel reads "name" or "name=value".
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

// says returns what a node with labels is by l, and whether l says anything: a
// node without the label may have another that does.
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

// A CapacityResolver tells how nodes were bought from their labels. The zero one
// knows the labels of providers and of the tools that are common.
type CapacityResolver struct {
	// Own are labels that the user gave; they count before all others, the first
	// that a node carries first.
	Own []CapacityLabel
}

// capacityKeys are the labels whose value names the capacity type, the most
// trusted first: a node may carry several.
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

// capacityFlags are the labels that Spot nodes have with the value "true", and other nodes lack or
// have with "false".
var capacityFlags = []string{
	"cloud.google.com/gke-spot",
	"cloud.google.com/gke-preemptible",
	"node-role.kubernetes.io/spot-worker",
}

// auctionFlag is the label of nodes bought by Karpetrack. It buys only machines of Rackspace Spot's
// auctions and does not mark the capacity type otherwise. Any other label takes precedence, and
// "false" says only that the node is managed by something else.
const auctionFlag = "karpetrack.io/managed"

// Resolve returns how a node with labels was bought, and whether they say so.
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

// CapacityType returns what a provider or a tool means by a word, in any case of
// letters and with any of the usual dashes; false for a word that it does not know.
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
