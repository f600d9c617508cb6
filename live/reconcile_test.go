package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestAskedWhenActing: what has been decided and published is not carried out once its
// pool may not be changed any more, and is not carried out later either.
func TestAskedWhenActing(t *testing.T) {
	for name, x := range map[string]struct {
		turn     func(*fixture)
		enforced bool
	}{
		"nothing changes": {func(*fixture) {}, true},
		"pool in shadow":  {func(w *fixture) { w.mode(t, v1alpha1.ModeShadow) }, true},
		"pool off":        {func(w *fixture) { w.mode(t, v1alpha1.ModeOff) }, true},
		"pool deleted":    {func(w *fixture) { _ = w.client.Delete(t.Context(), w.pool(t)) }, true},
		"kill switch":     {func(w *fixture) { w.flip(t, "true") }, false},
		"conflict":        {func(w *fixture) { w.parts.Referee.(claims)["web"] = "pool api selects the same nodes" }, true},
	} {
		w := newFixture(t, 1, interceptor.Funcs{})
		w.parts.Enforcer, w.parts.Referee = enforcer{w}, claims{}
		w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
			p, m := everything(s, m)
			p.Gates = []policy.Gate{{Budget: "ml/team", Closed: true}}
			return p, m
		}
		c := w.controller(t)
		decideOnly(t, c)
		if got := w.take(); len(got) != 0 {
			t.Errorf("%s: the step itself did %v", name, got)
		}
		x.turn(w)
		settle(t, c)
		var want []string
		if name == "nothing changes" {
			want = []string{"steer 0.5", "launch a", "launch b", "drain n000"}
		}
		if x.enforced {
			want = append(want, "gate ml/team")
		}
		if got := w.take(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		w.flip(t, "false")
		settle(t, c)
		if got := w.take(); len(got) != 0 {
			t.Errorf("%s: later it did %v", name, got)
		}
	}
}

// An enforcer records the calls that it receives.
type enforcer struct{ w *fixture }

func (e enforcer) Gate(ctx context.Context, _ *policy.Snapshot, x *policy.Gate) error {
	return e.w.call(ctx, "gate %s", x.Budget)
}

func (e enforcer) Pause(context.Context, *policy.Snapshot, *policy.Pause) error {
	return e.w.say("pause")
}

func (e enforcer) Evict(context.Context, *policy.Snapshot, *policy.Evict) error {
	return e.w.say("evict")
}

// TestWithdrawn: launches that have not started when the next step starts, and drains that may wait
// for them, are never made, and the ramp admits others again, even if that step plans none. The
// steer of the pool stays in force until another one comes.
func TestWithdrawn(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	w.decide = everything
	c := w.controller(t)
	decideOnly(t, c)
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		m.Decisions++
		return policy.Plan{Wake: s.Now + 1000}, m
	}
	w.take()
	step(t, c)
	if got := w.take(); !slices.Equal(got, []string{"steer 0.5"}) {
		t.Errorf("it did %v", got)
	}
	if moving := c.store.book("web").Ramp.Moving; len(moving) != 0 {
		t.Errorf("a drain that was withdrawn takes the place of others in the ramp: %v", moving)
	}
	w.decide = everything
	decideOnly(t, c)
	w.parts.Observer = nil
	c.parts.Observer = observerFunc(func(context.Context) (*policy.Snapshot, error) { return nil, errors.New("the watches are behind") })
	if _, err := c.step(t.Context(), nil); err == nil {
		t.Fatal("the step went through")
	}
	w.take()
	settle(t, c)
	if got := w.take(); !slices.Equal(got, []string{"steer 0.5"}) {
		t.Errorf("after a step that saw nothing it did %v", got)
	}
}

