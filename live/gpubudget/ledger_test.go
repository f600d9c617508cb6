package gpubudget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/gpubudget"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/nightly"
	"github.com/spotter-dev/spotter/test/testenv"
)

var start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

var noFuncs interceptor.Funcs

func newEnforcer(t testing.TB, clk *testingclock.FakeClock, c client.Client, enforcing bool) *Enforcer {
	t.Helper()
	cfg := DefaultConfig("spotter-system")
	cfg.Clock, cfg.Log, cfg.Enforcing = clk, slog.New(slog.DiscardHandler), func() bool { return enforcing }
	k, err := New(cfg, c, c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func fakeClient(t testing.TB, f interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithStatusSubresource(&v1alpha1.GPUBudget{}).WithInterceptorFuncs(f).Build()
}

func memory(name string, used int64) policy.BudgetMemory {
	return policy.BudgetMemory{Name: name, Used: used, Counted: policy.Time(start.UnixMilli()),
		Buckets: []policy.BudgetBucket{{Hour: policy.Time(start.UnixMilli()), Used: used, Cost: 7}}}
}

// save has an enforcer take what is remembered and write it.
func save(k *Enforcer, all ...policy.BudgetMemory) error {
	_ = k.Save(context.Background(), all)
	return k.Flush(context.Background())
}

func budgetObject(namespace, name string) *v1alpha1.GPUBudget {
	ten := 10.0
	return &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.GPUBudgetSpec{
		Quota: v1alpha1.Quota{GPUHours: &ten, WindowHours: 24},
	}}
}

// enforcedBudget returns a budget with an action and a gate.
func enforcedBudget(namespace, name string, action v1alpha1.EnforcementAction, gate v1alpha1.GateState) *v1alpha1.GPUBudget {
	b := budgetObject(namespace, name)
	b.Spec.Enforcement.Action, b.Status.Gate = action, gate
	return b
}

// tableOf returns the budgets of a snapshot.
func tableOf(objects ...*v1alpha1.GPUBudget) []policy.Budget {
	var all []policy.Budget
	for _, o := range objects {
		b, _ := Read(o)
		all = append(all, b)
	}
	return Table(all)
}

// TestRule14Ledger writes ledgers at the real API server and reads them back: each
// in an object of its own, at the version that is known, so that of two
// controllers one learns it.
func TestRule14Ledger(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	clk := testingclock.NewFakeClock(start)
	ns := env.Namespace(t)
	leader := func() *Enforcer {
		k := newEnforcer(t, clk, env.Client, false)
		k.cfg.Namespace = ns
		return k
	}
	first := leader()
	if got, err := first.Load(t.Context()); err != nil || len(got) > 0 {
		t.Fatalf("there are ledgers: %v %v", got, err)
	}
	both := []policy.BudgetMemory{memory(ns+"/a", 5), memory(ns+"/b", 6)}
	if err := save(first, both...); err != nil {
		t.Fatal(err)
	}
	second := leader()
	if got, err := second.Load(t.Context()); err != nil || !reflect.DeepEqual(got, both) {
		t.Fatalf("read back %v: %v", got, err)
	}
	both[1].Closed = true
	if err := save(second, both...); err != nil {
		t.Fatal(err)
	}
	both[1].Over = 1
	if err := save(first, both...); !apierrors.IsConflict(err) {
		t.Errorf("the first leader overwrites the second: %v", err)
	}
	if err := first.Save(t.Context(), both); !apierrors.IsConflict(err) {
		t.Errorf("the next step does not learn of the second leader: %v", err)
	}
	third := leader() // that has not read what is there
	if err := save(third, both...); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a leader that has not read: %v", err)
	}
	if err := env.Client.Create(t.Context(), budgetObject(ns, "a")); err != nil {
		t.Fatal(err)
	}
	if err := save(second); err != nil { // a is not valid at the moment, b is no more
		t.Fatal(err)
	}
	if got, err := leader().Load(t.Context()); err != nil || len(got) != 1 || got[0].Name != ns+"/a" {
		t.Errorf("left are %v: %v", got, err)
	}
}

