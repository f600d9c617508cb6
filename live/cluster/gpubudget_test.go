package cluster_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/live/gpubudget"
	"github.com/spotter-dev/spotter/policy"
	budgetpolicy "github.com/spotter-dev/spotter/policy/gpubudget"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A still policy wants nothing.
type still struct{}

func (still) Name() string { return "still" }

func (still) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	return policy.Plan{Wake: policy.NextStep(s.Now, policy.DefaultStep)}, m
}

func gpuBudget(name string) *v1alpha1.GPUBudget {
	return &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "1"},
		Spec: v1alpha1.GPUBudgetSpec{Quota: v1alpha1.Quota{GPUHours: ptr.To(10.0), WindowHours: 24}}}
}

// TestBudgetKeepsItsHistory mistypes the selector of a budget, hides the budget for a step,
// and corrects both: what was used is there again.
func TestBudgetKeepsItsHistory(t *testing.T) {
	for name, gone := range map[string]func(*lab, *v1alpha1.GPUBudget){
		"key": func(l *lab, b *v1alpha1.GPUBudget) {
			b.Spec.Selector.MatchLabels = map[string]string{"team ": "ml"}
			l.put(b)
		},
		"value": func(l *lab, b *v1alpha1.GPUBudget) {
			b.Spec.Selector.MatchLabels = map[string]string{"team": "m l"}
			l.put(b)
		},
		"operator": func(l *lab, b *v1alpha1.GPUBudget) {
			b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "in"}}
			l.put(b)
		},
		"missing": func(l *lab, b *v1alpha1.GPUBudget) { l.remove(b) },
	} {
		l := newLab(t, node("n"), gpuBudget("g"))
		p := budgetpolicy.Around(still{}, budgetpolicy.DefaultConfig())
		m := policy.Memory{Budgets: []policy.BudgetMemory{{Name: "a/g", UID: "1", Counted: at(0), Used: 9 * 3_600_000_000,
			Buckets: []policy.BudgetBucket{{Hour: at(0) - at(0)%3_600_000, Used: 9 * 3_600_000_000}}}}}
		used := func(after time.Duration) int64 {
			s := l.observe(after)
			if s.Now = max(s.Now, at(after)); len(s.Budgets) > 0 && s.Budgets[0].Invalid != (after == 2*time.Minute) {
				t.Errorf("%s: after %v: %+v", name, after, s.Budgets)
			}
			_, m = p.Decide(s, m)
			return m.Budgets[0].Used
		}
		used(time.Minute)
		wrong := gpuBudget("g")
		gone(l, wrong)
		used(2 * time.Minute)
		l.put(gpuBudget("g"))
		if got := used(3 * time.Minute); got != 9*3_600_000_000 {
			t.Errorf("%s: %.1f h are known to be used, want 9.0", name, float64(got)/3.6e9)
		}
	}
}

// TestBudgetFlood takes the oldest budgets of a namespace, and those of others.
func TestBudgetFlood(t *testing.T) {
	l := newLab(t, node("n"))
	for i := range 2 * gpubudget.NamespaceMax {
		b := gpuBudget(fmt.Sprintf("b%03d", i))
		b.CreationTimestamp = metav1.NewTime(at(-time.Duration(i/2) * time.Minute).Std()) // the later names are older
		l.put(b)
	}
	other := gpuBudget("z")
	other.Namespace = "other"
	l.put(other)
	s := l.observe(time.Minute)
	if n := len(s.Budgets); n != gpubudget.NamespaceMax+1 || s.Budgets[0].Name != "a/b100" || s.Budgets[n-1].Name != "other/z" {
		t.Errorf("%d budgets from %s to %s", n, s.Budgets[0].Name, s.Budgets[n-1].Name)
	}
}

// TestPausedJobBesideADeployment shows by which budget a Job was suspended, next to
// workloads of its name.
func TestPausedJobBesideADeployment(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "j",
		Annotations: map[string]string{gpubudget.PausedBy: "a/b"}}}
	job.Spec.Suspend = ptr.To(true)
	meta := metav1.ObjectMeta{Namespace: "a", Name: "train"}
	l := newLab(t, node("n"), job, &appsv1.Deployment{ObjectMeta: meta}, &appsv1.StatefulSet{ObjectMeta: meta})
	s := l.observe(time.Minute)
	plan, _ := budgetpolicy.Around(still{}, budgetpolicy.DefaultConfig()).Decide(s, policy.Memory{})
	if len(plan.Pauses) != 1 || plan.Pauses[0].Paused || plan.Pauses[0].Budget != "a/b" {
		t.Fatalf("%+v", plan.Pauses)
	}
	if w := s.Workloads[plan.Pauses[0].Workload]; w.Kind != policy.KindJob || w.UID != "j" {
		t.Errorf("%+v", w)
	}
}