// TestLaunchUnderWay: a step waits two seconds for a launch that has begun. One that takes
// longer may be seen by the step or not: its pool launches nothing more, says why, and is
// looked at again soon.
func TestLaunchUnderWay(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		p, m := everything(s, m)
		p.Drains[0].After = []string{"a", "b"}
		return p, m
	}
	begun, let := make(chan struct{}), make(chan struct{})
	w.hang = func(_ context.Context, word string) {
		if word == "launch a" {
			begun <- struct{}{}
			<-let
		}
	}
	c := w.controller(t)
	decideOnly(t, c)
	carried := make(chan struct{})
	go func() { _, _ = c.executor.reconcilePool(t.Context(), "web"); close(carried) }()
	<-begun
	w.take()
	stepped := make(chan struct{})
	go func() { decideOnly(t, c); close(stepped) }()
	until(t, "the step waits", w.clock.HasWaiters)
	w.clock.Step(launchWait - time.Millisecond)
	select {
	case <-stepped:
		t.Fatal("it does not wait")
	case <-time.After(20 * time.Millisecond):
	}
	w.clock.Step(time.Millisecond)
	<-stepped
	if !c.publisher.soon {
		t.Error("no step follows soon")
	}
	w.hang = nil
	close(let)
	<-carried
	settle(t, c)
	if got := w.take(); count(got, "launch")+count(got, "drain") != 0 {
		t.Errorf("besides the launch that was under way it did %v", got)
	}
	if got := conditionReason(t, w, ConditionHeld); got != "LaunchUnderWay" {
		t.Errorf("held for %q", got)
	}
	step(t, c)
	if got := w.take(); count(got, "launch") != 2 || count(got, "drain") != 1 {
		t.Errorf("after it has ended the next step did %v", got)
	}
	if c.publisher.soon {
		t.Error("nothing is under way, and a step follows soon")
	}
}

// TestFailedIsTriedAgain: what failed is carried out again until it succeeds, and the pool
// says so no more then; what was held meanwhile still shows.
func TestFailedIsTriedAgain(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	w.decide = everything
	w.answer["steer 0.5"] = errors.New("500 from the API server")
	c := w.controller(t)
	decideOnly(t, c)
	if got := conditionReason(t, w, ConditionDegraded); got != "" {
		t.Errorf("before anything was tried it says %q", got)
	}
	w.take()
	if _, err := c.executor.reconcilePool(t.Context(), "web"); err == nil {
		t.Error("nobody is woken to try again")
	}
	settle(t, c)
	if got := w.take(); !slices.Equal(got, []string{"steer 0.5", "launch a", "launch b", "drain n000", "steer 0.5"}) {
		t.Errorf("it did %v", got)
	}
	if got := conditionReason(t, w, ConditionDegraded); got != "ActionFailed" {
		t.Errorf("the pool is degraded for %q", got)
	}
	delete(w.answer, "steer 0.5")
	settle(t, c)
	settle(t, c)
	if got := w.take(); !slices.Equal(got, []string{"steer 0.5"}) {
		t.Errorf("it did %v", got)
	}
	if got := conditionReason(t, w, ConditionDegraded); got != "" {
		t.Errorf("after it succeeded the pool is degraded for %q", got)
	}
}

