package policy

import "time"

// A Provisioner is the component that launches nodes for a pool's pending pods.
type Provisioner uint8

// The provisioners. With ProvisionerNone the policy launches nodes itself.
const (
	ProvisionerNone Provisioner = iota
	ProvisionerKarpenter
	ProvisionerClusterAutoscaler
)

// A Mode specifies how much of a pool's plans is executed.
type Mode uint8

// The modes of a pool. In ModeShadow plans are recorded but not executed.
const (
	ModeShadow Mode = iota
	ModeActive
	ModeOff
)

// A Consolidation specifies when a provisioner removes or replaces nodes by itself.
type Consolidation uint8

// The consolidation policies of Karpenter, and ConsolidateNever.
const (
	WhenEmptyOrUnderutilized Consolidation = iota
	WhenEmpty
	ConsolidateNever
	Balanced
)

// A Pool is capacity managed as one (a CapacityPool) at the time Snapshot.Now.
type Pool struct {
	ID          PoolID
	Name        string
	Provisioner Provisioner
	Mode        Mode

	// Policy is the policy named in the manifest; empty without one.
	Policy string

	// Markets are the markets that the pool may use, ascending.
	Markets []MarketID

	// Share limits the Spot share of the pool's capacity, in vCPUs, or in GPUs for a GPU pool.
	Share ShareRange

	// OnDemandFallback allows an on-demand node after a refused Spot launch.
	OnDemandFallback bool

	// PriceMax is the maximum price per node-hour at the time of the launch, in any market; 0 means
	// no limit. See [Pool.Affords].
	PriceMax Money

	// LossBudget is the fraction of the on-demand bill by which the costs of Spot may exceed its
	// savings; 0 means no limit. HasLossBudget reports whether the user stated it.
	LossBudget    float64 `json:",omitempty"`
	HasLossBudget bool    `json:",omitempty"`

	// Choice configures how a policy that ranks markets restricts them.
	Choice MarketChoice

	// Fees are the costs of a node per hour in addition to its price. They depend neither on the
	// market nor on commitments. Credits are 0.
	Fees NodeFees `json:",omitzero"`

	// Limits are the maximum resources of the pool; zero components are unlimited. Used is its
	// current resources, including launching nodes.
	Limits, Used Resources

	// Budgets limit how many nodes may be disrupted at once.
	Budgets []DisruptionBudget

	Consolidation    Consolidation
	ConsolidateAfter time.Duration
	ExpireAfter      time.Duration // 0 means never

	// SavingsThreshold is the minimum relative saving for which a node is replaced. Cooldown is the
	// minimum time between two changes.
	SavingsThreshold float64
	Cooldown         time.Duration

	// Labels and Taints are those of the pool's nodes.
	Labels []Label
	Taints []Taint

	// CapacityTypes are the capacity types that the NodePools or groups of the pool allowed when
	// the cluster was captured, ascending; empty if unknown. They describe the cluster without
	// Spotter and do not restrict policies.
	CapacityTypes []CapacityType

	// OwnShare is the Spot share of the pool when it was captured, in [0, 1], if it has both
	// capacity types and no NodePool or group allows both; otherwise 0.
	OwnShare float64

	// Levers are the means by which the share of the pool can be changed.
	Levers Levers

	// Steer is the current steer. Its Set is false before the first one.
	Steer SteerState

	// Refused is the last time that a launch of this pool failed for lack of capacity.
	Refused Time

	// Approval contains the changes that a person approved, in pools that require approval.
	Approval Approval `json:",omitzero"`

	// Actions are the action values that a model computed for this pool; nil without a model.
	Actions []float64
}

// SelfProvisioned reports whether the policy itself launches the nodes of p: p is managed and has
// no provisioner.
func (p *Pool) SelfProvisioned() bool { return p.Provisioner == ProvisionerNone && p.Mode != ModeOff }

// A ShareRange limits the Spot share of a pool, in [0, 1].
type ShareRange struct {
	Min, Max, Target float64

	// Exact reports whether Target is an exact ratio to maintain.
	Exact bool

	// HasTarget reports whether the user stated Target.
	HasTarget bool
}

// A MarketChoice contains the settings of a manifest for the choice among the markets of a pool. A
// policy that ranks markets applies them again whenever prices or scores change; for other
// policies, Markets is restricted beforehand.
type MarketChoice struct {
	// ScoreMin is the minimum placement score, 0 to 10, of a Spot market. HasScoreMin reports
	// whether the user stated it; 0 accepts every market.
	ScoreMin    int8
	HasScoreMin bool

	// TypesMax and ZonesMax are the maximum numbers of instance types and zones in use at a time; 0
	// means that the user stated none.
	TypesMax, ZonesMax int32
}

// Levers are the means by which a backend can change the share.
type Levers struct {
	Weights bool // the order in which a provisioner tries capacity types
	Limits  bool // an upper limit on the Spot part
	Launch  bool // nodes can be launched one by one
}

// A SteerState is the last steer of a pool, which took effect at Since.
type SteerState struct {
	Set             bool
	Share           float64
	Exact, Fallback bool
	Since           Time
}

// State returns x as the last steer of its pool, in effect at since.
func (x *Steer) State(since Time) SteerState {
	return SteerState{Set: true, Share: x.Share, Exact: x.Exact, Fallback: x.Fallback, Since: since}
}

// Follows reports whether the last steer agrees with x in what its pool states: the share, and
// whether it is exact and allows the fallback. Its markets and bid are left out, since they change
// with prices.
func (st *SteerState) Follows(x *Steer) bool {
	return st.Set && st.Share == x.Share && st.Exact == x.Exact && st.Fallback == x.Fallback
}

