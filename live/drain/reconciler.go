// Package drain drains nodes and has them released, for all backends. The drain of a node is a
// small state machine,
//
//	checking → preparing → waiting → evicting → detaching → releasing → released
//
// with undoing as the way back from every phase before the backend has accepted the node;
// docs/drains.md has its table. It is level-triggered: a [Reconciler] keyed by node compares the
// orders of the last plan with the marks on the Node, performs the next action and requests the
// next call. The progress of a drain is stored on the Node, so that a start, a crash, a change of
// leader, a change of mode and the deletion of a pool are handled in the same way: a node that has
// Spotter's marks, but no known reason to be drained, is made schedulable again. [Reconciler.Start]
// only accepts the order.
//
// The package also sets the deletion costs of pods: see [Ranker].
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

// A Phase is a phase of a drain.
type Phase string

// The phases. Preparing, evicting, releasing and undoing are stored on the node; the others are
// determined again by reading the cluster.
const (
	PhaseChecking  Phase = "checking"  // checks whether its pods may be evicted; nothing has changed yet
	PhasePreparing Phase = "preparing" // the backend prepares the node
	PhaseWaiting   Phase = "waiting"   // prepared; waits for the replacements
	PhaseEvicting  Phase = "evicting"  // cordoned; its pods are evicted
	PhaseDetaching Phase = "detaching" // empty; its volumes are detached
	PhaseReleasing Phase = "releasing" // the backend is requested to release it
	PhaseReleased  Phase = "released"  // the backend has accepted it and deletes it
	PhaseUndoing   Phase = "undoing"   // the changes are undone
)

// A Result is the result of a drain that has ended.
type Result struct {
	Node, Pool string
	Outcome    Outcome

	// Reason is in CamelCase and Message is a sentence; both are for the user.
	Reason, Message string

	// Took is the time from the order to the end.
	Took time.Duration

	// Urgent reports whether the node was under notice.
	Urgent bool
}

// An Outcome is the outcome of a drain.
type Outcome string

// The outcomes.
const (
	OutcomeDone   Outcome = "done"   // the node no longer exists
	OutcomeHeld   Outcome = "held"   // the drain did not start: the node was never cordoned
	OutcomeUndone Outcome = "undone" // the drain started and was undone
)

// A Status is the state of a drain.
type Status struct {
	Node, Pool string
	Phase      Phase

	// Since is the start of the drain. ReclaimAt is the time of the reclaim by the provider; zero
	// if there is no notice.
	Since, ReclaimAt policy.Time

	// Why and Text are the reason of the plan. Cause is a sentence that explains what the drain
	// waits for; empty if it does not wait.
	Why         policy.Reason
	Text, Cause string

	// After contains the tokens of the launches that the drain waits for.
	After []string

	// Unplanned means that only a notice has ordered the drain so far: no plan has considered the
	// node or launched capacity for its pods.
	Unplanned bool
}

// A Reconciler drains nodes. It is safe for concurrent use.
type Reconciler struct {
	cfg       *Config
	releasers NodeReleasers
	api       *clusterAPI
	table     *drainTable
	evictions *evictionLog

	// ordinary limits the number of nodes without a notice that are processed at the same time.
	// There are more workers than that, so that one is free for a notice.
	ordinary chan struct{}

	// backends limits the number of concurrent calls of backends for nodes under notice. The limit
	// is lower than the number of workers, so that slow calls do not delay the draining of other
	// nodes.
	backends chan struct{}

	mu     sync.Mutex
	shared *view // view of the rounds of the last Interval
}

