package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A podIndex lists the pods of a snapshot by node, DaemonSets' left out, so that what
// is asked of nodes does not pass over all pods again. It is read once for each
// decision, into the memory that it has.
type podIndex struct {
	// The pods of node n are those of pods from from[n] up to from[n+1], ascending.
	from []int32
	pods []boundPod

	// free is by node what no pod asks for, DaemonSets' counted too: CPU and memory.
	free []policy.Resources

	// pending are the pods without a node that a scheduler would place, ascending.
	pending []policy.PodID

	nodes []policy.NodeID // scratch of read, by pod
}

// A boundPod is what is asked most of a pod that holds a place on a node.
type boundPod struct {
	id       policy.PodID
	template policy.TemplateID
	cost     int32           // what it costs to delete it, as Pod.DeletionCost
	fixed    bool            // somebody else set that
	phase    policy.PodPhase // starting, ready or terminating
}

func (x *podIndex) read(s *policy.Snapshot) {
	x.from, x.pending = scratch.Zeroed(x.from, len(s.Nodes)+2), x.pending[:0]
	x.nodes, x.free = scratch.Zeroed(x.nodes, len(s.Pods)), scratch.Zeroed(x.free, len(s.Nodes))
	for i := range s.Nodes {
		a := &s.Nodes[i].Allocatable
		x.free[i] = policy.Resources{CPU: a.CPU, Memory: a.Memory}
	}
	// from is filled one place ahead, so that it is right once each pod has its place.
	for i := range s.Pods {
		p := &s.Pods[i]
		x.nodes[i] = policy.None
		switch {
		case p.Phase == policy.PodPending && !p.Gated:
			x.pending = append(x.pending, p.ID)
		case p.Phase >= policy.PodStarting && p.Node >= 0:
			t := &s.Templates[p.Template]
			x.free[p.Node].CPU -= t.Requests.CPU
			x.free[p.Node].Memory -= t.Requests.Memory
			if !t.DaemonSet {
				x.nodes[i] = p.Node
				x.from[p.Node+2]++
			}
		}
	}
	for n := range s.Nodes {
		x.from[n+2] += x.from[n+1]
	}
	x.pods = scratch.Zeroed(x.pods, int(x.from[len(s.Nodes)+1]))
	for i, n := range x.nodes {
		if n >= 0 {
			p := &s.Pods[i]
			x.pods[x.from[n+1]] = boundPod{p.ID, p.Template, p.DeletionCost, p.DeletionCostFixed, p.Phase}
			x.from[n+1]++
		}
	}
}

// on returns the pods of node n, ascending.
func (x *podIndex) on(n policy.NodeID) []boundPod { return x.pods[x.from[n]:x.from[n+1]] }
