// Package drain empties nodes and has them released, for all backends. Each node that is drained is
// a small state machine,
//
//	checking → preparing → waiting → evicting → detaching → releasing → released
//
// with undoing as the way back from every phase before the backend has accepted the node;
// docs/drains.md has its table. It is level-triggered: a [Reconciler] keyed by node compares the
// orders of the last plan with the marks on the Node, does the next action and requests the next
// call. The progress of a drain is stored on the Node, so that a start, a crash, a hand-over, a
// change of mode and the deletion of a pool are one path: a node that carries Spotter's marks, and
// that has no known reason to be drained, is returned to its users. [Reconciler.Start] only accepts
// the order.
//
// The package also gives pods their deletion cost: see [Ranker].
package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A Phase is how far a drain has come.
type Phase string

// The phases. Preparing, evicting, releasing and undoing are stored on the node; the others are
// found again by reading the cluster.
const (
	PhaseChecking  Phase = "checking"  // may its pods be evicted? nothing was done yet
	PhasePreparing Phase = "preparing" // the backend prepares
	PhaseWaiting   Phase = "waiting"   // prepared; for the replacements
	PhaseEvicting  Phase = "evicting"  // cordoned; its pods go
	PhaseDetaching Phase = "detaching" // empty; its volumes go
	PhaseReleasing Phase = "releasing" // the backend is asked to take it
	PhaseReleased  Phase = "released"  // it is the backend's, and goes away
	PhaseUndoing   Phase = "undoing"   // what was done is taken back
)

// A Result is a drain that is over.
type Result struct {
	Node, Pool string
	Outcome    Outcome

	// Reason is CamelCase and Message a sentence, both for the user.
	Reason, Message string

	// Took is the time from the order to the end.
	Took time.Duration

	// Urgent says that the provider took the node.
	Urgent bool
}

// An Outcome is how a drain ended.
type Outcome string

// The outcomes.
const (
	OutcomeDone   Outcome = "done"   // the node is gone
	OutcomeHeld   Outcome = "held"   // it was not begun: the node was never cordoned
	OutcomeUndone Outcome = "undone" // it was begun and taken back
)

// A Status is the state of a drain.
type Status struct {
	Node, Pool string
	Phase      Phase

	// Since is when it began, ReclaimAt when the provider takes the node, zero
	// without a notice.
	Since, ReclaimAt policy.Time

	// Why and Text are the plan's reason. Cause is what it waits for now, in a
	// sentence; empty when nothing is in its way.
	Why         policy.Reason
	Text, Cause string

	// After are the tokens of the launches that it is for.
	After []string

	// Unplanned says that a notice alone ordered it so far: no plan has seen the node, nor
	// bought what its pods need.
	Unplanned bool
}

// A Reconciler drains nodes. It may be used by several goroutines.
type Reconciler struct {
	cfg       *Config
	releasers NodeReleasers
	api       *clusterAPI
	table     *drainTable
	evictions *evictionLog

	// ordinary has a place for each node that is worked on at the same time without a
	// notice. There are more workers than places, so that one is free for a notice.
	ordinary chan struct{}

	// backends has a place for each call of a backend for a node under notice. There are
	// fewer than workers, so that slow calls do not keep other nodes from being emptied.
	backends chan struct{}

	mu     sync.Mutex
	shared *view // of the rounds of the last Interval
}

// A drain is one node on its way. What is above the line is guarded by the
// table's mu; what is below belongs to the one reconciliation of the node.
type drain struct {
	node   string
	order  order
	shown  Status
	over   Outcome            // empty until it has ended
	cancel context.CancelFunc // ends the reconciliation that is under way; nil without one

	// reserved says that it counts against the disruption budget of its pool.
	reserved bool

	// ----
	state
	uid     types.UID // empty until the node was first read
	began   time.Time
	last    *corev1.Node // as it was after the last write
	kept    bool         // the node carries Spotter's marks
	touched bool         // it did once
	ready   bool         // the backend was asked to prepare it, and may not be again
	saved   Phase        // the phase that the node carries
	reset   bool         // what the node carries is out of date
	tries   map[types.UID]*try

	// evicted is when a pod of a workload was first evicted, by [workloadKey], and returns
	// how many pods of these have been created on the node since.
	evicted map[string]time.Time
	returns int

	// outcome is what an undo is reported as; reason its CamelCase reason.
	outcome Outcome
	reason  string

	cause   string
	retryAt time.Time // of the backend's part
	giving  releaseProgress

	// readable is when the kill switch was last known to be readable.
	readable time.Time
}

// A releaseProgress is the progress of the release of an empty node.
type releaseProgress struct {
	emptyAt time.Time
	settled bool // nothing is kept for its replacements any more
	mayBe   bool // an earlier process may have released it
}

// An order is what is wanted of a node.
type order struct {
	// wanted says that a plan of this process ordered the drain.
	wanted    bool
	unplanned bool // only a notice did
	reclaimAt policy.Time
	gentle    bool
}

// A try is the state of the eviction of one pod.
type try struct {
	asked   time.Time // when it was last accepted; zero if not
	retryAt time.Time
	grace   int64 // seconds that it was given; 0 means its own
	refused int   // how often it was refused under the notice
	answer  Reply
}

