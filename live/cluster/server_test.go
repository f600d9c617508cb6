package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A site is a real API server with nodes that kwok plays, and the cache of a
// controller.
type site struct {
	t         *testing.T
	env       *testenv.Env
	cache     cache.Cache
	book      *ledger
	namespace string
	prefix    string
}

func newSite(t *testing.T, prefix string, nodes int) *site {
	t.Helper()
	env := testenv.Start(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 200 * time.Millisecond})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	options := cluster.CacheOptions()
	options.Scheme = scheme
	c, err := cache.New(env.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	x := &site{t: t, env: env, cache: c, book: newMarkets(t).book, namespace: env.Namespace(t), prefix: prefix}
	for i := range nodes {
		x.addNode(i)
	}
	return x
}

func (x *site) name(i int) string { return fmt.Sprintf("%s-%d", x.prefix, i) }

func (x *site) addNode(i int) {
	x.t.Helper()
	n := testenv.Node(x.name(i), "4", "16Gi")
	n.Labels["node.kubernetes.io/instance-type"], n.Labels["topology.kubernetes.io/region"] = "m5.xlarge", "us-east-1"
	n.Labels["topology.kubernetes.io/zone"], n.Labels["eks.amazonaws.com/capacityType"] = "us-east-1a", "SPOT"
	n.Labels["team"] = x.prefix
	n.Spec.ProviderID = "aws:///us-east-1a/i-" + n.Name
	x.env.AddNode(x.t, n)
}

// observer returns one that follows the cache, which is started with the first.
func (x *site) observer() *cluster.Observer {
	x.t.Helper()
	o, err := cluster.New(cluster.DefaultConfig(), x.book)
	if err != nil {
		x.t.Fatal(err)
	}
	if err := o.Follow(x.t.Context(), x.cache); err != nil {
		x.t.Fatal(err)
	}
	return o
}

func (x *site) start() {
	go func() {
		if err := x.cache.Start(x.t.Context()); err != nil {
			panic(err)
		}
	}()
}

// see returns what o sees of this test: its own nodes and pods.
func (x *site) see(o *cluster.Observer) *policy.Snapshot {
	x.t.Helper()
	ctx, stop := context.WithTimeout(x.t.Context(), time.Minute)
	defer stop()
	s, err := o.Observe(ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

func (x *site) deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{NodeSelector: map[string]string{"team": x.prefix}, Containers: []corev1.Container{{Name: "c", Image: "none",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"),
						"memory": resource.MustParse("256Mi")}}}}}}}}
}

func (x *site) must(err error) {
	x.t.Helper()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) &&
		!apierrors.IsInternalError(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		x.t.Fatal(err)
	}
}

