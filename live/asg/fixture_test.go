package asg

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	backendfake "github.com/spotter-dev/spotter/live/backend/fake"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

const region = "us-east-1"

var begin = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// A fixture is a fake cloud, a fake API server and a backend between the two, under
// one clock.
type fixture struct {
	t       *testing.T
	cloud   *fake.Server
	kube    client.WithWatch
	backend *Backend
	sink    *backendfake.Sink
	cfg     Config
	base    sdk.Config

	// join is how long after it is in service an instance becomes a ready Node;
	// negative for never. unready says that it stays NotReady.
	join    time.Duration
	unready bool
	service map[string]time.Time
}

// serverClock is the clock of the fake cloud.
type serverClock struct {
	clock.RealClock
	s *fake.Server
}

func (c serverClock) Now() time.Time                  { return c.s.Now() }
func (c serverClock) Since(t time.Time) time.Duration { return c.s.Now().Sub(t) }

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

// newFixture returns a fixture with one pool, "web", of the groups tagged pool=web, and
// the groups given. The cloud is reached without a connection.
func newFixture(t *testing.T, groups ...fake.Group) *fixture {
	t.Helper()
	kube := kubefake.NewClientBuilder().WithScheme(scheme).WithObjects(capacityPool("web")).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	return newFixtureOn(t, kube, groups...)
}

// newFixtureOn is newFixture with an API server of the caller's.
func newFixtureOn(t *testing.T, kube client.WithWatch, groups ...fake.Group) *fixture {
	t.Helper()
	w := &fixture{t: t, cloud: fake.New(region, begin), kube: kube, sink: backendfake.NewSink(), join: 10 * time.Second,
		service: map[string]time.Time{}}
	for _, g := range groups {
		w.cloud.AddGroup(ofCluster(g))
	}
	w.cloud.SetPolicy(allows(region))
	w.cfg = DefaultConfig()
	w.cfg.Region, w.cfg.Endpoint, w.cfg.BackoffMax = region, "http://cloud.test", 0
	w.cfg.Clock, w.cfg.Log = serverClock{s: w.cloud}, slog.New(slog.DiscardHandler)
	w.base = awsConfig(w.cloud)
	w.restart()
	w.joinNodes(0)
	return w
}

// awsConfig returns the configuration of a client of a fake cloud.
func awsConfig(cloud *fake.Server) sdk.Config {
	return sdk.Config{HTTPClient: cloud, Credentials: sdk.CredentialsProviderFunc(func(context.Context) (sdk.Credentials, error) {
		return sdk.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
	})}
}

// ofCluster is g with the tag of the cluster prod.
func ofCluster(g fake.Group) fake.Group {
	tags := map[string]string{}
	maps.Copy(tags, g.Tags)
	g.Tags = tags
	g.Tags["kubernetes.io/cluster/prod"] = "owned"
	return g
}

// allows judges requests by the policy that spotter run --print-iam-policy prints for
// groups of the cluster prod in a region.
func allows(region string) func(fake.Judged) bool {
	policy := rights.PolicyOf(rights.Setup{Active: true, Parts: []rights.Part{rights.Groups}, Regions: []string{region}, Cluster: "prod"})
	return func(j fake.Judged) bool {
		keys := map[string][]string{"aws:RequestedRegion": {j.Region}, "aws:ResourceAccount": {"${aws:PrincipalAccount}"},
			"aws:TagKeys": j.TagKeys}
		for k, v := range j.Tags {
			keys["aws:ResourceTag/"+k] = []string{v}
		}
		return rightstest.Allows(policy, rightstest.Request{Action: j.Action, Resource: j.Resource, Keys: keys})
	}
}

// overHTTP puts a real connection between the backend and the cloud.
func (w *fixture) overHTTP() *fixture {
	w.t.Helper()
	s := httptest.NewServer(w.cloud)
	w.t.Cleanup(s.Close)
	w.cfg.Endpoint, w.base.HTTPClient = s.URL, s.Client()
	w.restart()
	return w
}

// restart replaces the backend by one that knows nothing.
func (w *fixture) restart() {
	w.t.Helper()
	b, err := New(w.cfg, w.base, w.kube, w.kube, w.sink)
	if err != nil {
		w.t.Fatal(err)
	}
	w.backend = b
}

// intercept puts f between the backend and the API server.
func (w *fixture) intercept(f interceptor.Funcs) {
	w.kube = interceptor.NewClient(w.kube, f)
	w.restart()
}

