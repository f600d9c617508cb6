package policy

import (
	"fmt"
	"strings"
	"time"
)

// A Plan is what to do now. The zero Plan does nothing.
//
// The driver carries out the lists in the order of the fields, each in its own
// order. Ids are those of the Snapshot that was decided on.
type Plan struct {
	Steers   []Steer
	Launches []Launch
	Drains   []Drain

	// DeletionCosts say whose pods go first when workloads shrink.
	DeletionCosts []DeletionCost

	Gates  []Gate
	Pauses []Pause
	Evicts []Evict

	// Holds say what was left alone, and why.
	Holds []Hold

	// Wake is when to decide again even if nothing has happened. It is later
	// than Snapshot.Now.
	Wake Time
}

// A Why is the account that every entry of a plan gives of itself.
type Why struct {
	// Reason says why in one word, for metrics and logs.
	Reason Reason

	// Text says why in a sentence.
	Text string

	// Before and After are the hourly cost of what the entry is about, without
	// and with it. Both are 0 where no money is at stake.
	Before, After Money

	// RunnerUp is the alternative that came second; empty without one.
	RunnerUp string
}

// A Reason is a word that metrics, logs and golden files can hold.
type Reason string

// The reasons that several policies share. A policy may have its own.
const (
	ReasonShortage   Reason = "shortage"    // less capacity than the pods need
	ReasonNotice     Reason = "notice"      // the provider takes the node back
	ReasonRebalance  Reason = "rebalance"   // the provider recommends to leave
	ReasonShare      Reason = "share"       // towards the wanted Spot share
	ReasonCheaper    Reason = "cheaper"     // the same for less
	ReasonEmpty      Reason = "empty"       // nothing runs there
	ReasonCap        Reason = "cap"         // above the safe Spot share
	ReasonRisk       Reason = "risk"        // the market is about to turn
	ReasonFallback   Reason = "fallback"    // spot was refused
	ReasonGuardrail  Reason = "guardrail"   // a guardrail forbade it
	ReasonNoEdge     Reason = "no-edge"     // nothing to gain
	ReasonCooldown   Reason = "cooldown"    // too soon after the last change
	ReasonConfigured Reason = "configured"  // the manifest says so
	ReasonInfeasible Reason = "infeasible"  // its pods fit nowhere else
	ReasonInProgress Reason = "in-progress" // another controller is already working on it
	ReasonBudget     Reason = "budget"      // a budget is spent, or has room again
	ReasonStale      Reason = "stale-data"  // what is known of the cluster is too old
	ReasonApproval   Reason = "approval"    // no person has approved it
)

// A Steer says what a pool may buy from now on. It moves no running node: one
// that must go is a Drain of its own.
type Steer struct {
	Pool PoolID

	// Share is the target Spot part of the pool's capacity, in [0, 1]; the provisioner buys Spot up
	// to it and on-demand beyond it. Exact says that it must be held from both sides.
	Share float64
	Exact bool

	// Markets restricts what is bought; nil means all markets of the pool.
	Markets []MarketID

	// Fallback lets a refused spot launch go to on-demand.
	Fallback bool

	// Mixed leaves the choice among the capacity types that the pool allows to its
	// provisioner, with that provisioner's handling of interruptions, as one NodePool
	// does. Share is then 1, and Fallback set unless the pool allows Spot only, which say
	// the same to provisioners of which each NodePool or group has one capacity type.
	Mixed bool

	// Limits bound the pool; zero components are left as they are.
	Limits Resources

	// Bid is the most to pay per node-hour where the market takes bids.
	Bid Money

	// EmptyOnly tells the pool's provisioner to remove empty nodes only, as a
	// NodePool with consolidationPolicy WhenEmpty does: the policy moves pods to
	// save money itself. Without it the provisioner does as the pool's manifest
	// says. It never makes a provisioner remove more than that.
	EmptyOnly bool

	Why Why
}

// A Launch requests one node.
type Launch struct {
	// Token is the same whenever the same plan is computed again, so that a
	// retried call buys one node and not two.
	Token string
	Pool  PoolID

	// Markets are those that will do; the provider chooses among them. All
	// are of one capacity type.
	Markets []MarketID

	// Replaces is the node whose pods the new one is for; None without one.
	Replaces NodeID

	// Bid is the most to pay per hour where the market takes bids.
	Bid Money

	Why Why
}

// A Drain requests that one node be emptied and released.
type Drain struct {
	Node NodeID

	// After holds the tokens of launches that must be initialized first. If
	// one of them fails the drain does not happen.
	After []string

	// Deadline is when the node is gone anyway (a reclaim), or by when the
	// drain is given up and undone. Zero means the actuator's own limit.
	Deadline Time

	// Gentle asks that no pod be evicted while that would leave its workload
	// with fewer ready pods than it must have, also where no disruption budget
	// says so: the pods of one workload then leave one after the other. A pod that
	// is the only one wanted goes all the same, since no wait would help it. It
	// does not hold a node back that the provider takes.
	Gentle bool

	Why Why
}

// A DeletionCost requests a deletion cost for the pods on a node that belong to Deployments, so
// that a workload that shrinks deletes pods of the node before those of nodes with a higher cost:
// the node is then emptied without evictions. Pods whose cost was set by another controller keep
// it. It is best effort, as the API says of the annotation; pods that are placed on the node later
// have no cost until the next request.
type DeletionCost struct {
	Node NodeID

	// Cost is the annotation's value. Pods without one count as 0.
	Cost int32

	Why Why
}

// Ranks reports whether x is to change the deletion cost of p: whether a
// Deployment owns p, which stands on the node, and p has another cost that is ours
// to change.
func (x *DeletionCost) Ranks(s *Snapshot, p *Pod) bool {
	if p.Node != x.Node || p.DeletionCostFixed || p.DeletionCost == x.Cost ||
		p.Phase != PodStarting && p.Phase != PodReady {
		return false
	}
	w := s.Templates[p.Template].Workload
	return w != None && s.Workloads[w].Kind == KindDeployment
}

// An Evict asks that one pod be evicted.
type Evict struct {
	Pod PodID

	// Budget is the one that it is evicted for; empty without.
	Budget string

	// Grace is the time that the pod gets to end, where HasGrace says so; else
	// it has its own.
	Grace    time.Duration
	HasGrace bool

	Why Why
}

// A Pause requests that a job be suspended for a budget, or resumed. A suspended job has no pods,
// and continues from its last checkpoint.
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

// A Hold says that something was left as it is. Node or Pool may be None.
type Hold struct {
	Pool PoolID
	Node NodeID
	Why  Why
}

// Format writes the plan one entry a line, with the names of s, in the order
// in which it is carried out.
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

// format writes the line of x.
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

// Add appends moves to p.
func (p *Plan) Add(launches []Launch, drains []Drain, holds []Hold) {
	p.Launches = append(p.Launches, launches...)
	p.Drains = append(p.Drains, drains...)
	p.Holds = append(p.Holds, holds...)
}

// Token returns the token of the ordinal-th launch for pool at now: the same
// content gives the same token.
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
