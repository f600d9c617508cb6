package live

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestRule17Ramp lets a pool that has just become active move one node, then one in a hundred, then
// what its policy wants, and starts again after a time in shadow.
func TestRule17Ramp(t *testing.T) {
	w := newFixture(t, 300, interceptor.Funcs{})
	w.decide = drains
	c := w.controller(t)
	w.take()
	step(t, c)
	if got := w.take(); count(got, "drain") != 1 {
		t.Fatalf("the first active step drains %v", got)
	}
	step(t, c)
	if got := w.take(); count(got, "drain") != 1 || got[0] != "drain n000" {
		t.Fatalf("while the first node stands %v is drained, want n000 again and no other", got)
	}
	w.moved(c, "n000")
	step(t, c)
	if got := w.take(); count(got, "drain") != 2 {
		t.Fatalf("in a pool of 299 nodes %v is drained, want one in a hundred", got)
	}
	w.moved(c, "n001", "n002")
	step(t, c)
	if got := w.take(); count(got, "drain") != 297 {
		t.Fatalf("after the ramp %d of 297 nodes are drained", count(got, "drain"))
	}
	w.mode(t, v1alpha1.ModeShadow)
	step(t, c)
	if got := w.take(); count(got, "drain") != 0 {
		t.Fatalf("in shadow %v is drained", got)
	}
	w.mode(t, v1alpha1.ModeActive)
	step(t, c)
	if got := w.take(); count(got, "drain") != 1 {
		t.Fatalf("active again, %d nodes are drained at once", count(got, "drain"))
	}
}

// moved lets the drains of nodes succeed.
func (w *fixture) moved(c *Controller, names ...string) {
	w.gone(names...)
	for _, name := range names {
		c.DrainEnded(drain.Result{Node: name, Pool: "web", Outcome: drain.OutcomeDone})
	}
}

// gone lets nodes go away.
func (w *fixture) gone(names ...string) {
	for _, name := range names {
		for i := range w.snapshot.Nodes {
			if w.snapshot.Nodes[i].Name == name {
				w.snapshot.Nodes[i].Phase = policy.NodeGone
			}
		}
	}
}

// TestRule17RampSurvives remembers what was let through before it is done: a new
// leader moves no second node.
func TestRule17RampSurvives(t *testing.T) {
	w := newFixture(t, 300, interceptor.Funcs{})
	w.decide = drains
	first := w.controller(t)
	w.take()
	step(t, first)
	if got := w.take(); len(got) != 1 {
		t.Fatal(got)
	}
	second := w.controller(t)
	w.take()
	step(t, second)
	if got := w.take(); len(got) != 1 || got[0] != "drain n000" {
		t.Errorf("the next leader drains %v, want the same node and no other", got)
	}
}

// TestRule17Notices empties nodes under notice whatever the ramp.
func TestRule17Notices(t *testing.T) {
	w := newFixture(t, 5, interceptor.Funcs{})
	w.decide = drains
	for i := range w.snapshot.Nodes {
		w.snapshot.Nodes[i].ReclaimAt = policy.TimeOf(t0.Add(2 * time.Minute))
	}
	c := w.controller(t)
	w.take()
	step(t, c)
	if got := w.take(); count(got, "drain") != 5 {
		t.Errorf("of five nodes under notice %v are drained", got)
	}
}

// TestRampOfFailures gives up on a node whose drain never starts, does not count a node that the
// provider took, and advances only after a move that worked.
func TestRampOfFailures(t *testing.T) {
	now := policy.TimeOf(t0)
	node := &policy.Node{Name: "a", Phase: policy.NodeInitialized}
	var r ramp
	idle := func(string) bool { return false }
	if !r.admit("a", 50, now) || r.admit("b", 50, now) {
		t.Fatal("one node is let through, and no second")
	}
	r.observe(map[string]*policy.Node{"a": node}, nil, idle, now.Add(29*time.Minute), 30*time.Minute)
	if r.admit("b", 50, now) {
		t.Error("a second node is let through before the first had its time")
	}
	r.observe(map[string]*policy.Node{"a": node}, nil, idle, now.Add(30*time.Minute), 30*time.Minute)
	if !r.admit("b", 50, now) || r.Stage != rampOne {
		t.Error("after a move that came to nothing another node is not tried")
	}
	taken := &policy.Node{Name: "b", Phase: policy.NodeInitialized, ReclaimAt: 1}
	r.observe(map[string]*policy.Node{"b": taken}, nil, idle, now, time.Hour)
	r.observe(nil, map[string]bool{"b": true}, idle, now, time.Hour)
	if r.Stage != rampOne {
		t.Error("a node that the provider took counts as moved")
	}
	r.admit("c", 50, now)
	r.observe(nil, map[string]bool{"c": true}, idle, now, time.Hour)
	if r.Stage != rampPercent || r.allowance(50) != 1 || r.allowance(250) != 2 {
		t.Errorf("stage %d allows %d of 50 and %d of 250", r.Stage, r.allowance(50), r.allowance(250))
	}
}

