package live

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
)

// A modelJudge says of every pool that its bundle is used, while it is named.
type modelJudge func() bool

func (named modelJudge) Conditions(string) []metav1.Condition {
	if !named() {
		return nil
	}
	return []metav1.Condition{{Type: ConditionModelUsed, Status: metav1.ConditionTrue, Reason: "Scored",
		Message: "the bundle scored 2 markets"}}
}

// TestModelUsedForgotten: what a controller before this one said of a bundle goes with the
// bundle, and stays while it is named.
func TestModelUsedForgotten(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	named := true
	w.parts.Judges = []Judge{modelJudge(func() bool { return named })}
	step(t, w.controller(t))
	if got := w.condition(t, ConditionModelUsed); got.Reason != "Scored" {
		t.Fatalf("condition %+v", got)
	}
	step(t, w.controller(t)) // long before figures are due again
	if got := w.condition(t, ConditionModelUsed); got.Reason != "Scored" {
		t.Errorf("condition %+v", got)
	}
	named = false
	c := w.controller(t)
	step(t, c)
	if got := w.condition(t, ConditionModelUsed); got.Type != "" {
		t.Errorf("the bundle is named no more, and the pool has the condition %+v", got)
	}
	if got := w.condition(t, ConditionReady); got.Status != "True" {
		t.Errorf("condition %+v", got)
	}
}

// judgeOf is a Judge that says one thing of every pool.
type judgeOf metav1.Condition

func (j judgeOf) Conditions(string) []metav1.Condition {
	return []metav1.Condition{metav1.Condition(j)}
}

// TestReadyIsTheConjunction: a pool is not ready while anything that its backend, its
// prices or its notices need is not there, and is not what keeps it from nothing.
func TestReadyIsTheConjunction(t *testing.T) {
	for _, x := range []struct {
		kind, status string
		ready        metav1.ConditionStatus
	}{
		{"KarpenterReady", "False", "False"}, {"KarpenterReady", "True", "True"},
		{"PricesRead", "False", "False"}, {"NodesPriced", "False", "False"}, {"NoticesRead", "False", "False"},
		{"CredentialsInvalid", "True", "False"}, {"CredentialsInvalid", "False", "True"}, {"FieldConflict", "True", "False"},
		{"UsageKnown", "False", "True"}, {"Recording", "False", "True"}, {"TemplateHeld", "True", "True"},
	} {
		w := newFixture(t, 1, interceptor.Funcs{})
		w.parts.Judges = []Judge{judgeOf{Type: x.kind, Status: metav1.ConditionStatus(x.status), Reason: "Because", Message: "of this"}}
		step(t, w.controller(t))
		if got := w.condition(t, ConditionReady); got.Status != x.ready ||
			x.ready == "False" && (got.Reason != x.kind || got.Message != "of this") {
			t.Errorf("with %s %s: %+v", x.kind, x.status, got)
		}
	}
}

// TestLossBudgetInStatus shows what is left of a loss budget, until when a pool is on demand because
// it is used up, and nothing once the policy keeps none.
func TestLossBudgetInStatus(t *testing.T) {
	w := newFixture(t, 1, interceptor.Funcs{})
	loss, kept := policy.LossBudget{Left: 1.239}, true
	w.decide = func(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
		pool := m.Pool("web")
		if kept {
			pool.Loss = loss
			pool.Loss.At = s.Now
		}
		return policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m.With(pool)
	}
	c := w.controller(t)
	shows := func(want string) {
		t.Helper()
		w.clock.Step(2 * time.Minute)
		step(t, c)
		if got := w.pool(t).Status.LossBudget; got != want {
			t.Errorf("the status has %q, want %q", got, want)
		}
	}
	shows("$1.20 left")
	loss.Left = 1234.5
	shows("$1,200.00 left")
	until := policy.TimeOf(t0.Add(6 * time.Hour))
	loss = policy.LossBudget{Left: -0.5, Bounded: true, Away: true, Until: until, Exhausted: 1}
	shows("used up, on demand until 2026-03-02T14:00:00Z")
	loss.Until = policy.TimeOf(t0)
	shows("used up, on demand until it covers losses again")
	if p := c.poolMetrics(c.current.snapshot)[0]; p.LossLeft == nil || *p.LossLeft != -0.5 || !p.LossUsedUp {
		t.Errorf("the metrics have %+v", p)
	}
	kept = false
	w.clock.Step(policy.LossAccountEvery)
	shows("")
	if p := c.poolMetrics(c.current.snapshot)[0]; p.LossLeft != nil || p.LossUsedUp {
		t.Errorf("the metrics have %+v of a policy that keeps no loss budget", p)
	}
}
