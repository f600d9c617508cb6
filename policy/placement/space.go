package placement

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Space contains nodes and the pods bound to them, in a form that is fast for placement queries.
// It must not be used concurrently. A method that modifies the space temporarily says so, and
// restores it before it returns.
//
// The space keeps the label and taint lists of the nodes that it is given. They must not be
// modified afterwards.
type Space struct {
	table     classTable
	occupancy occupancy
	topology  Topology
	groups    groupTable
	offers    offerCache
	solver    Solver

	reserved []reservation
	loaded   loaded // zero until Load
}

// New returns an empty space for pods of the given templates. The zones are the names of the IDs in
// Pod.VolumeZone. The space keeps both lists, so they must not change.
func New(templates []policy.Template, zones []string) *Space {
	sp := new(Space)
	sp.init(templates, zones)
	return sp
}

func (sp *Space) init(templates []policy.Template, zones []string) {
	table, occupancy := &sp.table, &sp.occupancy
	*table = classTable{templates: templates, zones: zones, byDigest: make(map[uint64][]int32),
		gpus: []string{""}, keys: []topologyKey{{name: labelHost}}}
	occupancy.table, sp.offers.table = table, table
	sp.topology = Topology{table: table, occupancy: occupancy}
	sp.groups = groupTable{table: table, occupancy: occupancy}
	sp.solver.init(sp)
	sp.compile()
}

// FromSnapshot returns a new space, loaded with s.
func FromSnapshot(s *policy.Snapshot) *Space {
	sp := new(Space)
	sp.Load(s)
	return sp
}

// Load sets sp to the live nodes of s and all pods that occupy resources on them: starting, ready
// and terminating. It reuses the memory of sp, which may be the zero Space. The result does not
// depend on the previous contents of sp.
func (sp *Space) Load(s *policy.Snapshot) {
	if sp.loaded.follows(s) && !sp.table.overgrown(s) {
		sp.reload(s)
		return
	}
	*sp = Space{occupancy: sp.occupancy.emptied(), loaded: sp.loaded}
	sp.init(s.Templates, s.Zones)
	sp.occupancy.grow(len(s.Nodes))
	sp.topology.addAll(func() {
		for i := range s.Nodes {
			if s.Nodes[i].Live() {
				sp.SetNode(&s.Nodes[i])
			}
		}
	})
	sp.occupancy.list(s.Pods)
	for n := range sp.occupancy.nodes {
		for _, b := range sp.occupancy.nodes[n].bound {
			sp.charge(b, policy.NodeID(n))
		}
	}
	sp.loaded.note(s)
}

// SetNode adds n to the slot of its ID, or updates the node there. Bound pods remain. A node in
// phase NodeGone is removed.
func (sp *Space) SetNode(n *policy.Node) {
	if n.Phase == policy.NodeGone {
		sp.RemoveNode(n.ID)
		return
	}
	sp.loaded.touch(n.ID)
	sp.occupancy.grow(int(n.ID) + 1)
	slot, nd := &sp.occupancy.slots[n.ID], &sp.occupancy.nodes[n.ID]
	class, state := sp.table.classOf(n.Labels, n.Taints), stateOf(n)
	if slot.state == absent || class != slot.class || nd.name != n.Name || slot.state != state {
		sp.countNode(n.ID, -1)
		slot.class, slot.state = class, state
		nd.name, nd.host = n.Name, n.Name
		if host, ok := n.Label(labelHost); ok {
			nd.host = host
		}
		sp.countNode(n.ID, 1)
	}
	slot.free = slot.free.Plus(n.Allocatable.Minus(nd.allocatable))
	nd.allocatable = n.Allocatable
	slot.volumesMax = n.VolumesMax
	slot.gpu = sp.table.gpuOf(n.GPUResource)
}

