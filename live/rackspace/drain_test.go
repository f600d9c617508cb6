package rackspace_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// two returns a fixture with two nodes of one class and the first of them.
func two(t *testing.T) (*fixture, *corev1.Node) {
	t.Helper()
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustLaunch("t2", 40_000, "gp.vs1.medium-iad")
	w.mustRun(9 * time.Minute)
	if got := w.nodes(); len(got) != 2 {
		t.Fatalf("nodes %v, want two", got)
	}
	return w, w.node(w.nodes()[0])
}

// What leaves a pool of several machines is the API's choice. Here it is the node
// that was drained, and no other.
func TestFaultReleaseRemovesThatNode(t *testing.T) {
	w, node := two(t)
	if err := w.b.Prepare(w.ctx, node); err != nil {
		t.Fatal(err)
	}
	phases := []v1alpha1.SpotNodePhase{w.ledger()[0].Status.Phase, w.ledger()[1].Status.Phase}
	slices.Sort(phases)
	if phases[0] != v1alpha1.SpotNodeDraining || phases[1] != v1alpha1.SpotNodeRunning {
		t.Errorf("after Prepare the phases are %v", phases)
	}
	w.mustRun(time.Minute)
	if err := w.b.Release(w.ctx, node); err != nil {
		t.Fatal(err)
	}
	w.mustRun(2 * time.Minute)
	if got := w.nodes(); len(got) != 1 || got[0] == node.Name {
		t.Errorf("after releasing %s the nodes are %v", node.Name, got)
	}
	if got := w.ledger(); len(got) != 1 || w.sink.Alive() != 1 || len(w.sink.Machines) != 1 {
		t.Errorf("the ledger has %d entries and the sink %v", len(got), keys(w.sink.Machines))
	}
	if len(w.sink.Met(backend.MetReclaim)) != 0 {
		t.Error("a node that was given back counts as reclaimed")
	}
}

