package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/limit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/nightly"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A cluster is a real one with a pipeline that reads from a manager's cache, as a
// user of its own that has the rights it needs and no more.
type cluster struct {
	t        *testing.T
	env      *testenv.Env
	ns       string
	mgr      ctrl.Manager
	cfg      *rest.Config
	releaser *machines
}

// rights are those that the pipeline needs.
var rights = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
	{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets", "statefulsets"}, Verbs: []string{"get"}},
	{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"replicationcontrollers"}, Verbs: []string{"get"}},
	{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"volumeattachments"}, Verbs: []string{"get", "list", "watch"}},
}

func newCluster(t *testing.T, user string) *cluster {
	t.Helper()
	env := testenv.Start(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 300 * time.Millisecond})
	c := &cluster{t: t, env: env, ns: env.Namespace(t), cfg: env.User(t, user, rights...)}
	c.releaser = &machines{c: c, how: map[string]backend.Replacement{}, settled: map[string]bool{}}
	ctrl.SetLogger(logr.Discard())
	limiter, err := limit.New(limit.Config{QPS: 200, Burst: 200})
	c.must(err)
	skip := true
	options := ctrl.Options{Scheme: env.Scheme, Metrics: server.Options{BindAddress: "0"}, Cache: cache.Options{}}
	options.Controller.SkipNameValidation = &skip
	c.mgr, err = ctrl.NewManager(limiter.Wrap(c.cfg, false), options)
	c.must(err)
	c.must(SetupIndexes(t.Context(), c.mgr.GetFieldIndexer()))
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = c.mgr.Start(ctx) })
	t.Cleanup(func() { cancel(); wait.Wait() })
	for _, o := range []client.Object{&corev1.Node{}, &corev1.Pod{}, &policyv1.PodDisruptionBudget{},
		&storagev1.VolumeAttachment{}, &appsv1.DaemonSet{}, &corev1.Namespace{}} {
		_, err := c.mgr.GetCache().GetInformer(ctx, o)
		c.must(err)
	}
	if !c.mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache did not fill")
	}
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// pipeline returns one with limits that fit a test.
func (c *cluster) pipeline() *Reconciler {
	cfg := DefaultConfig()
	cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg.Interval, cfg.EvictRetry = 100*time.Millisecond, 500*time.Millisecond
	p, err := New(cfg, c.mgr.GetClient(), c.mgr.GetAPIReader(), c.releaser)
	c.must(err)
	p.Trust([]byte("of this cluster"))
	return p
}

// run has p run until the test calls stop.
func (c *cluster) run(p *Reconciler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = p.Run(ctx) })
	return func() { cancel(); wait.Wait() }
}

// nodes adds nodes of its own and makes them the only ones that its workloads use.
func (c *cluster) nodes(names ...string) {
	for _, name := range names {
		n := testenv.Node(name, "8", "16Gi")
		n.Labels["test"] = c.ns
		c.env.AddNode(c.t, n)
	}
}

// deploy makes a Deployment and waits until its pods are ready.
func (c *cluster) deploy(name string, replicas int32, changes ...func(*corev1.PodSpec)) {
	labels := map[string]string{appLabel: name}
	spec := corev1.PodSpec{
		NodeSelector: map[string]string{"test": c.ns},
		Containers:   []corev1.Container{{Name: "c", Image: "c"}},
	}
	for _, change := range changes {
		change(&spec)
	}
	c.must(c.env.Client.Create(c.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels,
				Annotations: map[string]string{testenv.StartupTime: "500ms"}}, Spec: spec},
		},
	}))
	c.ready(name, replicas)
}

func (c *cluster) ready(name string, replicas int32) {
	c.t.Helper()
	testenv.Eventually(c.t, name+" is ready", func() error {
		d := &appsv1.Deployment{}
		err := c.env.Client.Get(c.t.Context(), client.ObjectKey{Namespace: c.ns, Name: name}, d)
		if err == nil && d.Status.ReadyReplicas != replicas {
			err = fmt.Errorf("%d of %d are ready", d.Status.ReadyReplicas, replicas)
		}
		return err
	})
}

// budget makes a disruption budget and waits until it counts.
func (c *cluster) budget(name, app string, unavailable int32) {
	n := intstr.FromInt32(unavailable)
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &n,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}}},
	}
	c.must(c.env.Client.Create(c.t.Context(), b))
	testenv.Eventually(c.t, name+" counts, also in the cache", func() error {
		err := c.mgr.GetClient().Get(c.t.Context(), client.ObjectKeyFromObject(b), b)
		if err == nil && b.Status.ObservedGeneration == 0 {
			err = errors.New("it has no status")
		}
		return err
	})
}

