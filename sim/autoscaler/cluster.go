package autoscaler

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A Version is the minor version of the Cluster Autoscaler 1 whose rules are followed. The zero
// value is the newest.
//
// Before 1.37 pods of a node are moved in their order on the node and not by priority, each pod's
// hint is tried when its turn comes and not before all searches, the first search starts at the
// first node, and safe-to-evict: on-completion is unknown.
type Version uint8

// Before reports whether v is older than the given minor version.
func (v Version) Before(minor Version) bool { return v != 0 && v < minor }

// A Cluster is what the Cluster Autoscaler sees in one look.
type Cluster struct {
	Now policy.Time

	// Space holds the nodes and the pods on them. It is used as scratch; where a function leaves a
	// change in it, its comment says so.
	Space     *placement.Space
	Templates []policy.Template
	Pods      []policy.Pod // by id

	// Traits are by template.
	Traits []Traits

	Groups []Group

	// Nodes are those of the snapshot, in its order. Pods may move to any of them.
	Nodes []Node

	// Free is the first id that no node has. New nodes of a simulation take it and those after it.
	Free policy.NodeID

	// Draw returns a random number below n: it decides what the Cluster Autoscaler leaves to the
	// random order of Go's maps. A nil Draw always returns 0.
	Draw func(n int) int

	// Allowed is how many disruptions each budget allows.
	Allowed []int32

	Options
}

func (c *Cluster) draw(n int) int {
	if c.Draw == nil || n < 2 {
		return 0
	}
	return c.Draw(n)
}

// Traits are what the rules ask about a pod that its template does not say.
type Traits struct {
	Owner Owner

	// LocalStorage reports whether the pod has a volume on its node, held in memory or named by the
	// annotation safe-to-evict-local-volumes left out.
	LocalStorage bool

	// OnCompletion is the annotation safe-to-evict: on-completion.
	OnCompletion bool
}

// An Owner is the kind of a pod's controller.
type Owner uint8

// The kinds of controllers.
const (
	OwnerNone       Owner = iota
	OwnerReplicated       // ReplicaSet, ReplicationController, StatefulSet or Job
	OwnerDaemonSet
	OwnerCustom // a kind that the Cluster Autoscaler does not know
	OwnerMirror // a static pod of the kubelet
)

// A Group is a group of nodes that can be resized.
type Group struct {
	Name string

	// Size is the number of nodes that the group must have, Min and Max its bounds. Deleting is how
	// many nodes of it are being deleted.
	Min, Max, Size, Deleting int

	// Blocked keeps the group from growing, after a failure.
	Blocked bool

	// What a new node is like. Daemons are the requests of its DaemonSet pods.
	Capacity, Allocatable, Daemons policy.Resources
	Labels                         []policy.Label
	Taints                         []policy.Taint
	VolumesMax                     int32
	GPUResource                    string
}

// room returns how many nodes the group may grow by.
func (g *Group) room() int {
	if g.Blocked {
		return 0
	}
	return max(0, g.Max-g.Size)
}

// A Node is a node of the snapshot.
type Node struct {
	*policy.Node

	// Group is the index of its group, or policy.None.
	Group int32

	// Disabled keeps it from being deleted, as the annotation scale-down-disabled does. Unready
	// nodes are deleted later than others.
	Disabled, Unready bool

	// Kept says that the node is no candidate in this look, for a reason that the Cluster Autoscaler
	// does not see.
	Kept bool
}

