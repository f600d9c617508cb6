package portfolio

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// A podIndex holds what is asked most of the pods of a snapshot, in little memory and by
// node, so that not all pods are passed over for each question. It is read once for each
// decision, into the memory that it has.
type podIndex struct {
	all []podEntry // by pod

	// The pods of node n are those of pods from from[n] up to from[n+1], ascending,
	// DaemonSets' left out.
	from []int32
	pods []boundPod

	// daemons is by node what DaemonSets' pods ask for: CPU and memory.
	daemons []policy.Resources

	// pending are the pods without a node that a scheduler would place, ascending.
	pending []policy.PodID
}

// A podEntry is a pod. One whose phase is PodGone is none.
type podEntry struct {
	template     policy.TemplateID
	at           policy.NodeID // where it stands, else where it is promised a place
	cost         int32         // what it costs to delete it, as Pod.DeletionCost
	phase        policy.PodPhase
	bound        bool // it stands at its node
	daemon       bool
	fixed        bool // somebody else set its cost
	doNotDisrupt bool
}

// A boundPod is what is asked most of a pod that holds a place on a node.
type boundPod struct {
	id       policy.PodID
	template policy.TemplateID
	cost     int32
	fixed    bool
	phase    policy.PodPhase // starting, ready or terminating
}

func (x *podIndex) read(s *policy.Snapshot) {
	// from is filled one place ahead, so that it is right once each pod has its place.
	x.from, x.pending = scratch.Zeroed(x.from, len(s.Nodes)+2), x.pending[:0]
	x.all, x.daemons = scratch.Zeroed(x.all, len(s.Pods)), scratch.Zeroed(x.daemons, len(s.Nodes))
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone {
			continue
		}
		t := &s.Templates[p.Template]
		e := &x.all[i]
		*e = podEntry{
			template: p.Template, at: p.Node, cost: p.DeletionCost, phase: p.Phase, bound: p.Phase >= policy.PodStarting && p.Node >= 0,
			daemon: t.DaemonSet, fixed: p.DeletionCostFixed, doNotDisrupt: p.DoNotDisrupt,
		}
		switch {
		case e.bound && e.daemon:
			x.daemons[e.at].CPU += t.Requests.CPU
			x.daemons[e.at].Memory += t.Requests.Memory
		case e.bound:
			x.from[e.at+2]++
		case p.Phase == policy.PodPending && !p.Gated:
			x.pending = append(x.pending, p.ID)
		}
		if e.at < 0 {
			e.at = p.Nominated
		}
	}
	for n := range s.Nodes {
		x.from[n+2] += x.from[n+1]
	}
	x.pods = scratch.Zeroed(x.pods, int(x.from[len(s.Nodes)+1]))
	for i := range x.all {
		if e := &x.all[i]; e.bound && !e.daemon {
			x.pods[x.from[e.at+1]] = boundPod{policy.PodID(i), e.template, e.cost, e.fixed, e.phase}
			x.from[e.at+1]++
		}
	}
}

// on returns the pods of node n, ascending.
func (x *podIndex) on(n policy.NodeID) []boundPod { return x.pods[x.from[n]:x.from[n+1]] }

// used returns what the pods of node n ask for, CPU, memory and accelerators.
func (x *podIndex) used(s *policy.Snapshot, n policy.NodeID) (r policy.Resources) {
	for _, p := range x.on(n) {
		need := &s.Templates[p.template].Requests
		r.CPU, r.Memory, r.GPU = r.CPU+need.CPU, r.Memory+need.Memory, r.GPU+need.GPU
	}
	return r
}

// free returns what no pod asks for on node n, CPU and memory.
func (x *podIndex) free(s *policy.Snapshot, n policy.NodeID) policy.Resources {
	a, used, daemons := &s.Nodes[n].Allocatable, x.used(s, n), &x.daemons[n]
	return policy.Resources{CPU: a.CPU - used.CPU - daemons.CPU, Memory: a.Memory - used.Memory - daemons.Memory}
}