// gone waits until a node is no more.
func (c *cluster) gone(name string) {
	c.t.Helper()
	testenv.Eventually(c.t, name+" is gone", func() error {
		n := &corev1.Node{}
		err := c.env.Client.Get(c.t.Context(), client.ObjectKey{Name: name}, n)
		if err == nil {
			return fmt.Errorf("it is there: %v", n.Annotations)
		}
		return client.IgnoreNotFound(err)
	})
}

// machines is a backend that deletes the Node object of a node that is released.
type machines struct {
	c       *cluster
	mu      sync.Mutex
	how     map[string]backend.Replacement
	settled map[string]bool
}

func (m *machines) NodeReleaser(string, policy.Provisioner) (backend.NodeReleaser, error) {
	return m, nil
}
func (m *machines) Prepare(context.Context, *corev1.Node) error { return nil }
func (m *machines) Replaced(_ context.Context, tokens []string) (backend.Replacement, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range tokens {
		if m.how[t] != backend.ReplacementReady {
			return m.how[t], nil
		}
	}
	return backend.ReplacementReady, nil
}

// Release deletes the node. No pod that has to leave may be on it.
func (m *machines) Release(ctx context.Context, n *corev1.Node) error {
	pods := &corev1.PodList{}
	if err := m.c.env.Client.List(ctx, pods, client.MatchingFields{"spec.nodeName": n.Name}); err != nil {
		return err
	}
	for i := range pods.Items {
		if o := metav1.GetControllerOf(&pods.Items[i]); o == nil || o.Kind != "DaemonSet" {
			m.c.t.Errorf("node %s was given back with pod %s", n.Name, pods.Items[i].Name)
		}
	}
	return client.IgnoreNotFound(m.c.env.Client.Delete(ctx, n.DeepCopy()))
}

func (m *machines) Undo(ctx context.Context, _ *corev1.Node, tokens []string) error {
	return m.Settle(ctx, tokens)
}

func (m *machines) Settle(_ context.Context, tokens []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range tokens {
		m.settled[t] = true
	}
	return nil
}

// TestRule10OnCluster drains real nodes: under a budget one pod at a time, with
// two budgets not at all, with a bare pod under a notice only. The user that does
// it has only the rights that the pipeline names.
func TestRule10OnCluster(t *testing.T) {
	c := newCluster(t, "spotter-drainer")
	c.nodes("drain-a", "drain-b", "drain-c")
	c.deploy("web", 6)
	c.budget("web", "web", 1)
	p := c.pipeline()
	defer c.run(p)()
	mark := c.env.Mark()
	s, d := planned("drain-a")
	c.must(p.Start(t.Context(), s, d))
	c.gone("drain-a")
	c.ready("web", 6)

	c.budget("web2", "web", 1)
	s, d = planned("drain-b")
	held := new(backend.Held)
	if err := p.Start(t.Context(), s, d); !errors.As(err, &held) || held.Reason != "SeveralBudgets" {
		t.Errorf("a node whose pods have two budgets: %v", err)
	}
	// What the API server itself says to it is recognised as well.
	pods := &corev1.PodList{}
	c.must(c.env.Client.List(t.Context(), pods, client.InNamespace(c.ns)))
	if reply := Evict(t.Context(), c.mgr.GetClient(), &pods.Items[0], nil, true); reply.Answer != AnswerSeveral {
		t.Errorf("the API server's answer to two budgets is read as %v: %s", reply.Answer, reply.Message)
	}
	stale := pods.Items[0].DeepCopy()
	stale.UID = "another"
	if reply := Evict(t.Context(), c.mgr.GetClient(), stale, nil, true); reply.Answer != AnswerGone && reply.Answer != AnswerSeveral {
		t.Errorf("a pod of another UID: %v: %s", reply.Answer, reply.Message)
	}
	s, d = planned("drain-b", notice(20*time.Second))
	c.must(p.Start(t.Context(), s, d))
	testenv.Eventually(t, "drain-b is closed", func() error {
		n := &corev1.Node{}
		err := c.env.Client.Get(t.Context(), client.ObjectKey{Name: "drain-b"}, n)
		if err == nil && !(n.Spec.Unschedulable && tainted(n)) {
			err = errors.New("it is open")
		}
		return err
	})
	c.must(c.env.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "drain-b"}})) // the provider takes it
	testenv.Eventually(t, "the drain is over", func() error {
		if left := p.table.status(); len(left) > 0 {
			return fmt.Errorf("%+v", left)
		}
		return nil
	})
	c.onlyEvictions(mark, "spotter-drainer")
}

