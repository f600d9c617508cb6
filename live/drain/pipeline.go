// Package drain empties nodes and has them given back: one pipeline for all
// backends. Each node that is drained is a small state machine,
//
//	checking → preparing → waiting → evicting → detaching → releasing → released
//
// with undoing as the way back from everywhere before the backend has accepted
// the node. Its state is kept in annotations of the Node, so that a new leader
// finds what the one before has begun. [Pipeline.Start] only takes the order;
// [Pipeline.Run] does the work, in passes.
//
// The package also gives pods their deletion cost: see [Ranker].
package drain

import (
	"cmp"
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

// The phases. Those that only this process knows are not found again after a
// crash: nothing has been done to the node in them.
const (
	PhaseChecking  Phase = "checking"  // may its pods be evicted? not kept on the node
	PhasePreparing Phase = "preparing" // the backend is told
	PhaseWaiting   Phase = "waiting"   // for the replacements
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

// A Status is a drain as it stands.
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
}

// A Pipeline drains nodes. It may be used by several goroutines.
type Pipeline struct {
	cfg    Config
	client client.Client
	reader client.Reader
	givers Givers

	// passing holds one pass at a time.
	passing sync.Mutex

	mu     sync.Mutex
	drains map[string]*drain // by the node's name
	halted bool
	wake   chan struct{}

	// evicted are the pods that were evicted a short while ago. The cache may still
	// show them as ready.
	evicted map[types.UID]time.Time
}

// A drain is one node on its way. What is above the line is guarded by the
// pipeline's mu; what is below belongs to the pass.
type drain struct {
	node  string
	order order
	shown Status
	over  Outcome // empty until it has ended

	// ----
	state
	uid   types.UID // empty until the node was first read
	began time.Time
	last  *corev1.Node // as it was after our last write
	kept  bool         // the node carries our marks
	saved Phase        // the phase that the node carries
	reset bool         // what the node carries is out of date
	tries map[types.UID]*try

	// outcome is what an undo is to be told as; reason its CamelCase reason.
	outcome Outcome
	reason  string

	cause   string
	retryAt time.Time // of the backend's part
	emptyAt time.Time
	askedAt time.Time // when the backend was first asked to take the node
	settled bool      // nothing is kept for its replacements any more
	mayBe   bool      // a leader before this one may have given it back
}

// An order is what was asked of a drain since the last pass.
type order struct {
	reclaimAt policy.Time
	gentle    bool
	undo      string // why; empty means not at all
}

// A try is how the eviction of one pod stands.
type try struct {
	asked   time.Time // when it was last accepted; zero if not
	retryAt time.Time
	grace   int64 // seconds that it was told; 0 means its own
	answer  Reply
}

// New returns a pipeline that reads from c's cache, which must have the indexes of
// [SetupIndexes], and confirms by r, which must read from the API server.
func New(cfg Config, c client.Client, r client.Reader, g Givers) (*Pipeline, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Urgent == nil {
		cfg.Urgent = c
	}
	return &Pipeline{
		cfg: cfg, client: c, reader: r, givers: g,
		drains: map[string]*drain{}, evicted: map[types.UID]time.Time{}, wake: make(chan struct{}, 1),
	}, nil
}

// Start takes the order to drain a node. It returns a [backend.Held] where the
// drain does not begin for a reason that can be seen at once; others show later
// as a [Result]. A node that is drained already is only hurried. Nothing is
// written before the next pass.
func (p *Pipeline) Start(ctx context.Context, s *policy.Snapshot, x *policy.Drain) error {
	n := &s.Nodes[x.Node]
	if n.Phase == policy.NodeGone {
		return nil
	}
	if n.Phase < policy.NodeInitialized {
		return fmt.Errorf("node %s is not initialized", n.Name)
	}
	if err := p.mayStart(n); err != nil || p.hurry(n, x.Gentle) {
		return err
	}
	pool := ""
	if n.Pool != policy.None {
		pool = s.Pools[n.Pool].Name
	}
	now := policy.TimeOf(p.cfg.Clock.Now())
	d := &drain{node: n.Name, began: p.cfg.Clock.Now(), tries: map[types.UID]*try{}, state: state{
		Phase: PhaseChecking, Pool: pool, Why: x.Why.Reason, Text: bounded(x.Why.Text), Since: now,
		Deadline: x.Deadline, After: slices.Clone(x.After), Gentle: x.Gentle, ReclaimAt: n.ReclaimAt,
	}}
	if d.Deadline == 0 {
		d.Deadline = now.Add(p.cfg.DrainMax)
	}
	if !d.urgent() {
		if _, err := p.newRound().checkNode(ctx, n.Name); err != nil {
			p.giveBack(d, err)
			return err
		}
	}
	p.add(d)
	return nil
}

// mayStart returns why a node is not ours to drain.
func (p *Pipeline) mayStart(n *policy.Node) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.halted:
		return backend.Hold("Halted", "no drain is started: the kill switch is on")
	case n.ActedBy == policy.ActorPerson && n.ReclaimAt != 0:
		return nil // what a person cordoned the provider takes all the same
	case n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs:
		return backend.Hold("InProgress", "node %s is in the hands of %v", n.Name, n.ActedBy)
	}
	return nil
}

