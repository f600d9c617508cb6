package autoscaler

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A Version is the minor version of Cluster Autoscaler 1 whose rules are followed. The zero value
// is the newest.
//
// Before 1.37, the pods of a node are moved in their order on the node and not by priority, the
// hint of a pod is tried immediately before its search and not before all searches, the first
// search starts at the first node, and safe-to-evict: on-completion is unknown.
type Version uint8

// Before reports whether v is older than the given minor version.
func (v Version) Before(minor Version) bool { return v != 0 && v < minor }

// A Cluster is the state that the Cluster Autoscaler observes in one iteration.
type Cluster struct {
	Now policy.Time

	// Space contains the nodes and the pods on them. Functions change it temporarily; those that
	// leave a change in it document that.
	Space     *placement.Space
	Templates []policy.Template
	Pods      []policy.Pod // indexed by id

	// Traits are indexed by template.
	Traits []Traits

	Groups []Group

	// Nodes are the nodes of the snapshot, in its order. Pods may move to any of them.
	Nodes []Node

	// Free is the lowest unused node id. New nodes of a simulation get this id and the following
	// ones.
	Free policy.NodeID

	// Draw returns a random number in [0, n). It replaces the random iteration order of Go maps
	// where decisions of the Cluster Autoscaler depend on it. A nil Draw always returns 0.
	Draw func(n int) int

	// Allowed is the number of disruptions that each PodDisruptionBudget allows.
	Allowed []int32

	Options
}

func (c *Cluster) draw(n int) int {
	if c.Draw == nil || n < 2 {
		return 0
	}
	return c.Draw(n)
}

// Traits are the properties of a pod that the rules need and its template does not have.
type Traits struct {
	Owner Owner

	// LocalStorage reports whether the pod has a volume on its node that is neither held in memory
	// nor named by the annotation safe-to-evict-local-volumes.
	LocalStorage bool

	// OnCompletion reports whether the pod has the annotation safe-to-evict: on-completion.
	OnCompletion bool
}

// An Owner is the kind of controller that owns a pod.
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

	// Size is the target number of nodes, within Min and Max. Deleting is the number of its nodes
	// that are being deleted.
	Min, Max, Size, Deleting int

	// Blocked prevents the group from growing after a failure.
	Blocked bool

	// The properties of a new node. Daemons are the requests of its DaemonSet pods.
	Capacity, Allocatable, Daemons policy.Resources
	Labels                         []policy.Label
	Taints                         []policy.Taint
	VolumesMax                     int32
	GPUResource                    string
}

// room returns the number of nodes that the group may grow by.
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

	// Disabled prevents the deletion of the node, as the annotation scale-down-disabled does.
	// Unready nodes are deleted later than others (see UnreadyTime).
	Disabled, Unready bool

	// Kept excludes the node from the candidates of this iteration, for a reason that the Cluster
	// Autoscaler does not know.
	Kept bool
}

// Options are settings of the Cluster Autoscaler, named after its flags (config/flags/flags.go).
type Options struct {
	Version Version

	// Scaling up. NodesMax is the maximum number of nodes that one iteration adds, or 0 for no
	// maximum.
	Expander   Expander
	Priorities []Priority
	Balance    bool     // balance-similar-node-groups
	Ignored    []string // labels, in addition to the default ones, in which similar groups may differ
	NodesMax   int      // max-nodes-per-scaleup

	// UtilizationMax is the utilization, in [0, 1], up to which a node may be removed: the higher
	// of the requested fractions of its CPU and memory. GPUUtilizationMax is the same limit for its
	// accelerators.
	UtilizationMax, GPUUtilizationMax float64

	// UnneededTime is how long a node must have been unneeded before it is deleted, UnreadyTime the
	// same for a node that is not ready. After a simulation could not empty a node, the node is not
	// simulated again for RecheckTime.
	UnneededTime, UnreadyTime, RecheckTime time.Duration

	// ScanInterval is the time between iterations.
	ScanInterval time.Duration

	// EmptyMax is the maximum number of nodes that may be deleted at once
	// (max-scale-down-parallelism), DrainMax the maximum number of them that have pods to evict
	// (max-drain-parallelism).
	EmptyMax, DrainMax int

	// KeepSystemPods prevents the removal of nodes with pods in kube-system that no
	// PodDisruptionBudget selects, until these pods are SystemTime old. KeepLocalStorage and
	// KeepCustom prevent the removal of nodes with pods that have local storage or a controller of
	// an unknown kind (skip-nodes-with-…).
	KeepSystemPods, KeepLocalStorage, KeepCustom bool
	SystemTime                                   time.Duration

	// Pods of a priority below Expendable neither trigger a scale-up nor prevent a scale-down
	// (expendable-pods-priority-cutoff).
	Expendable int32

	// IgnoreDaemonSets excludes DaemonSet pods from the utilization
	// (ignore-daemonsets-utilization).
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

// A Memory is what the Cluster Autoscaler remembers between iterations. The zero value is its state
// at start-up.
type Memory struct {
	search             search
	hints, hintsBefore map[policy.PodID]hint
	nodes              []nodeMemory // indexed by id
}

// A hint is the node on which a pod was last placed in a simulation. The pod's creation time
// distinguishes pods that use the same id one after the other.
type hint struct {
	node    policy.NodeID
	created policy.Time
}

// A nodeMemory is what the Cluster Autoscaler remembers about a node.
type nodeMemory struct {
	since     policy.Time // when it was found unneeded; 0 if it is needed
	recheckAt policy.Time
}

// of returns the memory of a node.
func (m *Memory) of(n policy.NodeID) *nodeMemory {
	for len(m.nodes) <= int(n) {
		m.nodes = append(m.nodes, nodeMemory{})
	}
	return &m.nodes[n]
}

// Forget drops the memory of a node. Callers use it when another node takes over the id.
func (m *Memory) Forget(n policy.NodeID) { *m.of(n) = nodeMemory{} }

// Since returns when a node was found unneeded, or 0 if it is needed.
func (m *Memory) Since(n policy.NodeID) policy.Time { return m.of(n).since }

// RecheckAt returns when a node that could not be emptied may be simulated again.
func (m *Memory) RecheckAt(n policy.NodeID) policy.Time { return m.of(n).recheckAt }

// hint returns the node on which p was placed in this or the previous iteration, or policy.None.
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

// dropHints forgets the hints that were not used in this iteration.
func (m *Memory) dropHints() { m.hintsBefore, m.hints = m.hints, nil }