// onlyEvictions fails the test if the user has written anything but marks on
// nodes and evictions.
func (c *cluster) onlyEvictions(mark testenv.Mark, user string) {
	c.t.Helper()
	events := c.env.Audit(c.t, mark, func(e testenv.AuditEvent) bool { return e.User == user && e.Writes() })
	if len(events) == 0 {
		c.t.Error("the audit log knows of no write")
	}
	for _, e := range events {
		if e.Resource == "nodes" && e.Verb == "patch" || e.Resource == "pods" && e.Subresource == "eviction" {
			continue
		}
		c.t.Errorf("it wrote %v", e)
	}
}

// TestRule11OnCluster kills the process at random times of random drains and has
// another settle them: after Recover no node is left cordoned by us, and in the
// end all pods are ready. Persons and conflicts are the real ones.
func TestRule11OnCluster(t *testing.T) {
	c := newCluster(t, "spotter-killed")
	c.nodes("kill-a", "kill-b", "kill-c")
	c.deploy("web", 6)
	c.budget("web", "web", 1)
	seed := testenv.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range nightly.Count(8, 24) {
		name := []string{"kill-a", "kill-b", "kill-c"}[rnd.IntN(3)]
		p := c.pipeline()
		stop := c.run(p)
		token := fmt.Sprintf("t%d", i)
		how := backend.Replacement(rnd.IntN(3))
		c.releaser.mu.Lock()
		c.releaser.how[token] = how
		c.releaser.mu.Unlock()
		s, d := planned(name, after(token), func(_ *policy.Node, d *policy.Drain) { d.Gentle = rnd.IntN(2) == 0 })
		_ = p.Start(t.Context(), s, d)
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		stop() // in the midst of whatever it does
		next := c.pipeline()
		settled, err := next.takeOver(t.Context())
		if err != nil {
			t.Errorf("seed %d, drain %d: %v", seed, i, err)
		}
		stop = c.run(next)
		testenv.Eventually(t, "all is settled", func() error { return c.settled(next) })
		stop()
		n := &corev1.Node{}
		if err := c.env.Client.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			c.nodes(name) // it was released: another replaces it
		}
		if t.Failed() {
			t.Fatalf("seed %d, drain %d: settled %+v", seed, i, settled)
		}
	}
	c.ready("web", 6)
}

// settled returns an error while a node carries a mark of Spotter.
func (c *cluster) settled(p *Reconciler) error {
	nodes := &corev1.NodeList{}
	if err := c.env.Client.List(c.t.Context(), nodes, client.MatchingLabels{"test": c.ns}); err != nil {
		return err
	}
	for i := range nodes.Items {
		if _, ours := readState(&nodes.Items[i]); ours || nodes.Items[i].Spec.Unschedulable {
			return fmt.Errorf("node %s: %v, %+v", nodes.Items[i].Name, nodes.Items[i].Annotations, p.table.status())
		}
	}
	return nil
}

// TestForgedOnCluster: what a user writes who may patch the status of nodes, and no more, ends
// no node: its annotation is removed. That right does write annotations, and no taints.
func TestForgedOnCluster(t *testing.T) {
	c := newCluster(t, "spotter-deceived")
	c.nodes("forge-a", "forge-b")
	c.deploy("web", 4)
	agent, err := client.New(c.env.User(t, "node-agent",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
	), client.Options{Scheme: c.env.Scheme})
	c.must(err)
	forge := func(name string) {
		n := &corev1.Node{}
		c.must(agent.Get(t.Context(), client.ObjectKey{Name: name}, n))
		before := n.DeepCopy()
		annotate(n, AnnotationDrain, `{"phase":"releasing","pool":"web","since":1,"after":["t1"]}`)
		annotate(n, AnnotationCordon, "forged")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: TaintDraining, Effect: corev1.TaintEffectNoSchedule})
		c.must(agent.Status().Patch(t.Context(), n, client.MergeFrom(before)))
		if _, forged := n.Annotations[AnnotationDrain]; !forged || tainted(n) {
			t.Errorf("the patch of the status left annotations %v and taints %v", n.Annotations, n.Spec.Taints)
		}
	}
	b := &corev1.Node{}
	c.must(c.env.Client.Get(t.Context(), client.ObjectKey{Name: "forge-b"}, b))
	b.Spec.Unschedulable = true // a person's
	c.must(c.env.Client.Update(t.Context(), b))
	forge("forge-a")
	forge("forge-b")
	p := c.pipeline()
	defer c.run(p)()
	testenv.Eventually(t, "the forged marks are gone", func() error {
		for _, name := range []string{"forge-a", "forge-b"} {
			n := &corev1.Node{}
			if err := c.env.Client.Get(t.Context(), client.ObjectKey{Name: name}, n); err != nil {
				t.Fatalf("node %s: %v", name, err)
			}
			if _, marked := readState(n); marked {
				return fmt.Errorf("node %s: %v", name, n.Annotations)
			}
			if n.Spec.Unschedulable != (name == "forge-b") {
				t.Errorf("node %s is unschedulable: %t", name, n.Spec.Unschedulable)
			}
		}
		return nil
	})
	c.ready("web", 4)
	if c.releaser.settled["t1"] {
		t.Error("what is kept for another drain was given up")
	}
}

