package portfolio

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A refusals holds the nodes that stay for a risk, each with one hold.
type refusals struct {
	*poolContext
	holds []policy.Hold
}

// add notes that node n stays for the sake of w, of which the loss of g would take more
// if the pods of n went where it pays.
func (r *refusals) add(n policy.NodeID, w policy.WorkloadID, g workload.Group) {
	if slices.ContainsFunc(r.holds, func(h policy.Hold) bool { return h.Node == n }) {
		return
	}
	group := "a market or zone"
	switch {
	case g.Market >= 0:
		group = "market " + r.s.Markets[g.Market].Name
	case g.Zone >= 0:
		group = "zone " + r.s.Zones[g.Zone]
	}
	r.holds = append(r.holds, policy.Hold{Pool: r.pool.ID, Node: n, Why: policy.Why{Reason: policy.ReasonRisk, Text: fmt.Sprintf(
		"moving its pods saves less than %s would then be expected to lose with %s", r.s.Workloads[w].Name, group)}})
}

// addTo adds the holds of the nodes that stay for a risk.
func (r *refusals) addTo() {
	for _, h := range r.holds {
		if !r.leaves(h.Node) {
			r.out.Holds = append(r.out.Holds, h)
		}
	}
}