// Options are settings of the Cluster Autoscaler, named as its flags (config/flags/flags.go).
type Options struct {
	Version Version

	// Scaling up. NodesMax bounds how many nodes one look adds, 0 for no bound.
	Expander   Expander
	Priorities []Priority
	Balance    bool     // balance-similar-node-groups
	Ignored    []string // labels, in addition to the usual ones, that do not distinguish similar groups
	NodesMax   int      // max-nodes-per-scaleup

	// UtilizationMax is the part of a node's CPU or memory that is requested, whichever is more, up
	// to which the node is not needed; GPUUtilizationMax is the same of its accelerators.
	UtilizationMax, GPUUtilizationMax float64

	// UnneededTime is how long a node must have been unneeded before it is deleted, UnreadyTime the
	// same for a node that is not ready. RecheckTime is how long a node is left alone that could not be
	// emptied in a simulation.
	UnneededTime, UnreadyTime, RecheckTime time.Duration

	// ScanInterval is the time from look to look.
	ScanInterval time.Duration

	// EmptyMax nodes may be deleted at once (max-scale-down-parallelism), of which DrainMax with pods
	// (max-drain-parallelism).
	EmptyMax, DrainMax int

	// KeepSystemPods keeps nodes with pods in kube-system that no budget selects, until these are
	// SystemTime old; KeepLocalStorage and KeepCustom keep nodes with pods that have local storage or a
	// controller of an unknown kind (skip-nodes-with-…).
	KeepSystemPods, KeepLocalStorage, KeepCustom bool
	SystemTime                                   time.Duration

	// Expendable is the priority below which pods neither need nodes nor keep them
	// (expendable-pods-priority-cutoff).
	Expendable int32

	// IgnoreDaemonSets leaves DaemonSet pods out of utilization (ignore-daemonsets-utilization).
	IgnoreDaemonSets bool
}

// DefaultOptions returns the defaults of version 1.35.
func DefaultOptions() Options {
	return Options{
		Version: 35, Expander: LeastWaste, NodesMax: 1000,
		UtilizationMax: 0.5, GPUUtilizationMax: 0.5,
		UnneededTime: 10 * time.Minute, UnreadyTime: 20 * time.Minute, RecheckTime: 5 * time.Minute,
		ScanInterval: 10 * time.Second, EmptyMax: 10, DrainMax: 1,
		KeepSystemPods: true, KeepLocalStorage: true, KeepCustom: true, SystemTime: time.Hour, Expendable: -10,
	}
}

// A Memory is what the Cluster Autoscaler remembers from one look to the next. The zero value is what
// it knows when it starts.
type Memory struct {
	search             search
	hints, hintsBefore map[policy.PodID]hint
	nodes              []nodeMemory // by id
}

// A hint is where a pod found a place last. Created tells pods of one id apart.
type hint struct {
	node    policy.NodeID
	created policy.Time
}

// A nodeMemory is what was found out about a node.
type nodeMemory struct {
	since     policy.Time // when it was found unneeded; 0 for needed
	recheckAt policy.Time
}

// of returns what is known of a node.
func (m *Memory) of(n policy.NodeID) *nodeMemory {
	for len(m.nodes) <= int(n) {
		m.nodes = append(m.nodes, nodeMemory{})
	}
	return &m.nodes[n]
}

// Forget drops what is known of a node: its slot has another owner.
func (m *Memory) Forget(n policy.NodeID) { *m.of(n) = nodeMemory{} }

// Since returns when a node was found unneeded, 0 for one that is needed.
func (m *Memory) Since(n policy.NodeID) policy.Time { return m.of(n).since }

// RecheckAt returns when a node is looked at again that could not be emptied.
func (m *Memory) RecheckAt(n policy.NodeID) policy.Time { return m.of(n).recheckAt }

// hint returns where p found a place in the look before, or policy.None.
func (m *Memory) hint(p *policy.Pod) policy.NodeID {
	for _, hints := range [...]map[policy.PodID]hint{m.hints, m.hintsBefore} {
		if h, known := hints[p.ID]; known && h.created == p.Created {
			return h.node
		}
	}
	return policy.None
}

func (m *Memory) note(p *policy.Pod, n policy.NodeID) {
	if m.hints == nil {
		m.hints = make(map[policy.PodID]hint)
	}
	m.hints[p.ID] = hint{n, p.Created}
}

// dropHints forgets the hints that were not used in this look.
func (m *Memory) dropHints() { m.hintsBefore, m.hints = m.hints, nil }
