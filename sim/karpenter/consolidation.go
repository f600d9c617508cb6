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

// Reason is what budgets call the method.
func (m Method) Reason() policy.DisruptionReason {
	if m == Emptiness {
		return policy.Empty
	}
	return policy.Underutilized
}

// A Command says which nodes go, and what comes in their place; nothing if the
// others have room.
type Command struct {
	Method      Method
	Candidates  []Candidate
	Replacement *Replacement

	// Targets are existing nodes that take the pods.
	Targets []policy.NodeID
}

// minSpotTypes is how many cheaper types must be available for a single Spot node to be replaced by
// Spot (consolidation.go, MinInstanceTypesForSpotToSpotConsolidation).
const minSpotTypes = 15

// compute returns the command that removes or replaces the candidates, nil if that
// cannot be done for less money (consolidation.go, computeConsolidation).
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
	// What is priced as spot must not be launched on demand instead.
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

// tryToLeave simulates that the candidates go. The pods of a single one are not simulated
// where such pods found no place in this look.
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

// onlySpot drops the types that are not sold as spot.
func onlySpot(options []option) []option {
	return slices.DeleteFunc(options, func(x option) bool { return !x.spot })
}

// multiMax is the most candidates that are replaced together, but that the search
// goes up to one more (multinodeconsolidation.go).
const multiMax = 100

// multi seeks by bisection how many of the first candidates can go together, until its time
// is up. It also reports whether a budget kept some out.
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

// single goes through the candidates until one of them can be removed or its time is up, one of
// each pool in turn (singlenodeconsolidation.go). It also reports whether it may find something in
// the same state: a budget excluded some, or it did not reach all. Karpenter starts the next time
// with pools of which it tried no candidate, which takes a thousand of them.
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

// A rotation lists candidates, one of each pool after the other.
type rotation struct {
	turns  []int32
	next   []int32 // by pool, the one that is listed next, -1 for none
	follow []int32 // by candidate, the next one of its pool, -1 for none
}

// of returns the positions of candidates, the pools by id: Karpenter's order among them is
// that of a map.
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

// begin counts for the searches of a look.
func (bc *disruptionBudgets) begin(c *Cluster) {
	bc.allowance = append(bc.allowance[:0], bc.count(c, SingleNode)...) // that of several nodes, too
}

// allowances returns how many more nodes of each pool the searches of this look may
// disrupt.
func (bc *disruptionBudgets) allowances() []int {
	bc.left = append(bc.left[:0], bc.allowance...)
	return bc.left
}

// count returns how many more nodes of each pool may be disrupted (helpers.go,
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

// read counts the nodes that may have changed.
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

// disruptionBudgets are how many more nodes of each pool may be disrupted.
type disruptionBudgets struct {
	left      []int
	allowance []int // by pool, for the searches of a look
	counts    policy.PoolCounts
}
