package live

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestClaim: a policy sees which nodes are ours before they carry a mark, and which
// Karpenter may have promised to pods; and one that moves those all the same neither
// buys nor drains, for a reason that the pool reports.
func TestClaim(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.draining = []drain.Status{{Node: "n001"}}
	var seen []policy.Node
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		seen = s.Nodes
		p, m := drains(s, m)
		p.Drains = p.Drains[2:]
		p.Launches = []policy.Launch{{Pool: 0, Token: "t", Markets: []policy.MarketID{1}, Replaces: 2}}
		return p, m
	}
	c := w.controller(t)
	w.snapshot.Nodes[2].Nominated = policy.TimeOf(w.clock.Now())
	w.take()
	step(t, c)
	if seen[0].ActedBy != policy.ActorNone || seen[1].ActedBy != policy.ActorUs || seen[0].DoNotDisrupt || !seen[2].DoNotDisrupt {
		t.Errorf("the policy sees %+v", seen)
	}
	if said := w.take(); count(said, "launch")+count(said, "drain") != 0 {
		t.Errorf("a young node is moved: %v", said)
	}
	if got := conditionReason(t, w, ConditionHeld); got != "Nominated" {
		t.Errorf("the pool is held for %q", got)
	}
	if due := c.dueAfter(&policy.Plan{Wake: policy.TimeOf(w.clock.Now().Add(c.cfg.StepMax))}); due.Sub(w.clock.Now()) != youngRetry {
		t.Errorf("the next step is due after %v", due.Sub(w.clock.Now()))
	}
}

// conditionReason returns the reason of a condition that holds of the pool.
func conditionReason(t *testing.T, w *fixture, kind string) string {
	t.Helper()
	var p v1alpha1.CapacityPool
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
		t.Fatal(err)
	}
	if x := meta.FindStatusCondition(p.Status.Conditions, kind); x != nil && x.Status == "True" {
		return x.Reason
	}
	return ""
}

// TestDrainEnded: a drain that came to nothing is reported in the conditions of its pool,
// until another succeeds or it is long ago.
func TestDrainEnded(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	c := w.controller(t)
	held := drain.Result{Node: "n000", Pool: "web", Outcome: drain.OutcomeHeld, Reason: "DisruptionBudget", Message: "none may go"}
	for _, x := range []struct {
		then func()
		want string
	}{
		{func() { c.DrainEnded(held) }, "DisruptionBudget"},
		{func() { c.DrainEnded(drain.Result{Pool: "web", Outcome: drain.OutcomeDone}) }, ""},
		{func() { c.DrainEnded(held) }, "DisruptionBudget"},
		{func() { w.clock.Step(2 * endedKept) }, ""},
	} {
		x.then()
		step(t, c)
		if got := conditionReason(t, w, ConditionHeld); got != x.want {
			t.Errorf("the pool is held for %q, want %q", got, x.want)
		}
	}
}

// TestAwaitPrices: the first step waits for prices, and not for ever.
func TestAwaitPrices(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	priced := make(chan struct{})
	w.parts.Priced = priced
	c := w.controller(t)
	wait := func() chan struct{} {
		done := make(chan struct{})
		go func() { c.awaitPrices(t.Context()); close(done) }()
		return done
	}
	done := wait()
	until(t, "it waits", w.clock.HasWaiters)
	select {
	case <-done:
		t.Error("it does not wait")
	default:
	}
	w.clock.Step(c.cfg.PricesWait)
	<-done
	close(priced)
	<-wait()
}

// TestClaimUnplanned: a node that only a notice has us drain is shown as it was, so that a
// policy still buys what its pods need; once a plan has ordered the drain it is ours.
func TestClaimUnplanned(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.draining = []drain.Status{{Node: "n001", Unplanned: true}, {Node: "n002"}}
	for _, i := range []int{1, 2} {
		w.snapshot.Nodes[i].ActedBy, w.snapshot.Nodes[i].Phase = policy.ActorUs, policy.NodeDraining
	}
	var seen []policy.Node
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		seen = s.Nodes
		return drains(s, m)
	}
	step(t, w.controller(t))
	if seen[1].ActedBy != policy.ActorNone || seen[1].Phase != policy.NodeInitialized ||
		seen[2].ActedBy != policy.ActorUs || seen[2].Phase != policy.NodeDraining {
		t.Errorf("the policy sees %+v", seen)
	}
}
