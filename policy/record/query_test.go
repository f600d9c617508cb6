package record

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// patient does nothing but in its second decision, in which it drains node a.
type patient struct{}

func (patient) Name() string { return "patient" }

func (patient) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	m.Decisions++
	p := policy.Plan{Wake: s.Now + 600_000}
	if m.Decisions == 2 {
		p.Drains = []policy.Drain{{Node: 0, Why: policy.Why{Reason: policy.ReasonCheaper, Text: "next door", Before: 40_000, After: 10_000}}}
		p.Launches = []policy.Launch{{Pool: 0, Token: "t", Markets: []policy.MarketID{1, 0}, Replaces: policy.None,
			Why: policy.Why{Reason: policy.ReasonShare}}}
		m = m.With(policy.PoolMemory{Name: "web", Moved: s.Now, Backoff: []policy.Backoff{{Node: "b", Until: s.Now + 3_600_000, Tries: 2}}})
	}
	return p, m
}

// quiet records five decisions of a patient policy, ten minutes apart from
// minute ten on. Node a is gone from the fourth on.
func quiet(t *testing.T) *Recording {
	t.Helper()
	dir := t.TempDir()
	w := newWriter(t, dir, testMeta)
	w.limits.Steps = 2
	size := policy.Resources{CPU: 2000, Memory: 1 << 30, Pods: 10}
	var m policy.Memory
	for i := range policy.Time(5) {
		s := &policy.Snapshot{
			Now:   600_000 * (i + 1),
			Types: []policy.InstanceType{{Name: "m5", Allocatable: size}},
			Markets: []policy.Market{
				{ID: 0, Name: "here", Offered: true, Price: 40_000, OnDemand: 90_000, Capacity: policy.Spot},
				{ID: 1, Name: "next-door", Offered: true, Price: 35_000, OnDemand: 90_000, Capacity: policy.Spot},
				{ID: 2, Name: "closed", Price: 1_000, OnDemand: 90_000, Capacity: policy.Spot},
				{ID: 3, Name: "paid", Offered: true, Price: 30_000, OnDemand: 30_000, Capacity: policy.OnDemand},
			},
			Pools: []policy.Pool{{
				Name: "web", Mode: policy.ModeActive, Markets: []policy.MarketID{0, 1, 2, 3}, Share: policy.ShareRange{Max: 1},
				SavingsThreshold: 0.25, Cooldown: time.Hour,
			}},
			Nodes: []policy.Node{
				{ID: 0, Name: "a", Phase: policy.NodeInitialized, Allocatable: size},
				{ID: 1, Name: "b", Phase: policy.NodeInitialized, Allocatable: size, DoNotDisrupt: true},
			},
		}
		if i >= 3 {
			s.Nodes[0] = policy.Node{}
		}
		plan, after := patient{}.Decide(s, m)
		if err := w.Record(t.Context(), s, &m, &plan); err != nil {
			t.Fatal(err)
		}
		m = after
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestQuery(t *testing.T) {
	r := quiet(t)
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"why something was": {Query{Number: 2, Node: "a"}, []string{
			"step 2 at", "drain a: cheaper, next door ($0.04/h → $0.01/h)", "in its pool, web", "in next-door, or another of next-door, here",
		}},
		"why nothing was": {Query{Number: 3, Node: "b"}, []string{
			"the plan leaves it as it is", "asks not to be disrupted", "left alone until", "its drain was started 2 times", "pool web moved nodes 10m0s ago and waits 1h0m0s",
			// A quarter of $0.04 is wanted, $0.005 is there.
			"it costs $0.04/h; next-door offers as much capacity for $0.035/h, $0.005/h less, but a move must save at least $0.01/h",
			"as on-demand it would cost $0.03/h, $0.01/h less, in paid",
		}},
		"what came before": {Query{Number: 3, Node: "a"}, []string{"the previous decision about it was 10m0s earlier", "drain a: cheaper"}},
		"between two steps": {Query{At: 600_000*3 + 1, Pool: "web"}, []string{
			"step 3 at", "pool web: 2 Spot nodes", "last moved nodes voluntarily at", "node b is left alone until", "no pod is pending", "drain a: cheaper",
		}},
		"the last step":  {Query{At: 1 << 40}, []string{"step 5 at", "the plan does nothing", "none of its nodes is under notice"}},
		"the whole plan": {Query{Number: 2}, []string{"the plan\n", "launch web", "drain a"}},
	} {
		got, step, err := r.Explain(c.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if *step.Meta != r.Meta {
			t.Errorf("%s: the decision is of %+v, want %+v", name, *step.Meta, r.Meta)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, got)
			}
		}
	}
}