// giveBack has what the backend keeps for the replacements of a drain that did
// not begin given back.
func (p *Pipeline) giveBack(d *drain, why error) {
	if held := new(backend.Held); len(d.After) > 0 && errors.As(why, &held) {
		d.Phase, d.Failure, d.reason, d.outcome = PhaseUndoing, held.Message, held.Reason, OutcomeHeld
		p.add(d)
	}
}

func (p *Pipeline) add(d *drain) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.drains[d.node]; there {
		return
	}
	d.order = order{reclaimAt: d.ReclaimAt, gentle: d.Gentle}
	d.shown = d.status()
	p.drains[d.node] = d
	p.signal()
}

// hurry tells the drain of n, if there is one, what has become known of it.
func (p *Pipeline) hurry(n *policy.Node, gentle bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.drains[n.Name]
	if !ok {
		return false
	}
	d.order.gentle = gentle
	if n.ReclaimAt != 0 && n.ReclaimAt != d.order.reclaimAt {
		d.order.reclaimAt = n.ReclaimAt
		p.signal()
	}
	return true
}

// Hurry speeds up the drains of nodes that have come under a notice. It is to be
// called with every snapshot, since a plan says nothing of a node that is being
// drained already.
func (p *Pipeline) Hurry(s *policy.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.drains) == 0 {
		return
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.ReclaimAt == 0 || n.Phase == policy.NodeGone {
			continue
		}
		if d, ok := p.drains[n.Name]; ok && d.order.reclaimAt != n.ReclaimAt {
			d.order.reclaimAt = n.ReclaimAt
			p.signal()
		}
	}
}

// signal wakes Run. The caller holds mu.
func (p *Pipeline) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Status returns the drains as they stand, ascending by node.
func (p *Pipeline) Status() []Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Status, 0, len(p.drains))
	for _, d := range p.drains {
		all = append(all, d.shown)
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// Run makes passes while there is something to do, until ctx ends.
func (p *Pipeline) Run(ctx context.Context) error {
	for {
		if err := p.Pass(ctx); err != nil && ctx.Err() == nil {
			p.cfg.Log.Warn("draining", "error", err)
		}
		if err := p.rest(ctx); err != nil {
			return nil //nolint:nilerr // the end of ctx is how Run is stopped
		}
	}
}

// rest waits for the next pass.
func (p *Pipeline) rest(ctx context.Context) error {
	var tick <-chan time.Time
	p.mu.Lock()
	busy := len(p.drains) > 0
	p.mu.Unlock()
	if busy {
		timer := p.cfg.Clock.NewTimer(p.cfg.Interval)
		defer timer.Stop()
		tick = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.wake:
	case <-tick:
	}
	return nil
}

func (d *drain) status() Status {
	return Status{
		Node: d.node, Pool: d.Pool, Phase: d.Phase, Since: d.Since, ReclaimAt: d.ReclaimAt,
		Why: d.Why, Text: d.Text, Cause: d.cause, After: d.After,
	}
}
