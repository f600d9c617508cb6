package policy

import (
	"fmt"
	"strings"
	"time"
)

// A Plan is the set of actions to take. The zero Plan does nothing.
//
// The driver executes the lists in the order of the fields, each in its own order. IDs refer to the
// Snapshot on which the decision was made.
type Plan struct {
	Steers   []Steer
	Launches []Launch
	Drains   []Drain

	// DeletionCosts set the order in which pods are deleted when workloads scale down.
	DeletionCosts []DeletionCost

	Gates  []Gate
	Pauses []Pause
	Evicts []Evict

	// Holds record what was left unchanged, and why.
	Holds []Hold

	// Wake is the time of the next decision if no event triggers one earlier. It is later than
	// Snapshot.Now.
	Wake Time
}

// A Why explains an entry of a plan.
type Why struct {
	// Reason is the reason in one word, for metrics and logs.
	Reason Reason

	// Text is the reason in a sentence.
	Text string

	// Before and After are the cost per hour of the subject of the entry, without and with the
	// entry. Both are 0 if the entry does not affect cost.
	Before, After Money

	// RunnerUp is the second-best alternative; empty without one.
	RunnerUp string
}

// A Reason is a word for metrics, logs and golden files.
type Reason string

// The reasons that several policies share. A policy may define others.
const (
	ReasonShortage   Reason = "shortage"    // less capacity than the pods need
	ReasonNotice     Reason = "notice"      // the provider reclaims the node
	ReasonRebalance  Reason = "rebalance"   // the provider sent a rebalance recommendation
	ReasonShare      Reason = "share"       // moves towards the target Spot share
	ReasonCheaper    Reason = "cheaper"     // the same capacity for less
	ReasonEmpty      Reason = "empty"       // no pods run there
	ReasonCap        Reason = "cap"         // above the safe Spot share
	ReasonRisk       Reason = "risk"        // the market is likely to become worse
	ReasonFallback   Reason = "fallback"    // Spot was refused
	ReasonGuardrail  Reason = "guardrail"   // a guardrail forbade it
	ReasonNoEdge     Reason = "no-edge"     // no savings
	ReasonCooldown   Reason = "cooldown"    // too soon after the last change
	ReasonConfigured Reason = "configured"  // the manifest requires it
	ReasonInfeasible Reason = "infeasible"  // its pods fit nowhere else
	ReasonInProgress Reason = "in-progress" // another controller is already working on it
	ReasonBudget     Reason = "budget"      // a budget is used up, or has room again
	ReasonStale      Reason = "stale-data"  // the data about the cluster is too old
	ReasonApproval   Reason = "approval"    // no person has approved it
)

// A Steer specifies what a pool may buy from now on. It does not move running nodes: removing a
// node requires a Drain.
type Steer struct {
	Pool PoolID

	// Share is the target Spot share of the pool's capacity, in [0, 1]; the provisioner buys Spot
	// up to it and on-demand beyond it. Exact reports whether the pool must not exceed or fall
	// below it.
	Share float64
	Exact bool

	// Markets restricts the markets in which nodes are bought; nil means all markets of the pool.
	Markets []MarketID

	// Fallback allows an on-demand node after a refused Spot launch.
	Fallback bool

	// Mixed leaves the choice among the pool's capacity types to its provisioner, with that
	// provisioner's handling of interruptions, as a single NodePool does. Share is then 1, and
	// Fallback is set unless the pool allows Spot only. These values mean the same to provisioners
	// whose NodePools or groups have one capacity type each.
	Mixed bool

	// Limits are limits of the pool; zero components are not changed.
	Limits Resources

	// Bid is the maximum price per node-hour where the market takes bids.
	Bid Money

	// EmptyOnly restricts the pool's provisioner to removing empty nodes, as a NodePool with
	// consolidationPolicy WhenEmpty does, because the policy itself moves pods to save money.
	// Otherwise the provisioner follows the pool's manifest. EmptyOnly never makes a provisioner
	// remove more nodes than the manifest allows.
	EmptyOnly bool

	Why Why
}

// A Launch requests one node.
type Launch struct {
	// Token is the same whenever the same plan is computed again, so that a retried call launches
	// one node and not two.
	Token string
	Pool  PoolID

	// Markets are the acceptable markets; the provider chooses among them. All have one capacity
	// type.
	Markets []MarketID

	// Replaces is the node whose pods the new node is for, or None.
	Replaces NodeID

	// Bid is the maximum price per node-hour where the market takes bids.
	Bid Money

	Why Why
}

// A Drain requests that one node be drained and released.
type Drain struct {
	Node NodeID

	// After lists the tokens of launches whose nodes must be initialized first. If one of them
	// fails, the drain is cancelled.
	After []string

	// Deadline is the time of the reclaim, or the time at which the drain is abandoned and
	// reverted. Zero means the default limit of the actuator.
	Deadline Time

	// Gentle requests that no pod be evicted while that would leave its workload with fewer ready
	// pods than required, even without a PodDisruptionBudget. The pods of a workload then leave one
	// after the other. The only replica of a workload is evicted anyway, since waiting would not
	// help. Gentle does not delay the drain of a node that the provider reclaims.
	Gentle bool

	Why Why
}

