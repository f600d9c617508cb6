package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

func (w *fixture) pool(t testing.TB) *v1alpha1.CapacityPool {
	t.Helper()
	var p v1alpha1.CapacityPool
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: "web"}, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func (w *fixture) condition(t testing.TB, kind string) metav1.Condition {
	t.Helper()
	x := meta.FindStatusCondition(w.pool(t).Status.Conditions, kind)
	if x == nil {
		return metav1.Condition{}
	}
	return *x
}

// TestLoop steps when it starts, when the plan wakes, at once on a notice, again
// after a failure and with more patience each time, and settles drains in the end.
func TestLoop(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	c := w.new(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	steps := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.seen)
	}
	until(t, "the first step is taken", func() bool { return steps() == 1 })
	for steps() == 1 {
		w.clock.Step(time.Second)
		time.Sleep(2 * time.Millisecond)
	}
	if second := w.seen[1].Std(); second.Before(t0.Add(10 * time.Minute)) {
		t.Errorf("the plan wakes at %v and the second step is at %v", t0.Add(10*time.Minute), second)
	}
	w.wakes <- "notice"
	until(t, "the notice has its step", func() bool { return steps() == 3 })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("asked to end it returns %v", err)
	}
	if got := w.take(); !slices.Equal(got, []string{"run", "shutdown"}) {
		t.Errorf("it did %v", got)
	}
}

// TestRetries waits longer after each failure, at most RetryMax, and as usual after
// a step that went through.
func TestRetries(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	fails := 4
	w.parts.Observer = observerFunc(func(ctx context.Context) (*policy.Snapshot, error) {
		s, err := w.Observe(ctx)
		if fails--; fails >= 0 {
			return nil, errors.New("the watches are behind")
		}
		return s, err
	})
	w.cfg.RetryMax = 20 * time.Second
	c := w.new(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	for {
		w.mu.Lock()
		n := len(w.seen)
		w.mu.Unlock()
		if n == 5 {
			break
		}
		w.clock.Step(time.Second)
		time.Sleep(2 * time.Millisecond)
	}
	cancel()
	<-done
	for i, least := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 20 * time.Second} {
		if gap := w.seen[i+1].Sub(w.seen[i]); gap < least || gap > least+15*time.Second {
			t.Errorf("retry %d comes after %v, want %v", i+1, gap, least)
		}
	}
}

type observerFunc func(context.Context) (*policy.Snapshot, error)

func (f observerFunc) Observe(ctx context.Context) (*policy.Snapshot, error) { return f(ctx) }

// TestPanickingPolicy obeys notices and touches nothing else, keeps the snapshot, reports the
// panic, and uses a new policy at the next step.
func TestPanickingPolicy(t *testing.T) {
	w := newFixture(t, 2, interceptor.Funcs{})
	w.snapshot.Nodes[1].ReclaimAt = policy.TimeOf(t0.Add(2 * time.Minute))
	made := 0
	w.parts.Policy = func([]string) (policy.Policy, error) { made++; return w, nil }
	kept := &keeps{}
	w.parts.Panics = kept
	w.decide = func(s *policy.Snapshot, _ policy.Memory) (policy.Plan, policy.Memory) {
		panic(fmt.Sprintf("no market at %v", s.Now))
	}
	c := w.controller(t)
	c.memory.Decisions = 0
	w.take()
	step(t, c)
	if got := w.take(); !slices.Equal(got, []string{"drain n001"}) {
		t.Errorf("it did %v, want the node under notice emptied and nothing else", got)
	}
	if kept.steps != 1 || kept.plan.Drains == nil {
		t.Errorf("%d snapshots are kept", kept.steps)
	}
	if x := w.condition(t, ConditionDegraded); x.Status != "True" || x.Reason != "PolicyPanicked" ||
		!strings.Contains(x.Message, "no market at 2026") {
		t.Errorf("condition %+v", x)
	}
	if x := w.condition(t, ConditionReady); x.Status != "False" || x.Reason != ConditionDegraded {
		t.Errorf("condition %+v", x)
	}
	w.decide = drains
	step(t, c)
	if made != 2 {
		t.Errorf("the policy was made %d times, want anew after it panicked", made)
	}
	if x := w.condition(t, ConditionDegraded); x.Status != "False" {
		t.Errorf("condition %+v", x)
	}
	if c.memory.Decisions != 2 {
		t.Errorf("%d decisions are counted, want both", c.memory.Decisions)
	}
}

type keeps struct {
	steps int
	plan  policy.Plan
}

func (k *keeps) Record(_ context.Context, _ *policy.Snapshot, _ *policy.Memory, p *policy.Plan) error {
	k.steps++
	k.plan = *p
	return nil
}

