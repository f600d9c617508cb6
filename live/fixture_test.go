package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/metrics"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// t0 is when every test starts.
var t0 = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// A fixture is what a controller meets in a test: a snapshot that the test changes, a
// policy that it gives, and backends that note what they are asked.
type fixture struct {
	mu       sync.Mutex
	clock    *clocktesting.FakeClock
	snapshot policy.Snapshot
	decide   func(*policy.Snapshot, policy.Memory) (policy.Plan, policy.Memory)
	said     []string
	seen     []policy.Time // when the fixture was observed
	answer   map[string]error
	draining []drain.Status
	fence    func(context.Context) error // nil holds the lease
	noticed  []drain.Noticed
	key      []byte                                 // that marks of drains are sealed with
	hang     func(ctx context.Context, word string) // called as a backend is; nil returns at once

	client client.WithWatch
	wakes  chan string
	parts  Parts
	cfg    Config
}

// newFixture returns a fixture with one active pool on Karpenter of n nodes on demand.
func newFixture(t testing.TB, n int, funcs interceptor.Funcs) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 3},
		Spec: v1alpha1.CapacityPoolSpec{Mode: v1alpha1.ModeActive}}
	w := &fixture{
		clock: clocktesting.NewFakeClock(t0), wakes: make(chan string, 16), answer: map[string]error{}, cfg: DefaultConfig(),
		client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).WithStatusSubresource(pool,
			&v1alpha1.SpotPlan{}).WithInterceptorFuncs(funcs).Build(),
	}
	w.cfg.Mode, w.cfg.LeaderElect, w.cfg.Identity = policy.ModeActive, false, "replica-a"
	w.snapshot = snapshotOf(n)
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Config{Compat: metrics.Systems})
	if err != nil {
		t.Fatal(err)
	}
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		m.Decisions++
		return policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m
	}
	w.parts = Parts{
		Observer: w, Wakes: w.wakes, Drains: w, Backends: map[policy.Provisioner]backend.Backend{policy.ProvisionerKarpenter: w},
		Policy: func([]string) (policy.Policy, error) { return w, nil },
		Client: w.client, Reader: w.client, Events: events.NewFakeRecorder(100), Clock: w.clock, Log: slog.New(slog.DiscardHandler), Metrics: m,
	}
	return w
}

// snapshotOf returns a cluster with one pool, one type and two markets: $0.10 on
// demand and $0.04 on spot.
func snapshotOf(n int) policy.Snapshot {
	s := policy.Snapshot{
		Types: []policy.InstanceType{{Name: "m5.large", Family: "m5", VCPU: 2,
			Allocatable: policy.Resources{CPU: 2000, Memory: 8 << 30, Pods: 29}}},
		Zones: []string{"use1-az1"},
		Markets: []policy.Market{
			{ID: 0, Name: "aws/us-east-1/use1-az1/m5.large/on-demand", Provider: "aws", Offered: true, Price: 100_000, OnDemand: 100_000},
			{ID: 1, Name: "aws/us-east-1/use1-az1/m5.large/spot", Provider: "aws", Capacity: policy.Spot, Offered: true,
				Price: 40_000, OnDemand: 100_000},
		},
		Pools: []policy.Pool{{
			Name: "web", Provisioner: policy.ProvisionerKarpenter, Mode: policy.ModeActive, Markets: []policy.MarketID{0,
				1}, Share: policy.ShareRange{Max: 1},
		}},
	}
	for i := range n {
		s.Nodes = append(s.Nodes, policy.Node{
			ID: policy.NodeID(i), Name: fmt.Sprintf("n%03d", i), Pool: 0, Market: 0, Phase: policy.NodeInitialized,
			Allocatable: s.Types[0].Allocatable, Launched: policy.TimeOf(t0.Add(-time.Hour)),
		})
	}
	return s
}