// Releasing again and again, also from another process, removes one node.
func TestFaultReleaseTwiceRemovesOneNode(t *testing.T) {
	w, node := two(t)
	for range 3 {
		if err := w.b.Release(w.ctx, node); err != nil {
			t.Fatal(err)
		}
		w.restart()
		if err := w.b.Poll(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.mustRun(5 * time.Minute)
	if got := w.nodes(); len(got) != 1 || got[0] == node.Name {
		t.Errorf("the nodes are %v", got)
	}
	deletions := 0
	for _, c := range w.cloudWrites() {
		if strings.HasPrefix(c, http.MethodDelete) {
			deletions++
		}
	}
	if deletions > 3 {
		t.Errorf("%d deletions were asked for", deletions)
	}
}

func TestUndoTakesPrepareBack(t *testing.T) {
	w, node := two(t)
	if err := w.b.Prepare(w.ctx, node); err != nil {
		t.Fatal(err)
	}
	w.restart() // a new leader finds it in the ledger
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.b.Undo(w.ctx, node, nil); err != nil {
		t.Fatal(err)
	}
	w.mustRun(time.Minute)
	for _, n := range w.ledger() {
		if n.Status.Phase != v1alpha1.SpotNodeRunning {
			t.Errorf("SpotNode %s is %s after Undo", n.Name, n.Status.Phase)
		}
	}
	if len(w.server.Pools()) != 2 {
		t.Errorf("the node pools are %v", w.server.Pools())
	}
}

// A drain that cannot be noted does not begin, and leaves no mark.
func TestPrepareFails(t *testing.T) {
	w, node := two(t)
	w.kube = func(verb string, _ client.Object) error {
		if verb == "patch/status" {
			return forbidden()
		}
		return nil
	}
	if got := heldFor(w.b.Prepare(w.ctx, node)); got != "Forbidden" {
		t.Errorf("Prepare is held for %q", got)
	}
	w.kube = nil
	w.mustRun(time.Minute)
	for _, n := range w.ledger() {
		if n.Status.Phase != v1alpha1.SpotNodeRunning {
			t.Errorf("SpotNode %s is %s", n.Name, n.Status.Phase)
		}
	}
}

// Nodes of others are left: those of a user's pool, and of a pool of Spotter that a user enlarged.
func TestFaultForeignPoolsAreLeft(t *testing.T) {
	w, node := two(t)
	w.server.AddPool("by-hand", "cs", "gp.vs1.large-iad", 2, 90_000, nil)
	w.mustRun(9 * time.Minute)
	var foreign *corev1.Node
	for _, name := range w.nodes() {
		if n := w.node(name); n.Labels["nodepool.ngpc.rxt.io/name"] == "by-hand" {
			foreign = n
		}
	}
	for what, f := range map[string]func() error{
		"Prepare": func() error { return w.b.Prepare(w.ctx, foreign) },
		"Release": func() error { return w.b.Release(w.ctx, foreign) },
	} {
		if got := heldFor(f()); got != "NotOurs" {
			t.Errorf("%s of a foreign node is held for %q", what, got)
		}
	}
	if err := w.b.Undo(w.ctx, foreign, nil); err != nil {
		t.Errorf("Undo of a foreign node: %v", err)
	}
	w.server.Scale(node.Labels["nodepool.ngpc.rxt.io/name"], 2)
	w.mustRun(time.Minute)
	if got := heldFor(w.b.Prepare(w.ctx, node)); got != "NodePoolGrown" {
		t.Errorf("Prepare in a pool that was made larger is held for %q", got)
	}
	w.server.SetPrice("gp.vs1.large-iad", 200_000) // the foreign pool is outbid
	w.mustRun(10 * time.Minute)
	if !slices.Contains(w.server.Pools(), "by-hand") {
		t.Error("a lost pool of somebody else was deleted")
	}
}

// The drain waits until the replacement takes pods, and hears when it will not come.
func TestFaultReplacementIsAwaited(t *testing.T) {
	w := newFixture(t)
	want := func(r backend.Replacement, tokens ...string) {
		t.Helper()
		if got, err := w.b.Replaced(w.ctx, tokens); err != nil || got != r {
			t.Errorf("at %v the launches %v are %v, %v, want %v", w.clock.Now().Sub(start), tokens, got, err, r)
		}
	}
	want(backend.ReplacementReady)
	want(backend.ReplacementFailed, "never")
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	want(backend.ReplacementWaiting, "t1")
	w.mustRun(7 * time.Minute)
	want(backend.ReplacementWaiting, "t1")
	w.mustRun(2 * time.Minute)
	want(backend.ReplacementReady, "t1")
	want(backend.ReplacementFailed, "t1", "never")
	node := w.node(w.nodes()[0])
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	if err := w.store.Status().Update(w.ctx, node); err != nil {
		t.Fatal(err)
	}
	want(backend.ReplacementWaiting, "t1")

	w.server.Change(func(s *fake.State) { s.Classes[1].Slots = 0; s.Classes[2].Slots = 1 })
	w.mustLaunch("t2", 40_000, "ch.vs1.large-iad")
	w.mustLaunch("t3", 40_000, "ch.vs1.large-iad") // there is no second machine
	w.mustRun(9 * time.Minute)
	want(backend.ReplacementWaiting, "t2", "t3")
	w.mustRun(2 * time.Minute)
	want(backend.ReplacementFailed, "t2", "t3")
	if got := len(w.server.Pools()); got != 2 {
		t.Errorf("%d node pools, want 2: a bid that nobody won is withdrawn", got)
	}
	if err := w.b.Settle(w.ctx, []string{"t2"}); err != nil {
		t.Error(err)
	}
}

// A node whose server was exchanged under the same pool is gone; the one that took
// its place stays.
func TestReleaseOfAnExchangedServer(t *testing.T) {
	w, node := two(t)
	next := node.DeepCopy()
	next.ObjectMeta = metav1.ObjectMeta{Name: "prod-instance-new", Labels: node.Labels, CreationTimestamp: metav1.NewTime(w.clock.Now())}
	if err := w.store.Create(w.ctx, next); err != nil {
		t.Fatal(err)
	}
	w.mustRun(time.Minute)
	if err := w.b.Release(w.ctx, node); err != nil {
		t.Fatal(err)
	}
	if got := len(w.server.Pools()); got != 2 {
		t.Errorf("%d node pools, want 2", got)
	}
}

// While the API fails no node is released, and the drain can be undone.
func TestReleaseWhileTheAPIFails(t *testing.T) {
	w, node := two(t)
	w.server.SetFaults(fake.Faults{Internal: 1})
	if err := w.b.Release(w.ctx, node); err == nil || errors.Is(err, backend.ErrNotYet) {
		t.Errorf("releasing gives %v, want the fault", err)
	}
	w.server.SetFaults(fake.Faults{})
	if err := w.b.Undo(w.ctx, node, nil); err != nil {
		t.Fatal(err)
	}
	w.mustRun(5 * time.Minute)
	if len(w.nodes()) != 2 || len(w.ledger()) != 2 {
		t.Errorf("nodes %v and %d entries, want two of each", w.nodes(), len(w.ledger()))
	}
}
