package policy

import (
	"fmt"
	"math"
	"slices"
)

// An Approval records which voluntary changes a person has approved in a pool. The zero Approval
// requires no approval.
type Approval struct {
	Required bool

	// Changes are the approved changes in ascending order, named as by DrainChange, LaunchChange
	// and SteerChange.
	Changes []string
}

// Approves reports whether a change may be made in p. The empty change needs no approval.
func (p *Pool) Approves(change string) bool {
	if change == "" || !p.Approval.Required {
		return true
	}
	_, found := slices.BinarySearch(p.Approval.Changes, change)
	return found
}

// DrainChange returns the name under which a person approves the drain of a node. It is empty for a
// node under notice, whose drain cannot wait.
func (s *Snapshot) DrainChange(n NodeID) string {
	if s.Nodes[n].ReclaimAt != 0 {
		return ""
	}
	return "drain " + s.Nodes[n].Name
}

// LaunchChange returns the name under which a person approves a launch. A launch that replaces a
// node is approved together with the drain of that node. The name is empty for a launch that a
// notice forces or that pods wait for.
func (s *Snapshot) LaunchChange(l *Launch) string {
	switch {
	case l.Why.Reason == ReasonNotice:
		return ""
	case l.Replaces != None:
		return s.DrainChange(l.Replaces)
	case l.Why.Reason == ReasonShortage || l.Why.Reason == ReasonFallback || len(l.Markets) == 0:
		return ""
	}
	return fmt.Sprintf("launch %s nodes (%s)", s.Markets[l.Markets[0]].Capacity, l.Why.Reason)
}

// SteerChange returns the name under which a person approves a steer; its share is in whole
// percent. It is empty if the share does not change: the markets are bounded by the pool's
// manifest.
func (s *Snapshot) SteerChange(x *Steer) string {
	percent := func(share float64) float64 { return math.Round(100 * share) }
	if now := &s.Pools[x.Pool].Steer; now.Set && percent(now.Share) == percent(x.Share) || x.Why.Reason == ReasonNotice {
		return ""
	}
	return fmt.Sprintf("set the Spot share to %.0f%%", percent(x.Share))
}

// Proposal is the prefix of the text of a [Hold] that waits for approval; the name of the change
// follows it.
const Proposal = "approval: "
