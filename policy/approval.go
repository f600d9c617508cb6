package policy

import (
	"fmt"
	"math"
	"slices"
)

// An Approval says which changes by choice a person has let through in a pool. The zero
// Approval requires none.
type Approval struct {
	Required bool

	// Changes are ascending, as DrainChange, LaunchChange and SteerChange name them.
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

// DrainChange names the drain of a node as a person approves it; empty for a node under
// notice, which cannot wait.
func (s *Snapshot) DrainChange(n NodeID) string {
	if s.Nodes[n].ReclaimAt != 0 {
		return ""
	}
	return "drain " + s.Nodes[n].Name
}

// LaunchChange names a launch as a person approves it: one in place of a node with the drain
// of the node. It is empty for one that a notice forces or that pods wait for.
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

// SteerChange names a steer as a person approves it, in whole percent. It is empty where the
// share stays as it is: the pool's manifest bounds the markets.
func (s *Snapshot) SteerChange(x *Steer) string {
	percent := func(share float64) float64 { return math.Round(100 * share) }
	if now := &s.Pools[x.Pool].Steer; now.Set && percent(now.Share) == percent(x.Share) || x.Why.Reason == ReasonNotice {
		return ""
	}
	return fmt.Sprintf("set the Spot share to %.0f%%", percent(x.Share))
}

// Proposal is how the text of a [Hold] starts that waits for approval; the change follows.
const Proposal = "approval: "
