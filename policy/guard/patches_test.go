package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/guard"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestGuardPatches lets no more pods be written in a step than the limit, but for
// those of the first node, and in the order of the plan.
func TestGuardPatches(t *testing.T) {
	text := "type a.4 4\nmarket z a.4 on-demand 0.20\npool off off\npool web\napp api 1 replicas=9\nnode n0 off z a.4 on-demand\n"
	for i := 1; i <= 3; i++ {
		text += fmt.Sprintf("node n%d web z a.4 on-demand\n", i)
	}
	s, m, err := policytest.Parse(text + "pod api n0 1\npod api n1 4\npod api n2 2\npod api n3 1\n")
	if err != nil {
		t.Fatal(err)
	}
	var plan policy.Plan
	for n := range s.Nodes {
		plan.DeletionCosts = append(plan.DeletionCosts, policy.DeletionCost{Node: policy.NodeID(n), Cost: -7,
			Why: policy.Why{Reason: policy.ReasonCheaper, Text: "first"}})
	}
	plan.Wake = s.Now + 1
	for most, want := range map[int]string{
		1: "deletion-cost n1 -7", 5: "deletion-cost n1 -7", 6: "deletion-cost n1 -7\ndeletion-cost n2 -7",
		7: "deletion-cost n1 -7\ndeletion-cost n2 -7\ndeletion-cost n3 -7",
	} {
		cfg := guard.DefaultConfig()
		cfg.PatchesMax = most
		got, _ := guard.Around(always{plan}, cfg).Decide(s, m)
		format := strings.ReplaceAll(got.Format(s), " (cheaper)", "")
		if have, _, _ := strings.Cut(format, "\nhold"); have != want {
			t.Errorf("of at most %d pods:\n%s\nwant\n%s", most, format, want)
		}
		if waits := strings.Contains(format, "hold web"); waits != (most < 7) || !strings.Contains(format, "hold off n0") {
			t.Errorf("of at most %d pods it is held:\n%s", most, format)
		}
	}
}

// An always plans the same, whatever it sees.
type always struct{ plan policy.Plan }

func (always) Name() string { return "always" }

func (p always) Decide(_ *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	return p.plan, m
}
