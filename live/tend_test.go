package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// A busyTender is at work until it is let go, or its context ends.
type busyTender struct{ begun, free, cut chan struct{} }

func (x *busyTender) Tend(ctx context.Context, _ *policy.Snapshot) error {
	x.begun <- struct{}{}
	select {
	case <-x.free:
		return nil
	case <-ctx.Done():
		x.cut <- struct{}{}
		return ctx.Err()
	}
}

// besides runs what tends beside the steps until the test ends.
func (c *Controller) besides(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { c.tendBeside(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	until(t, "the backends are tended beside the steps", c.beside.Load)
}

// TestTendGivesWay: a step looks, decides and saves while the backends are tended, and
// has that end only when it has waited to act for a while. It then waits twice as long
// the next time, until one has come to its end.
func TestTendGivesWay(t *testing.T) {
	w := newWorld(t, 300, interceptor.Funcs{})
	busy := &busyTender{begun: make(chan struct{}, 16), free: make(chan struct{}), cut: make(chan struct{}, 16)}
	w.parts.Tenders = []Tender{busy}
	decided := make(chan struct{}, 16)
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		decided <- struct{}{}
		return drains(s, m)
	}
	c := w.controller(t)
	c.besides(t)
	next := func() chan struct{} {
		done := make(chan struct{})
		go func() { defer close(done); step(t, c) }()
		return done
	}
	tick := w.clock.Waiters() // the ticker of who tends
	<-next()
	<-decided
	for _, wait := range []time.Duration{patience, 2 * patience, 4 * patience} {
		<-busy.begun
		w.take()
		done := next()
		<-decided
		until(t, "the step waits to act", func() bool { return w.clock.Waiters() > tick })
		w.clock.Step(wait - time.Millisecond)
		if w.clock.Waiters() == tick {
			t.Fatalf("it is cut short before %v", wait)
		}
		if got := w.take(); len(got) != 0 {
			t.Errorf("while the backends are tended the step did %v", got)
		}
		w.clock.Step(time.Millisecond)
		<-busy.cut
		<-done
		if got := w.take(); !slices.Equal(got, []string{"drain n000"}) {
			t.Errorf("the step did %v", got)
		}
	}
	<-busy.begun
	busy.free <- struct{}{}
	until(t, "it has come to its end", func() bool { return c.stage.cutsNow() == 0 })
}

func (s *stage) cutsNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cuts
}

// TestTendStopsForSwitch: what tends is stopped at once when the kill switch is on, and
// nothing is tended while it is.
func TestTendStopsForSwitch(t *testing.T) {
	w := newWorld(t, 3, interceptor.Funcs{})
	busy := &busyTender{begun: make(chan struct{}, 16), free: make(chan struct{}), cut: make(chan struct{}, 16)}
	w.parts.Tenders = []Tender{busy}
	c := w.controller(t)
	c.besides(t)
	step(t, c)
	<-busy.begun
	w.flip(t, "true")
	w.take()
	step(t, c) // though the time stands still
	<-busy.cut
	if got := w.take(); !slices.Equal(got, []string{"halt"}) {
		t.Errorf("it did %v", got)
	}
	c.tendLast(t.Context(), false)
	if n := len(busy.begun); n != 0 {
		t.Errorf("tended %d times behind the switch", n)
	}
}

// TestRule20ReadBeside: the kill switch is read while the step looks and decides, and
// nothing is saved or done before it was; also a step that comes to no decision obeys it.
func TestRule20ReadBeside(t *testing.T) {
	asked, answer := make(chan struct{}, 16), make(chan struct{}, 16)
	var saves atomic.Int32
	w := newWorld(t, 3, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == DefaultConfig().KillSwitch {
				asked <- struct{}{}
				<-answer
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetLabels()[memoryLabel] != "" {
				saves.Add(1)
			}
			return c.Create(ctx, o, opts...)
		},
	})
	decided := make(chan struct{})
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		close(decided)
		return drains(s, m)
	}
	c := w.controller(t)
	w.flip(t, "true")
	w.take()
	done := make(chan struct{})
	go func() { defer close(done); step(t, c) }()
	<-asked
	<-decided
	if got := w.take(); len(got) != 0 || saves.Load() != 0 {
		t.Errorf("before the switch was read it did %v and saved %d times", got, saves.Load())
	}
	answer <- struct{}{}
	<-done
	if got := w.take(); !slices.Equal(got, []string{"halt"}) || saves.Load() == 0 {
		t.Errorf("it did %v and saved %d times", got, saves.Load())
	}

	broken := errors.New("the watches are behind")
	w.parts.Observer = observerFunc(func(context.Context) (*policy.Snapshot, error) { return nil, broken })
	blind := w.controller(t)
	w.take()
	answer <- struct{}{}
	if _, err := blind.step(t.Context(), nil); !errors.Is(err, broken) {
		t.Errorf("the step says %v", err)
	}
	if got := w.take(); !slices.Equal(got, []string{"halt"}) {
		t.Errorf("a step that saw nothing did %v", got)
	}
}

