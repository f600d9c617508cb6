package karpenter

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Method is a way to disrupt nodes, in the order in which Karpenter tries them
// (controller.go, NewMethods).
type Method uint8

// The methods.
const (
	Emptiness Method = iota
	MultiNode
	SingleNode
	Methods // their number
)

// Reason returns the disruption reason of the method, to which budgets refer.
func (m Method) Reason() policy.DisruptionReason {
	if m == Emptiness {
		return policy.Empty
	}
	return policy.Underutilized
}

// A Command lists the nodes to remove and the node that replaces them. Replacement is nil if the
// pods fit existing nodes.
type Command struct {
	Method      Method
	Candidates  []Candidate
	Replacement *Replacement

	// Targets are the existing nodes on which pods were placed.
	Targets []policy.NodeID
}

// minSpotTypes is how many cheaper types must be available for a single Spot node to be replaced by
// Spot (consolidation.go, MinInstanceTypesForSpotToSpotConsolidation).
const minSpotTypes = 15

// compute returns the command that removes or replaces the candidates, or nil if that is not
// possible at a lower price (consolidation.go, computeConsolidation).
func (d *Disruptor) compute(c *Cluster, m Method, candidates []Candidate) *Command {
	allSpot, priced := true, true
	var price policy.Money
	for i := range candidates {
		price, priced = price+candidates[i].Price, priced && candidates[i].Price > 0
		allSpot = allSpot && c.Markets[candidates[i].market].Capacity == policy.Spot
	}
	if !priced && c.Version.Before(14) {
		price = 0
	}
	claimsMax := 0
	if d.outlook.cheaper(price, allSpot && !c.SpotToSpot) {
		claimsMax = 1
	}
	sim := d.tryToLeave(c, candidates, claimsMax)
	if !sim.scheduled {
		return nil
	}
	cmd := &Command{Method: m, Candidates: slices.Clone(candidates), Targets: slices.Clone(sim.targets)}
	if len(sim.claims) == 0 {
		return cmd
	}
	spot, onDemand := d.simulator.capacityTypes(c, &sim)
	fromSpot := allSpot && spot
	if fromSpot && !c.SpotToSpot {
		return nil
	}
	options := cheaperThan(d.simulator.options(c, &sim, fromSpot), price)
	if !d.simulator.flexible(c, &sim, options) {
		return nil
	}
	if fromSpot && len(candidates) == 1 {
		if len(options) < minSpotTypes {
			return nil
		}
		options = options[:minSpotTypes]
	}
	if len(options) == 0 {
		return nil
	}
	// A replacement that is priced as Spot must not be launched on demand.
	spotOnly := fromSpot || spot && onDemand
	if m == MultiNode {
		bound := sameTypeBound(c, options, candidates)
		if spotOnly && !fromSpot {
			options = onlySpot(options)
		}
		if options = cheaperThan(options, bound); len(options) == 0 || !d.simulator.flexible(c, &sim, options) {
			return nil
		}
	}
	cmd.Replacement = d.simulator.replacement(c, &sim, options, spotOnly)
	return cmd
}

// tryToLeave simulates the removal of the candidates. The simulation for a single candidate is
// skipped if equal pods could not be scheduled in this evaluation.
func (d *Disruptor) tryToLeave(c *Cluster, candidates []Candidate, claimsMax int) simulation {
	sm := &d.simulator
	if len(candidates) > 1 {
		return sm.simulate(c, candidates, claimsMax)
	}
	if !sm.prepared {
		sm.prepare(c)
	}
	set, known := sm.unscheduled.setOf(&candidates[0], d.candidates.about(c, candidates[0].Node), sm, claimsMax)
	if known && sm.unscheduled.has(&set) {
		return simulation{}
	}
	sim := sm.simulate(c, candidates, claimsMax)
	if known && !sim.scheduled {
		sm.unscheduled.add(&set)
	}
	return sim
}

// onlySpot drops the types without a Spot offer.
func onlySpot(options []option) []option {
	return slices.DeleteFunc(options, func(x option) bool { return !x.spot })
}

// multiMax is the maximum number of candidates that are replaced together. The search tries up to
// one more (multinodeconsolidation.go).
const multiMax = 100

// multi searches by bisection for the largest number of leading candidates that can be removed
// together, until its time is up. It also reports whether a disruption budget excluded candidates.
func (d *Disruptor) multi(c *Cluster) (best *Command, constrained bool) {
	ends := d.took + multiTimeout
	left := d.disruptionBudgets.allowances()
	allowed := d.allowed[:0]
	for i := range d.candidates.used {
		if p := d.candidates.used[i].Pool; left[p] > 0 {
			left[p]--
			allowed = append(allowed, d.candidates.used[i])
		} else {
			constrained = true
		}
	}
	d.allowed = allowed
	low, high := 1, min(len(allowed)-1, multiMax)
	for low <= high {
		mid := (low + high) / 2
		if d.took += d.pace.simulation(c, allowed[:mid+1]); d.took > ends {
			d.took = ends
			break
		}
		var cmd *Command
		if !d.outlook.hopeless(c, allowed[:mid+1]) {
			cmd = d.compute(c, MultiNode, allowed[:mid+1])
		}
		if cmd != nil && c.approved(cmd) {
			best, low = cmd, mid+1
		} else {
			high = mid - 1
		}
	}
	return best, constrained
}

