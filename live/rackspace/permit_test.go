package rackspace_test

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A bid that has not won is withdrawn whatever the mode of its pool has become, so that it does not
// win later. Nothing else of a pool that is not active is changed.
func TestPassInEveryMode(t *testing.T) {
	set := func(m v1alpha1.Mode) func(*fixture, *v1alpha1.CapacityPool) error {
		return func(w *fixture, p *v1alpha1.CapacityPool) error {
			p.Spec.Mode = m
			return w.store.Update(w.ctx, p)
		}
	}
	remove := func(w *fixture, p *v1alpha1.CapacityPool) error { return w.store.Delete(w.ctx, p) }
	for name, change := range map[string]func(*fixture, *v1alpha1.CapacityPool) error{
		"off": set(v1alpha1.ModeOff), "shadow": set(v1alpha1.ModeShadow), "deleted": remove,
		"deleted before a restart": func(w *fixture, p *v1alpha1.CapacityPool) error {
			other := capacityPool(v1alpha1.ModeActive)
			other.Name = "other"
			if err := w.store.Create(w.ctx, other); err != nil {
				return err
			}
			defer w.restart()
			return remove(w, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			cfg, undoing := permit.DefaultConfig(), false
			cfg.Mode, cfg.Fresh = policy.ModeActive, 0
			authority := permit.New(cfg, w.store)
			w.config.Fence = func(ctx context.Context) error {
				if undoing {
					return authority.Check(ctx)
				}
				return nil
			}
			w.restart()
			w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
			w.mustRun(9 * time.Minute)
			w.server.SetPrice("gp.vs1.large-iad", 30_000)
			w.mustLaunch("t2", 40_000, "gp.vs1.large-iad")
			w.server.SetPrice("gp.vs1.large-iad", 200_000) // it will not win
			undoing = true
			if err := change(w, capacityPoolOf(w)); err != nil {
				t.Fatal(err)
			}
			w.mustRun(20 * time.Minute)
			if pools := w.server.Pools(); len(pools) != 1 || len(w.nodes()) != 1 {
				t.Errorf("node pools %v and nodes %v, want those of t1", pools, w.nodes())
			}
		})
	}
}

func capacityPoolOf(w *fixture) *v1alpha1.CapacityPool {
	p := capacityPool(v1alpha1.ModeActive)
	if err := w.store.Get(w.ctx, client.ObjectKeyFromObject(p), p); err != nil {
		w.t.Fatal(err)
	}
	return p
}
