package drain

import "github.com/spotter-dev/spotter/policy"

// A Noticed is a node that the provider is about to reclaim, and that must be drained without
// waiting for a decision.
type Noticed struct {
	Node, Pool  string
	Provisioner policy.Provisioner

	// ReclaimAt is the time of the reclaim.
	ReclaimAt policy.Time

	// Text is a sentence that names the source of the notice.
	Text string
}