// TestModeNotSeenYet: a step that sees a pool in another mode than the API server has now
// is followed by another at once, and not when its plan wakes.
func TestModeNotSeenYet(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	c := w.controller(t)
	due := func() time.Duration {
		t.Helper()
		at, err := c.step(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return at.Sub(w.clock.Now())
	}
	if got := due(); got < time.Minute {
		t.Errorf("the next step is due in %v", got)
	}
	w.mode(t, v1alpha1.ModeShadow)
	w.snapshot.Pools[0].Mode = policy.ModeActive
	if got := due(); got != soonRetry {
		t.Errorf("while the mode is not seen the next step is due in %v", got)
	}
	w.snapshot.Pools[0].Mode = policy.ModeShadow
	if got := due(); got < time.Minute {
		t.Errorf("once it is seen the next step is due in %v", got)
	}
}

// A tender notes what it is called with.
type tender chan *policy.Snapshot

func (c tender) Tend(_ context.Context, s *policy.Snapshot) error {
	c <- s
	return nil
}

// TestTend: backends are tended after each step, also while no pool is active, since what
// is ours may have to be taken back; each pool shows how far it may go now.
func TestTend(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	calls := make(tender, 1)
	w.parts.Tenders = []Tender{calls}
	c := w.controller(t)
	for _, x := range []struct {
		turn func()
		want policy.Mode
	}{
		{func() {}, policy.ModeActive},
		{func() { w.mode(t, v1alpha1.ModeShadow) }, policy.ModeShadow},
		{func() { w.mode(t, v1alpha1.ModeOff) }, policy.ModeOff},
		{func() { w.mode(t, v1alpha1.ModeActive); w.flip(t, "true") }, policy.ModeShadow},
	} {
		decideOnly(t, c)
		x.turn()
		again, err := c.executor.reconcileBackend(t.Context(), 0)
		if s := <-calls; err != nil || s.Pools[0].Mode != x.want || again.RequeueAfter != c.cfg.TendEvery {
			t.Errorf("tended with mode %v and again after %v (%v), want mode %v", s.Pools[0].Mode, again.RequeueAfter, err, x.want)
		}
	}
}

// A running is a controller that was started, in a bubble of its own where time passes
// while all wait.
func running(t *testing.T, w *fixture, during func(c *Controller)) {
	t.Helper()
	c := w.new(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	synctest.Wait()
	during(c)
	cancel()
	synctest.Wait()
	w.clock.Step(time.Hour) // what waits for the clock sees that all is over
	if err := <-done; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// second adds a pool that has nodes of its own.
func (w *fixture) second(t testing.TB) {
	t.Helper()
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "api"}, Spec: v1alpha1.CapacityPoolSpec{Mode: v1alpha1.ModeActive}}
	if err := w.client.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	other := w.snapshot.Pools[0]
	other.ID, other.Name = 1, "api"
	w.snapshot.Pools = append(w.snapshot.Pools, other)
}

// TestSlowBackend: a backend that hangs keeps neither the next step waiting, nor another
// pool, and its call is ended in the end.
func TestSlowBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, interceptor.Funcs{})
		w.second(t)
		w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
			m.Decisions++
			return policy.Plan{Wake: s.Now + 600_000, Steers: []policy.Steer{{Pool: 0, Share: 0.25}, {Pool: 1, Share: 0.75}}}, m
		}
		ended := make(chan error, 8)
		w.hang = func(ctx context.Context, word string) {
			if word == "steer 0.25" {
				<-ctx.Done()
				ended <- ctx.Err()
			}
		}
		running(t, w, func(c *Controller) {
			if got := w.take(); count(got, "steer") != 2 {
				t.Errorf("it did %v", got)
			}
			w.wakes <- "notice"
			synctest.Wait()
			if got := w.observed(); got != 2 {
				t.Errorf("while one call hangs %d steps were taken, want 2", got)
			}
			if got := w.take(); !slices.Equal(got, []string{"steer 0.75"}) {
				t.Errorf("it did %v", got)
			}
			time.Sleep(c.cfg.CallMax)
			synctest.Wait()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the call that hung ended with %v", err)
				}
			default:
				t.Error("the call that hangs goes on")
			}
		})
	})
}

// TestStepEnds: a step that an API server holds up is given up and taken again.
func TestStepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, interceptor.Funcs{})
		hangs := true
		w.parts.Observer = observerFunc(func(ctx context.Context) (*policy.Snapshot, error) {
			if hangs {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return w.Observe(ctx)
		})
		running(t, w, func(c *Controller) {
			time.Sleep(stepTimeout)
			hangs = false
			synctest.Wait()
			w.clock.Step(c.cfg.Retry)
			synctest.Wait()
			if got := w.observed(); got != 1 {
				t.Errorf("%d steps were taken after one that hung", got)
			}
		})
	})
}

