package rackspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	backendfake "github.com/spotter-dev/spotter/live/backend/fake"
	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// start is when fixtures begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A hurriedClock makes whoever waits the cause of time going by.
type hurriedClock struct{ *testingclock.FakeClock }

func (c hurriedClock) After(d time.Duration) <-chan time.Time {
	c.Step(d)
	now := make(chan time.Time, 1)
	now <- c.Now()
	return now
}

// A fixture is a cluster at a fake Rackspace.
type fixture struct {
	t      *testing.T
	ctx    context.Context
	clock  hurriedClock
	server *fake.Server
	config rackspace.Config
	store  client.Client // the API server behind hooks
	sink   *backendfake.Sink
	b      *rackspace.Backend

	// kube is asked before each call of the API server, and wrote counts the
	// writes that passed.
	kube  func(verb string, o client.Object) error
	wrote []string
}

const poolName = "workers"

func capacityPool(mode v1alpha1.Mode) *v1alpha1.CapacityPool {
	p := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: poolName, Generation: 1}}
	p.Spec.Mode = mode
	p.Spec.Backend.Rackspace = &v1alpha1.RackspaceBackend{
		Cloudspace: "cs", Org: "acme", CredentialsSecretRef: corev1.SecretReference{Name: "spot", Namespace: "system"},
	}
	p.Spec.Template.Labels = map[string]string{"team": "web"}
	p.Spec.Template.Taints = []corev1.Taint{{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}}
	return p
}

func secret(token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "spot", Namespace: "system"},
		Data: map[string][]byte{"refresh-token": []byte(token + "\n")}}
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := newCloud(t)
	inner := clientfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.SpotNode{}).
		WithObjects(capacityPool(v1alpha1.ModeActive), secret("refresh-1")).Build()
	w.store = interceptor.NewClient(inner, w.hooks())
	w.restart()
	return w
}

// newCloud returns a fixture without a cluster.
func newCloud(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, ctx: context.Background(), clock: hurriedClock{testingclock.NewFakeClock(start)}}
	w.server = fake.New(fake.DefaultState(), w.clock)
	web := httptest.NewServer(w.server)
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(web.Close)

	w.config = rackspace.DefaultConfig()
	w.config.Endpoint, w.config.LoginEndpoint, w.config.PricesURL = web.URL, web.URL, web.URL+fake.PricesPath
	w.config.Clock, w.config.Log = w.clock, slog.New(slog.NewTextHandler(io.Discard, nil))
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	w.config.Transport = transport
	w.config.Timeout = 20 * time.Second
	return w
}

