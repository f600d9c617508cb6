package gpubudget

import (
	"fmt"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// TestResumeByKind resumes the Job of a name, wherever in the table another workload has
// the same name.
func TestResumeByKind(t *testing.T) {
	job := policy.Workload{Name: "ml/train", Kind: policy.KindJob, Suspended: true, PausedBy: "ml/b"}
	other := policy.Workload{Name: "ml/train", Kind: policy.KindDeployment, Replicas: 1}
	for _, kind := range []policy.WorkloadKind{policy.KindDeployment, policy.KindStatefulSet, policy.KindDaemonSet} {
		other.Kind = kind
		for at, all := range [][]policy.Workload{{job, other}, {other, job}} {
			s := &policy.Snapshot{Now: epoch, Workloads: all}
			plan, _ := Around(&ordered{}, DefaultConfig()).Decide(s, policy.Memory{})
			if len(plan.Pauses) != 1 || plan.Pauses[0].Paused || plan.Pauses[0].Workload != policy.WorkloadID(at) {
				t.Errorf("beside a %v: %+v, want the Job in place %d to resume", kind, plan.Pauses, at)
			}
		}
	}
}

// TestPausedWhileOver keeps a job suspended while its budget is over its quota, also where
// the delay before it is enforced has begun again because the memory was lost.
func TestPausedWhileOver(t *testing.T) {
	s := &policy.Snapshot{Now: epoch, Workloads: []policy.Workload{{Name: "ns/j", Kind: policy.KindJob, Suspended: true, PausedBy: "ns/b"}},
		Templates: []policy.Template{{Namespace: "ns", GPUResource: "gpu", Requests: policy.Resources{GPU: 1}}},
		Budgets: []policy.Budget{{Name: "ns/b", Namespace: "ns", Selector: policy.Selector{Everything: true}, Resource: "gpu", HasGPUHours: true,
			Window: time.Hour, Action: policy.BudgetPause, OverQuotaDelay: time.Minute, Closed: true}}}
	if plan, _ := Around(&ordered{}, DefaultConfig()).Decide(s, policy.Memory{}); len(plan.Pauses) > 0 {
		t.Errorf("%+v", plan.Pauses)
	}
	s.Budgets[0].GPUHours = 1
	if plan, _ := Around(&ordered{}, DefaultConfig()).Decide(s, policy.Memory{}); len(plan.Pauses) != 1 {
		t.Errorf("%+v, want the job to resume below the quota", plan.Pauses)
	}
}

// TestAbsentFlood remembers no more than a number of budgets of a namespace that are gone,
// and all of another.
func TestAbsentFlood(t *testing.T) {
	var m policy.Memory
	for _, namespace := range []string{"a", "b"} {
		for i := range map[string]int{"a": 3 * absentMax, "b": 3}[namespace] {
			m.Budgets = append(m.Budgets, policy.BudgetMemory{Name: fmt.Sprintf("%s/%04d", namespace, i),
				Buckets: []policy.BudgetBucket{{Hour: epoch, Used: 1}}})
		}
	}
	_, m = Around(&ordered{}, DefaultConfig()).Decide(&policy.Snapshot{Now: epoch}, m)
	if n := len(m.Budgets); n != absentMax+3 || m.Budgets[n-1].Name != "b/0002" {
		t.Errorf("%d are remembered", n)
	}
}
