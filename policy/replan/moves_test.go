package replan_test

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/replan"
)

// movesOf returns the moves of the first pool of s.
func movesOf(s *policy.Snapshot, plan *policy.Plan) *replan.Moves {
	m := replan.NewMoves(s, 0, plan)
	m.Space, m.Cover = placement.FromSnapshot(s), billing.CoverageOf(s)
	return &m
}

// TestLeaving has one pod on each node: which nodes may be emptied by choice depends on it.
func TestLeaving(t *testing.T) {
	s := parse(t, `type b.4 4
market z b.4 spot 0.06
pool web
app bare 1 kind=Pod
app safe 1 kind=Pod
app one 1
node n0 web z b.4 spot
node n1 web z b.4 spot
node n2 web z b.4 spot
node n3 web z b.4 spot
pod bare n0
pod safe n1
pod one n2
`)
	s.Templates[1].SafeToEvict = true
	m := movesOf(s, &policy.Plan{})
	for n, want := range []struct {
		pods int
		may  bool
	}{{0, false}, {1, true}, {1, true}, {0, true}} {
		if pods, _, why := m.Leaving(policy.NodeID(n)); len(pods) != want.pods || (why.Reason == "") != want.may {
			t.Errorf("%d pods leave n%d, which is held for %q", len(pods), n, why.Text)
		}
	}
	m.MayLose = true
	if pods, _, why := m.Leaving(0); len(pods) != 1 || why.Reason != "" {
		t.Errorf("%d pods leave n0 where pods may be lost; it is held for %q", len(pods), why.Text)
	}
}

// TestLeavingInTime has two pods of a budget that lets one go at a time. The second waits for
// the first to be ready elsewhere: in twelve minutes if it is slow, whichever comes first on
// the node.
func TestLeavingInTime(t *testing.T) {
	for _, pods := range []string{"pod slow n0\npod one n0\n", "pod one n0\npod slow n0\n"} {
		s := parse(t, "type b.4 4\nmarket z b.4 spot 0.06\npool web\napp slow 1\napp one 1\nnode n0 web z b.4 spot\n"+pods)
		s.PDBs = []policy.PDB{{Name: "both", Allowed: 1}}
		for i := range s.Templates {
			s.Templates[i].PDBs = []policy.PDBID{0}
		}
		m := movesOf(s, &policy.Plan{})
		m.Allowed = replan.Evictions(s)
		leaving, _, why := m.Leaving(0)
		if why.Reason != "" {
			t.Errorf("n0 is held for %q", why.Text)
		}
		if m.Charge(leaving); m.Allowed[0] != 0 {
			t.Errorf("%d evictions are left after both", m.Allowed[0])
		}
		s.Templates[0].Startup = 12 * time.Minute
		m.Allowed = replan.Evictions(s)
		if _, _, why := m.Leaving(0); why.Reason != policy.ReasonGuardrail {
			t.Errorf("a node that takes twelve minutes to empty may be drained")
		}
	}
}

// TestOrder replaces an on-demand node of 4 by two Spot nodes of 2: the pool holds as much as
// before, all of it on Spot, and the drain waits for both. Where the provisioner buys, nothing is
// launched, and what it will buy counts against the limits all the same.
func TestOrder(t *testing.T) {
	const markets = "type a.2 2\ntype b.4 4\nmarket z a.2 spot 0.03\nmarket z b.4 on-demand 0.20\n"
	for pool, launched := range map[string]int{"pool web none\n": 2, "pool web\n": 0} {
		s := parse(t, markets+pool+"node n0 web z b.4 on-demand\n")
		s.Pools[0].Levers.Launch = false
		s.Pools[0].Limits.CPU, s.Pools[0].Used.CPU = 10_000, 4000
		s.Pools[0].Budgets = []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, N: 1}, Active: true}}
		plan := policy.Plan{}
		m := movesOf(s, &plan)
		left := m.Left
		m.Order("n0", []policy.NodeID{0}, [][]policy.MarketID{{0}, {0}}, policy.Why{Reason: policy.ReasonCheaper})
		if len(plan.Launches) != launched || len(plan.Drains) != 1 || len(plan.Drains[0].After) != launched {
			t.Errorf("%s: planned\n%s", pool, plan.Format(s))
		}
		if want := (placement.Balance{Spot: 4, Total: 4, Nodes: 1}); m.At != want || m.Left != left-1 {
			t.Errorf("%s: the pool holds %+v and %d nodes may leave, want %+v and %d", pool, m.At, m.Left, want, left-1)
		}
		if m.Headroom.Has(1) || !m.Headroom.Has(0) {
			t.Errorf("%s: there is room for a node of 4 cores: %v, of 2: %v", pool, m.Headroom.Has(1), m.Headroom.Has(0))
		}
	}
}