// TestNoticeOvertakes: what is under notice is drained at once, while a step decides and
// while a hundred budgets are being enforced, and for one that a leader before has left
// before there is a first step.
func TestNoticeOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 3, interceptor.Funcs{})
		w.parts.Enforcer = enforcer{w}
		w.hang = func(_ context.Context, word string) {
			if strings.HasPrefix(word, "gate") {
				time.Sleep(180 * time.Millisecond) // 18 s for all of them
			}
		}
		deciding, decide := make(chan struct{}, 1), make(chan struct{})
		w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
			m.Decisions++
			p := policy.Plan{Wake: s.Now + 600_000}
			for i := range 100 {
				p.Gates = append(p.Gates, policy.Gate{Budget: fmt.Sprintf("ml/%d", i), Closed: true})
			}
			deciding <- struct{}{}
			<-decide
			return p, m
		}
		priced := make(chan struct{})
		w.parts.Priced = priced
		w.noticed = []drain.Noticed{{Node: "n000"}}
		running(t, w, func(c *Controller) {
			if got := w.take(); !slices.Equal(got, []string{"run", "notice n000"}) &&
				!slices.Equal(got, []string{"notice n000", "run"}) || w.observed() != 0 {
				t.Errorf("before there are prices it did %v in %d steps", got, w.observed())
			}
			close(priced)
			<-deciding
			w.noticed = []drain.Noticed{{Node: "n001"}}
			w.wakes <- "notice"
			synctest.Wait()
			if got := w.take(); !slices.Equal(got, []string{"notice n001"}) {
				t.Errorf("while the step decides it did %v", got)
			}
			decide <- struct{}{}
			<-deciding // the step that the notice requested
			w.noticed = []drain.Noticed{{Node: "n002"}}
			w.wakes <- "late-notice"
			synctest.Wait()
			if got := w.take(); count(got, "notice n002") != 1 || count(got, "gate") > 5 {
				t.Errorf("while budgets are enforced it did %v", got)
			}
			close(decide)
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := w.take(); count(got, "gate") < 95 {
				t.Errorf("in the end %d gates were set", count(got, "gate"))
			}
		})
	})
}

// TestStatusBetweenSteps: no step waits for a status that cannot be written yet. Of what
// waits the last is written, and what came of a plan shows without another step.
func TestStatusBetweenSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{})
		writes := 0
		w := newFixture(t, 1, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
				opts ...client.SubResourceUpdateOption) error {
				writes++
				<-turn
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		})
		running(t, w, func(c *Controller) {
			for _, reason := range []string{"DisruptionBudget", "Nominated"} {
				c.DrainEnded(drain.Result{Node: "n000", Pool: "web", Outcome: drain.OutcomeHeld, Reason: reason, Message: "not now"})
				w.wakes <- "notice"
				synctest.Wait()
			}
			if got := w.observed(); got != 3 || writes != 1 {
				t.Errorf("%d steps, %d writes begun", got, writes)
			}
			close(turn)
			synctest.Wait()
			if got := conditionReason(t, w, ConditionHeld); got != "Nominated" || writes != 2 {
				t.Errorf("held for %q after %d writes", got, writes)
			}
			c.DrainEnded(drain.Result{Node: "n000", Pool: "web", Outcome: drain.OutcomeDone})
			synctest.Wait()
			if got := conditionReason(t, w, ConditionHeld); got != "" {
				t.Errorf("held for %q though a drain has succeeded", got)
			}
		})
	})
}

// TestSwitchWakes: the kill switch is acted on within two seconds, with no step due.
func TestSwitchWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, interceptor.Funcs{})
		running(t, w, func(*Controller) {
			for i, value := range []string{"true", "false"} {
				w.flip(t, value)
				w.clock.Step(time.Second)
				synctest.Wait()
				if got := w.observed(); got != i+2 {
					t.Errorf("a second after the switch said %s there were %d steps", value, got)
				}
			}
			if got := conditionReason(t, w, ConditionStopped); got != "" {
				t.Errorf("stopped for %q", got)
			}
		})
	})
}
