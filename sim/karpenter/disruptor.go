package karpenter

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Disruptor is the state of Karpenter's disruption controller between evaluations. The zero value
// is a controller that has just started.
type Disruptor struct {
	// seen is the number of the cluster state in which each method last found nothing, or 0
	// (consolidation.go, markConsolidated).
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

// A lastLook contains the results of the last evaluation: its simulated duration, the methods that
// found nothing, and whether another evaluation follows although nothing changes.
type lastLook struct {
	took   time.Duration
	marked [Methods]bool
	again  bool
}

// Next evaluates the methods, starting with from, and returns the first command found, which must
// then be validated, or nil (controller.go, Reconcile).
func (d *Disruptor) Next(c *Cluster, from Method, state *ConsolidationState) *Command {
	d.nodes.forget(c)
	d.disruptionBudgets.read(c)
	d.candidates.gather(c)
	// An invalid command marks no method.
	d.lastLook = lastLook{again: from > Emptiness}
	if from <= Emptiness {
		if cmd := d.emptiness(c); cmd != nil {
			return cmd
		}
	}
	if len(d.candidates.used) == 0 {
		return nil // and no method is marked
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

// Took returns how long Karpenter takes for the last evaluation, in simulated time.
func (d *Disruptor) Took() time.Duration { return d.took }

// Again reports whether Karpenter evaluates again although nothing changed, because its command was
// no longer valid or its time was up.
func (d *Disruptor) Again() bool { return d.again }

// Settle ends the last evaluation. The state of the cluster is recorded now, and not when the
// evaluation started, so changes in the meantime do not trigger another one.
func (d *Disruptor) Settle(now policy.Time, state *ConsolidationState) {
	for m, marked := range d.marked {
		if marked {
			d.seen[m] = state.Now(now)
		}
	}
}

// begin prepares the searches in a state of the cluster.
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

// Find returns the command that a method would find, regardless of earlier evaluations, or nil.
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
// this state was searched already. An at of 0 means never. held reports whether a pod that becomes
// ready may make a node removable.
func (d *Disruptor) Due(state *ConsolidationState) (at policy.Time, held bool) {
	at = d.candidates.due[0]
	if later := d.candidates.due[1]; later != 0 && (at == 0 || later < at) && !d.searched(state) {
		at = later
	}
	return at, d.candidates.held
}

// Idle reports whether the last evaluation had no candidates, and none can appear until Due or
// until nodes, pods or pools change.
func (d *Disruptor) Idle() bool {
	return len(d.candidates.empty)+len(d.candidates.used) == 0 && !d.candidates.held
}

// searched reports whether both searches were fruitless in this state.
func (d *Disruptor) searched(state *ConsolidationState) bool {
	return d.seen[MultiNode] == state.seq && d.seen[SingleNode] == state.seq
}

// Valid reports whether cmd, which was decided earlier, may still be carried out. From a removal of
// empty nodes, it drops the nodes that may no longer be removed (validation.go).
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

// holds reports whether a new simulation confirms cmd (validation.go, validateCommand).
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