// hooks put w.kube before each call.
func (w *fixture) hooks() interceptor.Funcs {
	ask := func(verb string, o client.Object) error {
		if w.kube != nil {
			if err := w.kube(verb, o); err != nil {
				return err
			}
		}
		if verb != "get" && verb != "list" {
			w.wrote = append(w.wrote, fmt.Sprintf("%s %T", verb, o))
		}
		return nil
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := ask("get", o); err != nil {
				return err
			}
			return c.Get(ctx, k, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if err := ask("list", nil); err != nil {
				return err
			}
			return c.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := ask("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := ask("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := ask("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			if err := ask("patch/"+sub, o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// restart puts a new process in the place of the old one.
func (w *fixture) restart() {
	w.t.Helper()
	w.sink = backendfake.NewSink()
	b, err := rackspace.New(w.config, w.store, w.store, w.sink)
	if err != nil {
		w.t.Fatal(err)
	}
	w.b = b
}

// round is one poll interval: the fixture moves, is read and tended.
func (w *fixture) round() error {
	w.clock.Step(w.config.Poll)
	hook, n := w.kube, len(w.wrote)
	w.kube = nil
	if err := w.server.Step(w.ctx, w.store); err != nil {
		w.t.Fatal(err)
	}
	w.kube, w.wrote = hook, w.wrote[:n]
	return errors.Join(w.b.Poll(w.ctx), w.b.Pass(w.ctx))
}

// run runs rounds for a while, whatever fails, and returns the last round's error.
func (w *fixture) run(d time.Duration) (last error) {
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); {
		last = w.round()
	}
	return last
}

// mustRun runs rounds for a while and fails the test on the first error.
func (w *fixture) mustRun(d time.Duration) {
	w.t.Helper()
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); {
		if err := w.round(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// snapshot is what a policy would see: all markets of the server.
func (w *fixture) snapshot() *policy.Snapshot {
	s := &policy.Snapshot{Now: policy.TimeOf(w.clock.Now()), Zones: []string{"us-east-iad-1", "us-west-sjc-1"}}
	pool := policy.Pool{Name: poolName, Mode: policy.ModeActive}
	now := s.Now
	w.server.Change(func(st *fake.State) {
		for i, c := range st.Classes {
			s.Types = append(s.Types, policy.InstanceType{ID: policy.TypeID(i), Provider: policy.Rackspace, Name: c.Name,
				Capacity: policy.Resources{CPU: 2000, Memory: 4 << 30}})
			price := policy.Money(0)
			for _, p := range c.Prices {
				if p.At <= now {
					price = p.Price
				}
			}
			for _, k := range []policy.CapacityType{policy.Spot, policy.OnDemand} {
				id := policy.MarketID(len(s.Markets))
				s.Markets = append(s.Markets, policy.Market{
					ID: id, Provider: policy.Rackspace, Region: c.Region, Type: policy.TypeID(i), Capacity: k, Offered: true, Price: price,
					Name: strings.Join([]string{"rackspace", c.Region, c.Region, c.Name, k.String()}, "/"),
				})
				pool.Markets = append(pool.Markets, id)
			}
		}
	})
	s.Pools = []policy.Pool{pool}
	return s
}

// launch requests one node of the classes at a bid, on demand if the bid is 0.
func (w *fixture) launch(token string, bid policy.Money, classes ...string) error {
	w.t.Helper()
	s := w.snapshot()
	return w.b.Launch(w.ctx, s, w.launchOf(s, token, bid, classes...))
}

func (w *fixture) launchOf(s *policy.Snapshot, token string, bid policy.Money, classes ...string) *policy.Launch {
	kind := policy.Spot
	if bid == 0 {
		kind = policy.OnDemand
	}
	l := &policy.Launch{Token: token, Bid: bid, Replaces: policy.None}
	for _, c := range classes {
		for i := range s.Markets {
			if m := &s.Markets[i]; s.Types[m.Type].Name == c && m.Capacity == kind {
				l.Markets = append(l.Markets, m.ID)
			}
		}
	}
	return l
}

// mustLaunch launches and waits for the node.
func (w *fixture) mustLaunch(token string, bid policy.Money, classes ...string) {
	w.t.Helper()
	if err := w.launch(token, bid, classes...); err != nil {
		w.t.Fatal(err)
	}
}

// node returns the Node object of a machine.
func (w *fixture) node(name string) *corev1.Node {
	w.t.Helper()
	var n corev1.Node
	if err := w.store.Get(w.ctx, client.ObjectKey{Name: name}, &n); err != nil {
		w.t.Fatal(err)
	}
	return &n
}

// nodes returns the names of the Node objects.
func (w *fixture) nodes() []string {
	w.t.Helper()
	var l corev1.NodeList
	if err := w.store.List(w.ctx, &l); err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, n := range l.Items {
		names = append(names, n.Name)
	}
	return names
}

// ledger returns the entries of the ledger in order.
func (w *fixture) ledger() []v1alpha1.SpotNode {
	w.t.Helper()
	var l v1alpha1.SpotNodeList
	if err := w.store.List(w.ctx, &l); err != nil {
		w.t.Fatal(err)
	}
	return l.Items
}

// only returns the single entry of the ledger.
func (w *fixture) only() *v1alpha1.SpotNode {
	w.t.Helper()
	l := w.ledger()
	if len(l) != 1 {
		w.t.Fatalf("the ledger has %d entries, want 1", len(l))
	}
	return &l[0]
}

// cloudWrites returns the requests to the server since a moment, but for reads and logins.
func (w *fixture) cloudWrites() (all []string) {
	for _, c := range w.server.Calls() {
		if c.Method != http.MethodGet && !strings.HasPrefix(c.Path, "/oauth/") {
			all = append(all, c.Method+" "+c.Path)
		}
	}
	return all
}

// condition returns that of the pool, by type.
func (w *fixture) condition(kind string) metav1.Condition {
	for _, c := range w.b.Conditions(poolName) {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

func forbidden() error {
	return apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("spotnodes").GroupResource(), "x", errors.New("rbac"))
}

// heldFor returns the reason for which err is held; empty when it is not.
func heldFor(err error) string {
	var h *backend.Held
	if errors.As(err, &h) {
		return h.Reason
	}
	return ""
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
