package gpubudget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// writeCount counts what is written, and how much of it at a time.
type writeCount struct {
	mu              sync.Mutex
	ledgers, status int
	now, most       int
}

func (c *writeCount) one(n *int, f func() error) error {
	c.mu.Lock()
	*n++
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	time.Sleep(5 * time.Millisecond) // an answer takes as long
	defer func() { c.mu.Lock(); c.now--; c.mu.Unlock() }()
	return f()
}

func (c *writeCount) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.one(&c.ledgers, func() error { return w.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return c.one(&c.ledgers, func() error { return w.Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return c.one(&c.status, func() error { return w.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}
}

// TestFlood has a hundred budgets close their gates at once: the step that decides so
// writes nothing, each gate comes with its ledger before it and the whole status, and
// nothing is written twice.
func TestFlood(t *testing.T) {
	const n = 100
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}}
	snap := &policy.Snapshot{Now: policy.TimeOf(start)}
	var all []policy.BudgetMemory
	for i := range n {
		name := fmt.Sprintf("b%03d", i)
		b := budgetObject("ml", name)
		b.Spec.Selector.MatchLabels = label("budget", name)
		objects = append(objects, b)
		m := memory("ml/"+name, 20*3_600_000_000)
		m.Closed = true
		all = append(all, m)
		snap.Budgets = append(snap.Budgets, tableOf(b)...)
	}
	var count writeCount
	k := newEnforcer(t, testingclock.NewFakeClock(start), fakeClient(t, count.funcs(), objects...), true)
	wrote := func(what string, ledgers, status int, errs ...error) {
		t.Helper()
		must(t, errors.Join(errs...))
		if count.ledgers != ledgers || count.status != status {
			t.Errorf("%s: %d ledgers and %d statuses are written, want %d and %d", what, count.ledgers, count.status, ledgers, status)
		}
		count.ledgers, count.status = 0, 0
	}
	wrote("saved", 0, 0, k.Save(t.Context(), all))
	wrote("one gate", 1, 1, k.Gate(t.Context(), snap, &policy.Gate{Budget: "ml/b007", Closed: true}))
	wrote("reported", n-1, n-1, k.Report(t.Context(), snap))
	if count.most != 8 {
		t.Errorf("%d are written at a time, want %d", count.most, 8)
	}
	var gates []error
	for i := range all {
		gates = append(gates, k.Gate(t.Context(), snap, &policy.Gate{Budget: all[i].Name, Closed: true}))
	}
	wrote("all gates", 0, 0, gates...)
	wrote("reported again", 0, 0, k.Report(t.Context(), snap))
	for i := range snap.Budgets {
		snap.Pods = append(snap.Pods, policy.Pod{Name: fmt.Sprint("ml/", i), Phase: policy.PodReady, Bound: 1})
	}
	snap.Templates = []policy.Template{{Namespace: "ml", Labels: []policy.Label{{Key: "budget", Value: "b003"}},
		Requests: policy.Resources{GPU: 1}, GPUResource: gpu}}
	snap.Nodes = []policy.Node{{Name: "n", Market: policy.None, Pool: policy.None}}
	snap.Now = snap.Now.Add(30 * time.Second)
	wrote("figures changed within the minute", 0, 0, k.Report(t.Context(), snap))
	snap.Now = snap.Now.Add(30 * time.Second)
	wrote("figures changed", 0, 1, k.Report(t.Context(), snap))
}

// TestSavedBeforeDone: what is enforced for a budget waits for its ledger, and does not
// happen where that cannot be written.
func TestSavedBeforeDone(t *testing.T) {
	for name, do := range map[string]func(*struck) error{
		"gate": func(x *struck) error {
			return x.enforcer.Gate(t.Context(), x.snap, &policy.Gate{Budget: "ml/b", Closed: true})
		},
		"pause": func(x *struck) error {
			return x.enforcer.Pause(t.Context(), x.snap, &policy.Pause{Budget: "ml/b", Paused: true})
		},
		"evict": func(x *struck) error { return x.enforcer.Evict(t.Context(), x.snap, &policy.Evict{Budget: "ml/b"}) },
	} {
		x := newStruck(t)
		if action := map[string]v1alpha1.EnforcementAction{"pause": v1alpha1.EnforcePause, "evict": v1alpha1.EnforceEvict}[name]; action != "" {
			x.enforce(t, action)
		}
		must(t, x.enforcer.Save(t.Context(), []policy.BudgetMemory{x.memory}))
		x.verb, x.err, x.left = "create", errors.New("etcd is full"), 1
		if err := do(x); !errors.Is(err, x.err) {
			t.Errorf("%s without a ledger: %v", name, err)
		}
		if name == "gate" {
			gateIs(t, x, "")
		}
		must(t, do(x))
		if _, err := newEnforcer(t, testingclock.NewFakeClock(start), x.WithWatch, true).Load(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestGivesUp: who waits for ledgers to be written gives up with its context.
func TestGivesUp(t *testing.T) {
	x := newStruck(t)
	must(t, x.enforcer.Save(t.Context(), []policy.BudgetMemory{x.memory}))
	done, err := x.enforcer.ledgers.lock(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.enforcer.Gate(ctx, x.snap, &policy.Gate{Budget: "ml/b", Closed: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if err := x.enforcer.Save(t.Context(), []policy.BudgetMemory{x.memory}); err != nil {
		t.Errorf("a step waits for ledgers: %v", err)
	}
	done()
	must(t, x.enforcer.Gate(t.Context(), x.snap, &policy.Gate{Budget: "ml/b", Closed: true}))
}