func capacityPool(name string) *v1alpha1.CapacityPool {
	p := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	p.Spec.Backend.AutoScalingGroups = &v1alpha1.AutoScalingGroupsBackend{DiscoveryTags: map[string]string{"pool": name}}
	return p
}

// allow annotates the pool.
func (w *fixture) allow(annotations ...string) {
	w.t.Helper()
	var p v1alpha1.CapacityPool
	w.must(w.kube.Get(w.ctx(), client.ObjectKey{Name: "web"}, &p))
	p.Annotations = map[string]string{}
	for _, a := range annotations {
		k, v, _ := strings.Cut(a, "=")
		p.Annotations[k] = v
	}
	w.must(w.kube.Update(w.ctx(), &p))
	w.poll()
}

// allowReplacement has the pool allow that its groups replace instances by themselves.
func (w *fixture) allowReplacement() {
	w.t.Helper()
	var p v1alpha1.CapacityPool
	w.must(w.kube.Get(w.ctx(), client.ObjectKey{Name: "web"}, &p))
	p.Spec.Backend.AutoScalingGroups.AllowGroupReplacement = true
	w.must(w.kube.Update(w.ctx(), &p))
	w.poll()
}

// spotGroup and fixedGroup are twins in three zones.
func spotGroup(n int) fake.Group {
	return fake.Group{Name: "web-spot", Min: 1, Max: 20, Desired: n, Zones: zones, Types: []string{"m5.large", "m5a.large"},
		Mixed: true, OnDemandPercent: 0, Tags: map[string]string{"pool": "web"}, Suspended: []string{"AZRebalance"}}
}

func fixedGroup(n int) fake.Group {
	return fake.Group{Name: "web-od", Min: 1, Max: 20, Desired: n, Zones: zones, Types: []string{"m5.large"},
		OnDemandPercent: 100, Tags: map[string]string{"pool": "web"}, Suspended: []string{"AZRebalance"}}
}

var zones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

func (w *fixture) ctx() context.Context { return w.t.Context() }

func (w *fixture) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) poll() {
	w.t.Helper()
	w.must(w.backend.Poll(w.ctx()))
}

// pass lets time go by in steps of five seconds, in which nodes join and go.
func (w *fixture) pass(d time.Duration) {
	w.t.Helper()
	for ; d > 0; d -= 5 * time.Second {
		w.cloud.Advance(5 * time.Second)
		w.joinNodes(w.join)
	}
}

func (w *fixture) groups() []fake.Group {
	var all []fake.Group
	for _, name := range []string{"web-od", "web-spot", "managed", "mixed"} {
		if w.cloud.Has(name) {
			all = append(all, w.cloud.Group(name))
		}
	}
	return all
}

// joinNodes makes Nodes of instances that have been in service for long enough,
// and takes those away whose instance is gone.
func (w *fixture) joinNodes(after time.Duration) {
	w.t.Helper()
	here := map[string]bool{}
	for _, g := range w.groups() {
		for _, i := range g.Instances {
			here[i.ID] = true
			if i.State != fake.InService {
				continue
			}
			since, known := w.service[i.ID]
			if !known {
				since = w.cloud.Now()
				w.service[i.ID] = since
			}
			if after >= 0 && w.cloud.Now().Sub(since) >= after {
				if err := w.kube.Create(w.ctx(), nodeFor(i, !w.unready)); err != nil && !apierrors.IsAlreadyExists(err) {
					w.t.Fatal(err)
				}
				w.service[i.ID] = w.cloud.Now().Add(1000 * time.Hour) // once
			}
		}
	}
	for id := range w.service {
		if !here[id] {
			delete(w.service, id)
			w.must(client.IgnoreNotFound(w.kube.Delete(w.ctx(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(id)}})))
		}
	}
}

func nodeName(id string) string { return "node-" + id }

func nodeFor(i fake.Instance, ready bool) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i.ID)}, Spec: corev1.NodeSpec{ProviderID: "aws:///" + i.Zone + "/" + i.ID}}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	return n
}

// node returns the Node of an instance.
func (w *fixture) node(id string) *corev1.Node {
	w.t.Helper()
	var n corev1.Node
	w.must(w.kube.Get(w.ctx(), client.ObjectKey{Name: nodeName(id)}, &n))
	return &n
}