// TestRule17Undone lets another node be moved at once when the drain of the first was
// taken back, by this leader or by the one that came after it, and counts it as nothing.
func TestRule17Undone(t *testing.T) {
	for name, undo := range map[string]func(*fixture, *Controller) *Controller{
		"this leader": func(w *fixture, c *Controller) *Controller {
			c.DrainEnded(drain.Result{Node: "n000", Pool: "web", Outcome: drain.OutcomeUndone, Reason: "Deadline"})
			return c
		},
		"the next leader": func(w *fixture, _ *Controller) *Controller { return w.controller(t) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, 300, interceptor.Funcs{})
			w.decide = drains
			c := w.controller(t)
			step(t, c)
			w.draining = []drain.Status{{Node: "n000", Pool: "web"}}
			c = undo(w, c)
			w.without("n000") // the policy waits before it tries the same node again
			w.take()
			step(t, c)
			if got := w.take(); count(got, "drain") != 0 {
				t.Fatalf("while n000 is still being undone %v is drained", got)
			}
			w.draining = nil
			step(t, c)
			if got := w.take(); count(got, "drain") != 1 || got[0] != "drain n001" {
				t.Errorf("after n000 was undone %v is drained, want n001 and no other", got)
			}
			if r := c.store.book("web").Ramp; r.Stage != rampOne || r.Moved != 0 {
				t.Errorf("the ramp is at %+v: what was undone counts as moved", r)
			}
			w.clock.Step(time.Minute)
			step(t, c)
			if got := w.take(); count(got, "drain") != 1 || got[0] != "drain n001" {
				t.Errorf("what learned of n000 still holds: %v is drained", got)
			}
		})
	}
}

// without has the policy leave a node alone.
func (w *fixture) without(name string) {
	decide := w.decide
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		p, m := decide(s, m)
		p.Drains = slices.DeleteFunc(p.Drains, func(d policy.Drain) bool { return s.Nodes[d.Node].Name == name })
		return p, m
	}
}

// TestRule17Conflict touches nothing of pools that lay claim to the same nodes.
func TestRule17Conflict(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.decide = drains
	w.parts.Referee = claims{"web": "pool api selects the same nodes"}
	c := w.controller(t)
	w.take()
	step(t, c)
	if got := w.take(); len(got) != 0 {
		t.Errorf("with a conflict %v is done", got)
	}
	if x := w.condition(t, ConditionConflict); x.Status != "True" || x.Message != "pool api selects the same nodes" {
		t.Errorf("condition %+v", x)
	}
	if x := w.condition(t, ConditionReady); x.Status != "False" || x.Reason != ConditionConflict {
		t.Errorf("condition %+v", x)
	}
}

type claims map[string]string

func (c claims) Conflicts() map[string]string { return c }

// TestRule17Refused: a node whose drain is refused at once gives its place in the ramp
// back, and another is tried.
func TestRule17Refused(t *testing.T) {
	w := newFixture(t, 300, interceptor.Funcs{})
	w.decide = drains
	w.answer["drain n000"] = backend.Hold("DoNotDisrupt", "node n000 must not be disrupted")
	c := w.controller(t)
	w.take()
	step(t, c)
	if got := w.take(); !slices.Equal(got, []string{"drain n000"}) {
		t.Fatalf("it did %v", got)
	}
	w.without("n000") // the policy waits before it tries the same node again
	w.clock.Step(time.Second)
	step(t, c)
	if got := w.take(); !slices.Equal(got, []string{"drain n001"}) {
		t.Errorf("after n000 was refused it did %v", got)
	}
	w.draining = []drain.Status{{Node: "n001", Pool: "web"}}
	w.clock.Step(time.Second)
	step(t, c)
	if got := w.take(); !slices.Equal(got, []string{"drain n001"}) {
		t.Errorf("while n001 is drained it did %v", got)
	}
	if r := c.store.book("web").Ramp; r.Stage != rampOne || r.Moved != 0 || len(r.Moving) != 1 {
		t.Errorf("the ramp is at %+v", r)
	}
}