// RemoveNode empties the slot id and unbinds its pods.
func (sp *Space) RemoveNode(id policy.NodeID) {
	if int(id) >= len(sp.occupancy.slots) || sp.occupancy.slots[id].state == absent {
		return
	}
	sp.loaded.touch(id)
	nd := &sp.occupancy.nodes[id]
	for len(nd.pods) > 0 {
		sp.unbind(nd.pods[len(nd.pods)-1], id)
	}
	sp.countNode(id, -1)
	sp.occupancy.slots[id] = slot{}
	*nd = node{pods: nd.pods, bound: nd.bound, claims: nd.claims}
}

// Bind records that p runs on n, whether or not it fits. A pod in phase PodTerminating uses
// resources but does not count for topology spread. Bind panics if p is already bound to n.
func (sp *Space) Bind(p *policy.Pod, n policy.NodeID) {
	sp.bind(p.ID, p.Template, p.Phase == policy.PodTerminating, n)
}

func (sp *Space) bind(id policy.PodID, t policy.TemplateID, terminating bool, n policy.NodeID) {
	sp.loaded.touch(n)
	nd := &sp.occupancy.nodes[n]
	if last := len(nd.pods) - 1; last < 0 || nd.pods[last] < id {
		nd.pods, nd.bound = append(nd.pods, id), append(nd.bound, bound{t, terminating})
	} else {
		at, twice := slices.BinarySearch(nd.pods, id)
		if twice {
			panic(fmt.Sprintf("placement: pod %d is bound to node %d (%s) already", id, n, nd.name))
		}
		nd.pods = slices.Insert(nd.pods, at, id)
		nd.bound = slices.Insert(nd.bound, at, bound{t, terminating})
	}
	sp.charge(bound{t, terminating}, n)
}

// charge adds the usage of a pod that is in the list of n.
func (sp *Space) charge(b bound, n policy.NodeID) {
	kind := &sp.table.kinds[b.template]
	sp.occupancy.slots[n].free = sp.occupancy.slots[n].free.Minus(kind.requests)
	sp.occupancy.countUsage(kind, n, 1)
	sp.tally(b, n, 1)
}

// discharge reverts charge.
func (sp *Space) discharge(b bound, n policy.NodeID) {
	kind := &sp.table.kinds[b.template]
	sp.occupancy.slots[n].free = sp.occupancy.slots[n].free.Plus(kind.requests)
	sp.occupancy.countUsage(kind, n, -1)
	sp.tally(b, n, -1)
}

// tally adds a pod on n to the counts of topology spread and pod affinity (delta 1), or removes it
// (delta -1).
func (sp *Space) tally(b bound, n policy.NodeID, delta int32) {
	kind := &sp.table.kinds[b.template]
	if len(kind.counters) > 0 {
		sp.topology.count(kind, n, b.terminating, delta)
	}
	if len(kind.groups) > 0 {
		sp.groups.countGroups(kind, n, b.terminating, delta)
	}
}

// Unbind records that p no longer runs on n. It panics if p is not bound to n.
func (sp *Space) Unbind(p *policy.Pod, n policy.NodeID) { sp.unbind(p.ID, n) }

func (sp *Space) unbind(id policy.PodID, n policy.NodeID) {
	sp.loaded.touch(n)
	nd := &sp.occupancy.nodes[n]
	at, there := slices.BinarySearch(nd.pods, id)
	if !there {
		panic(fmt.Sprintf("placement: pod %d is not bound to node %d (%s)", id, n, nd.name))
	}
	b := nd.bound[at]
	nd.pods = slices.Delete(nd.pods, at, at+1)
	nd.bound = slices.Delete(nd.bound, at, at+1)
	sp.discharge(b, n)
}

// MarkTerminating records that the deletion of p, which is bound to n, was requested. The pod uses
// resources until Unbind but no longer counts for topology spread. MarkTerminating panics if p is
// not bound to n.
func (sp *Space) MarkTerminating(p *policy.Pod, n policy.NodeID) {
	nd := &sp.occupancy.nodes[n]
	at, there := slices.BinarySearch(nd.pods, p.ID)
	if !there {
		panic(fmt.Sprintf("placement: pod %d is not bound to node %d (%s)", p.ID, n, nd.name))
	}
	b := &nd.bound[at]
	if b.terminating {
		return
	}
	sp.loaded.touch(n)
	sp.tally(*b, n, -1)
	b.terminating = true
	sp.tally(*b, n, 1)
}