func TestQueryOfNothing(t *testing.T) {
	r := quiet(t)
	for name, c := range map[string]struct {
		q    Query
		is   error
		want string
	}{
		"gone node": {Query{Number: 5, Node: "a"}, ErrNoSuch,
			"last existed at step 3; the last decision about it, at 1970-01-01T00:20:00.000Z, was: drain a"},
		"unknown node":    {Query{Number: 1, Node: "z"}, ErrNoSuch, "there are a, b"},
		"unknown pool":    {Query{Number: 1, Pool: "a"}, ErrNoSuch, "there are web"},
		"later step":      {Query{Number: 6}, ErrNoStep, "has no step 6; its last is step 5"},
		"before it began": {Query{At: 1}, ErrNoStep, "starts at"},
	} {
		if _, _, err := r.Explain(c.q); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pod that is evicted from a node is a decision about that node.
func TestExplainEviction(t *testing.T) {
	s := &Step{Number: 1, Snapshot: &policy.Snapshot{
		Now:   1,
		Pools: []policy.Pool{{Name: "web"}},
		Nodes: []policy.Node{{ID: 0, Name: "a", Phase: policy.NodeInitialized, Market: policy.None},
			{ID: 1, Name: "b", Phase: policy.NodeInitialized, Market: policy.None}},
		Pods: []policy.Pod{{ID: 0, Name: "p", Node: 1, Phase: policy.PodReady}},
	}}
	s.Plan.Evicts = []policy.Evict{{Pod: 0, Why: policy.Why{Reason: "budget", Text: "its hours are spent"}}}
	if got, err := explained(s, "b"); err != nil || !strings.Contains(got, "evict p: budget, its hours are spent") {
		t.Errorf("%v\n%s", err, got)
	}
	if got, err := explained(s, "a"); err != nil || strings.Contains(got, "evict") {
		t.Errorf("%v\n%s", err, got)
	}
}

// Without a segment in the middle nothing is known of the time that it held: no
// decision before it is said to be in force there, and none is said to be the last.
func TestQueryAcrossGap(t *testing.T) {
	dir := quiet(t).dir // steps 1 and 2, 3 and 4, and 5, from minute ten on
	if err := os.RemoveAll(segmentDir(dir, 2)); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(r.Missing) != "[2]" || !strings.Contains(strings.Join(r.Warnings, "\n"), "segment 2 is missing") {
		t.Errorf("missing are %v, and the warnings are %q", r.Missing, r.Warnings)
	}
	if _, _, err := r.Explain(Query{At: 600_000*2 + 5}); err != nil {
		t.Errorf("while the plan of step 2 holds: %v", err)
	}
	for _, q := range []Query{{At: 600_000 * 3}, {At: 600_000*5 - 1}, {Number: 3}} {
		if _, _, err := r.Explain(q); !errors.Is(err, ErrNoStep) || !strings.Contains(err.Error(), "step 2 is followed by step 5") {
			t.Errorf("%+v: %v", q, err)
		}
	}
	text, _, err := r.Explain(Query{Number: 5, Pool: "web"})
	if err != nil || !strings.Contains(text, "steps 3 to 4 are missing from the recording") {
		t.Errorf("of the pool after it: %v\n%s", err, text)
	}
	if text, _, err := r.Explain(Query{Number: 2, Pool: "web"}); err != nil || strings.Contains(text, "missing from the recording") {
		t.Errorf("of the pool before it: %v\n%s", err, text)
	}
}
