package placement

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Space holds nodes, and the pods that are bound to them, in the form in
// which placement questions are answered fast. It is changed by one goroutine
// at a time; methods that say so use it as scratch and leave it as it was.
//
// The label and taint lists of nodes given to it are kept, and must not be
// written afterwards.
type Space struct {
	templates []policy.Template
	zones     []string

	kinds    []kind
	keys     []topologyKey
	counters []counter
	spreads  []int32 // the counters of hard spread constraints
	gpus     []string
	claims   []claim

	classes  []class
	static   []Result // by class and template; see suits
	byList   map[listKey]int32
	byDigest map[uint64][]int32

	slots []slot
	nodes []node

	reserved []reservation

	// What Karpenter's scheduler asks for: see Solve.
	relaxations []relaxation
	groups      []group
	solver      Solver

	layout                      layout
	relaxationsLaid, groupsLaid int // how many have what they ask for by topology key
	compiled                    bool

	// offerTables are the last that offers were put on, the latest first.
	offerTables []*offerTable

	// loading says that many nodes are being set, and that presentAll follows.
	loading bool
}

// A slot is what every check reads of a node; it fits a cache line.
type slot struct {
	free       policy.Resources
	class      int32
	volumes    int32
	volumesMax int32
	gpu        int16
	state      state
}

// A node is the rest.
type node struct {
	name, host  string
	allocatable policy.Resources
	daemons     policy.Resources // requests of the DaemonSet pods bound here

	// assumedCPU and assumedMemory are what scoring assumes of the pods here
	// that state no request.
	assumedCPU, assumedMemory int64

	// pods are ascending; bound is parallel to it.
	pods   []policy.PodID
	bound  []bound
	claims []claimUse
}

// A bound is what must be known of a pod to take it off its node again.
type bound struct {
	template    policy.TemplateID
	terminating bool
}

// A state is what a node's phase and health mean for scheduling, in order.
type state uint8

const (
	absent  state = iota
	coming        // not yet a Node object
	joined        // a Node object, not ready for pods
	ready         // takes pods
	closed        // being emptied
	leaving       // being deleted
)

// exists reports whether there is a Node object: only then is the node's zone
// a domain of topology spread.
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
		return joined
	}
	return ready
}

// New returns an empty space for pods of the given templates. Zones gives the
// names of the ids in Pod.VolumeZone. Both are kept and must not change.
func New(templates []policy.Template, zones []string) *Space {
	sp := &Space{
		templates: templates,
		zones:     zones,
		byList:    make(map[listKey]int32),
		byDigest:  make(map[uint64][]int32),
		gpus:      []string{""},
		keys:      []topologyKey{{name: labelHost}},
	}
	sp.solver.sp = sp
	sp.compile()
	return sp
}

// FromSnapshot returns a space with the live nodes of s and all pods that hold
// a place on one: starting, ready and terminating.
func FromSnapshot(s *policy.Snapshot) *Space {
	sp := New(s.Templates, s.Zones)
	sp.grow(len(s.Nodes))
	sp.allot(s.Pods)
	sp.loading = true
	for i := range s.Nodes {
		if s.Nodes[i].Live() {
			sp.SetNode(&s.Nodes[i])
		}
	}
	sp.loading = false
	sp.presentAll()
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase >= policy.PodStarting && p.Node >= 0 && sp.slots[p.Node].state != absent {
			sp.Bind(p, p.Node)
		}
	}
	return sp
}

// allot cuts the pod lists of all nodes from two arrays, so that filling them
// allocates nothing more.
func (sp *Space) allot(pods []policy.Pod) {
	count := make([]int32, len(sp.nodes))
	total := 0
	for i := range pods {
		if p := &pods[i]; p.Phase >= policy.PodStarting && p.Node >= 0 {
			count[p.Node]++
			total++
		}
	}
	ids, bounds := make([]policy.PodID, total), make([]bound, total)
	at := 0
	for i := range sp.nodes {
		end := at + int(count[i])
		sp.nodes[i].pods, sp.nodes[i].bound = ids[at:at:end], bounds[at:at:end]
		at = end
	}
}

func (sp *Space) grow(n int) {
	if n <= len(sp.slots) {
		return
	}
	sp.slots = append(sp.slots, make([]slot, n-len(sp.slots))...)
	sp.nodes = append(sp.nodes, make([]node, n-len(sp.nodes))...)
}

// SetNode puts n into the slot of its id, or tells that it changed. The pods
// bound to it stay. A node whose phase is NodeGone is removed.
func (sp *Space) SetNode(n *policy.Node) {
	if n.Phase == policy.NodeGone {
		sp.RemoveNode(n.ID)
		return
	}
	sp.grow(int(n.ID) + 1)
	s, nd := &sp.slots[n.ID], &sp.nodes[n.ID]
	class, now := sp.classOf(n.Labels, n.Taints), stateOf(n)
	if s.state == absent || class != s.class || nd.name != n.Name || s.state != now {
		sp.countNode(n.ID, -1)
		s.class, s.state = class, now
		nd.name, nd.host = n.Name, n.Name
		if host, ok := n.Label(labelHost); ok {
			nd.host = host
		}
		sp.countNode(n.ID, 1)
	}
	s.free = s.free.Plus(n.Allocatable.Minus(nd.allocatable))
	nd.allocatable = n.Allocatable
	s.volumesMax = n.VolumesMax
	s.gpu = sp.gpuOf(n.GPUResource)
}

// RemoveNode empties the slot id. Pods still bound there are dropped.
func (sp *Space) RemoveNode(id policy.NodeID) {
	if int(id) >= len(sp.slots) || sp.slots[id].state == absent {
		return
	}
	nd := &sp.nodes[id]
	for len(nd.pods) > 0 {
		sp.unbind(nd.pods[len(nd.pods)-1], id)
	}
	sp.countNode(id, -1)
	sp.slots[id] = slot{}
	*nd = node{pods: nd.pods, bound: nd.bound, claims: nd.claims}
}