// A reservation is a tentative binding.
type reservation struct {
	pod  policy.PodID
	node policy.NodeID
}

// Reserve binds p to n tentatively, until [Space.Release].
func (sp *Space) Reserve(p *policy.Pod, n policy.NodeID) {
	sp.bind(p.ID, p.Template, false, n)
	sp.reserved = append(sp.reserved, reservation{p.ID, n})
}

// Release reverts every Reserve since the last Release. The caller must not have unbound or removed
// the pods and nodes concerned in the meantime.
func (sp *Space) Release() {
	for _, r := range slices.Backward(sp.reserved) {
		sp.unbind(r.pod, r.node)
	}
	sp.reserved = sp.reserved[:0]
}

// Topology returns the pod counts of the space.
func (sp *Space) Topology() *Topology { return &sp.topology }

// Scoring returns the data for a scheduler that scores nodes.
func (sp *Space) Scoring() Scoring { return Scoring{sp} }

// Solver returns the solver that places pods as Karpenter does.
func (sp *Space) Solver() *Solver { return &sp.solver }

// Nodes returns the number of slots, including empty ones.
func (sp *Space) Nodes() int { return len(sp.occupancy.slots) }

// Free returns the resources that are still available on n. A resource is negative if pods request
// more than is allocatable.
func (sp *Space) Free(n policy.NodeID) policy.Resources { return sp.occupancy.slots[n].free }

// Requested returns the sum of the requests of the pods bound to n.
func (sp *Space) Requested(n policy.NodeID) policy.Resources {
	return sp.occupancy.nodes[n].allocatable.Minus(sp.occupancy.slots[n].free)
}

// Allocatable returns the allocatable resources of n.
func (sp *Space) Allocatable(n policy.NodeID) policy.Resources {
	return sp.occupancy.nodes[n].allocatable
}

// Pods returns the pods bound to n, ascending. The slice belongs to the space and is valid until
// the next change of n.
func (sp *Space) Pods(n policy.NodeID) []policy.PodID { return sp.occupancy.nodes[n].pods }

// Suits reports whether nodes with the given labels and taints suit pods of t, according to node
// selector, required node affinity and tolerations. The result is OK, Tainted or Unselected.
func (sp *Space) Suits(t policy.TemplateID, labels []policy.Label, taints []policy.Taint) Result {
	return sp.table.suits(t, sp.table.classOf(labels, taints), "", "")
}

// DaemonPort returns a DaemonSet that runs on each node with the given labels and taints and uses a
// host port that pods of t request. ok is false if there is no such DaemonSet.
func (sp *Space) DaemonPort(t policy.TemplateID, labels []policy.Label,
	taints []policy.Taint) (daemon policy.TemplateID, ok bool) {
	daemon = sp.table.portDaemon(&sp.table.kinds[t], sp.table.classOf(labels, taints))
	return daemon, daemon != policy.None
}

// Daemons returns the total requests of the DaemonSet pods on a new node with the given labels and
// taints.
func (sp *Space) Daemons(labels []policy.Label, taints []policy.Taint) policy.Resources {
	return sp.table.daemonsOf(sp.table.classOf(labels, taints))
}

// countNode removes node n and its pods from all counters (delta -1), before its labels or its
// phase change, or adds them again (delta 1). The node is present while its pods are counted.
func (sp *Space) countNode(n policy.NodeID, delta int32) {
	if sp.occupancy.slots[n].state == absent {
		return
	}
	if delta > 0 {
		sp.topology.present(n, 1)
	}
	for _, b := range sp.occupancy.nodes[n].bound {
		sp.tally(b, n, delta)
	}
	if delta < 0 {
		sp.topology.present(n, -1)
	}
}
