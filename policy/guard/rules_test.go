package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/guard"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// heldText returns why the only drain of a script is held, and "" where it is not.
func heldText(t *testing.T, script, text string, change func(*policy.Snapshot)) string {
	t.Helper()
	s, m, err := policytest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	plan, _ := guard.Around(scripted(script), guard.DefaultConfig()).Decide(s, m)
	if len(plan.Drains)+len(plan.Holds) != 1 {
		t.Fatalf("%d drains and %d holds, want one of them:\n%s", len(plan.Drains), len(plan.Holds), plan.Format(s))
	}
	if len(plan.Drains) == 1 {
		return ""
	}
	return plan.Holds[0].Why.Text
}

// TestPinnedPods: one pod that must not be evicted keeps its node, for whichever reason and whatever runs next to it.
func TestPinnedPods(t *testing.T) {
	const text = `
type b.4 4
market z b.4 on-demand 0.20
pool web
app one 0.5
app two 0.5
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
pod one n1 2
pod two n1
`
	bare := func(t *policy.Template) { t.Workload = policy.None }
	for name, x := range map[string]struct {
		pod      func(*policy.Pod)
		template func(*policy.Template)
		pinned   bool
	}{
		"nothing":                {},
		"pod is annotated":       {pod: func(p *policy.Pod) { p.DoNotDisrupt = true }, pinned: true},
		"not safe to evict":      {template: func(t *policy.Template) { t.NotSafeToEvict = true }, pinned: true},
		"bare":                   {template: bare, pinned: true},
		"bare and safe to evict": {template: func(t *policy.Template) { bare(t); t.SafeToEvict = true }},
		"pod is annotated, safe to move": {pod: func(p *policy.Pod) { p.DoNotDisrupt = true },
			template: func(t *policy.Template) { t.SafeToEvict = true }, pinned: true},
	} {
		for i := range 3 { // the pod is the first, one in between or the last
			got := heldText(t, "n1", text, func(s *policy.Snapshot) {
				if x.pod != nil {
					x.pod(&s.Pods[i])
				}
				if x.template != nil {
					one := s.Templates[s.Pods[i].Template]
					one.ID = policy.TemplateID(len(s.Templates))
					x.template(&one)
					s.Templates = append(s.Templates, one)
					s.Pods[i].Template = one.ID
				}
			})
			if strings.HasPrefix(got, "do-not-disrupt: a pod") != x.pinned || !x.pinned && got != "" {
				t.Errorf("%s, pod %d: held because of %q", name, i, got)
			}
		}
	}
}

// TestBudgetOfEmptyNodes: what a budget allows for empty nodes is for nodes without pods, whatever the policy calls them.
func TestBudgetOfEmptyNodes(t *testing.T) {
	const text = `
type b.4 4
market z b.4 on-demand 0.20
pool web
app one 0.5
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
`
	none := func(reason policy.DisruptionReason) func(*policy.Snapshot) {
		return func(s *policy.Snapshot) {
			s.Pools[0].Budgets = []policy.DisruptionBudget{{Reasons: []policy.DisruptionReason{reason}, Active: true}}
		}
	}
	const usedUp = "drain budget: the pool's disruption budget is used up"
	for _, x := range []struct {
		script, pods string
		budget       policy.DisruptionReason
		want         string
	}{
		{"n1=empty", "", policy.Underutilized, ""},
		{"n1=empty", "", policy.Empty, usedUp},
		{"n1=empty", "pod one n1\n", policy.Underutilized, usedUp},
		{"n1=empty", "pod one n1\n", policy.Empty, ""},
		{"n1", "", policy.Underutilized, usedUp},
		{"n1", "", policy.Empty, ""},
	} {
		if got := heldText(t, x.script, text+x.pods, none(x.budget)); got != x.want {
			t.Errorf("%s with pods %q under a budget of none for %v: held because of %q, want %q", x.script, x.pods, x.budget, got, x.want)
		}
	}
}

// TestNodeOfNoPool: a node that belongs to no pool is left alone, unless it is under notice.
func TestNodeOfNoPool(t *testing.T) {
	const text = `
type b.4 4
market z b.4 on-demand 0.20
pool web
app one 0.5
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
pod one n1
`
	for _, reclaim := range []bool{false, true} {
		got := heldText(t, "n1", text, func(s *policy.Snapshot) {
			n := &s.Nodes[slices.IndexFunc(s.Nodes, func(n policy.Node) bool { return n.Name == "n1" })]
			n.Pool = policy.None
			if reclaim {
				n.NoticeAt, n.ReclaimAt = s.Now-1, s.Now+60_000
			}
		})
		if want := map[bool]string{false: "scope: the node belongs to no pool", true: ""}[reclaim]; got != want {
			t.Errorf("under notice %v: held because of %q, want %q", reclaim, got, want)
		}
	}
}
