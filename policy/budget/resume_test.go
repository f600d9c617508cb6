package budget

import (
	"testing"

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
