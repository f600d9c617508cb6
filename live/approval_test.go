package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/guard"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// plan returns the SpotPlan of the pool.
func (w *fixture) plan(t testing.TB) *v1alpha1.SpotPlan {
	t.Helper()
	p := &v1alpha1.SpotPlan{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: "web"}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// approve says what a person says of the plan.
func (w *fixture) approve(t testing.TB, approved bool, digest string) {
	t.Helper()
	p := w.plan(t)
	p.Spec = v1alpha1.SpotPlanSpec{Approved: approved, Digest: digest}
	if err := w.client.Update(context.Background(), p); err != nil {
		t.Fatal(err)
	}
}

func (w *fixture) held(t testing.TB) (reason, message string) {
	t.Helper()
	c := meta.FindStatusCondition(w.pool(t).Status.Conditions, ConditionHeld)
	if c == nil || c.Status != "True" {
		return "", ""
	}
	return c.Reason, c.Message
}

func changesOf(p *v1alpha1.SpotPlan) string {
	var all []string
	for _, c := range p.Status.Changes {
		all = append(all, c.Change)
	}
	return strings.Join(all, "; ")
}

// TestApproval: nothing is done by choice before a person has approved the plan by its
// digest, and then what the plan has and nothing else, until it expires.
func TestApproval(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		w := newFixture(t, 30, interceptor.Funcs{})
		if guarded {
			w.parts.Policy = func([]string) (policy.Policy, error) { return guard.Around(w, guard.DefaultConfig()), nil }
		}
		w.mode(t, v1alpha1.ModeApprove)
		nodes := []policy.NodeID{4, 7}
		w.decide = func(_ *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
			m.Decisions++
			p := policy.Plan{Wake: policy.TimeOf(w.clock.Now()) + 1000, Steers: []policy.Steer{{Share: 0.5, Markets: []policy.MarketID{0}}}}
			for _, n := range nodes {
				p.Drains = append(p.Drains, policy.Drain{Node: n, Why: policy.Why{Reason: policy.ReasonRebalance, Before: 100_000, After: 40_000}})
			}
			return p, m
		}
		c := w.controller(t)
		for range 3 {
			step(t, c)
			w.clock.Step(time.Minute)
		}
		if said := w.take(); len(said) > 0 {
			t.Fatalf("guarded %v: %q before an approval", guarded, said)
		}
		p := w.plan(t)
		if got, want := changesOf(p), "drain n004; drain n007; set the Spot share to 50%"; got != want ||
			p.Status.State != v1alpha1.PlanPending || p.Status.Digest != p.Sum() {
			t.Fatalf("guarded %v: %s, %+v", guarded, got, p.Status)
		}
		if p.Status.Changes[0].SavingPerHour != "$0.06" || len(p.OwnerReferences) != 1 || w.pool(t).Status.Mode != v1alpha1.ModeApprove {
			t.Errorf("%+v of mode %s", p, w.pool(t).Status.Mode)
		}
		if reason, message := w.held(t); reason != "ApprovalPending" || !strings.Contains(message, p.Status.Digest) {
			t.Errorf("held: %s %s", reason, message)
		}

		w.approve(t, true, "0123")
		step(t, c)
		if said := w.take(); len(said) > 0 || w.plan(t).Status.State != v1alpha1.PlanDigestMismatch {
			t.Fatalf("guarded %v: %q by another digest, state %s", guarded, said, w.plan(t).Status.State)
		}
		w.approve(t, false, p.Status.Digest)
		step(t, c)
		if said := w.take(); len(said) > 0 {
			t.Fatalf("guarded %v: %q by a digest that is not approved", guarded, said)
		}

		w.approve(t, true, p.Status.Digest)
		step(t, c)
		if said := w.take(); !slices.Equal(said, []string{"steer 0.5", "drain n004"}) { // the ramp starts with one node
			t.Fatalf("guarded %v: %q once approved", guarded, said)
		}
		if p := w.plan(t); p.Status.State != v1alpha1.PlanApproved {
			t.Errorf("state %s", p.Status.State)
		}

		// The steer is in force. A node that the plan lacks waits for a plan of its own, with
		// another digest, that the old approval is not for.
		w.snapshot.Pools[0].Steer = policy.SteerState{Set: true, Share: 0.5}
		nodes = []policy.NodeID{9}
		step(t, c)
		next := w.plan(t)
		if said := w.take(); count(said, "drain") > 0 || changesOf(next) != "drain n009" ||
			next.Status.Digest == p.Status.Digest || next.Status.State != v1alpha1.PlanDigestMismatch {
			t.Fatalf("guarded %v: %q, plan %+v", guarded, said, next.Status)
		}
		w.clock.Step(w.cfg.PlanExpiry)
		w.approve(t, true, next.Status.Digest)
		step(t, c)
		again := w.plan(t)
		if said := w.take(); count(said, "drain") > 0 || changesOf(again) != "drain n009" || again.Status.Digest == next.Status.Digest {
			t.Fatalf("guarded %v: %q after the plan expired, plan %+v", guarded, said, again.Status)
		}
	}
}