// A DeletionCost requests a deletion cost for the pods on a node that belong to Deployments, so
// that a workload that scales down deletes the pods of this node before those of nodes with a
// higher cost. The node is then emptied without evictions. Pods whose cost was set by another
// controller keep it. The cost is best effort, as the API documents for the annotation; pods that
// are placed on the node later have no cost until the next request.
type DeletionCost struct {
	Node NodeID

	// Cost is the value of the annotation. Pods without the annotation count as 0.
	Cost int32

	Why Why
}

// Ranks reports whether x changes the deletion cost of p: p runs on the node and belongs to a
// Deployment, its cost differs from x.Cost, and no other controller set it.
func (x *DeletionCost) Ranks(s *Snapshot, p *Pod) bool {
	if p.Node != x.Node || p.DeletionCostFixed || p.DeletionCost == x.Cost ||
		p.Phase != PodStarting && p.Phase != PodReady {
		return false
	}
	w := s.Templates[p.Template].Workload
	return w != None && s.Workloads[w].Kind == KindDeployment
}

// An Evict requests the eviction of one pod.
type Evict struct {
	Pod PodID

	// Budget is the GPU budget for which the pod is evicted; empty without one.
	Budget string

	// Grace is the termination grace period if HasGrace is set. Otherwise the pod's own grace
	// period applies.
	Grace    time.Duration
	HasGrace bool

	Why Why
}

// A Pause requests that a Job be suspended because of a budget, or resumed. A suspended Job has no
// pods. It continues from its last checkpoint.
type Pause struct {
	Workload WorkloadID
	Budget   string
	Paused   bool
	Why      Why
}

// A Gate opens or closes admission for a budget.
type Gate struct {
	Budget string
	Closed bool
	Why    Why
}

// A Hold records that something was left unchanged. Node or Pool may be None.
type Hold struct {
	Pool PoolID
	Node NodeID
	Why  Why
}

// Format returns the plan with one entry per line, in the order of execution and with the names in
// s.
func (p *Plan) Format(s *Snapshot) string {
	var b strings.Builder
	for i := range p.Steers {
		p.Steers[i].format(&b, s)
	}
	for _, x := range p.Launches {
		fmt.Fprintf(&b, "launch %s", s.Pools[x.Pool].Name)
		for _, m := range x.Markets {
			b.WriteString(" " + s.Markets[m].Name)
		}
		if x.Replaces != None {
			b.WriteString(" for=" + s.Nodes[x.Replaces].Name)
		}
		fmt.Fprintf(&b, " (%s)\n", x.Why.Reason)
	}
	for _, x := range p.Drains {
		fmt.Fprintf(&b, "drain %s", s.Nodes[x.Node].Name)
		if len(x.After) > 0 {
			fmt.Fprintf(&b, " after=%d", len(x.After))
		}
		fmt.Fprintf(&b, " (%s)\n", x.Why.Reason)
	}
	for _, x := range p.DeletionCosts {
		fmt.Fprintf(&b, "deletion-cost %s %d (%s)\n", s.Nodes[x.Node].Name, x.Cost, x.Why.Reason)
	}
	for _, x := range p.Gates {
		state := "open"
		if x.Closed {
			state = "closed"
		}
		fmt.Fprintf(&b, "gate %s %s (%s)\n", x.Budget, state, x.Why.Reason)
	}
	for _, x := range p.Pauses {
		verb := "resume"
		if x.Paused {
			verb = "pause"
		}
		fmt.Fprintf(&b, "%s %s (%s)\n", verb, s.Workloads[x.Workload].Name, x.Why.Reason)
	}
	for _, x := range p.Evicts {
		fmt.Fprintf(&b, "evict %s (%s)\n", s.Pods[x.Pod].Name, x.Why.Reason)
	}
	for _, x := range p.Holds {
		b.WriteString("hold")
		if x.Pool != None {
			b.WriteString(" " + s.Pools[x.Pool].Name)
		}
		if x.Node != None {
			b.WriteString(" " + s.Nodes[x.Node].Name)
		}
		fmt.Fprintf(&b, " (%s)\n", x.Why.Reason)
	}
	return b.String()
}

// format writes the line for x.
func (x *Steer) format(b *strings.Builder, s *Snapshot) {
	fmt.Fprintf(b, "steer %s share=%.3f", s.Pools[x.Pool].Name, x.Share)
	if x.Exact {
		b.WriteString(" exact")
	}
	if x.Mixed {
		b.WriteString(" mixed")
	}
	if x.Markets != nil {
		fmt.Fprintf(b, " markets=%d", len(x.Markets))
	}
	fmt.Fprintf(b, " (%s)\n", x.Why.Reason)
}

// Add appends the given entries to p.
func (p *Plan) Add(launches []Launch, drains []Drain, holds []Hold) {
	p.Launches = append(p.Launches, launches...)
	p.Drains = append(p.Drains, drains...)
	p.Holds = append(p.Holds, holds...)
}

// Token returns the token of the ordinal-th launch for pool at now. Equal arguments give equal
// tokens.
func Token(now Time, pool, market string, ordinal int) string {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a, 64 bits
	h := uint64(offset)
	for _, s := range [...]string{pool, "\x00", market} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
	}
	return fmt.Sprintf("%x-%016x-%d", int64(now), h, ordinal)
}
