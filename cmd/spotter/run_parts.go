package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// givers finds the backend of a pool by what its manifest says.
type givers struct{ w *wiring }

func (g givers) Giver(pool string) (backend.Giver, error) {
	var p v1alpha1.CapacityPool
	if err := g.w.manager.GetClient().Get(context.Background(), client.ObjectKey{Name: pool}, &p); err != nil {
		return nil, fmt.Errorf("backend of pool %q: %w", pool, err)
	}
	b := g.w.parts.Backends[p.Pool().Provisioner]
	if b == nil {
		return nil, fmt.Errorf("backend of pool %q: it is not among --backends", pool)
	}
	return b, nil
}

// noticing is a pipeline that takes notices without a step, and recovers as it starts.
type noticing struct{ *drain.Pipeline }

// Notice orders that a node is emptied that the provider takes.
func (n noticing) Notice(x drain.Noticed) {
	s := &policy.Snapshot{
		Pools: []policy.Pool{{Name: x.Pool, Provisioner: x.Provisioner}},
		Nodes: []policy.Node{{Name: x.Node, Phase: policy.NodeInitialized, ReclaimAt: x.ReclaimAt}},
	}
	_ = n.Start(context.Background(), s, &policy.Drain{Why: policy.Why{Reason: policy.ReasonNotice, Text: x.Text}})
}

// Run settles what a leader before has left, and then works on what is ordered.
func (n noticing) Run(ctx context.Context) error {
	if _, err := n.Recover(ctx); err != nil {
		return err
	}
	return n.Pipeline.Run(ctx)
}

// drainMeter counts what the pipeline does.
type drainMeter struct{ w *wiring }

func (m drainMeter) Entered(pool string, phase drain.Phase) { m.w.metrics.Entered(pool, string(phase)) }

func (m drainMeter) Evicted(pool string, answer drain.Answer) {
	m.w.metrics.Evicted(pool, answer.String())
}

// Ended also lets the conditions of the pool say what became of the drain.
func (m drainMeter) Ended(r drain.Result) {
	m.w.metrics.Drained(r.Pool, r.Node, string(r.Outcome), r.Took)
	m.w.controller.DrainEnded(r)
}

// panicsMax bounds how many snapshots are kept on which a policy panicked: the
// first are the ones that tell something, and a disk is not to fill with the rest.
const panicsMax = 10

// A panicRecorder keeps each snapshot on which a policy panicked as a recording of
// its own, complete at once, for `spotter replay`.
type panicRecorder struct {
	dir  string
	meta record.Meta

	mu   sync.Mutex
	kept int
}

// Record writes one recording.
func (r *panicRecorder) Record(ctx context.Context, s *policy.Snapshot, m *policy.Memory, p *policy.Plan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept >= panicsMax {
		return fmt.Errorf("%d are kept in %s already", r.kept, r.dir)
	}
	dir := filepath.Join(r.dir, s.Now.Std().Format("20060102T150405.000Z"))
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	w, err := record.NewWriter(dir, r.meta)
	if err != nil {
		return err
	}
	if err := w.Record(ctx, s, m, p); err != nil {
		return err
	}
	r.kept++
	return w.Close()
}
