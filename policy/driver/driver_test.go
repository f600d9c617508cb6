package driver_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// world is everything around a driver. It records its calls in order, and fails those in fails.
type world struct {
	snapshot *policy.Snapshot
	said     []string
	fails    map[string]error
	saved    policy.Memory
	recorded policy.Memory
}

func (w *world) say(format string, args ...any) error {
	word := fmt.Sprintf(format, args...)
	w.said = append(w.said, word)
	return w.fails[word]
}

func (w *world) Observe(context.Context) (*policy.Snapshot, error) {
	return w.snapshot, w.say("observe")
}

func (w *world) Forecast(s *policy.Snapshot, _ *policy.Memory) error {
	s.Markets[0].Forecast = policy.Forecast{Hazard: 0.1, Capacity: 1.0 / 3, Runtime: 1e-9, Confidence: 0.7}
	s.Pools[0].Actions = []float64{1.0 / 3, -1.0 / 3}
	return w.say("forecast")
}

func (w *world) Save(_ context.Context, m *policy.Memory) error {
	w.saved = *m
	return w.say("save")
}

func (w *world) Record(_ context.Context, _ *policy.Snapshot, m *policy.Memory, _ *policy.Plan) error {
	w.recorded = *m
	return w.say("record")
}

func (w *world) Steer(_ context.Context, _ *policy.Snapshot, x *policy.Steer) error {
	return w.say("steer %v", x.Share)
}

func (w *world) Launch(_ context.Context, _ *policy.Snapshot, x *policy.Launch) error {
	return w.say("launch %s", x.Token)
}

func (w *world) Drain(_ context.Context, s *policy.Snapshot, x *policy.Drain) error {
	return w.say("drain %s", s.Nodes[x.Node].Name)
}

func (w *world) DeletionCost(_ context.Context, s *policy.Snapshot, x *policy.DeletionCost) error {
	return w.say("cost %s %d", s.Nodes[x.Node].Name, x.Cost)
}

func (w *world) Evict(_ context.Context, s *policy.Snapshot, x *policy.Evict) error {
	return w.say("evict %s", s.Pods[x.Pod].Name)
}

func (w *world) Pause(_ context.Context, s *policy.Snapshot, x *policy.Pause) error {
	return w.say("pause %s", s.Workloads[x.Workload].Name)
}

func (w *world) Gate(_ context.Context, _ *policy.Snapshot, x *policy.Gate) error {
	return w.say("gate %s", x.Budget)
}

// A fixed policy always plans the same.
type fixed struct{ plan policy.Plan }

func (fixed) Name() string { return "fixed" }

func (p fixed) Decide(_ *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	m.Decisions++
	return p.plan, m
}

func setup() (*world, fixed) {
	w := &world{
		snapshot: &policy.Snapshot{
			Now: 100, Markets: make([]policy.Market, 1), Pools: []policy.Pool{{Name: "web"}},
			Nodes: []policy.Node{{Name: "n0"}, {Name: "n1"}}, Pods: []policy.Pod{{Name: "p0"}},
			Workloads: []policy.Workload{{Name: "j0"}},
		},
		fails: make(map[string]error),
	}
	return w, fixed{policy.Plan{
		Steers:   []policy.Steer{{Share: 0.5}},
		Launches: []policy.Launch{{Token: "a"}, {Token: "b"}},
		Drains:   []policy.Drain{{Node: 1}, {Node: 0}},
		Evicts:   []policy.Evict{{}},

		DeletionCosts: []policy.DeletionCost{{Node: 1, Cost: -3}},
		Gates:         []policy.Gate{{Budget: "team"}},
		Pauses:        []policy.Pause{{Paused: true}},
		Wake:          101,
	}}
}

func (w *world) all() driver.Dependencies {
	return driver.Dependencies{Observer: w, Forecaster: w, Actuator: w, Ranker: w, Enforcer: w, Store: w, Recorder: w}
}