// TestRule10Unchanged: the API server refuses to evict a pod that has changed since it was
// read, where the eviction says so.
func TestRule10Unchanged(t *testing.T) {
	c := newCluster(t, "spotter-unchanged")
	c.nodes("changed-a")
	c.deploy("web", 1)
	pods := &corev1.PodList{}
	c.must(c.env.Client.List(t.Context(), pods, client.InNamespace(c.ns)))
	before := pods.Items[0].DeepCopy()
	after := before.DeepCopy()
	after.Annotations["karpenter.sh/do-not-disrupt"] = "true"
	c.must(c.env.Client.Patch(t.Context(), after, client.MergeFrom(before)))
	if reply := evictUnchanged(t.Context(), c.mgr.GetClient(), before); reply.Answer != AnswerGone {
		t.Errorf("a pod that has changed: %v: %s", reply.Answer, reply.Message)
	}
	if reply := evictUnchanged(t.Context(), c.mgr.GetClient(), after); reply.Answer != AnswerEvicted {
		t.Errorf("a pod that has not: %v: %s", reply.Answer, reply.Message)
	}
}

// TestDaemonsOnCluster: while a node is drained, pods of DaemonSets stay on it. A DaemonSet created
// meanwhile gets a pod there if it tolerates the taint; a cordon alone keeps no such pod away.
func TestDaemonsOnCluster(t *testing.T) {
	c := newCluster(t, "spotter-daemons")
	c.nodes("daemons-a")
	daemon := func(name string, tolerations ...corev1.Toleration) {
		labels := map[string]string{appLabel: name}
		c.must(c.env.Client.Create(t.Context(), &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: name},
			Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{NodeSelector: map[string]string{"test": c.ns}, Tolerations: tolerations,
					Containers: []corev1.Container{{Name: "c", Image: "c"}}},
			}},
		}))
	}
	pods := func(name string) []corev1.Pod {
		all := &corev1.PodList{}
		c.must(c.env.Client.List(t.Context(), all, client.InNamespace(c.ns), client.MatchingLabels{appLabel: name}))
		return all.Items
	}
	has := func(name string) func() error {
		return func() error {
			if all := pods(name); len(all) != 1 || all[0].Spec.NodeName != "daemons-a" || all[0].DeletionTimestamp != nil {
				return fmt.Errorf("%s has %d pods", name, len(all))
			}
			return nil
		}
	}
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	daemon("plain")
	daemon("tolerant", all)
	testenv.Eventually(t, "the DaemonSets run", func() error { return errors.Join(has("plain")(), has("tolerant")()) })
	before := []types.UID{pods("plain")[0].UID, pods("tolerant")[0].UID}
	n := &corev1.Node{}
	c.must(c.env.Client.Get(t.Context(), client.ObjectKey{Name: "daemons-a"}, n))
	c.pipeline().api.marks.cordon(n, state{Phase: PhaseEvicting})
	c.must(c.env.Client.Update(t.Context(), n))
	daemon("late")
	daemon("late-tolerant", all)
	testenv.Eventually(t, "a new tolerant pod comes", has("late-tolerant"))
	if len(pods("late")) > 0 {
		t.Error("a new pod that does not tolerate the taint came")
	}
	if len(pods("plain")) != 1 || before[0] != pods("plain")[0].UID || before[1] != pods("tolerant")[0].UID {
		t.Error("a running pod of a DaemonSet left the node")
	}
	c.must(c.env.Client.Get(t.Context(), client.ObjectKey{Name: "daemons-a"}, n))
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isOurs)
	c.must(c.env.Client.Update(t.Context(), n))
	testenv.Eventually(t, "under the cordon alone it comes", has("late"))
	p := c.pipeline()
	left, err := p.api.left(t.Context(), keyOf(n))
	if err != nil || len(left) > 0 {
		t.Errorf("of pods of DaemonSets %d have to leave: %v", len(left), err)
	}
}