// single tries the candidates one by one, the pools in turn, until one can be removed or its time
// is up (singlenodeconsolidation.go). open reports whether another search in the same state may
// find something, because a budget excluded candidates or not all were tried. Karpenter starts its
// next search with pools of which it tried no candidate, which happens only with about a thousand
// candidates and is not simulated.
func (d *Disruptor) single(c *Cluster) (cmd *Command, open bool) {
	left := d.disruptionBudgets.allowances()
	used := d.candidates.inTurn(c)
	ends := d.took + singleTimeout
	for _, at := range d.turns.of(c, used) {
		if d.took > ends {
			d.again = true
			return nil, true
		}
		x := &used[at]
		if x.empty {
			continue
		}
		if left[x.Pool] == 0 {
			open = true
			continue
		}
		if !c.canPass(x) {
			continue
		}
		d.took += d.pace.simulation(c, used[at:at+1])
		if d.outlook.hopeless(c, used[at:at+1]) {
			continue
		}
		if cmd := d.compute(c, SingleNode, used[at:at+1]); cmd != nil && c.approved(cmd) {
			return cmd, open
		}
	}
	return nil, open
}

// A rotation orders candidates such that the pools take turns.
type rotation struct {
	turns  []int32
	next   []int32 // by pool, the candidate that is listed next, -1 for none
	follow []int32 // by candidate, the next candidate of its pool, -1 for none
}

// of returns the indices of candidates, in which the pools take turns in the order of their ids or
// of Turns: Karpenter uses the order of a map.
func (r *rotation) of(c *Cluster, candidates []Candidate) []int32 {
	r.turns, r.next, r.follow = r.turns[:0], r.next[:0], append(r.follow[:0], make([]int32, len(candidates))...)
	for range c.Pools {
		r.next = append(r.next, -1)
	}
	for at := len(candidates) - 1; at >= 0; at-- {
		p := candidates[at].Pool
		r.follow[at], r.next[p] = r.next[p], int32(at)
	}
	for len(r.turns) < len(candidates) {
		for k := range c.Pools {
			p := policy.PoolID(k)
			if c.Turns != nil {
				p = c.Turns[k]
			}
			if at := r.next[p]; at >= 0 {
				r.turns, r.next[p] = append(r.turns, at), r.follow[at]
			}
		}
	}
	return r.turns
}

// emptiness removes the empty nodes that budgets allow (emptiness.go).
func (d *Disruptor) emptiness(c *Cluster) *Command {
	if len(d.candidates.empty) == 0 {
		return nil
	}
	left := d.disruptionBudgets.count(c, Emptiness)
	var gone []Candidate
	for _, x := range d.candidates.empty {
		if left[x.Pool] > 0 {
			left[x.Pool]--
			gone = append(gone, x)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return &Command{Method: Emptiness, Candidates: gone}
}

// begin computes the allowances for the searches of an evaluation.
func (bc *disruptionBudgets) begin(c *Cluster) {
	bc.allowance = append(bc.allowance[:0], bc.count(c, SingleNode)...) // the same as for MultiNode
}

// allowances returns the number of nodes, by pool, that the searches of this evaluation may still
// disrupt. The caller may change the slice.
func (bc *disruptionBudgets) allowances() []int {
	bc.left = append(bc.left[:0], bc.allowance...)
	return bc.left
}

// count returns the number of nodes, by pool, that may still be disrupted (helpers.go,
// BuildDisruptionBudgetMapping).
func (bc *disruptionBudgets) count(c *Cluster, m Method) []int {
	bc.read(c)
	bc.left = bc.left[:0]
	for p := range c.Pools {
		n := 0
		if c.managed(policy.PoolID(p)) {
			n = bc.counts.Of(policy.PoolID(p)).Disruptable(&c.Pools[p], m.Reason())
		}
		bc.left = append(bc.left, n)
	}
	return bc.left
}

// read updates the counts for the nodes that may have changed.
func (bc *disruptionBudgets) read(c *Cluster) {
	if !c.Tracked {
		bc.counts = policy.PoolCounts{}
		for id := range c.Nodes {
			bc.counts.Read(policy.NodeID(id), &c.Nodes[id])
		}
	}
	for _, id := range c.Changed {
		bc.counts.Read(id, &c.Nodes[id])
	}
}

// disruptionBudgets computes how many more nodes of each pool may be disrupted.
type disruptionBudgets struct {
	left      []int
	allowance []int // by pool, for the searches of an evaluation
	counts    policy.PoolCounts
}
