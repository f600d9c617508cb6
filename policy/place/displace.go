package place

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// Displace returns the pods of node n, those of DaemonSets and those that end
// anyway left out, that fit nowhere among the other nodes, with all filters
// and each other's places considered. None means that n can be emptied. Nodes
// that are not ready or that the provider takes back take nothing. The space
// is used as scratch and left as it was.
func (sp *Space) Displace(s *policy.Snapshot, n policy.NodeID) (unplaced []policy.PodID) {
	mark := len(sp.reserved)
	pods := sp.leavers(s, n)
	sp.part(pods, n, -1)
	for _, p := range pods {
		if to := sp.refuge(p, n); to >= 0 {
			sp.Reserve(p, to)
		} else {
			unplaced = append(unplaced, p.ID)
		}
	}
	sp.releaseTo(mark)
	sp.part(pods, n, 1)
	slices.Sort(unplaced)
	return unplaced
}

// leavers returns the pods that a drain of n would move, largest first.
func (sp *Space) leavers(s *policy.Snapshot, n policy.NodeID) []*policy.Pod {
	nd := &sp.nodes[n]
	pods := make([]*policy.Pod, 0, len(nd.pods))
	for i, id := range nd.pods {
		if b := nd.bound[i]; !b.terminating && !sp.kinds[b.template].daemon {
			pods = append(pods, &s.Pods[id])
		}
	}
	slices.SortFunc(pods, func(a, b *policy.Pod) int {
		x, y := &sp.kinds[a.Template].requests, &sp.kinds[b.Template].requests
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(a.ID, b.ID))
	})
	return pods
}

// part takes pods off n (-1) or puts them back (1).
func (sp *Space) part(pods []*policy.Pod, n policy.NodeID, delta int) {
	for _, p := range pods {
		if delta < 0 {
			sp.unbind(p.ID, n)
		} else {
			sp.bind(p.ID, p.Template, false, n)
		}
	}
}

// refuge returns the first node other than n that takes p, or None.
func (sp *Space) refuge(p *policy.Pod, n policy.NodeID) policy.NodeID {
	for i := range sp.slots {
		if s := &sp.slots[i]; s.state == ready && !s.noticed && policy.NodeID(i) != n {
			if sp.Check(p, policy.NodeID(i)) == OK {
				return policy.NodeID(i)
			}
		}
	}
	return policy.None
}