// TestPhasesAddUp: every part of a step that can take long is a phase, so that the
// phases together are what it took.
func TestPhasesAddUp(t *testing.T) {
	w := newWorld(t, 3, interceptor.Funcs{})
	passes := func(d time.Duration) { w.clock.Step(d) }
	decided := make(chan struct{}) // and the switch is waited for
	w.client = interceptor.NewClient(w.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == w.cfg.KillSwitch {
				<-decided
				passes(4 * time.Second)
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetLabels()[memoryLabel] == memoryHead {
				passes(8 * time.Second)
			}
			return c.Create(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			passes(32 * time.Second)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	w.parts.Client, w.parts.Reader = w.client, w.client
	w.parts.Observer = observerFunc(func(ctx context.Context) (*policy.Snapshot, error) {
		passes(time.Second)
		return w.Observe(ctx)
	})
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		passes(2 * time.Second)
		return drains(s, m)
	}
	w.parts.Tracer = startTracer{on: func(span string) {
		if span == "switch" { // it is waited for
			close(decided)
		}
	}}
	var log bytes.Buffer
	w.parts.Log = slog.New(slog.NewJSONHandler(&log, nil))
	c := w.controller(t)
	c.actuator.fence = func(context.Context) error { return nil }
	c.parts.Drains = slowStart{w, func() { passes(16 * time.Second) }}
	step(t, c)
	var said struct {
		Msg    string
		Took   time.Duration
		Phases map[string]time.Duration
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &said); err != nil || said.Msg != "step" {
		t.Fatalf("%v: %s", err, log.String())
	}
	sum := time.Duration(0)
	for _, took := range said.Phases {
		sum += took
	}
	if sum != said.Took || said.Took != 63*time.Second {
		t.Errorf("a step of 63 s is said to have taken %v and its phases %v: %v", said.Took, sum, said.Phases)
	}
	for name, want := range map[string]time.Duration{"observe": 1, "decide": 2, "switch": 4, "judge": 0, "save": 8, "act": 16, "tell": 32} {
		if took, told := said.Phases[name]; !told || took != want*time.Second {
			t.Errorf("phase %s took %v (told: %v), want %v", name, took, told, want*time.Second)
		}
	}
}

// A startTracer tells of the spans that begin.
type startTracer struct {
	noop.Tracer
	on func(name string)
}

func (t startTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.on(name)
	return t.Tracer.Start(ctx, name, opts...)
}

// A slowStart begins drains slowly.
type slowStart struct {
	*world
	passes func()
}

func (x slowStart) Start(ctx context.Context, s *policy.Snapshot, d *policy.Drain) error {
	x.passes()
	return x.world.Start(ctx, s, d)
}

// TestRule17Refused: a node whose drain is refused at once gives its place in the ramp
// back, and another is tried.
func TestRule17Refused(t *testing.T) {
	w := newWorld(t, 300, interceptor.Funcs{})
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

// A modelJudge says of every pool that its bundle is used, while it is named.
type modelJudge func() bool

func (named modelJudge) Conditions(string) []metav1.Condition {
	if !named() {
		return nil
	}
	return []metav1.Condition{{Type: ConditionModelUsed, Status: metav1.ConditionTrue, Reason: "Scored", Message: "the bundle scored 2 markets"}}
}

// TestModelUsedForgotten: what a controller before this one said of a bundle goes with the
// bundle, and stays while it is named.
func TestModelUsedForgotten(t *testing.T) {
	w := newWorld(t, 1, interceptor.Funcs{})
	named := true
	w.parts.Judges = []Judge{modelJudge(func() bool { return named })}
	step(t, w.controller(t))
	if got := w.condition(t, ConditionModelUsed); got.Reason != "Scored" {
		t.Fatalf("condition %+v", got)
	}
	step(t, w.controller(t)) // long before figures are due again
	if got := w.condition(t, ConditionModelUsed); got.Reason != "Scored" {
		t.Errorf("condition %+v", got)
	}
	named = false
	c := w.controller(t)
	step(t, c)
	if got := w.condition(t, ConditionModelUsed); got.Type != "" {
		t.Errorf("the bundle is named no more, and the pool has the condition %+v", got)
	}
	if got := w.condition(t, ConditionReady); got.Status != "True" {
		t.Errorf("condition %+v", got)
	}
}
