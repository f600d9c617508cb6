package placement

import "github.com/spotter-dev/spotter/policy"

// An occupancy contains the nodes and the pods bound to them. The free resources of a node are its
// allocatable resources minus the requests of its pods. The users of a shared claim are the pods
// that use it.
type occupancy struct {
	table *classTable

	claims []claim

	slots []slot
	nodes []node

	// ids and bounds are the arrays that list divides into the pod lists of nodes. ends contains
	// the end of each node's list.
	ids    []policy.PodID
	bounds []bound
	ends   []int32
}

// A slot contains the data of a node that every check reads. It fits into a cache line.
type slot struct {
	free       policy.Resources
	class      int32
	volumes    int32
	volumesMax int32
	gpu        int16
	state      state
}

// A node contains the other data of a node.
type node struct {
	name, host  string
	allocatable policy.Resources
	daemons     policy.Resources // requests of the bound DaemonSet pods

	// assumedCPU and assumedMemory are the requests that scoring assumes for the bound pods that
	// state none.
	assumedCPU, assumedMemory int64

	// extended is the free quantity of each extended resource, indexed by its number.
	extended []int64

	// pods are ascending; bound is parallel to it.
	pods   []policy.PodID
	bound  []bound
	claims []claimUse
}

// A bound is the data of a pod that is required to unbind it.
type bound struct {
	template    policy.TemplateID
	terminating bool
}

// A state summarises a node's phase and health for scheduling. The states are in order.
type state uint8

const (
	absent  state = iota
	coming        // not yet a Node object
	joined        // a Node object, not yet ready for pods
	failing       // initialized, but no longer ready
	ready         // accepts pods
	closed        // being drained
	leaving       // being deleted
)

// exists reports whether there is a Node object. Only then does the zone of the node count as a
// domain of topology spread.
func (s state) exists() bool { return s >= joined }

func stateOf(n *policy.Node) state {
	switch n.Phase {
	case policy.NodeGone:
		return absent
	case policy.NodeLaunching:
		return coming
	case policy.NodeRegistered:
		return joined
	case policy.NodeDraining:
		return closed
	case policy.NodeDeleting:
		return leaving
	}
	if n.NotReady {
		return failing
	}
	return ready
}

// emptied returns an occupancy without nodes that reuses the memory of oc.
func (oc *occupancy) emptied() occupancy {
	return occupancy{slots: oc.slots[:0], nodes: oc.nodes[:0], ids: oc.ids, bounds: oc.bounds, ends: oc.ends}
}

// list fills the pod lists of all nodes, which must be empty. The lists are parts of two shared
// arrays, so that no further memory is allocated.
func (oc *occupancy) list(pods []policy.Pod) {
	oc.ends = resize(oc.ends, len(oc.nodes))
	holds := func(p *policy.Pod) bool {
		return p.Phase >= policy.PodStarting && p.Node >= 0 && oc.slots[p.Node].state != absent
	}
	for i := range pods {
		if p := &pods[i]; holds(p) {
			oc.ends[p.Node]++
		}
	}
	total := int32(0)
	for n := range oc.ends {
		total, oc.ends[n] = total+oc.ends[n], total
	}
	oc.ids, oc.bounds = resize(oc.ids, int(total)), resize(oc.bounds, int(total))
	for i := range pods {
		if p := &pods[i]; holds(p) {
			at := &oc.ends[p.Node]
			oc.ids[*at], oc.bounds[*at] = p.ID, bound{p.Template, p.Phase == policy.PodTerminating}
			*at++
		}
	}
	from := int32(0)
	for n, end := range oc.ends {
		oc.nodes[n].pods, oc.nodes[n].bound = oc.ids[from:end:end], oc.bounds[from:end:end]
		from = end
	}
}

func (oc *occupancy) grow(n int) {
	if n <= len(oc.slots) {
		return
	}
	oc.slots = append(oc.slots, make([]slot, n-len(oc.slots))...)
	oc.nodes = append(oc.nodes, make([]node, n-len(oc.nodes))...)
}

