package placement

import "github.com/spotter-dev/spotter/policy"

// Notices returns a drain for every node of a pool that is under notice and that no other
// controller is draining. The drains do not wait for replacements, because the provider takes the
// node whether they are ready or not. A drain by Spotter that still waits for a replacement is
// issued again, without waiting. Nodes that are not initialized are skipped, since they run no pods
// that could be moved.
func Notices(s *policy.Snapshot) []policy.Drain {
	var drains []policy.Drain
	noticed, known := s.UnderNotice()
	all := len(noticed)
	if !known {
		all = len(s.Nodes)
	}
	for i := range all {
		n := &s.Nodes[i]
		if known {
			n = &s.Nodes[noticed[i]]
		}
		if n.ReclaimAt == 0 || n.Pool == policy.None || n.Phase != policy.NodeInitialized {
			continue
		}
		if n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs || s.Pools[n.Pool].Mode == policy.ModeOff {
			continue
		}
		d := policy.Drain{Node: n.ID, Deadline: n.ReclaimAt, Why: policy.Why{
			Reason: policy.ReasonNotice, Text: "the provider reclaims the node",
		}}
		if n.Market != policy.None && s.Markets[n.Market].Offered {
			d.Why.Before = s.Markets[n.Market].Charge() + s.Fees(n.Pool, n.Market)
		}
		drains = append(drains, d)
	}
	return drains
}
