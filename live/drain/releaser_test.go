package drain

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A releaser is a backend that remembers the calls it received.
type releaser struct {
	w *fixture

	mu       sync.Mutex
	prepared map[string]bool
	kept     map[string]bool // tokens
	released map[string]time.Time
	how      map[string]backend.Replacement
	calls    []string
	unknown  bool
	notYet   int // how often Release is not ready
}

func (g *releaser) NodeReleaser(pool string, _ policy.Provisioner) (backend.NodeReleaser, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unknown {
		return nil, fmt.Errorf("there is no pool %s", pool)
	}
	return g, nil
}

// called returns the calls of the backend so far.
func (g *releaser) called() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// keep has the backend keep the replacements of tokens, as a Launch does.
func (g *releaser) keep(how backend.Replacement, tokens ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tokens {
		g.kept[t], g.how[t] = true, how
	}
}

func (g *releaser) Prepare(ctx context.Context, n *corev1.Node) error {
	return g.w.guard(ctx, "prepare", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, "prepare "+n.Name)
		g.prepared[n.Name] = true
		return nil
	})
}

func (g *releaser) Replaced(ctx context.Context, tokens []string) (how backend.Replacement, err error) {
	err = g.w.guard(ctx, "replaced", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		how = backend.ReplacementReady
		for _, t := range tokens {
			if x := g.how[t]; x == backend.ReplacementFailed || how == backend.ReplacementReady {
				how = x
			}
		}
		return nil
	})
	return how, err
}

func (g *releaser) Release(ctx context.Context, n *corev1.Node) error {
	return g.w.guard(ctx, "release", func() error {
		for _, p := range g.w.pods() {
			if p.Spec.NodeName == n.Name && !g.w.stays(&p) {
				g.w.breach("node %s given back with pod %s", n.Name, p.Name)
			}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, "release "+n.Name)
		if g.notYet > 0 {
			g.notYet--
			return fmt.Errorf("a volume is attached: %w", backend.ErrNotYet)
		}
		if _, ok := g.released[n.Name]; !ok {
			g.released[n.Name] = time.Now()
		}
		return nil
	})
}

func (g *releaser) Undo(ctx context.Context, n *corev1.Node, tokens []string) error {
	return g.w.guard(ctx, "undo", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, "undo "+n.Name)
		delete(g.prepared, n.Name)
		g.forget(tokens)
		return nil
	})
}

func (g *releaser) Settle(ctx context.Context, tokens []string) error {
	return g.w.guard(ctx, "settle", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, "settle")
		g.forget(tokens)
		return nil
	})
}

func (g *releaser) forget(tokens []string) {
	for _, t := range tokens {
		delete(g.kept, t)
	}
}

// take removes the nodes that were released 5 s ago.
func (g *releaser) take() {
	g.mu.Lock()
	var due []string
	for name, at := range g.released {
		if time.Since(at) >= 5*time.Second {
			due = append(due, name)
			delete(g.released, name)
		}
	}
	g.mu.Unlock()
	slices.Sort(due)
	for _, name := range due {
		g.w.reclaim(name)
	}
}

// reclaim removes a node and all that is on it.
func (w *fixture) reclaim(name string) {
	ctx := context.Background()
	if n := w.read(name); n != nil {
		w.must(w.api.Delete(ctx, n))
	}
	w.releaser.mu.Lock()
	delete(w.releaser.prepared, name)
	w.releaser.mu.Unlock()
	for _, p := range w.pods() {
		if p.Spec.NodeName == name {
			if p.DeletionTimestamp == nil {
				w.must(w.api.Delete(ctx, &p))
			}
			w.drop(p.Name)
		}
	}
}

// attach attaches a volume to a node.
func (w *fixture) attach(node string) {
	w.must(w.api.Create(context.Background(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v-" +
		node}, Spec: storagev1.VolumeAttachmentSpec{NodeName: node}}))
}
