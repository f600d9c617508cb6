package record

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// TestBudgets writes what budgets bring into snapshot, memory and plan, and reads
// it as it was.
func TestBudgets(t *testing.T) {
	s := &policy.Snapshot{
		Now:       policy.Time(1_800_000_000_000),
		Workloads: []policy.Workload{{Name: "ml/train", Kind: policy.KindJob, Suspended: true, PausedBy: "ml/b"}},
		Templates: []policy.Template{{Name: "ml/train", Namespace: "ml", Requests: policy.Resources{Pods: 1}}},
		Pods: []policy.Pod{{Name: "ml/train-0", Phase: policy.PodPending, Node: policy.None, Nominated: policy.None,
			VolumeZone: policy.None}},
		Budgets: []policy.Budget{{
			Name: "ml/b", Namespace: "ml", Resource: "nvidia.com/gpu", GPUHours: 96.5, HasGPUHours: true, Dollars: policy.Dollar, HasDollars: true,
			Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"train"}}}},
			Window:   24 * time.Hour, Action: policy.BudgetPause, OverQuotaDelay: time.Minute, PodGrace: time.Second, HasPodGrace: true,
			Gate: true, Closed: true, LiveObjects: true,
		}},
	}
	m := policy.Memory{Decisions: 3, Budgets: []policy.BudgetMemory{{
		Name: "ml/b", Buckets: []policy.BudgetBucket{{Hour: 1_799_996_400_000, Used: 7, Cost: 8}}, Counted: 5, Used: 7, Cost: 8, DevicePrice: 9,
		Over: 6, Closed: true, Ordered: 4, Enforced: 3, Asked: []policy.AskedPod{{Pod: "ml/train-0", At: 2}},
	}}}
	why := policy.Why{Reason: policy.ReasonBudget, Text: "spent", Before: 5, After: 1, RunnerUp: "another"}
	p := policy.Plan{
		Gates:  []policy.Gate{{Budget: "ml/b", Closed: true, Why: why}},
		Pauses: []policy.Pause{{Workload: 0, Budget: "ml/b", Paused: true, Why: why}, {Workload: 0, Budget: "ml/b", Why: why}},
		Evicts: []policy.Evict{{Pod: 0, Budget: "ml/b", Grace: 30 * time.Second, HasGrace: true, Why: why}, {Pod: 0, Why: why}},
		Wake:   s.Now + 1,
	}
	dir := t.TempDir()
	w, err := NewWriter(dir, Meta{Policy: "static"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Record(context.Background(), s, &m, &p); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Step(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what      string
		got, want any
	}{
		{"budgets", got.Snapshot.Budgets, s.Budgets}, {"workloads", got.Snapshot.Workloads, s.Workloads},
		{"memory", got.Memory, m}, {"gates", got.Plan.Gates, p.Gates}, {"pauses", got.Plan.Pauses, p.Pauses}, {"evicts",
			got.Plan.Evicts, p.Evicts},
	} {
		if !reflect.DeepEqual(x.got, x.want) {
			t.Errorf("%s: read %+v, written %+v", x.what, x.got, x.want)
		}
	}
}

// TestExplainBudgets says of each entry that budgets add what is done to what and
// for whom, of a job that it concerns the nodes on which its pods run, and of a
// closed gate that it keeps pods out where nothing is done.
func TestExplainBudgets(t *testing.T) {
	s := &Step{Number: 7, Snapshot: &policy.Snapshot{
		Now:   1_800_000_000_000,
		Pools: []policy.Pool{{Name: "gpu"}, {Name: "cpu"}},
		Nodes: []policy.Node{{Name: "a", Phase: policy.NodeInitialized, Market: policy.None},
			{ID: 1, Name: "b", Pool: 1, Phase: policy.NodeInitialized, Market: policy.None}},
		Workloads: []policy.Workload{{Name: "ml/tune", Kind: policy.KindJob, Suspended: true, PausedBy: "ml/b"},
			{ID: 1, Name: "ml/train", Kind: policy.KindJob}},
		Templates: []policy.Template{{Name: "ml/tune"}, {ID: 1, Name: "ml/train", Workload: 1}},
		Pods:      []policy.Pod{{Name: "ml/train-0", Template: 1, Phase: policy.PodReady}},
		Budgets:   []policy.Budget{{Name: "ml/b", Action: policy.BudgetPause, Window: 24 * time.Hour, Closed: true}},
	}}
	s.Memory.Budgets = []policy.BudgetMemory{{Name: "ml/b", Used: 9 * 3_600_000_000, Cost: 2 * policy.Dollar, Over: 1_799_999_000_000}}
	why := policy.Why{Reason: policy.ReasonBudget, Text: "spent"}
	explained := func(node string) string {
		var b strings.Builder
		err := explainStep(&b, s)
		if node != "" {
			b.Reset()
			var text string
			text, err = explained(s, node)
			b.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	expect := func(got string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in\n%s", want, got)
			}
		}
	}
	expect(explained(""), "budget ml/b (Pause): 9.00 device-hours and $2.00 used in the 24 h before",
		", spent since 2027-01-15T07:43:20.000Z, gate closed, ml/tune suspended")
	expect(explained("gpu"), "the plan leaves it as it is", "the gate of budget ml/b is closed")
	s.Plan.Gates = []policy.Gate{{Budget: "ml/b", Closed: true, Why: why}, {Budget: "ml/b", Why: why}}
	s.Plan.Pauses = []policy.Pause{{Workload: 1, Budget: "ml/b", Paused: true, Why: why}, {Workload: 0, Budget: "ml/b", Why: why}}
	s.Plan.Evicts = []policy.Evict{{Pod: 0, Budget: "ml/b", Why: why}}
	expect(explained(""), "gate of ml/b closes: budget, spent", "gate of ml/b opens: ", "pause ml/train for ml/b: ",
		"resume ml/tune for ml/b: ", "evict ml/train-0 for ml/b: ")
	expect(explained("a"), "pause ml/train for ml/b")
	expect(explained("gpu"), "pause ml/train for ml/b")
	if got := explained("cpu"); strings.Contains(got, "pause") {
		t.Errorf("the pause is none of this pool:\n%s", got)
	}
}
