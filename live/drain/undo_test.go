package drain

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A slowReleaser takes its time to take something back, as one does whose writes wait.
type slowReleaser struct {
	*releaser
	takes time.Duration
}

func (g slowReleaser) NodeReleaser(string, policy.Provisioner) (backend.NodeReleaser, error) {
	return g, nil
}

func (g slowReleaser) Undo(ctx context.Context, n *corev1.Node, tokens []string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(g.takes):
		return g.releaser.Undo(ctx, n, tokens)
	}
}

// TestShutdownUncordonsFirst: before the end all nodes take pods again, though there is
// no time to take back the rest; what is taken back goes ahead of ordinary writes, and
// no pod is evicted that would have to go for nothing.
func TestShutdownUncordonsFirst(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		const nodes = 20
		stuck := func(p *corev1.Pod) { // its process does not end
			grace := int64(1 << 20)
			p.Annotations[stopsAfter], p.Spec.TerminationGracePeriodSeconds = "100h", &grace
		}
		for i := range nodes {
			name := fmt.Sprintf("n%02d", i)
			w.node(name)
			w.pod("stuck-"+name, name, stuck)
		}
		w.node("ordered")
		w.pod("web", "ordered")
		var ordinary atomic.Int32
		waits := interceptor.NewClient(w.api, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				ordinary.Add(1)
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourceCreate: func(ctx context.Context, _ client.Client, sub string, o, body client.Object,
				opts ...client.SubResourceCreateOption) error {
				return w.client().SubResource(sub).Create(ctx, o, body, opts...)
			},
		})
		cfg := DefaultConfig()
		cfg.Urgent = w.client()
		p, err := New(cfg, waits, w.client(), slowReleaser{w.releaser, 4 * time.Second})
		w.must(err)
		for i := range nodes {
			w.begin(p, fmt.Sprintf("n%02d", i))
		}
		for range 5 {
			w.must(p.Pass(t.Context()))
		}
		if got := len(w.evicted()); got != nodes {
			t.Fatalf("%d pods were evicted, want %d", got, nodes)
		}
		w.begin(p, "ordered")
		ordinary.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		s, _ := p.Shutdown(ctx)
		if len(s.Undone)+len(s.Left) != nodes+1 || len(s.Left) == 0 {
			t.Fatalf("settled %+v: the time was to run out", s)
		}
		for _, n := range w.nodes() {
			if n.Spec.Unschedulable || tainted(&n) {
				t.Errorf("node %s takes no pods at the end", n.Name)
			}
		}
		if n := ordinary.Load(); n != 0 {
			t.Errorf("%d ordinary writes", n)
		}
		if got := len(w.evicted()); got != nodes {
			t.Errorf("%d pods were evicted before the end", got-nodes)
		}
	})
}