// TestPolicyOfPools makes the policy for what the pools name, leaves out what cannot
// be made and says so on the pool.
func TestPolicyOfPools(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	var asked [][]string
	w.parts.Policy = func(named []string) (policy.Policy, error) {
		asked = append(asked, named)
		if slices.Contains(named, "nonsense") {
			return nil, errors.New(`unknown policy "nonsense"`)
		}
		return w, nil
	}
	c := w.controller(t)
	w.snapshot.Pools[0].Policy = "nonsense"
	step(t, c)
	if x := w.condition(t, ConditionPolicyInvalid); x.Status != "True" || !strings.Contains(x.Message, "nonsense") {
		t.Errorf("condition %+v", x)
	}
	n := len(asked)
	step(t, c)
	if len(asked) != n {
		t.Error("it is made anew though the pools name the same")
	}
	w.snapshot.Pools[0].Policy = "static"
	step(t, c)
	if x := w.condition(t, ConditionPolicyInvalid); x.Status != "False" || !slices.Equal(asked[len(asked)-1], []string{"static"}) {
		t.Errorf("asked %v, condition %+v", asked, x)
	}
}

// TestResults separates a hold from a refusal from a failure.
func TestResults(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	w.decide = everything
	w.answer["steer 0.5"] = backend.Hold("TooSoon", "the last write is 3 minutes old")
	w.answer["launch a"] = fmt.Errorf("spot: %w", driver.ErrNoCapacity)
	c := w.controller(t)
	step(t, c)
	if x := w.condition(t, ConditionHeld); x.Status != "True" || x.Reason != "TooSoon" || x.Message != "the last write is 3 minutes old" {
		t.Errorf("condition %+v", x)
	}
	if x := w.condition(t, ConditionDegraded); x.Status == "True" {
		t.Errorf("a refusal is no fault: %+v", x)
	}
	w.answer["launch b"] = errors.New("500 from the API server")
	step(t, c)
	if x := w.condition(t, ConditionDegraded); x.Status != "True" || x.Reason != "ActionFailed" || !strings.Contains(x.Message, "500") {
		t.Errorf("condition %+v", x)
	}
}

// TestMissingBackend holds what no backend can carry out.
func TestMissingBackend(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	w.decide, w.parts.Backends = drains, nil
	c := w.controller(t)
	w.take()
	step(t, c)
	if got := w.take(); len(got) != 0 {
		t.Errorf("it did %v", got)
	}
	if x := w.condition(t, ConditionHeld); x.Status != "True" || x.Reason != "BackendMissing" {
		t.Errorf("condition %+v", x)
	}
}

// TestStatus writes what is held, at once when a condition changes and else only now
// and then, and never the same twice.
func TestStatus(t *testing.T) {
	writes := 0
	w := newFixture(t, 2, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	w.snapshot.Nodes[1].Market = 1
	c := w.controller(t)
	step(t, c)
	st := w.pool(t).Status
	if st.Nodes != 2 || st.SpotNodes != 1 || st.OnDemandNodes != 1 || st.SpotShare != "50%" || st.SavingsPerHour != "$0.06" ||
		st.LastDecisionID != "2026-03-02T08:00:00.000Z" || st.ObservedGeneration != 3 || len(st.SelectedMarkets) != 2 {
		t.Errorf("status %+v", st)
	}
	for range 5 {
		w.clock.Step(time.Second)
		step(t, c)
	}
	if writes != 1 {
		t.Errorf("%d writes of a status that did not change", writes)
	}
	w.snapshot.Nodes[0].Market = 1
	step(t, c)
	if writes != 1 {
		t.Errorf("%d writes within a minute of figures that changed", writes)
	}
	w.clock.Step(time.Minute)
	step(t, c)
	if writes != 2 || w.pool(t).Status.SpotShare != "100%" {
		t.Errorf("%d writes after a minute, share %s", writes, w.pool(t).Status.SpotShare)
	}
	w.clock.Step(time.Minute)
	step(t, c)
	if writes != 2 {
		t.Errorf("%d writes, the last of what had not changed", writes)
	}
	w.snapshot.Sources = []policy.Source{
		{Name: "aws-offerings", At: policy.TimeOf(t0.Add(-2 * time.Hour))},
		{Name: "aws-spot-prices", Prices: true, At: policy.TimeOf(t0.Add(-2 * time.Hour))},
	}
	step(t, c)
	x := w.condition(t, ConditionPricesStale)
	if writes != 3 || x.Status != "True" || !strings.Contains(x.Message, "aws-spot-prices") {
		t.Errorf("%d writes, condition %+v", writes, x)
	}
}

// TestStatusOfGoneObject survives pools that are deleted, or changed by others,
// while their status is written.
func TestStatusOfGoneObject(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	c := w.controller(t)
	if err := w.client.Delete(context.Background(), w.pool(t)); err != nil {
		t.Fatal(err)
	}
	step(t, c)
}

func (w *fixture) flip(t testing.TB, value string) {
	t.Helper()
	ctx := context.Background()
	x := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.cfg.Namespace, Name: w.cfg.KillSwitch}}
	if err := client.IgnoreNotFound(w.client.Delete(ctx, x.DeepCopy())); err != nil {
		t.Fatal(err)
	}
	if value == "" {
		return
	}
	x.Annotations = map[string]string{KillSwitchAnnotation: value}
	if err := w.client.Create(ctx, x); err != nil {
		t.Fatal(err)
	}
}