// A DisruptionReason is a reason for disrupting a node, as in Karpenter's budgets.
type DisruptionReason uint8

// The reasons that a budget may name.
const (
	Underutilized DisruptionReason = iota
	Empty
	Drifted
)

// A DisruptionBudget limits disruption like the budget of a NodePool.
type DisruptionBudget struct {
	// Nodes is the limit, as a count or a percentage of the pool's nodes.
	Nodes Quantity

	// Reasons are the reasons to which it applies; empty means all.
	Reasons []DisruptionReason

	// Schedule is a cron expression in UTC, and Duration the length of each interval. An empty
	// schedule means always. Active reports whether the budget is in force at Snapshot.Now: the
	// observer evaluates the schedule, decisions do not.
	Schedule string
	Duration time.Duration
	Active   bool

	// Windows are maintenance windows: the budget is in force outside all of them.
	Windows []Window `json:",omitzero"`

	// From and To are the limits of a freeze: the budget is in force from From (inclusive) until To
	// (exclusive). To is zero if the budget is not a freeze.
	From, To Time `json:",omitzero"`

	// Closed is the reason why no node of the pool may be disrupted while the budget is in force;
	// empty for a budget that is neither of windows nor a freeze.
	Closed string `json:",omitzero"`
}

// A Window is a recurring interval: it opens when Schedule, a cron expression in UTC, is due, and
// remains open for Duration.
type Window struct {
	Schedule string
	Duration time.Duration
}

// Closed returns the reason why maintenance windows or freezes currently forbid voluntary
// disruption of the pool's nodes; empty if they allow it.
func (p *Pool) Closed() string {
	for i := range p.Budgets {
		if b := &p.Budgets[i]; b.Active && b.Closed != "" {
			return b.Closed
		}
	}
	return ""
}

// Disruptable returns how many more nodes of pool may be disrupted now for reason. It counts as
// Karpenter does: over the pool's initialized nodes, with percentages rounded up, minus the nodes
// that are not ready, are being removed, or are marked for removal once their replacement is ready.
// A node that a person cordoned but did not delete is not subtracted. The result is at most the
// number of nodes that are not being removed; nodes that are not ready may be among those
// disrupted.
func (s *Snapshot) Disruptable(pool PoolID, reason DisruptionReason) int {
	if m := s.Mark(); m.of != nil {
		return m.of.counts.Of(pool).Disruptable(&s.Pools[pool], reason)
	}
	var x NodeCounts
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Pool == pool {
			x.add(n.counts(), 1)
		}
	}
	return x.Disruptable(&s.Pools[pool], reason)
}

// NodeCounts are counts of the nodes of a pool. Nodes counts the initialized nodes, including those
// that are being removed. Going counts those being removed, and Failing those that are not ready;
// both count against disruption budgets.
type NodeCounts struct{ Nodes, Going, Failing int32 }

// counts returns the contribution of n to the counts of its pool.
func (n *Node) counts() (x NodeCounts) {
	if n.Phase < NodeInitialized {
		return x
	}
	x.Nodes = 1
	switch {
	case n.Phase > NodeInitialized || n.ActedBy != ActorNone && n.ActedBy != ActorPerson:
		x.Going = 1
	case n.NotReady:
		x.Failing = 1
	}
	return x
}

// add adds y (sign 1) or subtracts it (sign -1).
func (x *NodeCounts) add(y NodeCounts, sign int32) {
	x.Nodes, x.Going, x.Failing = x.Nodes+sign*y.Nodes, x.Going+sign*y.Going, x.Failing+sign*y.Failing
}

// Disruptable returns how many more nodes of pool p, which has the counts x, may be disrupted now
// for reason.
func (x NodeCounts) Disruptable(p *Pool, reason DisruptionReason) int {
	allowed := int(x.Nodes - x.Going)
	for i := range p.Budgets {
		b := &p.Budgets[i]
		if b.Active && b.appliesTo(reason) {
			allowed = min(allowed, int(b.Nodes.Of(x.Nodes)-x.Going-x.Failing))
		}
	}
	return max(0, allowed)
}

// A PoolCounts maintains the NodeCounts of all pools while nodes change. The zero value has counted
// no nodes.
type PoolCounts struct {
	pools []NodeCounts
	nodes []poolNode
}

// A poolNode is a node as it was last counted. pool is the ID of its pool plus 1, or 0 without a
// pool.
type poolNode struct {
	pool   PoolID
	counts NodeCounts
}

// Read updates the counts with the current state of the node in slot id.
func (x *PoolCounts) Read(id NodeID, n *Node) {
	for len(x.nodes) <= int(id) {
		x.nodes = append(x.nodes, poolNode{})
	}
	for len(x.pools) <= int(n.Pool) {
		x.pools = append(x.pools, NodeCounts{})
	}
	was := &x.nodes[id]
	if was.pool > 0 {
		x.pools[was.pool-1].add(was.counts, -1)
	}
	if *was = (poolNode{n.Pool + 1, n.counts()}); was.pool > 0 {
		x.pools[n.Pool].add(was.counts, 1)
	}
}

// Of returns the counts of a pool.
func (x *PoolCounts) Of(pool PoolID) NodeCounts {
	if int(pool) >= len(x.pools) {
		return NodeCounts{}
	}
	return x.pools[pool]
}

func (b *DisruptionBudget) appliesTo(reason DisruptionReason) bool {
	if len(b.Reasons) == 0 {
		return true
	}
	for _, r := range b.Reasons {
		if r == reason {
			return true
		}
	}
	return false
}