// New returns a reconciler that reads from c's cache, which must have the indexes of
// [SetupIndexes], and confirms by r, which must read from the API server.
func New(cfg Config, c client.Client, r client.Reader, g NodeReleasers) (*Reconciler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Urgent == nil {
		cfg.Urgent = c
	}
	api := &clusterAPI{cfg: &cfg, client: c, reader: r, marks: newSealer()}
	return &Reconciler{
		cfg: &cfg, releasers: g, api: api, table: &drainTable{cfg: &cfg, drains: map[string]*drain{}},
		evictions: &evictionLog{clock: cfg.Clock, at: map[types.UID]time.Time{}}, ordinary: make(chan struct{}, cfg.Parallel),
		backends: make(chan struct{}, urgentParallel/2),
	}, nil
}

// Trust has the marks believed that a process with the same key wrote. Without it only those
// of this process are. It is called before Run.
func (p *Reconciler) Trust(key []byte) { p.api.marks.use(key) }

// Start takes the order to drain a node. It returns a [backend.Held] where the
// drain does not begin for a reason that can be seen at once; others show later
// as a [Result]. A node that is drained already is only hurried. Nothing is
// written by Start itself.
func (p *Reconciler) Start(ctx context.Context, s *policy.Snapshot, x *policy.Drain) error {
	n := &s.Nodes[x.Node]
	if n.Phase == policy.NodeGone {
		return nil
	}
	if n.Phase < policy.NodeInitialized {
		return fmt.Errorf("node %s is not initialized", n.Name)
	}
	if err := mayStart(n); err != nil || p.table.hurry(n.Name, n.ReclaimAt, &x.Gentle) {
		return err
	}
	p.table.count(s)
	d := p.newDrain(n.Name)
	d.Why, d.Text, d.Deadline, d.After = x.Why.Reason, bounded(x.Why.Text), x.Deadline, slices.Clone(x.After)
	d.Gentle, d.ReclaimAt = x.Gentle, n.ReclaimAt
	if n.Pool != policy.None {
		d.Pool, d.Provisioner = s.Pools[n.Pool].Name, s.Pools[n.Pool].Provisioner
	}
	if d.Deadline == 0 {
		d.Deadline = d.Since.Add(p.cfg.DrainMax)
	}
	if !d.urgent() {
		if _, err := p.newRound().view.checkNode(ctx, n.Name, ""); err != nil {
			p.giveBack(d, err)
			return err
		}
	}
	p.table.add(d)
	return nil
}

func (p *Reconciler) newDrain(node string) *drain {
	now := p.cfg.Clock.Now()
	return &drain{
		node: node, order: order{wanted: true}, began: now, tries: map[types.UID]*try{}, evicted: map[string]time.Time{},
		state: state{Phase: PhaseChecking, Since: policy.TimeOf(now)},
	}
}

// mayStart returns why Spotter may not drain a node.
func mayStart(n *policy.Node) error {
	switch {
	case n.ActedBy == policy.ActorPerson && n.ReclaimAt != 0:
		return nil // what a person cordoned the provider takes all the same
	case n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs:
		return backend.Hold("InProgress", "node %s is being handled by %v", n.Name, n.ActedBy)
	}
	return nil
}

// giveBack has the backend release what it keeps for the replacements of a drain that did not
// start.
func (p *Reconciler) giveBack(d *drain, why error) {
	if held := new(backend.Held); len(d.After) > 0 && errors.As(why, &held) {
		d.Phase, d.Failure, d.reason, d.outcome = PhaseUndoing, held.Message, held.Reason, OutcomeHeld
		p.table.add(d)
	}
}

// Hurry speeds up the drains of nodes that have come under a notice. Call it with every snapshot,
// since a plan does not mention nodes that are already being drained.
func (p *Reconciler) Hurry(s *policy.Snapshot) {
	p.table.count(s)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.ReclaimAt != 0 && n.Phase != policy.NodeGone {
			p.table.hurry(n.Name, n.ReclaimAt, nil)
		}
	}
}

// Notice empties a node that the provider is about to take, without a plan.
func (p *Reconciler) Notice(n Noticed) {
	if p.table.hurry(n.Node, n.ReclaimAt, nil) {
		return
	}
	d := p.newDrain(n.Node)
	d.Pool, d.Provisioner, d.Why, d.Text = n.Pool, n.Provisioner, policy.ReasonNotice, bounded(n.Text)
	d.Deadline, d.ReclaimAt, d.order.unplanned = n.ReclaimAt, n.ReclaimAt, true
	p.table.add(d)
}

// Status returns the drains as they are, ascending by node.
func (p *Reconciler) Status() []Status { return p.table.status() }

func (d *drain) status() Status {
	return Status{
		Node: d.node, Pool: d.Pool, Phase: d.Phase, Since: d.Since, ReclaimAt: d.ReclaimAt,
		Why: d.Why, Text: d.Text, Cause: d.cause, After: d.After, Unplanned: d.order.unplanned,
	}
}