// TestRule14LostAnswer loses the answer to a write that was done. It is not taken
// for another leader.
func TestRule14LostAnswer(t *testing.T) {
	lose := 0
	c := fakeClient(t, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			err := c.Update(ctx, o, opts...)
			if lose--; lose >= 0 && err == nil {
				return errors.New("timeout")
			}
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, o, opts...)
			if lose--; lose >= 0 && err == nil {
				return errors.New("timeout")
			}
			return err
		},
	})
	clk := testingclock.NewFakeClock(start)
	k := newEnforcer(t, clk, c, false)
	for i := range 3 {
		lose = 1
		m := memory("ml/a", int64(i))
		m.Over = policy.Time(i + 1)
		if err := save(k, m); err == nil {
			t.Fatal("a timeout is no error")
		}
		m.Over += 100
		if err := save(k, m); err != nil {
			t.Fatalf("after a lost answer: %v", err)
		}
	}
}

// TestSaveWaits keeps a ledger back of which only the use has changed, for a while
// and not beyond the end of the controller, and nothing else.
func TestSaveWaits(t *testing.T) {
	writes := 0
	count := interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, opts...)
		},
	}
	clk := testingclock.NewFakeClock(start)
	k := newEnforcer(t, clk, fakeClient(t, count), false)
	m := memory("ml/a", 1)
	saved := func(want int, what string) {
		t.Helper()
		if err := errors.Join(k.Save(t.Context(), []policy.BudgetMemory{m}),
			k.ledgers.saveAll(t.Context(), false)); err != nil || writes != want {
			t.Errorf("%s: %d writes, want %d: %v", what, writes, want, err)
		}
	}
	saved(1, "new")
	m.Used++
	saved(1, "used")
	clk.Step(time.Minute)
	saved(2, "used, a minute later")
	m.Closed = true
	saved(3, "closed")
	m.Asked = []policy.AskedPod{{Pod: "ml/p"}}
	saved(4, "asked")
	clk.Step(time.Hour)
	saved(4, "nothing changed")
	m.Used++
	saved(4, "used")
	if err := k.Flush(t.Context()); err != nil || writes != 5 {
		t.Errorf("flushed: %d writes: %v", writes, err)
	}
}

// TestLedgerBounds packs a year of hours without a pattern, and refuses what is
// broken or of a later version.
func TestLedgerBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := policy.BudgetMemory{Name: "ml/a"}
	for h := range 8785 {
		m.Buckets = append(m.Buckets, policy.BudgetBucket{Hour: policy.Time(start.UnixMilli()) + policy.Time(h*3_600_000),
			Used: r.Int64N(1 << 42), Cost: policy.Money(r.Int64N(1 << 36))})
	}
	data, err := pack(&m)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a year: %d bytes", len(data))
	if got, err := unpack(data); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("it comes back otherwise: %v", err)
	}
	for name, bad := range map[string][]byte{"nothing": nil, "cut short": data[:len(data)/2], "no gzip": []byte("{}")} {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "spotter-system", Name: ledgerName("ml/a"),
				Labels: map[string]string{ledgerLabel: "budget"}, Annotations: map[string]string{ledgerBudget: "ml/a"}},
			BinaryData: map[string][]byte{ledgerKey: bad},
		}
		k := newEnforcer(t, testingclock.NewFakeClock(start), fakeClient(t, noFuncs, object), false)
		if got, err := k.Load(t.Context()); err == nil {
			t.Errorf("%s is read as %v", name, got)
		}
	}
}

// TestLedgerOfAnotherBudget holds that a ledger is read only where its annotation and its
// name say whose it is.
func TestLedgerOfAnotherBudget(t *testing.T) {
	m := memory("ml/a", 5)
	data, err := pack(&m)
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string]string{ledgerBudget: "ml/a"}
	for name, x := range map[string]struct {
		object      string
		annotations map[string]string
		read        bool
	}{
		"its own":                   {ledgerName("ml/a"), mine, true},
		"annotation of another":     {ledgerName("ml/a"), map[string]string{ledgerBudget: "ml/b"}, false},
		"without an annotation":     {ledgerName("ml/a"), nil, false},
		"name of another":           {ledgerName("ml/b"), mine, false},
		"name and annotation alike": {ledgerName("ml/b"), map[string]string{ledgerBudget: "ml/b"}, false},
	} {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "spotter-system", Name: x.object,
				Labels: map[string]string{ledgerLabel: "budget"}, Annotations: x.annotations},
			BinaryData: map[string][]byte{ledgerKey: data},
		}
		got, err := newEnforcer(t, testingclock.NewFakeClock(start), fakeClient(t, noFuncs, object), false).Load(t.Context())
		if (err == nil) != x.read || x.read && !reflect.DeepEqual(got, []policy.BudgetMemory{m}) {
			t.Errorf("%s: it is read as %v, %v", name, got, err)
		}
	}
}