// new makes a controller of the fixture, with an authority that reads again at each check.
func (w *fixture) new(t testing.TB) *Controller {
	t.Helper()
	may := permit.DefaultConfig()
	may.Mode, may.Namespace, may.KillSwitch, may.Fresh, may.Clock = w.cfg.Mode, w.cfg.Namespace, w.cfg.KillSwitch, 0, w.clock
	if w.fence != nil {
		may.Fence = func(ctx context.Context) (time.Time, error) { return time.Time{}, w.fence(ctx) }
	}
	if w.parts.Referee != nil {
		may.Conflicts = w.parts.Referee.Conflicts
	}
	w.parts.Authority = permit.New(may, w.parts.Reader)
	c, err := New(w.cfg, w.parts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// controller makes a controller of the fixture, and takes over.
func (w *fixture) controller(t testing.TB) *Controller {
	t.Helper()
	c := w.new(t)
	if err := c.takeOver(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

// drains returns a plan that drains every live node, cheaper by six cents each.
func drains(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	m.Decisions++
	p := policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Live() {
			p.Drains = append(p.Drains, policy.Drain{Node: n.ID, Why: policy.Why{Reason: policy.ReasonCheaper, Before: 100_000, After: 40_000}})
		}
	}
	return p, m
}

// everything returns a plan that steers, launches twice and drains.
func everything(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	p, m := drains(s, m)
	p.Steers = []policy.Steer{{Share: 0.5}}
	for _, token := range []string{"a", "b"} {
		p.Launches = append(p.Launches, policy.Launch{Token: token, Replaces: policy.None, Markets: []policy.MarketID{1}})
	}
	return p, m
}

// take forgets and returns what was said.
func (w *fixture) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := w.said
	w.said = nil
	return said
}

func (w *fixture) say(format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	word := fmt.Sprintf(format, args...)
	w.said = append(w.said, word)
	return w.answer[word]
}

// call is say of what may take its time.
func (w *fixture) call(ctx context.Context, format string, args ...any) error {
	err := w.say(format, args...)
	if w.hang != nil {
		w.hang(ctx, fmt.Sprintf(format, args...))
	}
	return err
}

// count returns how many entries of said start with word.
func count(said []string, word string) int {
	n := 0
	for _, x := range said {
		if len(x) >= len(word) && x[:len(word)] == word {
			n++
		}
	}
	return n
}

func (w *fixture) Observe(context.Context) (*policy.Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.snapshot
	s.Nodes = slices.Clone(s.Nodes)
	s.Pools = slices.Clone(s.Pools)
	s.Now = policy.TimeOf(w.clock.Now())
	w.seen = append(w.seen, s.Now)
	return &s, nil
}

func (w *fixture) Name() string { return "test" }

func (w *fixture) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	return w.decide(s, m)
}

func (w *fixture) Steer(ctx context.Context, _ *policy.Snapshot, x *policy.Steer) error {
	return w.call(ctx, "steer %v", x.Share)
}

func (w *fixture) Launch(ctx context.Context, _ *policy.Snapshot, x *policy.Launch) error {
	return w.call(ctx, "launch %s", x.Token)
}

func (w *fixture) Start(_ context.Context, s *policy.Snapshot, x *policy.Drain) error {
	return w.say("drain %s", s.Nodes[x.Node].Name)
}

func (w *fixture) Hurry(*policy.Snapshot) {}

func (w *fixture) Trust(key []byte) { w.key = key }

func (w *fixture) Status() []drain.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.draining
}

func (w *fixture) Run(ctx context.Context) error {
	w.say("run")
	<-ctx.Done()
	return nil
}

func (w *fixture) Notice(x drain.Noticed) { w.say("notice %s", x.Node) }

func (w *fixture) Notices(context.Context) ([]drain.Noticed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.noticed, nil
}

func (w *fixture) Shutdown(context.Context) (drain.Settled, error) {
	return drain.Settled{}, w.say("shutdown")
}

func (w *fixture) Prepare(context.Context, *corev1.Node) error { return nil }

func (w *fixture) Replaced(context.Context, []string) (backend.Replacement, error) {
	return backend.ReplacementReady, nil
}

func (w *fixture) Release(context.Context, *corev1.Node) error        { return nil }
func (w *fixture) Undo(context.Context, *corev1.Node, []string) error { return nil }
func (w *fixture) Settle(context.Context, []string) error             { return nil }

// step takes one step and fails the test when it fails.
func step(t testing.TB, c *Controller) {
	t.Helper()
	decideOnly(t, c)
	settle(t, c)
}

// decideOnly takes one step and leaves undone what it published.
func decideOnly(t testing.TB, c *Controller) {
	t.Helper()
	if _, err := c.step(context.Background(), []string{"test"}); err != nil {
		t.Fatal(err)
	}
}

// settle runs all reconcilers once, as they would be after a step: what fails shows in
// the status of the pool.
func settle(t testing.TB, c *Controller) {
	t.Helper()
	ctx := context.Background()
	for of := range maps.Clone(c.table.intents) {
		if of.pool != "" {
			_, _ = c.executor.reconcilePool(ctx, of.pool)
		}
	}
	for of := range maps.Clone(c.table.intents) {
		if of.budget != "" {
			_, _ = c.executor.reconcileBudget(ctx, of.budget)
		}
	}
	_, _ = c.executor.reconcileBudget(ctx, "")
	for i := range c.parts.Tenders {
		_, _ = c.executor.reconcileBackend(ctx, i)
	}
	for _, pool := range slices.Sorted(maps.Keys(c.table.reports)) {
		if _, err := c.reporter.reconcile(ctx, pool); err != nil {
			t.Fatal(err)
		}
	}
}

// mode sets that of the pool.
func (w *fixture) mode(t testing.TB, m v1alpha1.Mode) {
	t.Helper()
	p := w.pool(t)
	p.Spec.Mode = m
	if err := w.client.Update(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.snapshot.Pools[0].Mode = map[v1alpha1.Mode]policy.Mode{v1alpha1.ModeActive: policy.ModeActive,
		v1alpha1.ModeApprove: policy.ModeActive, v1alpha1.ModeShadow: policy.ModeShadow, v1alpha1.ModeOff: policy.ModeOff}[m]
}