// bind puts a pod on the node of an instance.
func (w *fixture) bind(name, id string) {
	w.t.Helper()
	w.must(w.kube.Create(w.ctx(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{NodeName: nodeName(id)}}))
}

// snapshot returns the markets of the groups and their pool.
func (w *fixture) snapshot() *policy.Snapshot {
	s := &policy.Snapshot{Now: policy.TimeOf(w.cloud.Now()), Zones: zones,
		Pools: []policy.Pool{{Name: "web", Budgets: []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, N: 1}, Active: true}}}}}
	for _, kind := range []string{"m5.large", "m5a.large"} {
		s.Types = append(s.Types, policy.InstanceType{ID: policy.TypeID(len(s.Types)), Provider: "aws", Name: kind})
	}
	for _, c := range []policy.CapacityType{policy.Spot, policy.OnDemand} {
		for t := range s.Types {
			for z := range zones {
				id := policy.MarketID(len(s.Markets))
				s.Markets = append(s.Markets, policy.Market{ID: id, Provider: "aws", Region: region, Zone: policy.ZoneID(z),
					Type: policy.TypeID(t), Capacity: c,
					Name: marketName(region, zones[z], s.Types[t].Name, c)})
				s.Pools[0].Markets = append(s.Pools[0].Markets, id)
			}
		}
	}
	for i := range 10 {
		s.Nodes = append(s.Nodes, policy.Node{ID: policy.NodeID(i), Name: fmt.Sprint("n", i), Phase: policy.NodeInitialized})
	}
	return s
}

// launch requests a node in place of another in the markets of a capacity type.
func (w *fixture) launch(token string, c policy.CapacityType) error {
	s := w.snapshot()
	l := &policy.Launch{Token: token, Replaces: 0}
	for _, m := range s.Markets {
		if m.Capacity == c {
			l.Markets = append(l.Markets, m.ID)
		}
	}
	return w.backend.Launch(w.ctx(), s, l)
}

// replaced returns the state of the replacements.
func (w *fixture) replaced(tokens ...string) backend.Replacement {
	w.t.Helper()
	r, err := w.backend.Replaced(w.ctx(), tokens)
	w.must(err)
	return r
}

// awaitReady lets time pass until a replacement is ready, and returns its instance.
func (w *fixture) awaitReady(group, token string) string {
	w.t.Helper()
	for range 60 {
		if w.replaced(token) == backend.ReplacementReady {
			return w.backend.groups.get(group).launch(token).instance
		}
		w.pass(5 * time.Second)
	}
	w.t.Fatalf("launch %s is not ready after five minutes", token)
	return ""
}

// wantHeld fails the test unless err is held for the reason.
func wantHeld(t *testing.T, err error, reason string) {
	t.Helper()
	if !isHeld(err, reason) {
		t.Errorf("got %v, want it held for %s", err, reason)
	}
}

// writes returns the actions that changed something.
func (w *fixture) writes() []string {
	var all []string
	for _, c := range w.cloud.Calls() {
		if c.Write() {
			all = append(all, c.Action)
		}
	}
	return all
}

// clean fails the test if any mark of Spotter is left at the groups or the nodes.
func (w *fixture) clean() {
	w.t.Helper()
	if left := w.left(); len(left) > 0 {
		w.t.Errorf("left behind: %s", strings.Join(left, ", "))
	}
}

func (w *fixture) left() []string {
	var left []string
	for _, g := range w.groups() {
		for k := range g.Tags {
			if strings.HasPrefix(k, TagLaunch) {
				left = append(left, "tag "+k+" of "+g.Name)
			}
		}
		for k := range w.cloud.NodegroupTags(g.Name) {
			if strings.HasPrefix(k, TagLaunch) {
				left = append(left, "tag "+k+" of "+g.Nodegroup)
			}
		}
		for _, i := range g.Instances {
			if i.Protected && !g.NewProtected {
				left = append(left, "protection of "+i.ID)
			}
		}
	}
	var nodes corev1.NodeList
	w.must(w.kube.List(w.ctx(), &nodes))
	for _, n := range nodes.Items {
		for _, k := range []string{AnnotationSwap, AnnotationKept, ScaleDownDisabled} {
			if v, ok := n.Annotations[k]; ok {
				left = append(left, k+"="+v+" of "+n.Name)
			}
		}
	}
	slices.Sort(left)
	return left
}