// TestRule20KillSwitch stops everything, reports what was undone and what was left, and resumes
// only when the switch says so: while its object is lost, nothing changes.
func TestRule20KillSwitch(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.decide = drains
	w.snapshot.Nodes[2].ReclaimAt = policy.TimeOf(t0.Add(time.Minute))
	c := w.controller(t)
	for _, x := range []struct {
		value   string
		stopped bool
		want    []string
		why     string
	}{
		{"", false, []string{"drain n002", "drain n000"}, "without a switch all goes its way"},
		{"false", false, []string{"drain n002", "drain n000"}, "so it does with a switch that is off"},
		{"true", true, nil, "switched on, nothing is begun"},
		{"true", true, nil, "it stays so"},
		{"", true, nil, "an object that is lost changes nothing"},
		{"perhaps", true, nil, "nor does one that says neither"},
		{"false", false, []string{"drain n002", "drain n000"}, "switched off, it goes on, one node first"},
		{"", false, []string{"drain n002", "drain n000"}, "an object that is lost changes nothing here either"},
	} {
		w.flip(t, x.value)
		decideOnly(t, c)
		if x.stopped {
			c.DrainEnded(drain.Result{Node: "n001", Pool: "web", Outcome: drain.OutcomeUndone, Reason: "Stopped"})
			w.draining = []drain.Status{{Node: "n002", Phase: drain.PhaseReleased}}
		}
		settle(t, c)
		if got := w.take(); !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", x.why, got, x.want)
		}
		if got := w.condition(t, ConditionStopped); (got.Status == "True") != x.stopped {
			t.Errorf("%s: condition %+v", x.why, got)
		} else if x.stopped && (!strings.Contains(got.Message, "undone: n001") || !strings.Contains(got.Message, "left: n002 (released)")) {
			t.Errorf("%s: it does not say what became of the drains: %s", x.why, got.Message)
		}
	}
}

// TestRule20KillSwitchSurvives keeps a new leader stopped though the object of the
// switch is gone by then.
func TestRule20KillSwitchSurvives(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.decide = drains
	w.flip(t, "true")
	step(t, w.controller(t))
	w.flip(t, "")
	step(t, w.controller(t))
	if got := w.take(); len(got) != 0 {
		t.Errorf("the next leader did %v", got)
	}
	if got := w.condition(t, ConditionStopped); got.Status != "True" ||
		!strings.Contains(got.Message, "does not exist, so its last known value applies") {
		t.Errorf("condition %+v", got)
	}
}

