package rescheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// clusterText is a cluster whose one on-demand node can only be replaced by a new one.
const clusterText = `type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool web steer=1
app one 1
node n1 web z b.4 on-demand
pod one n1 3
`

// decide returns the plan of the policy of spec for the scenario in text, once
// change has been made to it.
func decide(t *testing.T, spec, text string, change func(*policy.Snapshot, *policy.Memory)) (*policy.Snapshot, policy.Plan) {
	t.Helper()
	p, err := build(spec)
	if err != nil {
		t.Fatal(err)
	}
	s, m, err := policytest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s, &m)
	}
	plan, _ := p.Decide(s, m)
	if err := policytest.Check(s, &plan); err != nil {
		t.Fatal(err)
	}
	return s, plan
}

// TestWake decides again when the delay is over, and not later.
func TestWake(t *testing.T) {
	s, plan := decide(t, "", clusterText+"memory web moved=7m\n", nil)
	if want := s.Now.Add(3 * time.Minute); plan.Wake != want {
		t.Errorf("wakes at %v, want %v", plan.Wake, want)
	}
	s, plan = decide(t, "drain_delay=1h", clusterText+"memory web moved=7m\n", nil)
	if want := policy.NextStep(s.Now, policy.DefaultStep); plan.Wake != want {
		t.Errorf("wakes at %v, want %v", plan.Wake, want)
	}
}

// TestLimitToBuy keeps to the limits of the pool and the quotas of the provider.
func TestLimitToBuy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*policy.Snapshot, *policy.Memory)
		bought int
	}{
		"no limit":     {nil, 1},
		"limit":        {func(s *policy.Snapshot, _ *policy.Memory) { limit(s, 4000, 7999) }, 0},
		"within limit": {func(s *policy.Snapshot, _ *policy.Memory) { limit(s, 4000, 8000) }, 1},
		"quota":        {func(s *policy.Snapshot, _ *policy.Memory) { quota(s, policy.Spot, 3) }, 0},
		"within quota": {func(s *policy.Snapshot, _ *policy.Memory) { quota(s, policy.Spot, 4) }, 1},
		"other quota":  {func(s *policy.Snapshot, _ *policy.Memory) { quota(s, policy.OnDemand, 0) }, 1},
	} {
		if s, plan := decide(t, "", clusterText, c.change); len(plan.Launches) != c.bought {
			t.Errorf("%s: bought %d, want %d:\n%s", name, len(plan.Launches), c.bought, plan.Format(s))
		}
	}
	// What one round buys counts for its next node.
	two := clusterText + "node n2 web z b.4 on-demand\npod one n2 3\n"
	for most, want := range map[int64]int{4: 1, 8: 2} {
		change := func(s *policy.Snapshot, _ *policy.Memory) { quota(s, policy.Spot, most) }
		if s, plan := decide(t, "drains=budget", two, change); len(plan.Launches) != want {
			t.Errorf("quota of %d: bought %d, want %d:\n%s", most, len(plan.Launches), want, plan.Format(s))
		}
	}
}

func limit(s *policy.Snapshot, used, most int64) {
	s.Pools[0].Used.CPU, s.Pools[0].Limits.CPU = used, most
}

func quota(s *policy.Snapshot, kind policy.CapacityType, vcpu int64) {
	s.Quotas = []policy.Quota{{Name: "q", Region: "region", Capacity: kind, VCPU: vcpu}}
}

// TestSavingsThreshold uses the pool's own threshold: $0.06 saves 70% of $0.20.
func TestSavingsThreshold(t *testing.T) {
	for threshold, want := range map[float64]int{0.70: 1, 0.71: 0} {
		change := func(s *policy.Snapshot, _ *policy.Memory) { s.Pools[0].SavingsThreshold = threshold }
		if s, plan := decide(t, "", clusterText, change); len(plan.Launches) != want {
			t.Errorf("at %v: bought %d, want %d:\n%s", threshold, len(plan.Launches), want, plan.Format(s))
		}
	}
}

// TestAuction bids what a node is worth, in one class of machine.
func TestAuction(t *testing.T) {
	s, plan := decide(t, "", clusterText, func(s *policy.Snapshot, _ *policy.Memory) {
		for i := range s.Markets {
			s.Markets[i].Provider, s.Markets[i].OnDemand = policy.Rackspace, policy.Dollars(0.20)
		}
	})
	if len(plan.Launches) != 1 || plan.Launches[0].Bid != policy.Bid(policy.Dollars(0.20)) {
		t.Errorf("launches %+v:\n%s", plan.Launches, plan.Format(s))
	}
}

// TestTwoDisruptionBudgets leaves a pod alone that the API server would never let
// go.
func TestTwoDisruptionBudgets(t *testing.T) {
	s, plan := decide(t, "", clusterText, func(s *policy.Snapshot, _ *policy.Memory) {
		s.PDBs = []policy.PDB{{ID: 0, Name: "default/a", Allowed: 5}, {ID: 1, Name: "default/b", Allowed: 5}}
		s.Templates[0].PDBs = []policy.PDBID{0, 1}
	})
	if len(plan.Drains) != 0 {
		t.Errorf("it is drained:\n%s", plan.Format(s))
	}
}

// TestTurns has more nodes that cannot be emptied than one round tries: rounds
// begin with others in turn, so that the one that can be is found.
func TestTurns(t *testing.T) {
	var b strings.Builder
	b.WriteString("type b.4 4\nmarket z b.4 on-demand 0.20\nmarket z b.4 spot 0.06\npool web steer=1\n" +
		"app one 1\napp pinned 0.5 on=karpenter.sh/capacity-type:on-demand\n")
	for i := range 60 {
		fmt.Fprintf(&b, "node n%02d web z b.4 on-demand\npod pinned n%02d\n", i, i)
	}
	b.WriteString("node n99 web z b.4 on-demand\nnode s1 web z b.4 spot\npod one n99\n")
	found := 0
	for round := range uint64(4) {
		_, plan := decide(t, "", b.String(), func(_ *policy.Snapshot, m *policy.Memory) { m.Decisions = round })
		found += len(plan.Drains)
	}
	if found == 0 || found == 4 {
		t.Errorf("the node that can be emptied was found in %d of 4 rounds", found)
	}
}