// A bystander is a policy that does nothing.
type bystander struct{}

func (bystander) Name() string { return "bystander" }

func (bystander) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	return policy.Plan{Wake: s.Now.Add(10 * time.Minute)}, m
}

// A workforce is pods that come and go, and what they truly used.
type workforce struct {
	r    *rand.Rand
	pods []policy.Pod
	next int
	used int64 // milliseconds
	now  policy.Time
}

// pass lets time go by in seconds and returns the pods that ended.
func (w *workforce) pass(d time.Duration) (ended []policy.EndedPod) {
	for end := w.now.Add(d); w.now < end; w.now += 1000 {
		for i := 0; i < len(w.pods); {
			w.used += 1000
			if w.r.Float64() < 1.0/3600 { // they live an hour
				p := w.pods[i]
				ended = append(ended, policy.EndedPod{Name: p.Name, Template: 0, Node: "n", Start: p.Bound, End: w.now + 1000})
				w.pods = append(w.pods[:i], w.pods[i+1:]...)
				continue
			}
			i++
		}
		for len(w.pods) < 40 {
			w.next++
			w.pods = append(w.pods, policy.Pod{Name: fmt.Sprint("ml/p", w.next), Phase: policy.PodReady, Node: 0, Bound: w.now + 1000})
		}
	}
	return ended
}

func (w *workforce) snapshot(ended []policy.EndedPod) *policy.Snapshot {
	return &policy.Snapshot{
		Now: w.now, Ended: ended, Pods: w.pods,
		Budgets: []policy.Budget{{Name: "ml/a", Namespace: "ml", Selector: policy.Selector{Everything: true},
			Resource: gpu, GPUHours: 1e6, HasGPUHours: true, Window: 1000 * time.Hour}},
		Templates: []policy.Template{{Namespace: "ml", Requests: policy.Resources{GPU: 1}, GPUResource: gpu, Workload: policy.None}},
		Nodes:     []policy.Node{{Name: "n", Market: policy.None, Pool: policy.None, Phase: policy.NodeInitialized}},
	}
}

// TestRule14Restarts kills the controller at random instants, an hour or two apart
// and for a quarter of a minute: what was deleted still counts, and of the
// device-hours at least 0.999 are in the ledger, and never more than there were.
func TestRule14Restarts(t *testing.T) {
	seed := testenv.Seed(t)
	w := &workforce{r: rand.New(rand.NewPCG(seed, 1)), now: policy.Time(start.UnixMilli())}
	clk := testingclock.NewFakeClock(start)
	c := fakeClient(t, noFuncs, budgetObject("ml", "a"))
	p := gpubudget.Around(bystander{}, gpubudget.DefaultConfig())
	var m policy.Memory
	k, restarts := newEnforcer(t, clk, c, false), 0
	for w.now < policy.Time(start.Add(time.Duration(nightly.Count(24, 48))*time.Hour).UnixMilli()) {
		ended := w.pass(time.Duration(5+w.r.IntN(55)) * time.Second)
		if w.r.IntN(150) == 0 {
			restarts++
			w.pass(time.Duration(5+w.r.IntN(20)) * time.Second) // pods that end meanwhile are not reported
			k, ended = newEnforcer(t, clk, c, false), nil
			loaded, err := k.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			m = policy.Memory{Budgets: loaded}
		}
		clk.SetTime(w.now.Std())
		_, m = p.Decide(w.snapshot(ended), m)
		if err := errors.Join(k.Save(t.Context(), m.Budgets), k.ledgers.saveAll(t.Context(), false)); err != nil {
			t.Fatal(err)
		}
	}
	share := float64(m.Budgets[0].Used) / 1000 / float64(w.used)
	t.Logf("%d restarts, %d pods, %.5f of %.1f device-hours", restarts, w.next, share, float64(w.used)/3.6e6)
	if restarts < 5 || math.IsNaN(share) || share < 0.999 || share > 1 {
		t.Errorf("the ledger holds %.5f after %d restarts", share, restarts)
	}
}
