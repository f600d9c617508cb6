package karpenter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	backendfake "github.com/spotter-dev/spotter/live/backend/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// testTypes are types of the kwok provider: name, vCPU, GiB.
var testTypes = []struct {
	name string
	vcpu int64
	gib  int64
}{{"c-2x-amd64-linux", 2, 4}, {"c-4x-amd64-linux", 4, 8}, {"s-4x-amd64-linux", 4, 16}}

var testZones = []string{"test-zone-a", "test-zone-b"}

// newSnapshot returns a snapshot of one pool, "web", that may use every type in every
// zone, spot and on-demand.
func newSnapshot(now policy.Time) *policy.Snapshot {
	s := &policy.Snapshot{Now: now, Zones: testZones}
	for i, t := range testTypes {
		r := policy.Resources{CPU: t.vcpu * 1000, Memory: t.gib << 30, Pods: 110}
		s.Types = append(s.Types, policy.InstanceType{ID: policy.TypeID(i), Provider: "kwok", Name: t.name, Arch: "amd64",
			VCPU: t.vcpu, Capacity: r, Allocatable: r})
	}
	var pool policy.Pool
	for t := range s.Types {
		for z, zone := range testZones {
			for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				id := policy.MarketID(len(s.Markets))
				s.Markets = append(s.Markets, policy.Market{
					ID: id, Name: fmt.Sprintf("kwok/test/%s/%s/%s", zone, s.Types[t].Name, c), Provider: "kwok", Region: "test",
					Zone: policy.ZoneID(z), Type: policy.TypeID(t), Capacity: c, Offered: true, Price: policy.Dollars(0.1), OnDemand: policy.Dollars(0.1),
				})
				pool.Markets = append(pool.Markets, id)
			}
		}
	}
	pool.Name, pool.Provisioner, pool.Mode = "web", policy.ProvisionerKarpenter, policy.ModeActive
	pool.Share, pool.OnDemandFallback = policy.ShareRange{Max: 1}, true
	s.Pools = []policy.Pool{pool}
	return s
}

// market returns the market of type t in zone z, both indices.
func market(s *policy.Snapshot, t, z int, c policy.CapacityType) policy.MarketID {
	for i := range s.Markets {
		if m := &s.Markets[i]; int(m.Type) == t && int(m.Zone) == z && m.Capacity == c {
			return policy.MarketID(i)
		}
	}
	panic("no such market")
}

// withNode adds an initialized node of pool 0.
func withNode(s *policy.Snapshot, name string, m policy.MarketID) policy.NodeID {
	id := policy.NodeID(len(s.Nodes))
	s.Nodes = append(s.Nodes, policy.Node{
		ID: id, Name: name, Pool: 0, Market: m, Phase: policy.NodeInitialized, Allocatable: s.Types[s.Markets[m].Type].Allocatable,
	})
	return id
}

// capacityPool returns the object of the pool "web".
func capacityPool() *v1alpha1.CapacityPool {
	return &v1alpha1.CapacityPool{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1alpha1.CapacityPoolSpec{
			Backend:  v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}},
			Template: v1alpha1.NodeTemplate{Labels: map[string]string{"team": "shop"}},
			Mode:     v1alpha1.ModeActive,
		},
	}
}

