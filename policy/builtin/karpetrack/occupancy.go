package karpetrack

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// An occupancy is the pods on the nodes of a pool, as they are moved on paper: what
// is lifted or displaced is put back where it was before the next question.
type occupancy struct {
	e       *Policy
	s       *policy.Snapshot
	pool    *policy.Pool
	sp      *placement.Space // that of e, once it is loaded
	allowed []int32          // evictions left, by disruption budget
}

// space returns the space of the snapshot, loaded when it is first needed.
func (o *occupancy) space() *placement.Space {
	if o.sp == nil {
		o.sp = &o.e.space
		o.sp.Load(o.s)
		o.e.nodes.readSpace(o.s, o.sp)
	}
	return o.sp
}

// leavers returns the pods that have to leave n, or why it may not be emptied
// now.
func (o *occupancy) leavers(n *policy.Node) ([]policy.Pod, policy.Why) {
	var pods []policy.Pod
	need := make([]int32, len(o.allowed))
	for _, id := range o.space().Pods(n.ID) {
		p := &o.s.Pods[id]
		t := &o.s.Templates[p.Template]
		switch {
		case t.DaemonSet || p.Phase == policy.PodTerminating:
			continue
		case p.DoNotDisrupt || t.NotSafeToEvict:
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "a pod on the node must not be evicted"}
		case !t.SafeToEvict && o.s.Bare(t):
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "a pod on the node has no controller that would recreate it"}
		case len(t.PDBs) > 1:
			return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: a pod on the node has more than one disruption budget"}
		case len(t.PDBs) == 1 && !o.s.PDBs[t.PDBs[0]].Uncounted(p):
			need[t.PDBs[0]]++
			if !replan.EvictsInTime(t, need[t.PDBs[0]], o.allowed[t.PDBs[0]]) {
				return nil, policy.Why{Reason: policy.ReasonGuardrail, Text: "PDB slack: the disruption budget of a pod on the node allows too few evictions"}
			}
		}
		pods = append(pods, *p)
	}
	return pods, policy.Why{}
}

// charge takes the evictions of pods off what their budgets allow.
func (o *occupancy) charge(pods []policy.Pod) {
	for i := range pods {
		for _, id := range o.s.Templates[pods[i].Template].PDBs {
			o.allowed[id] = max(0, o.allowed[id]-1)
		}
	}
}

// lift takes the pods that may leave off nodes and returns them; setDown puts
// them back.
func (o *occupancy) lift(nodes []policy.NodeID) []policy.Pod {
	var all []policy.Pod
	for _, id := range nodes {
		pods, _ := o.leavers(&o.s.Nodes[id])
		for i := range pods {
			o.space().Unbind(&pods[i], id)
		}
		all = append(all, pods...)
	}
	return all
}

func (o *occupancy) setDown(pods []policy.Pod) {
	for i := range pods {
		o.space().Bind(&pods[i], pods[i].Node)
	}
}

// displace binds pods to the usable nodes of the pool for which may holds, and
// returns those that find no place there and where the others are.
func (o *occupancy) displace(pods []policy.Pod, may func(*policy.Node) bool) (rest []policy.Pod, at []placement.Binding) {
	var targets []policy.NodeID
	for i := range o.s.Nodes {
		n := &o.s.Nodes[i]
		if n.Pool == o.pool.ID && n.Usable() && n.ActedBy == policy.ActorNone && may(n) {
			targets = append(targets, n.ID)
		}
	}
	return placement.BindFirstFit(o.space(), pods, targets)
}

// requested returns what pods request together.
func (o *occupancy) requested(pods []policy.Pod) (total policy.Resources) {
	for i := range pods {
		total = total.Plus(o.s.Templates[pods[i].Template].Requests)
	}
	return total
}