// TestServerShows observes nodes, pods, disruption budgets, a drain by Spotter and evictions on a
// real API server.
func TestServerShows(t *testing.T) {
	x := newSite(t, "shown", 2)
	o := x.observer()
	x.start()
	c := x.env.Client
	one := intstr.FromInt32(1)
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "shown"}, Spec: v1alpha1.CapacityPoolSpec{
		Backend:  v1alpha1.Backend{AutoScalingGroups: &v1alpha1.AutoScalingGroupsBackend{DiscoveryTags: map[string]string{"a": "b"}}},
		Template: v1alpha1.NodeTemplate{Labels: map[string]string{"team": "shown"}}}}
	x.must(c.Create(t.Context(), pool))
	x.must(c.Create(t.Context(), x.deployment("web", 4)))
	x.must(c.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}))
	var s *policy.Snapshot
	testenv.Eventually(t, "four pods are ready and one may go", func() error {
		s = x.see(o)
		for i := range s.Workloads {
			if w := &s.Workloads[i]; w.Name == x.namespace+"/web" && w.Kind == policy.KindDeployment && w.Ready == 4 && w.Replicas == 4 &&
				len(s.PDBs) == 1 && s.PDBs[0].Allowed == 1 {
				return nil
			}
		}
		return fmt.Errorf("workloads %+v, budgets %+v", s.Workloads, s.PDBs)
	})
	n := nodeIn(t, s, "shown-0")
	if n.Phase != policy.NodeInitialized || n.Pool == policy.None || n.Market == policy.None ||
		s.Markets[n.Market].Capacity != policy.Spot || n.Allocatable.CPU != 4000 {
		t.Errorf("%+v", n)
	}
	var victim *policy.Pod
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase == policy.PodReady && strings.HasPrefix(p.Name, x.namespace+"/web-") {
			victim = p
		}
	}
	tmpl := s.Templates[victim.Template]
	if tmpl.Requests.CPU != 500 || len(tmpl.PDBs) != 1 || len(tmpl.NodeSelector) != 1 || victim.Bound == 0 || victim.ReadySince == 0 {
		t.Errorf("%+v %+v", tmpl, victim)
	}

	object := &corev1.Node{}
	x.must(c.Get(t.Context(), client.ObjectKey{Name: "shown-0"}, object))
	before := object.DeepCopy()
	object.Annotations[drain.AnnotationDrain] = "{}"
	object.Spec.Taints = append(object.Spec.Taints, corev1.Taint{Key: drain.TaintDraining, Effect: corev1.TaintEffectNoSchedule})
	x.must(c.Patch(t.Context(), object, client.MergeFrom(before)))
	_, name, _ := strings.Cut(victim.Name, "/")
	evicted := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}}
	x.must(c.SubResource("eviction").Create(t.Context(), evicted, &policyv1.Eviction{}))
	var ended []policy.EndedPod
	testenv.Eventually(t, "the node is being drained and the pod was evicted", func() error {
		s = x.see(o)
		ended = append(ended, s.Ended...)
		i := slices.IndexFunc(ended, func(e policy.EndedPod) bool { return e.Name == x.namespace+"/"+name })
		if n := nodeIn(t, s, "shown-0"); n.Phase != policy.NodeDraining || n.ActedBy != policy.ActorUs || i < 0 {
			return fmt.Errorf("it is %v, acted on by %v, and %+v ended", n.Phase, n.ActedBy, ended)
		}
		if e := ended[i]; e.Cause != policy.EndEvicted || e.Start == 0 || e.End < e.Start {
			return fmt.Errorf("it ended as %+v", e)
		}
		return nil
	})
	x.must(c.Delete(t.Context(), pool))
}

// TestServerUpdatedIsRebuilt disturbs a real cluster at random: an observer that was updated all
// along has the snapshot of one that starts afresh.
func TestServerUpdatedIsRebuilt(t *testing.T) {
	x := newSite(t, "churn", 3)
	o := x.observer()
	x.start()
	seed := testenv.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range 3 {
		x.must(x.env.Client.Create(t.Context(), x.deployment(fmt.Sprintf("app-%d", i), 3)))
	}
	for step := range 12 {
		what := x.disturb(r, step)
		testenv.Eventually(t, "what was updated is what is rebuilt", func() error {
			fresh := x.observer()
			a, b := canon(x.see(o)), canon(x.see(fresh))
			if d := differences(b, a); d != nil {
				return fmt.Errorf("seed %d, after step %d (%s) (- rebuilt, + updated):\n%s", seed, step, what, strings.Join(d[:min(6, len(d))], "\n"))
			}
			return nil
		})
	}
	s := x.see(o)
	if len(s.Pods) == 0 || len(s.Templates) < 3 {
		t.Errorf("there is little to see: %d pods of %d templates", len(s.Pods), len(s.Templates))
	}
}

