package rescheduler

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// checkLabel returns an error unless label is "name" or "name=value". The error text is the one of
// the K8s Spot Rescheduler.
func checkLabel(kind, label string) error {
	if name, _, _ := strings.Cut(label, "="); name == "" || strings.Count(label, "=") > 1 {
		return fmt.Errorf("the %s node label is not correctly formatted: expected '<label_name>' or '<label_name>=<label_value>', but got %s", kind, label)
	}
	return nil
}

// hasLabel reports whether labels contain label, which is "name" for any value or "name=value".
func hasLabel(labels []policy.Label, label string) bool {
	name, want, exact := strings.Cut(label, "=")
	value, ok := policy.FindLabel(labels, name)
	return ok && (!exact || value == want)
}

// isSpot reports whether n is one of the nodes that accept pods.
func (c *Config) isSpot(s *policy.Snapshot, n *policy.Node) bool {
	if c.SpotLabel != "" {
		return hasLabel(n.Labels, c.SpotLabel)
	}
	return n.Market != policy.None && s.Markets[n.Market].Capacity == policy.Spot
}

// isOnDemand reports whether n is one of the nodes that should be emptied. Reserved capacity is
// not: it is paid for whether it is used or not.
func (c *Config) isOnDemand(s *policy.Snapshot, n *policy.Node) bool {
	switch {
	case c.isSpot(s, n):
		return false
	case c.OnDemandLabel != "":
		return hasLabel(n.Labels, c.OnDemandLabel)
	}
	return n.Market != policy.None && s.Markets[n.Market].Capacity == policy.OnDemand
}
