package policy

import "time"

// A Provisioner is who buys nodes for a pool's pending pods.
type Provisioner uint8

// The provisioners. Without one the policy launches nodes itself.
const (
	ProvisionerNone Provisioner = iota
	ProvisionerKarpenter
	ProvisionerClusterAutoscaler
)

// A Mode is how far a pool's plans are carried out.
type Mode uint8

// The modes of a pool. Shadow decides and records but does nothing.
const (
	ModeShadow Mode = iota
	ModeActive
	ModeOff
)

// A Consolidation is when a provisioner removes or replaces nodes by itself.
type Consolidation uint8

// The consolidation policies, as Karpenter's.
const (
	WhenEmptyOrUnderutilized Consolidation = iota
	WhenEmpty
	ConsolidateNever
	Balanced
)

// A Pool is capacity managed as one (a CapacityPool), as seen at Snapshot.Now.
type Pool struct {
	ID          PoolID
	Name        string
	Provisioner Provisioner
	Mode        Mode

	// Policy is the name that the manifest gives; empty without one.
	Policy string

	// Markets are those that the pool may use, ascending.
	Markets []MarketID

	// Share bounds the part of the pool's capacity (vCPU; GPUs in a GPU pool)
	// that may be spot.
	Share ShareRange

	// OnDemandFallback lets a refused spot launch go to on-demand.
	OnDemandFallback bool

	// PriceMax is the most that one node may cost per hour at the moment in which it
	// is bought, in whatever market; 0 means no bound. See [Pool.Affords].
	PriceMax Money

	// LossBudget is the part of the on-demand bill that Spot may cost the pool more than it
	// saves; 0 means no bound. HasLossBudget reports whether the user stated it.
	LossBudget    float64 `json:",omitempty"`
	HasLossBudget bool    `json:",omitempty"`

	// Choice is how a policy that ranks markets narrows them down.
	Choice MarketChoice

	// Fees are what a node of the pool costs per hour on top of its price. No market and no
	// commitment changes them: only fewer nodes cost less.
	// Credits are 0.
	Fees NodeFees `json:",omitzero"`

	// Limits are what the pool may hold in all; zero components are unlimited.
	// Used is what it holds now, launching nodes included.
	Limits, Used Resources

	// Budgets bound how many nodes may be disrupted at once.
	Budgets []DisruptionBudget

	Consolidation    Consolidation
	ConsolidateAfter time.Duration
	ExpireAfter      time.Duration // 0 means never

	// SavingsThreshold is the least relative saving for which a node is
	// replaced. Cooldown is the least time between two changes.
	SavingsThreshold float64
	Cooldown         time.Duration

	// Labels and Taints are those of the pool's nodes.
	Labels []Label
	Taints []Taint

	// CapacityTypes are those that the NodePools or groups of the pool allowed when
	// the cluster was captured, ascending; none where that is not known. They say
	// what runs without us and bound no policy.
	CapacityTypes []CapacityType

	// OwnShare is the Spot share at which the pool was captured, in [0, 1], if it has both capacity
	// types and no NodePool or group of it allows both; else 0.
	OwnShare float64

	// Levers are the ways in which a share can be steered here.
	Levers Levers

	// Steer is the one in force; its Set is false before the first.
	Steer SteerState

	// Refused is when a launch of this pool last failed for lack of capacity.
	Refused Time

	// Approval says what of a plan a person has let through, where one must.
	Approval Approval `json:",omitzero"`

	// Actions are the values of a model's actions for this pool; nil without.
	Actions []float64
}

// SelfProvisioned reports whether the policy itself buys the nodes of p: it is managed
// and has no provisioner.
func (p *Pool) SelfProvisioned() bool { return p.Provisioner == ProvisionerNone && p.Mode != ModeOff }

// A ShareRange bounds the Spot share of a pool, in [0, 1].
type ShareRange struct {
	Min, Max, Target float64

	// Exact says that Target is an exact ratio to be held.
	Exact bool

	// HasTarget says that the user stated Target.
	HasTarget bool
}