// disturb changes something, and says what.
func (x *site) disturb(r *rand.Rand, step int) string {
	c, ctx := x.env.Client, x.t.Context()
	d := &appsv1.Deployment{}
	app := fmt.Sprintf("app-%d", r.IntN(3))
	x.must(c.Get(ctx, client.ObjectKey{Namespace: x.namespace, Name: app}, d))
	n := &corev1.Node{}
	x.must(c.Get(ctx, client.ObjectKey{Name: x.name(r.IntN(3))}, n))
	var pods corev1.PodList
	x.must(c.List(ctx, &pods, client.InNamespace(x.namespace)))
	before, beforeNode := d.DeepCopy(), n.DeepCopy()
	switch k := r.IntN(7); {
	case k == 0:
		replicas := int32(r.IntN(6))
		d.Spec.Replicas = &replicas
		x.must(c.Patch(ctx, d, client.MergeFrom(before)))
		return fmt.Sprintf("scaling %s to %d", app, replicas)
	case k == 1:
		d.Spec.Template.Spec.Containers[0].Resources.Requests["cpu"] = *resource.NewMilliQuantity(int64(100+step), resource.DecimalSI)
		x.must(c.Patch(ctx, d, client.MergeFrom(before)))
		return "rolling " + app
	case k == 2:
		d.Annotations = map[string]string{"spotter.dev/outage-penalty": fmt.Sprint(step)}
		x.must(c.Patch(ctx, d, client.MergeFrom(before)))
		return "annotating " + app
	case k == 3:
		n.Spec.Unschedulable = !n.Spec.Unschedulable
		x.must(c.Patch(ctx, n, client.MergeFrom(beforeNode)))
		return fmt.Sprintf("cordon of %s: %v", n.Name, n.Spec.Unschedulable)
	case k == 4 && len(pods.Items) > 0:
		p := &pods.Items[r.IntN(len(pods.Items))]
		x.must(c.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{}))
		return "evicting " + p.Name
	case k == 5 && n.Name != "":
		x.must(c.Delete(ctx, n))
		testenv.Eventually(x.t, n.Name+" is gone", func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(n), &corev1.Node{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		var i int
		if _, err := fmt.Sscanf(n.Name, x.prefix+"-%d", &i); err != nil {
			x.t.Fatal(err)
		}
		x.addNode(i)
		return "deleting and making " + n.Name
	}
	small := intstr.FromInt32(int32(r.IntN(3)))
	x.must(c.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: fmt.Sprintf("b-%d", step)},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &small,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}))
	return "a disruption budget for " + app
}

// TestServerStalls says that nothing is heard of a cluster whose API server does not
// answer, and that it is heard of again.
func TestServerStalls(t *testing.T) {
	x := newSite(t, "mute", 1)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	cfg := cluster.DefaultConfig()
	cfg.Clock = clock
	o, err := cluster.New(cfg, x.book)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Follow(t.Context(), x.cache); err != nil {
		t.Fatal(err)
	}
	x.start()
	x.see(o)
	thaw := x.env.Freeze(t, "kube-apiserver")
	x.see(o) // what came before it froze
	clock.SetTime(clock.Now().Add(cfg.DataMax + time.Minute))
	s := x.see(o)
	thaw()
	if got := o.Stalled(); !slices.Contains(got, "nodes") {
		t.Errorf("stalled: %v, with %+v", got, s.Sources)
	}
	for _, x := range s.Sources {
		if slices.Contains(o.Stalled(), x.Name) != x.Stale {
			t.Errorf("source %+v, stalled %v", x, o.Stalled())
		}
	}
	touch := 0
	testenv.Eventually(t, "nodes are heard of again", func() error {
		n := &corev1.Node{}
		if err := x.env.Client.Get(t.Context(), client.ObjectKey{Name: x.name(0)}, n); err != nil {
			return err
		}
		before := n.DeepCopy()
		touch++
		n.Annotations["example.com/touch"] = fmt.Sprint(touch)
		if err := x.env.Client.Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
			return err
		}
		x.see(o)
		if got := o.Stalled(); slices.Contains(got, "nodes") {
			return fmt.Errorf("stalled: %v", got)
		}
		return nil
	})
}
