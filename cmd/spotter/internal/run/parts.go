package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A releasers returns the backend of a pool: the one in its manifest, or the one that provisioned
// its nodes if the pool no longer exists.
type releasers struct{ w *wiring }

func (g releasers) NodeReleaser(pool string, of policy.Provisioner) (backend.NodeReleaser, error) {
	var p v1alpha1.CapacityPool
	switch err := g.w.manager.GetClient().Get(context.Background(), client.ObjectKey{Name: pool}, &p); {
	case err == nil:
		of = p.Pool().Provisioner
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("backend of pool %q: %w", pool, err)
	}
	b := g.w.parts.Backends[of]
	if b == nil {
		return nil, fmt.Errorf("backend of pool %q: it is not among the backends", pool)
	}
	return b, nil
}

// A drainMeter counts the results of drains, and reports them to the controller, which traces them.
type drainMeter struct{ w *wiring }

func (m drainMeter) Entered(node, pool string, phase drain.Phase) {
	m.w.metrics.Entered(pool, string(phase))
	m.w.controller.DrainEntered(node, pool, phase)
}

func (m drainMeter) Evicted(node string, pod types.NamespacedName, pool string, answer drain.Answer) {
	m.w.metrics.Evicted(pool, answer.String())
	m.w.controller.PodEvicted(node, pod, answer)
}

// Ended also makes the conditions of the pool report the result of the drain.
func (m drainMeter) Ended(r drain.Result) {
	m.w.metrics.Drained(r.Pool, r.Node, string(r.Outcome), r.Took)
	m.w.controller.DrainEnded(r)
}

// panicsMax is the maximum number of snapshots with a panic that are kept. The first are the most
// useful, and the rest must not fill the disk.
const panicsMax = 10

// A panicRecorder writes each snapshot on which a policy panicked as a separate, complete recording
// for `spotter replay`.
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