// TestApprovalIsOfTheChanges: what counts is the changes that the digest is of, whatever the
// status says its digest is.
func TestApprovalIsOfTheChanges(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.mode(t, v1alpha1.ModeApprove)
	w.decide = drains
	c := w.controller(t)
	step(t, c)
	p := w.plan(t)
	p.Status.Changes = p.Status.Changes[:1]
	p.Status.Digest = p.Sum()
	approved := p.Status.Digest
	p.Status.Changes = append(p.Status.Changes, v1alpha1.SpotPlanChange{Change: "drain n001"}, v1alpha1.SpotPlanChange{Change: "drain n002"})
	if err := w.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.approve(t, true, approved)
	step(t, c)
	if said := w.take(); len(said) > 0 {
		t.Errorf("%q for changes that were added after the approval", said)
	}
}

// TestApprovalForcesNothingToWait: nodes under notice, and nodes for pods that wait, need no
// approval; and a plan that cannot be read approves nothing.
func TestApprovalForcesNothingToWait(t *testing.T) {
	unreadable := false
	w := newFixture(t, 3, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*v1alpha1.SpotPlan); is && unreadable {
			return errors.New("no answer")
		}
		return c.Get(ctx, key, o, opts...)
	}})
	w.mode(t, v1alpha1.ModeApprove)
	w.snapshot.Nodes[1].ReclaimAt = policy.TimeOf(t0.Add(2 * time.Minute))
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		p, m := drains(s, m)
		p.Launches = []policy.Launch{
			{Token: "pending", Replaces: policy.None, Markets: []policy.MarketID{1}, Why: policy.Why{Reason: policy.ReasonShortage}},
			{Token: "notice", Replaces: 1, Markets: []policy.MarketID{1}, Why: policy.Why{Reason: policy.ReasonCheaper}},
			{Token: "choice", Replaces: 0, Markets: []policy.MarketID{1}, Why: policy.Why{Reason: policy.ReasonCheaper}},
			{Token: "more", Replaces: policy.None, Markets: []policy.MarketID{1}, Why: policy.Why{Reason: policy.ReasonCheaper}},
		}
		return p, m
	}
	c := w.controller(t)
	want := []string{"drain n001", "launch notice", "launch pending"}
	for _, unreadable = range []bool{false, true} {
		if !unreadable {
			step(t, c)
			w.take()
			w.approve(t, true, w.plan(t).Status.Digest)
			w.approve(t, false, "")
		}
		step(t, c)
		said := w.take()
		slices.Sort(said)
		if !slices.Equal(said, want) {
			t.Errorf("unreadable %v: %q, want %q", unreadable, said, want)
		}
		if !unreadable {
			if got := changesOf(w.plan(t)); got != "drain n000; drain n002; launch spot nodes (cheaper)" {
				t.Errorf("the plan is %s", got)
			}
			w.approve(t, true, w.plan(t).Status.Digest) // which cannot be read in the next step
		}
	}
	if reason, _ := w.held(t); reason != "ApprovalUnknown" {
		t.Errorf("held for %s", reason)
	}
}

// TestApprovalWakes: a step is taken as soon as a person approves, and not for what the
// controller writes.
func TestApprovalWakes(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.mode(t, v1alpha1.ModeApprove)
	w.decide = drains
	c := w.controller(t)
	var a approvalWatch
	a.changed(t.Context(), w.client)
	step(t, c)
	if !c.table.isApproving() || !a.changed(t.Context(), w.client) || a.changed(t.Context(), w.client) {
		t.Error("a new plan is one change")
	}
	w.clock.Step(w.cfg.PlanExpiry)
	step(t, c)
	if a.changed(t.Context(), w.client) {
		t.Error("what the controller writes counts as an approval")
	}
	w.approve(t, true, w.plan(t).Status.Digest)
	if !a.changed(t.Context(), w.client) {
		t.Error("an approval is not noticed")
	}
}
