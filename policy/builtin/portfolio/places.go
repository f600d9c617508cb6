package portfolio

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A places tracks where pods of the pool may be placed while moves are planned. The nodes that the
// plan buys have the ids after those of the snapshot: the k-th is named tokens[k] in the space, and
// is in market bought[k]. available are the nodes that may have free capacity for a pod.
type places struct {
	*poolContext
	available []policy.NodeID
	tokens    []string
	bought    []policy.MarketID
}

// findPlaces returns the nodes of the pool that have pods and may have free capacity for one more.
func findPlaces(x *poolContext) places {
	l := places{poolContext: x}
	for _, id := range l.e.roomy.nodes {
		if l.e.nodes.all[id].pool == l.pool.ID && len(l.e.pods.on(id)) > 0 {
			l.available = append(l.available, id)
		}
	}
	return l
}

// A roomyNodes lists, in ascending order, the nodes that stay and may have free capacity for a pod:
// their free resources are at least the smallest request of a pod. It is kept from decision to
// decision, and nodes that changed, or whose pods changed, are examined again.
type roomyNodes struct {
	nodes []policy.NodeID
	least policy.Resources
}

// read updates the list to s. e must have read the nodes and pods of s. since is the mark of the
// snapshot that was read last.
func (x *roomyNodes) read(e *Policy, s *policy.Snapshot, since policy.Mark) {
	least := policy.Resources{CPU: math.MaxInt64, Memory: math.MaxInt64}
	for i := range s.Templates {
		if t := &s.Templates[i]; !t.DaemonSet {
			least.CPU, least.Memory = min(least.CPU, t.Requests.CPU), min(least.Memory, t.Requests.Memory)
		}
	}
	if e.pods.anew || !s.Follows(since) || least != x.least {
		x.nodes, x.least, since = x.nodes[:0], least, policy.Mark{}
	}
	look := func(id policy.NodeID) {
		x.nodes = listed(x.nodes, id, e.nodes.all[id].stays() && holdsBoth(e.pods.free(s, id), least))
	}
	for c := s.NodesSince(since); c.Next(); {
		look(c.ID)
	}
	for _, id := range e.pods.touched {
		look(id)
	}
}

// holdsBoth reports whether free has enough CPU and, if memory is requested, enough memory.
func holdsBoth(free, need policy.Resources) bool {
	return need.CPU <= free.CPU && (need.Memory == 0 || need.Memory <= free.Memory)
}

// freeOn returns the free resources of a node, at least CPU and memory.
func (l *places) freeOn(id policy.NodeID) policy.Resources {
	if l.sp != nil {
		return l.sp.Free(id)
	}
	return l.e.pods.free(l.s, id)
}

// fitsBeside reports whether a pod that requests need may fit on a node other than from.
func (l *places) fitsBeside(from policy.NodeID, need policy.Resources) bool {
	return slices.ContainsFunc(l.available, func(id policy.NodeID) bool {
		return id != from &&
			holdsBoth(l.freeOn(id), need)
	})
}

// target returns the node other than from to which p should move, or None. It prefers nodes where p
// adds nothing to the loss with any one group, and among these the fullest.
func (l *places) target(p *policy.Pod, from policy.NodeID) policy.NodeID {
	best, free, adds := policy.NodeID(policy.None), int64(0), false
	t := &l.s.Templates[p.Template]
	for _, id := range l.available {
		f := l.sp.Free(id).CPU
		if f < t.Requests.CPU || best >= 0 && !adds && f >= free || id == from || l.sp.Check(p, id) != placement.OK {
			continue // the first checks are cheap, and leave few nodes for Check
		}
		more := from >= 0 && l.e.exposure.ChangeOf(t.Workload, 1, from, l.marketOf(id)) > 0
		if best < 0 || adds && !more || adds == more && f < free {
			best, free, adds = id, f, more
		}
	}
	return best
}

// marketOf returns the market of a node of the snapshot, or of one that the round buys.
func (l *places) marketOf(id policy.NodeID) policy.MarketID {
	if k := int(id) - len(l.s.Nodes); k >= 0 {
		return l.bought[k]
	}
	return l.s.Nodes[id].Market
}

// addNode adds a node of offer o to the space, and returns its id.
func (l *places) addNode(o *placement.Offer, token string) policy.NodeID {
	id := policy.NodeID(len(l.s.Nodes) + len(l.tokens))
	l.tokens, l.bought = append(l.tokens, token), append(l.bought, o.Market)
	l.sp.SetNode(&policy.Node{
		ID: id, Name: token, Pool: l.pool.ID, Market: o.Market, Phase: policy.NodeInitialized,
		Allocatable: o.Allocatable.Minus(l.sp.Daemons(o.Labels, o.Taints)), VolumesMax: o.VolumesMax,
		GPUResource: o.GPUResource, Labels: o.Labels, Taints: o.Taints,
	})
	l.available = append(l.available, id)
	return id
}

// remove removes a node that is drained from the available nodes.
func (l *places) remove(n policy.NodeID) {
	l.available = slices.DeleteFunc(l.available, func(t policy.NodeID) bool { return t == n })
}

// unload unbinds the pods of node n and returns them, largest first. If pods of other nodes are
// planned to move to n, it unbinds none and reports false.
func (l *places) unload(n policy.NodeID) (pods []policy.Pod, alone bool) {
	s := l.s
	for _, id := range l.space().Pods(n) {
		p := &s.Pods[id]
		if s.Templates[p.Template].DaemonSet || p.Phase == policy.PodTerminating {
			continue
		}
		if p.Node != n {
			return pods, false
		}
		pods = append(pods, *p)
	}
	placement.LargestFirst(s, pods)
	for i := range pods {
		l.sp.Unbind(&pods[i], n)
	}
	return pods, true
}