// A drain is the drain of one node. The fields above the line are guarded by the table's mu; those
// below it belong to the reconciliation of the node, of which there is one at a time.
type drain struct {
	node   string
	order  order
	shown  Status
	over   Outcome            // empty until it has ended
	cancel context.CancelFunc // ends the current reconciliation; nil between reconciliations

	// reserved reports whether the drain counts against the disruption budget of its pool.
	reserved bool

	// ----
	state
	uid     types.UID // empty until the node was first read
	began   time.Time
	last    *corev1.Node // state after the last write
	kept    bool         // the node has Spotter's marks
	touched bool         // the node has had Spotter's marks
	ready   bool         // the backend has prepared the node, and must not be called again
	saved   Phase        // the phase stored on the node
	reset   bool         // the state stored on the node is out of date
	tries   map[types.UID]*try

	// evicted contains the time of the first eviction of a pod of each workload, by [workloadKey].
	// returns is the number of pods of these workloads that have been created on the node since.
	evicted map[string]time.Time
	returns int

	// outcome is the outcome of an undo, and reason its CamelCase reason.
	outcome Outcome
	reason  string

	cause   string
	retryAt time.Time // earliest time of the next attempt
	giving  releaseProgress

	// readable is the last time at which the kill switch was known to be readable.
	readable time.Time
}

// A releaseProgress is the progress of the release of an empty node.
type releaseProgress struct {
	emptyAt time.Time
	settled bool // the protection of its replacements has ended
	mayBe   bool // an earlier process may have released it
}

// An order is the wanted state of a node.
type order struct {
	// wanted reports whether this process ordered the drain.
	wanted    bool
	unplanned bool // only a notice ordered it
	reclaimAt policy.Time
	gentle    bool
}

// A try is the state of the eviction of one pod.
type try struct {
	asked   time.Time // time at which an eviction was last accepted; zero if none was
	retryAt time.Time
	grace   int64 // grace period of the eviction in seconds; 0 means the pod's own
	refused int   // number of refusals under the notice
	answer  Reply
}

// New returns a reconciler. c reads from a cache, which must have the indexes of [SetupIndexes],
// and writes. r must read from the API server.
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

// Trust accepts marks that a process with the same key wrote. Without it, only those of this
// process are accepted. Call it before Run.
func (p *Reconciler) Trust(key []byte) { p.api.marks.use(key) }

// Start accepts the order to drain a node. It returns a [backend.Held] if it is immediately known
// that the drain cannot start; later failures are reported as a [Result]. If the node is already
// being drained, only the drain's order is updated. Start itself writes nothing.
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

// mayStart returns the reason that Spotter may not drain a node; nil if it may.
func mayStart(n *policy.Node) error {
	switch {
	case n.ActedBy == policy.ActorPerson && n.ReclaimAt != 0:
		return nil // the provider reclaims the node even if a person cordoned it
	case n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs:
		return backend.Hold("InProgress", "node %s is being handled by %v", n.Name, n.ActedBy)
	}
	return nil
}

// giveBack lets the backend release what it keeps for the replacements of a drain that did not
// start.
func (p *Reconciler) giveBack(d *drain, why error) {
	if held := new(backend.Held); len(d.After) > 0 && errors.As(why, &held) {
		d.Phase, d.Failure, d.reason, d.outcome = PhaseUndoing, held.Message, held.Reason, OutcomeHeld
		p.table.add(d)
	}
}

// Hurry passes the notices in a snapshot to the drains of their nodes. Call it with every snapshot,
// since a plan does not mention nodes that are already being drained.
func (p *Reconciler) Hurry(s *policy.Snapshot) {
	p.table.count(s)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.ReclaimAt != 0 && n.Phase != policy.NodeGone {
			p.table.hurry(n.Name, n.ReclaimAt, nil)
		}
	}
}

// Notice drains a node that the provider is about to reclaim, without a plan.
func (p *Reconciler) Notice(n Noticed) {
	if p.table.hurry(n.Node, n.ReclaimAt, nil) {
		return
	}
	d := p.newDrain(n.Node)
	d.Pool, d.Provisioner, d.Why, d.Text = n.Pool, n.Provisioner, policy.ReasonNotice, bounded(n.Text)
	d.Deadline, d.ReclaimAt, d.order.unplanned = n.ReclaimAt, n.ReclaimAt, true
	p.table.add(d)
}

// Status returns the state of each drain, ascending by node.
func (p *Reconciler) Status() []Status { return p.table.status() }

func (d *drain) status() Status {
	return Status{
		Node: d.node, Pool: d.Pool, Phase: d.Phase, Since: d.Since, ReclaimAt: d.ReclaimAt,
		Why: d.Why, Text: d.Text, Cause: d.cause, After: d.After, Unplanned: d.order.unplanned,
	}
}
