package rackspace_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// reads and writes are what the backend may do in a cluster, and no more. Shadow has
// the first alone.
var (
	reads = []rbacv1.PolicyRule{
		{APIGroups: []string{"spotter.dev"}, Resources: []string{"capacitypools", "spotnodes"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
	}
	writes = []rbacv1.PolicyRule{
		{APIGroups: []string{"spotter.dev"}, Resources: []string{"spotnodes"}, Verbs: []string{"create", "delete"}},
		{APIGroups: []string{"spotter.dev"}, Resources: []string{"spotnodes/status", "capacitypools"}, Verbs: []string{"patch"}},
	}
)

// userOf returns a client that may do what the rules say.
func userOf(t *testing.T, env *testenv.Env, name string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	c, err := client.New(env.User(t, name, rules...), client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// step moves the fixture on with the rights of an administrator.
func step(w *fixture, env *testenv.Env, pass bool) {
	w.t.Helper()
	w.clock.Step(w.config.Poll)
	if err := w.server.Step(w.ctx, env.Client); err != nil {
		w.t.Fatal(err)
	}
	if err := w.b.Poll(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	if !pass {
		return
	}
	if err := w.b.Pass(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

// On a real API server, with Spotter's definitions and exactly the documented rights: an order, a
// node, a steer, a released node, a lost auction.
func TestOnARealAPIServer(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	w := newCloud(t)
	pool, s := capacityPool(v1alpha1.ModeActive), secret("refresh-1")
	s.Namespace = env.Namespace(t)
	pool.Spec.Backend.Rackspace.CredentialsSecretRef.Namespace = s.Namespace
	for _, o := range []client.Object{s, pool} {
		if err := env.Client.Create(w.ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := env.Client.Delete(w.ctx, pool); err != nil {
			t.Error(err)
		}
	})
	w.store = userOf(t, env, "spotter-rackspace", slices.Concat(reads, writes)...)
	w.restart()
	w.mustLaunch("t1", 42_000, "gp.vs1.medium-iad")
	w.mustLaunch("t1", 42_000, "gp.vs1.medium-iad")
	w.mustLaunch("t2", 0, "gp.vs1.large-iad")
	snap := w.snapshot()
	if err := w.b.Steer(w.ctx, snap, steerTo(0.5)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		step(w, env, true)
	}
	if got := len(w.nodes()); got != 2 || w.sink.Alive() != 2 {
		t.Fatalf("%d nodes and %d machines, want 2", got, w.sink.Alive())
	}
	for _, n := range w.ledger() {
		if n.Status.Phase != v1alpha1.SpotNodeRunning {
			t.Errorf("SpotNode %s is %s", n.Name, n.Status.Phase)
		}
	}
	release(w, env)
	w.server.SetPrice("gp.vs1.medium-iad", 900_000)
	for range 16 {
		step(w, env, true)
	}
	if len(w.nodes()) != 0 || len(w.ledger()) != 0 || len(w.server.Pools()) != 0 {
		t.Errorf("left are nodes %v, %d entries, pools %v", w.nodes(), len(w.ledger()), w.server.Pools())
	}
	if len(w.sink.Met(backend.MetReclaim)) != 1 || len(w.sink.Met(backend.MetLaunch)) != 2 {
		t.Errorf("met %v", w.sink.Events)
	}
}

// release gives the on-demand node back, once it was seen to take pods.
func release(w *fixture, env *testenv.Env) {
	w.t.Helper()
	for _, name := range w.nodes() {
		n := w.node(name)
		if n.Labels["servers.ngpc.rxt.io/type"] != "ondemand" {
			continue
		}
		// No controller here removes the taint of new nodes, and no other one writes taints.
		before := n.DeepCopy()
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		if err := env.Client.Patch(w.ctx, n, client.MergeFrom(before)); err != nil {
			w.t.Fatal(err)
		}
		if r, err := w.b.Replaced(w.ctx, []string{"t2"}); err != nil || r != backend.ReplacementReady {
			w.t.Errorf("the launch is %v, %v", r, err)
		}
		for what, f := range map[string]error{"Prepare": w.b.Prepare(w.ctx, n), "Release": w.b.Release(w.ctx, n)} {
			if f != nil {
				w.t.Errorf("%s: %v", what, f)
			}
		}
		return
	}
	w.t.Error("no node is on demand")
}

// By the audit log of a real API server, and the request log of the cloud, shadow
// writes nothing; and it has no right to.
func TestRule13ShadowByTheAuditLog(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	w := newCloud(t)
	pool, s := capacityPool(v1alpha1.ModeShadow), secret("refresh-1")
	pool.Name, s.Namespace = "shadowed", env.Namespace(t)
	pool.Spec.Backend.Rackspace.CredentialsSecretRef.Namespace = s.Namespace
	for _, o := range []client.Object{s, pool} {
		if err := env.Client.Create(w.ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	w.store = userOf(t, env, "spotter-shadow", reads...)
	w.restart()
	mark := env.Mark()
	for range 10 {
		step(w, env, true)
		w.read()
	}
	for _, e := range env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter-shadow" }) {
		busy := e.Code == http.StatusTooManyRequests // while the server fills its cache; the client asks again
		if e.Writes() || e.Code >= 300 && !busy {
			t.Errorf("the audit log has %v", e)
		}
	}
	if got := w.cloudWrites(); len(got) != 0 {
		t.Errorf("the cloud was written to: %v", got)
	}
	// Ordering in spite of that is held for the right that is missing.
	snap := w.snapshot()
	snap.Pools[0].Name = "shadowed"
	if got := heldFor(w.b.Launch(w.ctx, snap, w.launchOf(snap, "t", 40_000, "gp.vs1.medium-iad"))); got != "Forbidden" {
		t.Errorf("a launch is held for %q", got)
	}
	var left v1alpha1.SpotNodeList
	if err := env.Client.List(w.ctx, &left, client.MatchingLabels{"spotter.dev/pool": "shadowed"}); err != nil || len(left.Items) != 0 {
		t.Errorf("the ledger has %d entries, %v", len(left.Items), err)
	}
	c := w.b.Conditions("shadowed")
	if !slices.ContainsFunc(c, func(c metav1.Condition) bool {
		return c.Type == rackspace.CloudspaceReachable && c.Status == metav1.ConditionTrue
	}) {
		t.Errorf("the conditions are %v", c)
	}
	if err := env.Client.Delete(w.ctx, pool); err != nil {
		t.Error(err)
	}
}

// Run continues until it is stopped, also while no call is answered.
func TestRun(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- w.b.Run(ctx) }()
	for end := time.Now().Add(time.Minute); len(w.server.Calls()) < 30; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute there were %d calls", len(w.server.Calls()))
		}
		w.clock.Step(w.config.Poll)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
