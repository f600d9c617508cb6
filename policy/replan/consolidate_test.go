package replan_test

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/replan"
)

func at(share float64) func(policy.PoolID) float64 {
	return func(policy.PoolID) float64 { return share }
}

// TestConsolidateAfter gives an empty node back ten minutes after its last pod
// went, and asks to be woken then.
func TestConsolidateAfter(t *testing.T) {
	s := parse(t, `type b.4 4
market z b.4 on-demand 0.20
pool web none
app one 3
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
pod one n1`)
	s.Pools[0].ConsolidateAfter = 10 * time.Minute
	gone := s.Now.Add(-4 * time.Minute)
	s.Ended = []policy.EndedPod{{Node: "n2", End: gone.Add(-time.Hour)}, {Node: "n2", End: gone}, {Node: "n1", End: s.Now}}
	later := s.Now.Add(time.Hour)
	plan, m := replan.Consolidate(s, policy.Plan{Wake: later}, policy.Memory{}, replan.ConsolidateOptions{Share: at(0)})
	if len(plan.Drains) != 0 || plan.Wake != gone.Add(10*time.Minute) {
		t.Fatalf("drains %v, wakes at %v; want none, and to wake at %v", plan.Drains, plan.Wake, gone.Add(10*time.Minute))
	}
	s.Now, s.Ended = plan.Wake-1, nil
	if plan, _ = replan.Consolidate(s, policy.Plan{Wake: later}, m, replan.ConsolidateOptions{Share: at(0)}); len(plan.Drains) != 0 {
		t.Errorf("drained a millisecond too soon")
	}
	s.Now++
	if plan, m = replan.Consolidate(s, policy.Plan{Wake: later}, m,
		replan.ConsolidateOptions{Share: at(0)}); len(plan.Drains) != 1 || plan.Drains[0].Node != 1 || plan.Wake != later {
		t.Errorf("drains %v, wakes at %v; want n2 drained, and no other wake", plan.Drains, plan.Wake)
	}
	if idle := m.Pool("web").Idle; len(idle) != 1 || idle[0] != (policy.Idle{Node: "n2", Since: gone}) {
		t.Errorf("remembers %v", idle)
	}
}

// TestConsolidateKeepsReplacements leaves an empty node alone that came while
// another is still being emptied: its pods are coming.
func TestConsolidateKeepsReplacements(t *testing.T) {
	s := parse(t, `type b.4 4
market z b.4 on-demand 0.20
pool web none
app one 3
node n1 web z b.4 on-demand by=us
node n2 web z b.4 on-demand
pod one n1`)
	s.Nodes[1].Initialized = s.Now.Add(-19 * time.Minute)
	if plan, _ := replan.Consolidate(s, policy.Plan{}, policy.Memory{}, replan.ConsolidateOptions{Share: at(0)}); len(plan.Drains) != 0 {
		t.Error("the replacement was given back")
	}
	s.Nodes[1].Initialized = s.Now.Add(-20 * time.Minute)
	if plan, _ := replan.Consolidate(s, policy.Plan{}, policy.Memory{}, replan.ConsolidateOptions{Share: at(0)}); len(plan.Drains) != 1 {
		t.Error("a node that nobody came to is kept")
	}
}

// TestConsolidateHoldsTheShare drains no Spot node where that would move the pool away from its
// share of one half.
func TestConsolidateHoldsTheShare(t *testing.T) {
	s := parse(t, `type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool web none
app one 1
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
node n3 web z b.4 spot
pod one n1 2
pod one n2 2
pod one n3`)
	// n3 is the emptiest. Without it a third on spot would become nothing, which
	// is further from one half.
	for share, want := range map[float64]policy.NodeID{0: 2, 0.5: 0} {
		plan, _ := replan.Consolidate(s, policy.Plan{}, policy.Memory{}, replan.ConsolidateOptions{Share: at(share)})
		if len(plan.Drains) != 1 || plan.Drains[0].Node != want {
			t.Errorf("share %v: %s, want node %d alone", share, plan.Format(s), want)
		}
	}
}