// TestStepOrder saves before it acts, acts in the order of the plan, closes
// gates before it suspends and evicts, and records last.
func TestStepOrder(t *testing.T) {
	w, p := setup()
	d := driver.New(w.all(), p, policy.Memory{Decisions: 7})
	for range 2 {
		w.said = nil
		step, err := d.Step(context.Background())
		if err != nil || step.Warning != nil {
			t.Fatal(err, step.Warning)
		}
		want := "observe, forecast, save, steer 0.5, launch a, launch b, drain n1, drain n0, cost n1 -3, gate team, pause j0, evict p0, record"
		if got := strings.Join(w.said, ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if w.saved.Decisions != 9 || w.recorded.Decisions != 8 {
		t.Errorf("saved %d decisions and recorded %d, want 9 and the 8 before", w.saved.Decisions, w.recorded.Decisions)
	}
}

// TestRounding puts forecasts on the grid of 1/65,536.
func TestRounding(t *testing.T) {
	w, p := setup()
	if _, err := driver.New(w.all(), p, policy.Memory{}).Step(context.Background()); err != nil {
		t.Fatal(err)
	}
	f := w.snapshot.Markets[0].Forecast
	want := policy.Forecast{Hazard: 6554.0 / 65536, Capacity: 21845.0 / 65536, Runtime: 0, Confidence: 45875.0 / 65536}
	if f != want {
		t.Errorf("got %+v, want %+v", f, want)
	}
	if a := w.snapshot.Pools[0].Actions; !reflect.DeepEqual(a, []float64{21845.0 / 65536, -21845.0 / 65536}) {
		t.Errorf("actions %v", a)
	}
}

// TestFailures tells what stops a step and what does not.
func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		word    string
		stops   bool
		said    string // in the error or the warning
		reaches string // the last thing that still happens
	}{
		{"observe", true, "observing: broken", "observe"},
		{"forecast", false, "forecasting: broken", "record"},
		{"save", true, "saving memory: broken", "save"},
		{"steer 0.5", false, "steering web: broken", "record"},
		{"launch a", false, "launching in web: broken", "record"},
		{"drain n1", false, "draining n1: broken", "record"},
		{"gate team", false, "gating team: broken", "record"},
		{"evict p0", false, "evicting p0: broken", "record"},
		{"record", true, "recording: broken", "record"},
	} {
		w, p := setup()
		w.fails[c.word] = broken
		step, err := driver.New(w.all(), p, policy.Memory{}).Step(context.Background())
		got := step.Warning
		if c.stops {
			got = err
		} else if err != nil {
			t.Errorf("%s: stops the step: %v", c.word, err)
		}
		if !errors.Is(got, broken) || !strings.Contains(got.Error(), c.said) {
			t.Errorf("%s: %v does not say %q", c.word, got, c.said)
		}
		if last := w.said[len(w.said)-1]; last != c.reaches {
			t.Errorf("%s: the last thing done is %q, want %q", c.word, last, c.reaches)
		}
	}
}

// TestNoCapacity is an answer and no fault.
func TestNoCapacity(t *testing.T) {
	w, p := setup()
	w.fails["launch a"] = fmt.Errorf("market x: %w", driver.ErrNoCapacity)
	step, err := driver.New(w.all(), p, policy.Memory{}).Step(context.Background())
	if err != nil || step.Warning != nil {
		t.Errorf("%v, %v", err, step.Warning)
	}
}

// TestWakeMustBeLater refuses a plan that would never let time pass, before
// anything of it is saved or done.
func TestWakeMustBeLater(t *testing.T) {
	w, p := setup()
	p.plan.Wake = 100
	_, err := driver.New(w.all(), p, policy.Memory{}).Step(context.Background())
	if err == nil || !strings.Contains(err.Error(), "not later") {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(w.said, ", "); got != "observe, forecast" {
		t.Errorf("did %s", got)
	}
}

// TestOptionalParts steps without forecaster, enforcer and recorder.
func TestOptionalParts(t *testing.T) {
	w, p := setup()
	parts := driver.Dependencies{Observer: w, Actuator: w, Store: w}
	if _, err := driver.New(parts, p, policy.Memory{}).Step(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(w.said, ", "), "observe, save, steer 0.5, launch a, launch b, drain n1, drain n0"; got != want {
		t.Errorf("did %s, want %s", got, want)
	}
}
