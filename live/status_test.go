package live

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A modelJudge says of every pool that its bundle is used, while it is named.
type modelJudge func() bool

func (named modelJudge) Conditions(string) []metav1.Condition {
	if !named() {
		return nil
	}
	return []metav1.Condition{{Type: ConditionModelUsed, Status: metav1.ConditionTrue, Reason: "Scored", Message: "the bundle scored 2 markets"}}
}

// TestModelUsedForgotten: what a controller before this one said of a bundle goes with the
// bundle, and stays while it is named.
func TestModelUsedForgotten(t *testing.T) {
	w := newWorld(t, 1, interceptor.Funcs{})
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