// TestSwitchUnreadable: while the kill switch cannot be read nothing is begun, the
// condition Stopped says why, and the log says it once. It does not count as turned on.
func TestSwitchUnreadable(t *testing.T) {
	var broken error
	var w *fixture
	w = newFixture(t, 3, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == w.cfg.KillSwitch && broken != nil {
				return broken
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	var log bytes.Buffer
	w.parts.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.decide = drains
	w.flip(t, "false")
	c := w.controller(t)
	for _, err := range apiErrors() {
		broken = err
		w.clock.Step(w.cfg.StatusEvery)
		step(t, c)
		if got := w.take(); len(got) != 0 {
			t.Errorf("%v: it did %v", err, got)
		}
		got := w.condition(t, ConditionStopped)
		if got.Status != "True" || got.Reason != "KillSwitchUnreadable" || !strings.Contains(got.Message, "cannot be read: "+err.Error()) {
			t.Errorf("%v: condition %+v", err, got)
		}
	}
	if n := strings.Count(log.String(), "the kill switch changed"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	broken = nil
	step(t, c)
	if got := w.take(); len(got) == 0 {
		t.Error("it does not continue once the switch can be read")
	}
	if got := w.condition(t, ConditionStopped); got.Status != "False" || c.store.head.Stopped {
		t.Errorf("condition %+v, remembered %t", got, c.store.head.Stopped)
	}
}

// A slowFixture has to read the cluster before it may be observed.
type slowFixture struct {
	*fixture
	asked, there chan struct{}
}

func (w *slowFixture) Await(ctx context.Context) error {
	close(w.asked)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.there:
		return nil
	}
}

// TestAwaitCluster: the first step starts once the cluster has been read, and a process that must
// stop before then stops.
func TestAwaitCluster(t *testing.T) {
	for _, read := range []bool{true, false} {
		w := newFixture(t, 1, interceptor.Funcs{})
		slow := &slowFixture{fixture: w, asked: make(chan struct{}), there: make(chan struct{})}
		w.parts.Observer = slow
		c := w.new(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Start(ctx) }()
		<-slow.asked
		if got := w.observed(); got != 0 {
			t.Fatal("the cluster is observed before it was read")
		}
		if read {
			close(slow.there)
			until(t, "it steps", func() bool { return w.observed() == 1 })
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := w.observed(); !read && got != 0 {
			t.Error("a process that is to end takes a step")
		}
	}
}

func (w *fixture) observed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// TestSavedBeforeTheEnd: at the end what is remembered is saved first, so that drains may
// use all of the time that is left.
func TestSavedBeforeTheEnd(t *testing.T) {
	var w *fixture
	w = newFixture(t, 3, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if o.GetLabels()[memoryLabel] == memoryBook {
				w.say("save")
			}
			return c.Update(ctx, o, opts...)
		},
	})
	c := w.controller(t)
	step(t, c)
	w.take()
	c.store.book("web").Savings.Total.Paid = 42
	c.shutDown(t.Context())
	if got := w.take(); !slices.Equal(got, []string{"save", "shutdown"}) {
		t.Errorf("asked to end it did %v", got)
	}
}

// TestWorkerEnds: a background worker that ends, with an error or without, ends the
// process in an orderly way, and the probe of its health fails.
func TestWorkerEnds(t *testing.T) {
	for _, failure := range []error{errors.New("no more notices"), nil} {
		w := newFixture(t, 1, interceptor.Funcs{})
		broken := make(chan struct{})
		w.parts.Workers = append(w.parts.Workers, func(ctx context.Context) error {
			select {
			case <-broken:
				return failure
			case <-ctx.Done():
				return nil
			}
		})
		c := w.new(t)
		done := make(chan error)
		go func() { done <- c.Start(t.Context()) }()
		until(t, "it steps", func() bool { return w.observed() > 0 })
		if err := c.Healthy(nil); err != nil {
			t.Errorf("it is not healthy: %v", err)
		}
		close(broken)
		if err := <-done; !errors.As(err, new(*workerError)) || failure != nil && !errors.Is(err, failure) {
			t.Errorf("it ends with %v, want %v", err, failure)
		}
		if c.Healthy(nil) == nil {
			t.Error("it is healthy without its worker")
		}
		if !slices.Contains(w.take(), "shutdown") {
			t.Error("it does not finish drains at its end")
		}
	}
}

// TestHungStep: a policy that does not return ends the process within a bound, which gives
// up the lease; what it does when it returns after all is fenced.
func TestHungStep(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	deciding, forever := make(chan struct{}), make(chan struct{})
	defer close(forever)
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		close(deciding)
		<-forever
		return policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m
	}
	c := w.new(t)
	done := make(chan error)
	go func() { done <- c.Start(t.Context()) }()
	<-deciding
	w.clock.Step(c.cfg.StepHung - 1)
	select {
	case err := <-done:
		t.Fatalf("it ends early: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	w.clock.Step(1)
	if err := <-done; !errors.Is(err, errHung) {
		t.Errorf("it ends with %v", err)
	}
	if err := c.Healthy(nil); !errors.Is(err, errHung) {
		t.Errorf("its health is %v", err)
	}
}

// TestShutdownWithoutLease: a replica that has lost the lease neither saves what it
// remembers nor touches drains at its end.
func TestShutdownWithoutLease(t *testing.T) {
	for _, holder := range []string{"replica-a", "replica-b"} {
		w := newFixture(t, 1, interceptor.Funcs{})
		kube := kubefake.NewClientset(&coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.cfg.Namespace, Name: LeaseName},
			Spec:       coordination.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: w.clock.Now()}},
		})
		w.parts.Lease = &Lease{client: kube.CoordinationV1(), duration: 15 * time.Second, margin: 5 * time.Second,
			clock: w.clock, lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: w.cfg.Namespace,
					Name: LeaseName}, LockConfig: resourcelock.ResourceLockConfig{Identity: "replica-a"},
			}}
		c := w.controller(t)
		w.take()
		c.shutDown(t.Context())
		if got, leads := w.take(), holder == "replica-a"; slices.Contains(got, "shutdown") != leads {
			t.Errorf("while %s leads it did %v", holder, got)
		}
	}
}
