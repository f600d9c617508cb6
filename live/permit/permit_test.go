package permit

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A bench is an authority over a fake API server.
type bench struct {
	*Authority
	client client.WithWatch
	clock  *clocktesting.FakePassiveClock
	reads  int
	broken error

	// list and get are called before the pools and the switch are read; nil does nothing.
	list, get func(context.Context) error
	lease     error // of reading the leases of other releases
}

func newBench(t *testing.T, mode policy.Mode, change func(*Config)) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &bench{clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))}
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.CapacityPoolSpec{Mode: v1alpha1.ModeActive}}
	kill := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "spotter", Name: "switch",
		Annotations: map[string]string{KillSwitchAnnotation: "false"}}}
	b.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool, kill).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			b.reads++
			if b.broken != nil {
				return b.broken
			}
			if b.list != nil {
				if err := b.list(ctx); err != nil {
					return err
				}
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*coordinationv1.Lease); is && b.lease != nil {
				return b.lease
			}
			if _, is := o.(*corev1.ConfigMap); is && b.get != nil {
				if err := b.get(ctx); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	cfg := DefaultConfig()
	cfg.Mode, cfg.Namespace, cfg.KillSwitch, cfg.Clock = mode, "spotter", "switch", b.clock
	if change != nil {
		change(&cfg)
	}
	b.Authority = New(cfg, b.client)
	return b
}

func (b *bench) setMode(t *testing.T, m v1alpha1.Mode) {
	t.Helper()
	var p v1alpha1.CapacityPool
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Mode = m
	if err := b.client.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) setSwitch(t *testing.T, value string) {
	t.Helper()
	var x corev1.ConfigMap
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "spotter", Name: "switch"}, &x); err != nil {
		t.Fatal(err)
	}
	x.Annotations[KillSwitchAnnotation] = value
	if err := b.client.Update(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) wants(ctx context.Context, t *testing.T, want Decision) {
	t.Helper()
	b.clock.SetTime(b.clock.Now().Add(b.cfg.Fresh))
	err := b.Check(ctx)
	denied := new(Denied)
	switch {
	case want == Active && err != nil:
		t.Errorf("refused: %v", err)
	case want != Active && (!errors.As(err, &denied) || denied.Decision != want):
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestDecisions lets each purpose through in the states in which it may be, as they are
// at the moment of asking.
func TestDecisions(t *testing.T) {
	b := newBench(t, policy.ModeActive, nil)
	act, undo, enforce := Act(t.Context(), "web"), Undo(t.Context()), Enforce(t.Context())
	b.wants(act, t, Active)
	b.wants(Act(t.Context(), "other"), t, Gone)
	b.setMode(t, v1alpha1.ModeShadow)
	b.wants(act, t, Shadow)
	b.wants(undo, t, Active)
	b.setMode(t, v1alpha1.ModeOff)
	b.wants(act, t, Off)
	b.wants(undo, t, Active)
	b.setMode(t, v1alpha1.ModeActive)
	b.setSwitch(t, "true")
	b.wants(act, t, Stopped)
	b.wants(enforce, t, Stopped)
	b.wants(undo, t, Active)
	b.setSwitch(t, "yes!")
	b.wants(act, t, Stopped)
	b.setSwitch(t, "false")
	b.wants(enforce, t, Active)
	b.cfg.Conflicts = func() map[string]string { return map[string]string{"web": "another pool"} }
	b.wants(act, t, Conflict)
}

// TestShadow lets a controller in shadow change nothing, not even to take it back.
func TestShadow(t *testing.T) {
	b := newBench(t, policy.ModeShadow, nil)
	for _, ctx := range []context.Context{Act(t.Context(), "web"), Undo(t.Context()), Enforce(t.Context())} {
		b.wants(ctx, t, Shadow)
	}
}

// TestSwitchLost keeps what the switch said last while it cannot be read, also what it
// said to the leader before.
func TestSwitchLost(t *testing.T) {
	b := newBench(t, policy.ModeActive, nil)
	b.setSwitch(t, "true")
	b.wants(Act(t.Context(), "web"), t, Stopped)
	if err := b.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "spotter",
		Name: "switch"}}); err != nil {
		t.Fatal(err)
	}
	b.wants(Act(t.Context(), "web"), t, Stopped)
	next := New(b.cfg, b.client)
	next.Recall(true)
	if got, err := next.Switch(t.Context()); !got.On || got.Unreadable || got.Problem == "" || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestFence refuses every kind of write while the lease is not held.