// threeFull has three nodes of 4 vCPU with a pod of 3 each, which one machine of 12
// holds for half of what they cost.
const threeFull = `type b.4 4
type c.12 12
market z b.4 on-demand 0.20
market z c.12 on-demand 0.30
pool web none
app one 3
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
node n3 web z b.4 on-demand
pod one n1
pod one n2
pod one n3
`

func tight(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	return replan.Consolidate(s, policy.Plan{}, m, replan.ConsolidateOptions{Share: at(0), Tight: true})
}

// TestReplaceMany replaces three nodes by one, once in an hour.
func TestReplaceMany(t *testing.T) {
	s := parse(t, threeFull)
	plan, m := tight(s, policy.Memory{})
	if len(plan.Launches) != 1 || len(plan.Drains) != 3 {
		t.Fatalf("planned\n%s", plan.Format(s))
	}
	for _, d := range plan.Drains {
		if len(d.After) != 1 || d.After[0] != plan.Launches[0].Token || d.Why.Before != policy.Dollars(.6) || d.Why.After != policy.Dollars(.3) {
			t.Errorf("%s goes after %v for %+v", s.Nodes[d.Node].Name, d.After, d.Why)
		}
	}
	s.Now = s.Now.Add(59 * time.Minute)
	if plan, _ := tight(s, m); len(plan.Drains) > 0 {
		t.Errorf("within the hour it planned\n%s", plan.Format(s))
	}
	s.Now = s.Now.Add(time.Minute)
	if plan, _ := tight(s, m); len(plan.Drains) != 3 {
		t.Errorf("after an hour it planned\n%s", plan.Format(s))
	}
}

// TestReplaceManyHolds leaves nodes alone where their replacement is not worth it, or not
// wanted.
func TestReplaceManyHolds(t *testing.T) {
	for name, change := range map[string]func(*policy.Snapshot, *replan.ConsolidateOptions){
		"the pool would be nine tenths full, and room is wanted": func(s *policy.Snapshot, o *replan.ConsolidateOptions) {
			o.Tight = false
			s.Templates[0].Requests.CPU = 3600
			s.Markets[1].Price = policy.Dollars(.35) // two of them save less than 15%
		},
		"the saving is small against what the nodes cost on demand": func(s *policy.Snapshot, _ *replan.ConsolidateOptions) {
			for i := range s.Markets {
				s.Markets[i].Price /= 10
			}
		},
		"no replacement is wanted": func(_ *policy.Snapshot, o *replan.ConsolidateOptions) { o.Keep = true },
		"two may go at once": func(s *policy.Snapshot, _ *replan.ConsolidateOptions) {
			s.Pools[0].Budgets = []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, N: 2}, Active: true}}
			s.Markets[0].Price = policy.Dollars(.17) // two of them save less than 15%
		},
		"a disruption budget lets one go at a time, too slowly": func(s *policy.Snapshot, _ *replan.ConsolidateOptions) {
			s.PDBs = []policy.PDB{{Name: "one", Allowed: 1}}
			s.Templates[0].PDBs = []policy.PDBID{0}
			s.Templates[0].Startup = 6 * time.Minute
			s.Markets[1].Price = policy.Dollars(.35) // two of them save less than 15%
		},
		"the pool is full": func(s *policy.Snapshot, _ *replan.ConsolidateOptions) {
			s.Pools[0].Limits.CPU, s.Pools[0].Used.CPU = 20_000, 12_000
		},
	} {
		s := parse(t, threeFull)
		for i := range s.Markets {
			s.Markets[i].OnDemand = s.Markets[i].Price
		}
		o := replan.ConsolidateOptions{Share: at(0), Tight: true}
		change(s, &o)
		if plan, _ := replan.Consolidate(s, policy.Plan{}, policy.Memory{}, o); len(plan.Drains) > 0 {
			t.Errorf("%s: planned\n%s", name, plan.Format(s))
		}
	}
}
