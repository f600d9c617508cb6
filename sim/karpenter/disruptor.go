package karpenter

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Disruptor is Karpenter's disruption controller between its looks. The zero
// value is one that has just started.
type Disruptor struct {
	// seen is the state of the cluster in which a method last found nothing, 0 for
	// none (consolidation.go, markConsolidated).
	seen  [Methods]uint64
	found [Methods]fruitless

	lastLook

	digest uint64

	allowed []Candidate

	candidates        candidateList
	nodes             nodeOrder
	simulator         simulator
	outlook           outlook
	disruptionBudgets disruptionBudgets
	turns             rotation
	pace              pace
}

// A lastLook says how long Karpenter takes for the last look, which methods found nothing, and that
// another look follows although nothing changes.
type lastLook struct {
	took   time.Duration
	marked [Methods]bool
	again  bool
}

// Next looks for something to do, beginning with method from. It returns a command
// to validate, or nil (controller.go, Reconcile).
func (d *Disruptor) Next(c *Cluster, from Method, state *ConsolidationState) *Command {
	d.nodes.forget(c)
	d.disruptionBudgets.read(c)
	d.candidates.gather(c)
	// A command that is not valid any more marks nothing.
	d.lastLook = lastLook{again: from > Emptiness}
	if from <= Emptiness {
		if cmd := d.emptiness(c); cmd != nil {
			return cmd
		}
	}
	if len(d.candidates.used) == 0 {
		return nil // and none of the methods notes that it looked
	}
	ready := false
	for m := max(from, MultiNode); m <= SingleNode; m++ {
		now := state.Now(c.Now)
		if d.seen[m] == now {
			continue
		}
		if !ready {
			d.begin(c)
			ready = true
		}
		if d.found[m].same(d, state) {
			d.seen[m], d.marked[m], d.took = now, true, d.took+d.found[m].took
			continue
		}
		before := d.took
		search := d.single
		if m == MultiNode {
			search = d.multi
		}
		cmd, open := search(c)
		if cmd != nil {
			return cmd
		}
		if !open {
			d.seen[m], d.marked[m] = now, true
			d.found[m] = fruitless{state.changes, d.digest, d.took - before}
		}
	}
	return nil
}

// Took returns how long Karpenter takes for the last look.
func (d *Disruptor) Took() time.Duration { return d.took }

// Again reports whether Karpenter looks again after the last look although nothing changed:
// its command was not valid any more, or its time was up.
func (d *Disruptor) Again() bool { return d.again }

// Settle ends the last look: the state of the cluster is noted now, and not when the look
// began, so that what changed meanwhile is no reason for another one.
func (d *Disruptor) Settle(now policy.Time, state *ConsolidationState) {
	for m, marked := range d.marked {
		if marked {
			d.seen[m] = state.Now(now)
		}
	}
}

// begin readies the searches in a state of the cluster.
func (d *Disruptor) begin(c *Cluster) {
	d.beginSimulations(c)
	d.outlook.begin(c, d)
	d.disruptionBudgets.begin(c)
	d.digest = d.digestOf()
}

func (d *Disruptor) beginSimulations(c *Cluster) {
	d.nodes.read(c)
	d.simulator.begin(c, &d.nodes)
	d.pace.begin(c, d)
}

// Find returns what a method would do by itself, whether or not it looked before.
func (d *Disruptor) Find(c *Cluster, m Method) *Command {
	d.candidates.gather(c)
	if m == Emptiness {
		return d.emptiness(c)
	}
	d.begin(c)
	search := d.single
	if m == MultiNode {
		search = d.multi
	}
	cmd, _ := search(c)
	return cmd
}

// Due returns when, after an evaluation that found nothing, the next may find something although no
// change was marked: a node may be a candidate by then. A node that is not empty does not count if
// this state was searched already. It returns 0 for never; held says that a pod that becomes ready
// may make a node removable.
func (d *Disruptor) Due(state *ConsolidationState) (at policy.Time, held bool) {
	at = d.candidates.due[0]
	if later := d.candidates.due[1]; later != 0 && (at == 0 || later < at) && !d.searched(state) {
		at = later
	}
	return at, d.candidates.held
}

// Idle reports that there was no candidate at the last evaluation, and that there will be none
// until Due or until nodes, pods or pools change.
func (d *Disruptor) Idle() bool {
	return len(d.candidates.empty)+len(d.candidates.used) == 0 && !d.candidates.held
}

// searched reports whether both searches were fruitless in this state.
func (d *Disruptor) searched(state *ConsolidationState) bool {
	return d.seen[MultiNode] == state.seq && d.seen[SingleNode] == state.seq
}

// Valid reports whether cmd, decided a while ago, may still be carried out, and cuts
// what may not out of a removal of empty nodes (validation.go).
func (d *Disruptor) Valid(c *Cluster, cmd *Command) bool {
	left := d.disruptionBudgets.count(c, cmd.Method)
	valid := make([]Candidate, 0, len(cmd.Candidates))
	for _, was := range cmd.Candidates {
		n := &c.Nodes[was.Node]
		if left[was.Pool] <= 0 || !n.Live() || c.blocked(n) != free {
			continue
		}
		x, ok := d.candidates.candidate(c, n)
		if ok && x.Empty() == (cmd.Method == Emptiness) && (x.Empty() || c.Consolidation[x.Pool] != policy.WhenEmpty) {
			left[was.Pool]--
			valid = append(valid, x)
		}
	}
	if cmd.Method == Emptiness {
		cmd.Candidates = valid
		return len(valid) > 0
	}
	return len(valid) == len(cmd.Candidates) && d.holds(c, cmd, valid)
}

// holds reports whether scheduling still says what it did when cmd was decided
// (validation.go, validateCommand).
func (d *Disruptor) holds(c *Cluster, cmd *Command, candidates []Candidate) bool {
	d.beginSimulations(c)
	if cmd.Replacement == nil {
		return d.simulator.simulate(c, candidates, 0).scheduled
	}
	sim := d.simulator.simulate(c, candidates, 1)
	if !sim.scheduled || len(sim.claims) == 0 {
		return false
	}
	options := d.simulator.options(c, &sim, false)
	return !slices.ContainsFunc(cmd.Replacement.Types, func(t policy.TypeID) bool { return !has(options, t) })
}