func TestFence(t *testing.T) {
	lost := errors.New("another leads")
	b := newBench(t, policy.ModeActive, func(c *Config) { c.Fence = func(context.Context) (time.Time, error) { return time.Time{}, lost } })
	for _, ctx := range []context.Context{Act(t.Context(), "web"), Undo(t.Context()), Enforce(t.Context())} {
		if err := b.Check(ctx); !errors.Is(err, lost) {
			t.Errorf("got %v", err)
		}
	}
}

// TestFresh reads once for all that ask within the time, and not from memory where
// reading fails.
func TestFresh(t *testing.T) {
	b := newBench(t, policy.ModeActive, nil)
	act := Act(t.Context(), "web")
	for range 100 {
		if err := b.Check(act); err != nil {
			t.Fatal(err)
		}
	}
	if b.reads != 1 {
		t.Errorf("%d readings for 100 checks at one instant", b.reads)
	}
	b.broken = errors.New("unreachable")
	b.clock.SetTime(b.clock.Now().Add(b.cfg.Fresh))
	if err := b.Check(act); !errors.Is(err, b.broken) {
		t.Errorf("checked without reading: %v", err)
	}
}

// TestRequest refuses a write without a permit, except to Spotter's own objects.
func TestRequest(t *testing.T) {
	b := newBench(t, policy.ModeActive, nil)
	for _, x := range []struct {
		method, path string
		free         bool
	}{
		{"GET", "/api/v1/nodes/a", true},
		{"PATCH", "/api/v1/nodes/a", false},
		{"PATCH", "/api/v1/nodes/a?dryRun=All", true},
		{"PATCH", "/api/v1/nodes/a?dryRun=Some", false},
		{"PATCH", "/api/v1/nodes/a?dryRun=", false},
		{"DELETE", "/api/v1/nodes/a?dryRun", false},
		{"PUT", "/api/v1/namespaces/spotter-other/configmaps/x", false},
		{"PUT", "/api/v1/namespaces/spot/configmaps/x", false},
		{"POST", "/api/v1/namespaces/shop/pods/p/eviction", false},
		{"POST", "/api/v1/namespaces/shop/pods/p/eviction?dryRun=All", true},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/spotter/leases/spotter-leader", true},
		{"POST", "/apis/events.k8s.io/v1/namespaces/default/events", true},
		{"POST", "/api/v1/namespaces/default/events", true},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", true},
		{"PATCH", "/apis/spotter.dev/v1alpha1/capacitypools/web/status", true},
		{"PUT", "/api/v1/namespaces/spotter/configmaps/spotter-memory-head", true},
		{"PUT", "/api/v1/namespaces/kube-system/configmaps/coredns", false},
		{"PUT", "/api/v1/namespaces/spotter/secrets/x", false},
		{"DELETE", "/apis/karpenter.sh/v1/nodeclaims/c", false},
		{"PATCH", "/proxy/api/v1/nodes/a", false},
	} {
		u, err := url.Parse(x.path)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{Method: x.method, URL: u}
		none := new(Unpermitted)
		if _, err := b.Request(t.Context(), r); x.free != (err == nil) || !x.free && !errors.As(err, &none) {
			t.Errorf("%s %s without a permit: %v", x.method, x.path, err)
		}
		if _, err := b.Request(Act(t.Context(), "web"), r); err != nil {
			t.Errorf("%s %s for an active pool: %v", x.method, x.path, err)
		}
	}
}
