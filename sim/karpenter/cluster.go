package karpenter

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A Cluster is the state of a cluster on which a decision is based. Its slices are read only. Space
// is changed temporarily and restored.
type Cluster struct {
	Now     policy.Time
	Version Version

	// Nodes, Pods, Pools, Templates, PDBs and Markets are indexed by their ids, and Kinds by
	// Template.Workload.
	Nodes     []policy.Node
	Pods      []policy.Pod
	Pools     []policy.Pool
	Templates []policy.Template
	Kinds     []policy.WorkloadKind
	PDBs      []policy.PDB
	Markets   []policy.Market
	Space     *placement.Space

	// Order lists the existing and launching nodes in the order in which the scheduler tries them:
	// by name (scheduling/scheduler.go, sortExistingNodes). Uninitialized nodes are tried after the
	// others.
	Order []policy.NodeID

	// Pending are the pods that the scheduler could not place.
	Pending []policy.PodID

	// Changed lists, if Tracked is set, the nodes of which something other than price and age may
	// have changed since the candidates were last listed: their own state, their pods or their
	// nominations. If Tracked is not set, all nodes are read.
	Changed []policy.NodeID
	Tracked bool

	// Consolidation is the consolidation policy to use, by pool. It may be stricter than the pool's
	// own.
	Consolidation []policy.Consolidation

	// Shifted reports, by zone, whether a zonal shift away from it prevents disruption there. Nil
	// means no zone.
	Shifted []bool

	// Tie orders candidates of equal rank, and Turns the pools whose single nodes are tried in
	// turn, since Karpenter uses the order of a map. Nil orders them by id.
	Tie   func(a, b policy.NodeID) int
	Turns []policy.PoolID

	// Draw chooses among equally suitable domains for a pod. A nil Draw takes the first.
	Draw func(pod policy.PodID, key string, ties []string) int

	// SpotToSpot is the feature gate SpotToSpotConsolidation, off by default.
	SpotToSpot bool

	View View
}

// A View provides the state that is not stored by id.
type View interface {
	// Price returns the hourly price of a node of a pool in a market, whether or not the market is
	// available, or 0 if the price is not known.
	Price(policy.PoolID, policy.MarketID) policy.Money

	// LastPodEvent returns the last time at which a pod was bound to the node or started to leave
	// it, but no time before its initialization. DaemonSet pods do not count.
	LastPodEvent(policy.NodeID) policy.Time

	// NominatedUntil returns the time until which a node is not disrupted because a pod was
	// nominated to it.
	NominatedUntil(policy.NodeID) policy.Time

	// Offers returns the offers of new nodes. Pools returns further requirements of NodePools, in
	// the order of their weight; only their limits take account of the removal of the given nodes.
	// An id beyond those of the pools belongs to a NodePool that only new nodes use. Lists of
	// offers with equal versions are equal, and so are their capacity types; a version of 0 equals
	// no other.
	Offers() (list []placement.Offer, version uint64)
	Pools(without []policy.NodeID) []placement.Pool

	// CapacityTypes reports which capacity types a NodePool allows.
	CapacityTypes(policy.PoolID) (spot, onDemand bool)

	// PodsVersion returns a number that changes whenever the set of pods of a node changes, one of
	// them becomes ready or starts to end, or its deletion cost changes.
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

// underConsolidateAfter reports whether a pod was bound to an initialized node or left it within
// the pool's consolidateAfter (pkg/utils/disruption/disruption.go, IsUnderConsolidateAfter).
func (c *Cluster) underConsolidateAfter(n *policy.Node) bool {
	if !c.managed(n.Pool) || c.Consolidation[n.Pool] == policy.ConsolidateNever || n.Phase != policy.NodeInitialized {
		return false
	}
	after := c.Pools[n.Pool].ConsolidateAfter
	return after > 0 && c.Now.Sub(c.View.LastPodEvent(n.ID)) < after
}

// A ConsolidationState identifies the state of the cluster, so that a fruitless evaluation is not
// repeated in the same state (pkg/controllers/state/cluster.go, ConsolidationState). The zero value
// is a state in which nothing has changed yet.
type ConsolidationState struct {
	seq     uint64
	changes uint64 // number of marked changes, which are a part of seq
	at      policy.Time
}

// stateLife is how long a state counts as unchanged if no change is marked, since prices and
// markets may have changed.
const stateLife = 5 * time.Minute

// Mark records a change: a pod was bound or is gone, a node was launched, initialized or is gone,
// another controller deleted a NodeClaim, or a pool was edited. It is not a change that Karpenter
// marks a node for deletion or unmarks it, or that a node becomes consolidatable
// (triggerConsolidationOnChange, cleanupOldBindings, DeletePod).
func (s *ConsolidationState) Mark(now policy.Time) {
	s.seq, s.changes, s.at = s.seq+1, s.changes+1, now
}

// Changes returns the number of marked changes.
func (s *ConsolidationState) Changes() uint64 { return s.changes }

// Now returns the number of the state. It changes after five minutes without a change.
func (s *ConsolidationState) Now(now policy.Time) uint64 {
	if now.Sub(s.at) >= stateLife {
		s.seq, s.at = s.seq+1, now
	}
	return s.seq
}

// Ends returns the time at which the state no longer counts as unchanged.
func (s *ConsolidationState) Ends() policy.Time { return s.at.Add(stateLife) }
