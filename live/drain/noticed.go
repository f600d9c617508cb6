package drain

import "github.com/spotter-dev/spotter/policy"

// A Noticed is a node that the provider is about to reclaim, and that must be drained whatever is
// being decided meanwhile.
type Noticed struct {
	Node, Pool  string
	Provisioner policy.Provisioner

	// ReclaimAt is when the provider takes it.
	ReclaimAt policy.Time

	// Text says in a sentence who warned.
	Text string
}