var kwokClass = schema.GroupVersionKind{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClass"}

// nodeClass returns the node class "default", ready or not.
func nodeClass(ready bool) *unstructured.Unstructured {
	status := "True"
	if !ready {
		status = "False"
	}
	u := &unstructured.Unstructured{Object: object{"status": object{"conditions": []any{
		object{"type": "Ready", "status": status, "reason": "Test", "message": "as the test says", "lastTransitionTime": "2026-01-01T00:00:00Z"},
	}}}}
	u.SetGroupVersionKind(kwokClass)
	u.SetName("default")
	return u
}

func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// testOptions are those of the cluster that all tests of this package share. Karpenter
// itself runs only in the tests that start it.
func testOptions() testenv.Options {
	return testenv.Options{
		ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 200 * time.Millisecond,
		CRDs: append(slices.Clone(apis.CRDs), kwokapis.CRDs...),
		// No kubelet reports for most Nodes here, and one of a name that an earlier test used would
		// soon count as unreachable.
		Args: map[string][]string{testenv.ControllerManager: {"--node-monitor-grace-period=1h"}},
	}
}

// A bench is a backend on a real API server and a clock that a test moves.
type bench struct {
	*Backend
	t      testing.TB
	env    *testenv.Env
	clock  *clocktesting.FakeClock
	client client.WithWatch
	heard  *backendfake.Sink

	// fail, where it is set, answers a call instead of the server.
	fail func(verb string, o any) error
	// writes are the writes that reached the server: verb, type and name; noting guards them.
	noting sync.Mutex
	writes []string
}

func newBench(t testing.TB, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{t: t, env: testenv.Start(t, testOptions()), clock: clocktesting.NewFakeClock(time.Now()), heard: backendfake.NewSink()}
	direct, err := client.NewWithWatch(b.env.Config, client.Options{Scheme: testScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	wipe(t, direct)
	t.Cleanup(func() { wipe(t, direct) })
	for _, o := range objects {
		u, ok := o.(*unstructured.Unstructured)
		var status any
		if ok {
			status = u.Object["status"]
		}
		if err := direct.Create(t.Context(), o); err != nil {
			t.Fatalf("making %s: %v", o.GetName(), err)
		}
		if ok {
			u.Object["status"] = status
			if err := direct.Status().Update(t.Context(), u); err != nil {
				t.Fatalf("writing the status of %s: %v", u.GetName(), err)
			}
		}
	}
	b.client = interceptor.NewClient(direct, b.calls())
	cfg := DefaultConfig()
	cfg.Clock, cfg.Regions = b.clock, []string{"test"}
	if b.Backend, err = New(cfg, b.client, b.client, b.heard); err != nil {
		t.Fatal(err)
	}
	return b
}

// calls fails calls as the test asks, and notes the writes that go through.
func (b *bench) calls() interceptor.Funcs {
	note := func(verb string, o any) error {
		if b.fail != nil {
			if err := b.fail(verb, o); err != nil {
				return err
			}
		}
		if verb != "get" && verb != "list" {
			b.noting.Lock()
			defer b.noting.Unlock()
			b.writes = append(b.writes, fmt.Sprintf("%s %T %s", verb, o, nameOf(o)))
		}
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := note("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := note("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := note("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := note("apply", o); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := note("get", o); err != nil {
				return err
			}
			return c.Get(ctx, k, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if err := note("list", l); err != nil {
				return err
			}
			return c.List(ctx, l, opts...)
		},
	}
}

// wipe removes what tests before have left.
func wipe(t testing.TB, c client.Client) {
	t.Helper()
	ctx := context.Background()
	lists := []client.ObjectList{&v1alpha1.CapacityPoolList{}, &karpv1.NodePoolList{}, &karpv1.NodeClaimList{},
		&corev1.NodeList{}, &storagev1.VolumeAttachmentList{}, &corev1.PodList{}}
	class := &unstructured.UnstructuredList{}
	class.SetGroupVersionKind(kwokClass.GroupVersion().WithKind(kwokClass.Kind + "List"))
	testenv.Eventually(t, "the cluster is empty", func() error {
		var left error
		for _, l := range append(lists, class) {
			if err := c.List(ctx, l); err != nil {
				return err
			}
			err := meta.EachListItem(l, func(x runtime.Object) error {
				o := x.(client.Object)
				left = fmt.Errorf("%T %s is there", o, o.GetName())
				if len(o.GetFinalizers()) > 0 {
					_ = c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
				}
				_ = c.Delete(ctx, o, client.GracePeriodSeconds(0))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return left
	})
}

func nameOf(o any) string {
	if n, ok := o.(interface{ GetName() string }); ok {
		return n.GetName()
	}
	return "?"
}

// restart replaces the backend by one that remembers nothing.
func (b *bench) restart() {
	b.t.Helper()
	next, err := New(*b.cfg, b.client, b.client, b.heard)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Backend = next
}

func (b *bench) now() policy.Time { return policy.TimeOf(b.clock.Now()) }

// nodePool returns a NodePool, nil if it does not exist.
func (b *bench) nodePool(name string) *karpv1.NodePool {
	b.t.Helper()
	var n karpv1.NodePool
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		b.t.Fatal(err)
	}
	return &n
}

// gone waits until a NodePool is deleted: the garbage collector orphans its claims
// before.
func (b *bench) gone(name string) {
	b.t.Helper()
	testenv.Eventually(b.t, "NodePool "+name+" is gone", func() error {
		if b.nodePool(name) != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// karpenterSees does what Karpenter does with a new NodePool: it notes its hash.
func (b *bench) karpenterSees(name string) {
	b.t.Helper()
	n := b.nodePool(name)
	if n == nil {
		b.t.Fatalf("there is no NodePool %s", name)
	}
	n.Annotations[karpv1.NodePoolHashAnnotationKey] = n.Hash()
	n.Annotations[karpv1.NodePoolHashVersionAnnotationKey] = karpv1.NodePoolHashVersion
	if err := b.client.Update(b.t.Context(), n); err != nil {
		b.t.Fatal(err)
	}
}

// karpenterNode adds a NodeClaim of a NodePool with its machine, and its Node.
func (b *bench) karpenterNode(name, nodePool string, s *policy.Snapshot, m policy.MarketID) (*karpv1.NodeClaim, *corev1.Node) {
	b.t.Helper()
	o := offerOf(s, m)
	labels := map[string]string{
		karpv1.NodePoolLabelKey: nodePool, corev1.LabelInstanceTypeStable: o.Type, corev1.LabelTopologyZone: o.Zone,
		karpv1.CapacityTypeLabelKey: s.Markets[m].Capacity.String(), karpv1.NodeInitializedLabelKey: "true",
	}
	annotations := map[string]string{}
	if n := b.nodePool(nodePool); n != nil {
		annotations[karpv1.NodePoolHashAnnotationKey] = n.Hash()
		annotations[karpv1.NodePoolHashVersionAnnotationKey] = karpv1.NodePoolHashVersion
	}
	c := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: &karpv1.NodeClassReference{Group: kwokClass.Group, Kind: kwokClass.Kind, Name: "default"},
			Requirements: Requirements(s.Markets[m].Capacity.String(), []Offer{o}, nil),
		},
	}
	status := karpv1.NodeClaimStatus{NodeName: "node-" + name, ProviderID: "kwok://" + name, Capacity: quantities(s, m)}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: "kwok://" + name},
	}
	for _, x := range []client.Object{c, n} {
		if err := b.client.Create(b.t.Context(), x); err != nil {
			b.t.Fatal(err)
		}
	}
	c.Status = status
	b.status(c)
	b.ready(n, true)
	b.writes = nil
	return c, n
}

// status writes the status of an object.
func (b *bench) status(o client.Object) {
	b.t.Helper()
	if err := b.client.Status().Update(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// ready sets whether a node is ready.
func (b *bench) ready(n *corev1.Node, yes bool) {
	b.t.Helper()
	status := map[bool]string{true: "True", false: "False"}[yes]
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status)
	if err := b.client.Status().Patch(b.t.Context(), n, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		b.t.Fatal(err)
	}
}

// again reads an object again; the object is its return value too.
func again[T client.Object](b *bench, o T) T {
	b.t.Helper()
	if err := b.client.Get(b.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.t.Fatal(err)
	}
	return o
}

// setCondition gives a claim the condition and no other.
func (b *bench) setCondition(c *karpv1.NodeClaim, kind, status string) {
	b.t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Test","message":"","lastTransitionTime":%q}]}}`,
		kind, status, b.clock.Now().UTC().Format(time.RFC3339))
	if err := b.client.Status().Patch(b.t.Context(), c, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		b.t.Fatal(err)
	}
}

// holds fails the test unless err is a Held of the reason.
func holds(t testing.TB, err error, reason string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), reason+": ") {
		t.Errorf("error %v, want a Held of reason %s", err, reason)
	}
}
