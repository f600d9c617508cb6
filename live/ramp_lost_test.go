package live

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/drain"
)

// TestRule17FailedThenLost: a drain that came to nothing counts as nothing, whatever becomes
// of its node: also where the node is lost before a step has seen it out of our hands, while
// it is being undone, with the leader, or before its drain has begun.
func TestRule17FailedThenLost(t *testing.T) {
	undone := drain.Result{Node: "n000", Pool: "web", Outcome: drain.OutcomeUndone, Reason: "Deadline"}
	for name, lose := range map[string]func(*fixture, *Controller) *Controller{
		"failed": func(w *fixture, c *Controller) *Controller {
			c.DrainEnded(undone)
			w.gone("n000")
			return c
		},
		"failed after it was lost": func(w *fixture, c *Controller) *Controller {
			w.draining = []drain.Status{{Node: "n000", Pool: "web", Phase: drain.PhaseUndoing}}
			w.gone("n000")
			step(t, c)
			w.draining = nil
			c.DrainEnded(undone)
			return c
		},
		"with its leader": func(w *fixture, _ *Controller) *Controller {
			w.gone("n000")
			return w.controller(t)
		},
		"never drained": func(w *fixture, c *Controller) *Controller {
			w.gone("n000")
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, 300, interceptor.Funcs{})
			w.decide = drains
			c := w.controller(t)
			step(t, c)
			c = lose(w, c)
			w.take()
			step(t, c)
			if r := c.store.book("web").Ramp; r.Stage != rampOne || r.Moved != 0 {
				t.Errorf("the ramp is at %+v: what came to nothing counts as moved", r)
			}
			if got := w.take(); count(got, "drain") != 1 {
				t.Errorf("%d nodes are drained, want one more", count(got, "drain"))
			}
		})
	}
}

// TestRule17GoneFirst: a node that is gone before its drain has ended keeps its place in the
// ramp until then, and counts as moved when the drain has succeeded.
func TestRule17GoneFirst(t *testing.T) {
	w := newFixture(t, 300, interceptor.Funcs{})
	w.decide = drains
	c := w.controller(t)
	step(t, c)
	w.draining = []drain.Status{{Node: "n000", Pool: "web", Phase: drain.PhaseReleased}}
	w.gone("n000")
	w.take()
	step(t, c)
	if got := w.take(); count(got, "drain") != 0 {
		t.Errorf("before the drain has ended %v is drained", got)
	}
	w.draining = nil
	c.DrainEnded(drain.Result{Node: "n000", Pool: "web", Outcome: drain.OutcomeDone})
	step(t, c)
	if r := c.store.book("web").Ramp; r.Stage != rampPercent {
		t.Errorf("the ramp is at %+v", r)
	}
}