// Bind records that p runs on n, whether or not it fits. A pod in phase
// PodTerminating holds its resources but is not counted by topology spread.
func (sp *Space) Bind(p *policy.Pod, n policy.NodeID) {
	sp.bind(p.ID, p.Template, p.Phase == policy.PodTerminating, n)
}

func (sp *Space) bind(id policy.PodID, t policy.TemplateID, terminating bool, n policy.NodeID) {
	nd := &sp.nodes[n]
	if last := len(nd.pods) - 1; last < 0 || nd.pods[last] < id {
		nd.pods, nd.bound = append(nd.pods, id), append(nd.bound, bound{t, terminating})
	} else {
		at, twice := slices.BinarySearch(nd.pods, id)
		if twice {
			panic(fmt.Sprintf("place: pod %d is bound to node %d (%s) already", id, n, nd.name))
		}
		nd.pods = slices.Insert(nd.pods, at, id)
		nd.bound = slices.Insert(nd.bound, at, bound{t, terminating})
	}
	k := &sp.kinds[t]
	sp.slots[n].free = sp.slots[n].free.Minus(k.requests)
	sp.burden(k, n, 1)
	if len(k.counters) > 0 {
		sp.count(k, n, terminating, 1)
	}
	if len(k.groups) > 0 {
		sp.countGroups(k, n, terminating, 1)
	}
}

// burden adds (1) what a pod of k brings to n besides its requests, or takes it
// off (-1).
func (sp *Space) burden(k *kind, n policy.NodeID, delta int64) {
	nd := &sp.nodes[n]
	if k.daemon {
		nd.daemons = nd.daemons.Plus(k.requests.Scale(delta))
	}
	nd.assumedCPU += delta * k.assumedCPU
	nd.assumedMemory += delta * k.assumedMemory
	if k.volumes > 0 || len(k.claims) > 0 {
		sp.attach(k, n, int32(delta))
	}
}

// Unbind records that p no longer runs on n.
func (sp *Space) Unbind(p *policy.Pod, n policy.NodeID) { sp.unbind(p.ID, n) }

func (sp *Space) unbind(id policy.PodID, n policy.NodeID) {
	nd := &sp.nodes[n]
	at, there := slices.BinarySearch(nd.pods, id)
	if !there {
		panic(fmt.Sprintf("place: pod %d is not bound to node %d (%s)", id, n, nd.name))
	}
	b := nd.bound[at]
	nd.pods = slices.Delete(nd.pods, at, at+1)
	nd.bound = slices.Delete(nd.bound, at, at+1)
	k := &sp.kinds[b.template]
	sp.slots[n].free = sp.slots[n].free.Plus(k.requests)
	sp.burden(k, n, -1)
	if len(k.counters) > 0 {
		sp.count(k, n, b.terminating, -1)
	}
	if len(k.groups) > 0 {
		sp.countGroups(k, n, b.terminating, -1)
	}
}

// Terminating records that the deletion of p, bound to n, was asked for: it
// holds its resources until Unbind but no longer counts for topology spread.
func (sp *Space) Terminating(p *policy.Pod, n policy.NodeID) {
	nd := &sp.nodes[n]
	at, there := slices.BinarySearch(nd.pods, p.ID)
	if !there {
		panic(fmt.Sprintf("place: pod %d is not bound to node %d (%s)", p.ID, n, nd.name))
	}
	b := &nd.bound[at]
	if b.terminating {
		return
	}
	k := &sp.kinds[b.template]
	sp.count(k, n, false, -1)
	sp.countGroups(k, n, false, -1)
	b.terminating = true
	sp.count(k, n, true, 1)
	sp.countGroups(k, n, true, 1)
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

// Release undoes every Reserve since the last Release. The caller has unbound
// or removed none of the nodes and pods concerned in between.
func (sp *Space) Release() {
	for _, r := range slices.Backward(sp.reserved) {
		sp.unbind(r.pod, r.node)
	}
	sp.reserved = sp.reserved[:0]
}

// Solver returns what places pods as Karpenter does.
func (sp *Space) Solver() *Solver { return &sp.solver }

// Nodes returns the number of slots, empty ones included.
func (sp *Space) Nodes() int { return len(sp.slots) }

// Free returns what pods may still ask for on n. A component is negative where
// more is requested than there is.
func (sp *Space) Free(n policy.NodeID) policy.Resources { return sp.slots[n].free }

// Requested returns the sum of the requests of the pods bound to n.
func (sp *Space) Requested(n policy.NodeID) policy.Resources {
	return sp.nodes[n].allocatable.Minus(sp.slots[n].free)
}

// Allocatable returns what n offers to pods.
func (sp *Space) Allocatable(n policy.NodeID) policy.Resources { return sp.nodes[n].allocatable }

// Pods returns the pods bound to n, ascending. The slice belongs to the space
// and is valid until the next change of n.
func (sp *Space) Pods(n policy.NodeID) []policy.PodID { return sp.nodes[n].pods }

// Daemons returns what DaemonSet pods will request on a new node with these
// labels and taints.
func (sp *Space) Daemons(labels []policy.Label, taints []policy.Taint) policy.Resources {
	return sp.daemonsOf(sp.classOf(labels, taints))
}

func (sp *Space) gpuOf(name string) int16 {
	for i := range sp.gpus {
		if sp.gpus[i] == name {
			return int16(i)
		}
	}
	sp.gpus = append(sp.gpus, name)
	return int16(len(sp.gpus) - 1)
}