// A MarketChoice is what a manifest specifies for the choice among the markets of a pool. A policy
// that ranks markets repeats the choice whenever prices and scores have changed; for the others
// Markets is narrowed down beforehand.
type MarketChoice struct {
	// ScoreMin is the least placement score, 0 to 10, of a Spot market. HasScoreMin says that the
	// user stated it: 0 lets every market pass.
	ScoreMin    int8
	HasScoreMin bool

	// TypesMax and ZonesMax are the most instance types and zones to buy in at
	// a time; 0 means that the user stated none.
	TypesMax, ZonesMax int32
}

// Levers are the ways in which a backend lets the share be changed.
type Levers struct {
	Weights bool // the order in which a provisioner tries capacity types
	Limits  bool // an upper bound on the spot part
	Launch  bool // nodes can be launched one by one
}

// A SteerState is the last steer of a pool.
type SteerState struct {
	Set   bool
	Share float64
	Since Time
}

// A DisruptionReason is why a node is disrupted, as in Karpenter's budgets.
type DisruptionReason uint8

// The reasons that a budget may name.
const (
	Underutilized DisruptionReason = iota
	Empty
	Drifted
)

// A DisruptionBudget bounds disruption as a NodePool's budget does.
type DisruptionBudget struct {
	// Nodes is the bound, a count or a percentage of the pool's nodes.
	Nodes Quantity

	// Reasons it applies to; none means all.
	Reasons []DisruptionReason

	// Schedule is a cron expression in UTC and Duration how long each interval
	// lasts; empty means always. Active says whether it is in force at
	// Snapshot.Now: the observer reads the schedule, a decision does not.
	Schedule string
	Duration time.Duration
	Active   bool

	// Windows are maintenance windows: the budget is in force outside all of them.
	Windows []Window `json:",omitzero"`

	// From and To bound a freeze: the budget is in force from From until To. To is zero if the
	// budget is not a freeze.
	From, To Time `json:",omitzero"`

	// Closed says why no node of the pool may be disrupted while the budget is in force;
	// empty for a budget that is neither of windows nor a freeze.
	Closed string `json:",omitzero"`
}

// A Window recurs: it opens when Schedule, a cron expression in UTC, comes due, and stays
// open for Duration.
type Window struct {
	Schedule string
	Duration time.Duration
}

// Closed returns why no node of the pool may be disrupted by choice now, as its maintenance
// windows and freezes state; empty where they allow it.
func (p *Pool) Closed() string {
	for i := range p.Budgets {
		if b := &p.Budgets[i]; b.Active && b.Closed != "" {
			return b.Closed
		}
	}
	return ""
}

// Disruptable returns how many more nodes of pool may be disrupted now for reason, as Karpenter
// counts: over the pool's initialized nodes, percentages rounded up, less the nodes that are not
// ready or going away, or are marked to go once their replacement is there. A node that a person
// cordoned and did not delete does not count among these. It returns at most the number of nodes
// that are not going away, of which those that are not ready may be disrupted.
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

// NodeCounts are of the nodes of a pool: those that are initialized, on their way out too, and
// those of them that count against its disruption budgets, since they are going away or their
// kubelets fail.
type NodeCounts struct{ Nodes, Going, Failing int32 }

// counts returns what n adds to those of its pool.
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

// add adds (1) others, or takes them off (-1).
func (x *NodeCounts) add(y NodeCounts, sign int32) {
	x.Nodes, x.Going, x.Failing = x.Nodes+sign*y.Nodes, x.Going+sign*y.Going, x.Failing+sign*y.Failing
}

// Disruptable returns how many more nodes of a pool with such nodes may be disrupted now for
// reason.
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

// A PoolCounts keeps the NodeCounts of all pools while nodes change. The zero value has
// counted no node.
type PoolCounts struct {
	pools []NodeCounts
	nodes []poolNode
}

// A poolNode is a node as it was counted; 1 + its pool, 0 for none.
type poolNode struct {
	pool   PoolID
	counts NodeCounts
}

// Read recounts the node of slot id.
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

// Of returns what the nodes of a pool are.
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