// countUsage adds (delta 1) or removes (delta -1) everything that a pod of k uses on n apart from its
// requests.
func (oc *occupancy) countUsage(k *kind, n policy.NodeID, delta int64) {
	nd := &oc.nodes[n]
	if k.daemon {
		nd.daemons = nd.daemons.Plus(k.requests.Scale(delta))
	}
	nd.assumedCPU += delta * k.assumedCPU
	nd.assumedMemory += delta * k.assumedMemory
	oc.useExtended(k, n, delta)
	if k.volumes.any() {
		oc.attach(k, n, int32(delta))
	}
}

// daemonsMissing returns the requests of the DaemonSet pods that are not yet bound to n.
func (oc *occupancy) daemonsMissing(n policy.NodeID) policy.Resources {
	return oc.table.daemonsOf(oc.slots[n].class).Minus(oc.nodes[n].daemons).Max(policy.Resources{})
}

func (oc *occupancy) portTaken(k *kind, n policy.NodeID) bool {
	for _, b := range oc.nodes[n].bound {
		for _, t := range k.ports {
			if b.template == t {
				return true
			}
		}
	}
	return false
}

func (oc *occupancy) checkVolumes(k *kind, p *policy.Pod, n policy.NodeID) Result {
	for _, c := range k.volumes.claims {
		if c.once && oc.claims[c.id].users > 0 {
			return ClaimTaken
		}
	}
	if v := oc.checkAttach(k, n); v != OK {
		return v
	}
	if !oc.inVolumeZone(k, p, n) {
		return OtherZone
	}
	return OK
}

// inVolumeZone reports whether n is in the zone of the zonal volumes of p, which is a pod of k.
func (oc *occupancy) inVolumeZone(k *kind, p *policy.Pod, n policy.NodeID) bool {
	return !k.volumes.zonal || p.VolumeZone < 0 || p.VolumeZone == oc.table.classes[oc.slots[n].class].zone
}

// checkAttach checks the volumes that a pod of k adds against the node's limit.
func (oc *occupancy) checkAttach(k *kind, n policy.NodeID) Result {
	s, added := &oc.slots[n], k.volumes.own
	for _, c := range k.volumes.claims {
		if oc.nodes[n].uses(c.id) == 0 {
			added++
		}
	}
	if added > 0 && s.volumesMax > 0 && s.volumes+added > s.volumesMax {
		return VolumesFull
	}
	return OK
}

func (nd *node) uses(claim int32) int32 {
	for i := range nd.claims {
		if nd.claims[i].claim == claim {
			return nd.claims[i].pods
		}
	}
	return 0
}

// attach attaches (delta 1) or detaches (delta -1) the volumes of a pod of kind k.
func (oc *occupancy) attach(k *kind, n policy.NodeID, delta int32) {
	s, nd := &oc.slots[n], &oc.nodes[n]
	s.volumes += delta * k.volumes.own
	for _, c := range k.volumes.claims {
		oc.claims[c.id].users += delta
		at := -1
		for i := range nd.claims {
			if nd.claims[i].claim == c.id {
				at = i
			}
		}
		if at < 0 {
			nd.claims = append(nd.claims, claimUse{claim: c.id})
			at = len(nd.claims) - 1
		}
		was := nd.claims[at].pods
		nd.claims[at].pods += delta
		switch now := nd.claims[at].pods; {
		case was == 0 && now > 0:
			s.volumes++
		case was > 0 && now == 0:
			s.volumes--
			nd.claims[at] = nd.claims[len(nd.claims)-1]
			nd.claims = nd.claims[:len(nd.claims)-1]
		}
	}
}

// domain returns the domain of node n by key, or -1 if n lacks the label.
func (oc *occupancy) domain(key int32, n policy.NodeID) int32 {
	if key == keyHost {
		return int32(n)
	}
	return oc.table.classes[oc.slots[n].class].domain[key]
}

// A claim is a PersistentVolumeClaim that pods share.
type claim struct {
	namespace, name string
	users           int32 // number of pods in the cluster that use it
}

// A claimUse is the number of pods on a node that use a shared claim.
type claimUse struct{ claim, pods int32 }

func (oc *occupancy) claimOf(namespace, name string) int32 {
	for i := range oc.claims {
		if oc.claims[i].namespace == namespace && oc.claims[i].name == name {
			return int32(i)
		}
	}
	oc.claims = append(oc.claims, claim{namespace: namespace, name: name})
	return int32(len(oc.claims) - 1)
}
