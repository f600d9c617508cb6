package model

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// alarmed reports whether a node of a pool is about to be reclaimed.
func alarmed(s *policy.Snapshot) bool {
	return slices.ContainsFunc(s.Nodes, func(n policy.Node) bool { return n.Live() && n.Pool >= 0 && n.ReclaimAt != 0 })
}

// calm removes voluntary moves of pods from plan while nodes are about to be reclaimed: the
// disruption budget of a service allows only a limited number of its pods to be evicted at a time,
// and the pods of such nodes have two minutes. Empty nodes are still released.
func (t *turn) calm(plan *policy.Plan) {
	if !t.alarmed {
		return
	}
	var awaited []string
	waits := func(l policy.Launch) bool { return slices.Contains(awaited, l.Token) }
	plan.Drains = slices.DeleteFunc(slices.Clone(plan.Drains), func(d policy.Drain) bool {
		chosen := t.s.Nodes[d.Node].ReclaimAt == 0 && d.Why.Reason != policy.ReasonEmpty
		if chosen {
			awaited = append(awaited, d.After...)
		}
		return chosen
	})
	for i := range plan.Drains {
		awaited = slices.DeleteFunc(awaited, func(token string) bool { return slices.Contains(plan.Drains[i].After, token) })
	}
	plan.Launches = slices.DeleteFunc(slices.Clone(plan.Launches), waits)
}
