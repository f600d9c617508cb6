package karpenter

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A Cluster is the state that a decision is taken on. Its slices are read only;
// Space is used as scratch and left as it was.
type Cluster struct {
	Now     policy.Time
	Version Version

	// Nodes, Pods, Pools, Templates, Workloads, PDBs and Markets are indexed by
	// their ids. Workloads are looked up by Template.Workload.
	Nodes     []policy.Node
	Pods      []policy.Pod
	Pools     []policy.Pool
	Templates []policy.Template
	Kinds     []policy.WorkloadKind
	PDBs      []policy.PDB
	Markets   []policy.Market
	Space     *placement.Space

	// Order lists the nodes that exist or are on their way as the scheduler tries
	// them: by name (scheduling/scheduler.go, sortExistingNodes). Uninitialized
	// nodes are tried after the others.
	Order []policy.NodeID

	// Pending are the pods that the scheduler found no place for.
	Pending []policy.PodID

	// Changed lists, where Tracked is set, the nodes of which more than price and age may
	// have changed since the candidates were listed last: their own state, their pods or
	// what was promised there. Else all nodes are read.
	Changed []policy.NodeID
	Tracked bool

	// Consolidation is what each pool does; it may be stricter than the pool's own.
	Consolidation []policy.Consolidation

	// Shifted says, by zone, where nothing is disrupted since a zonal shift leads away
	// from there. Nil is nowhere.
	Shifted []bool

	// Tie orders candidates that are alike otherwise, and Turns the pools in which
	// single nodes are tried in turn: Karpenter's order is that of a map. Nil is by id.
	Tie   func(a, b policy.NodeID) int
	Turns []policy.PoolID

	// Draw chooses among domains in which a pod may be placed alike; nil takes the
	// first.
	Draw func(pod policy.PodID, key string, ties []string) int

	// SpotToSpot is the feature gate of that name, off by default.
	SpotToSpot bool

	View View
}

// A View answers what is not kept by id.
type View interface {
	// Price is what a node of a pool costs per hour in a market, whether or not that is
	// open; 0 if that is not known.
	Price(policy.PoolID, policy.MarketID) policy.Money

	// LastPodEvent is when pods came to a node or began to leave it last, at
	// least its initialization. DaemonSets' do not count.
	LastPodEvent(policy.NodeID) policy.Time

	// NominatedUntil is until when a node is not disrupted as a pod was promised a
	// place there.
	NominatedUntil(policy.NodeID) policy.Time

	// Offers lists what a new node may be. Pools lists the further requirements of NodePools, in
	// the order of their weight; only their limits account for the given nodes being gone. An id
	// beyond those of the pools belongs to a NodePool that only new nodes come from. Lists of
	// offers of equal versions are equal, and so are their capacity types; 0 is no version.
	Offers() (list []placement.Offer, version uint64)
	Pools(without []policy.NodeID) []placement.Pool

	// CapacityTypes says which of them a NodePool allows.
	CapacityTypes(policy.PoolID) (spot, onDemand bool)

	// PodsVersion changes whenever the pods of a node do, one of them becomes ready or starts to
	// end, or its deletion cost is changed.
	PodsVersion(policy.NodeID) uint64
}

// managed reports whether Karpenter disrupts the nodes of pool p.
func (c *Cluster) managed(p policy.PoolID) bool {
	return p >= 0 && c.Pools[p].Provisioner == policy.ProvisionerKarpenter
}

// deleting reports whether n is marked for deletion: by an unfinished command, or because the
// provider gave notice.
func deleting(n *policy.Node) bool {
	return n.ReclaimAt != 0 || n.ActedBy == policy.ActorKarpenter || n.Phase == policy.NodeDeleting
}

// underConsolidateAfter reports whether pods came to an initialized node or left
// it within the pool's consolidateAfter (pkg/utils/disruption/disruption.go,
// IsUnderConsolidateAfter).
func (c *Cluster) underConsolidateAfter(n *policy.Node) bool {
	if !c.managed(n.Pool) || c.Consolidation[n.Pool] == policy.ConsolidateNever || n.Phase != policy.NodeInitialized {
		return false
	}
	after := c.Pools[n.Pool].ConsolidateAfter
	return after > 0 && c.Now.Sub(c.View.LastPodEvent(n.ID)) < after
}

// A ConsolidationState says whether something in the cluster has changed since a
// look for savings was fruitless (pkg/controllers/state/cluster.go,
// ConsolidationState). The zero value has never changed.
type ConsolidationState struct {
	seq     uint64
	changes uint64 // those of seq that came of a change
	at      policy.Time
}

// stateLife is how long a state counts as unchanged although nothing changed:
// prices and markets may have.
const stateLife = 5 * time.Minute

// Mark notes a change: a pod was bound or is gone, a node was launched, initialized or is
// gone, a NodeClaim was deleted by another than this controller, or a pool was edited. That
// Karpenter marks a node for deletion, or no longer, is no change, nor that a node becomes
// consolidatable (triggerConsolidationOnChange, cleanupOldBindings, DeletePod).
func (s *ConsolidationState) Mark(now policy.Time) {
	s.seq, s.changes, s.at = s.seq+1, s.changes+1, now
}

// Changes returns how often something changed.
func (s *ConsolidationState) Changes() uint64 { return s.changes }

// Now returns the number of the state, a new one after five minutes.
func (s *ConsolidationState) Now(now policy.Time) uint64 {
	if now.Sub(s.at) >= stateLife {
		s.seq, s.at = s.seq+1, now
	}
	return s.seq
}

// Ends returns when the state is no longer taken for unchanged.
func (s *ConsolidationState) Ends() policy.Time { return s.at.Add(stateLife) }
