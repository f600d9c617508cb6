package placement_test

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

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
	return placement.Consolidate(s, policy.Plan{}, m, placement.ConsolidateOptions{Share: at(0), Tight: true})
}

// TestReplaceMany replaces three nodes by one, once in an hour.
func TestReplaceMany(t *testing.T) {
	s := decided(t, threeFull)
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
	for name, change := range map[string]func(*policy.Snapshot, *placement.ConsolidateOptions){
		"the pool would be nine tenths full, and room is wanted": func(s *policy.Snapshot, o *placement.ConsolidateOptions) {
			o.Tight = false
			s.Templates[0].Requests.CPU = 3600
			s.Markets[1].Price = policy.Dollars(.35) // two of them save less than 15 %
		},
		"the saving is small against what the nodes cost on demand": func(s *policy.Snapshot, _ *placement.ConsolidateOptions) {
			for i := range s.Markets {
				s.Markets[i].Price /= 10
			}
		},
		"no replacement is wanted": func(_ *policy.Snapshot, o *placement.ConsolidateOptions) { o.Keep = true },
		"two may go at once": func(s *policy.Snapshot, _ *placement.ConsolidateOptions) {
			s.Pools[0].Budgets = []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, N: 2}, Active: true}}
			s.Markets[0].Price = policy.Dollars(.17) // two of them save less than 15 %
		},
		"a disruption budget lets one go at a time, too slowly": func(s *policy.Snapshot, _ *placement.ConsolidateOptions) {
			s.PDBs = []policy.PDB{{Name: "one", Allowed: 1}}
			s.Templates[0].PDBs = []policy.PDBID{0}
			s.Templates[0].Startup = 6 * time.Minute
			s.Markets[1].Price = policy.Dollars(.35) // two of them save less than 15 %
		},
		"the pool is full": func(s *policy.Snapshot, _ *placement.ConsolidateOptions) {
			s.Pools[0].Limits.CPU, s.Pools[0].Used.CPU = 20_000, 12_000
		},
	} {
		s := decided(t, threeFull)
		for i := range s.Markets {
			s.Markets[i].OnDemand = s.Markets[i].Price
		}
		o := placement.ConsolidateOptions{Share: at(0), Tight: true}
		change(s, &o)
		if plan, _ := placement.Consolidate(s, policy.Plan{}, policy.Memory{}, o); len(plan.Drains) > 0 {
			t.Errorf("%s: planned\n%s", name, plan.Format(s))
		}
	}
}

// TestLimitsCountTheLargest has a pool with room for twelve vCPU buy two nodes, of
// which one may be of eight and not both.
func TestLimitsCountTheLargest(t *testing.T) {
	s := decided(t, `type b.4 4
type c.8 8
market z b.4 on-demand 0.20
market z c.8 on-demand 0.50
pool web none
app one 3
pod one pending 2
`)
	s.Pools[0].Limits.CPU = 12_000
	launches, _ := placement.Shortages(s, at(0))
	most := int64(0)
	for _, l := range launches {
		largest := int64(0)
		for _, m := range l.Markets {
			largest = max(largest, s.Types[s.Markets[m].Type].Capacity.CPU)
		}
		most += largest
	}
	if len(launches) != 2 || most > s.Pools[0].Limits.CPU {
		t.Errorf("launches %+v may come to %d, over the limit of %d", launches, most, s.Pools[0].Limits.CPU)
	}
}

// TestFloor compares what pods cost at least with what machines cost.
func TestFloor(t *testing.T) {
	f := placement.FloorOf([]placement.Offer{
		{Price: policy.Dollars(.4), Allocatable: policy.Resources{CPU: 4000, Memory: 8}},
		{Price: policy.Dollars(.3), Allocatable: policy.Resources{CPU: 2000, Memory: 16}},
	})
	for _, x := range []struct {
		need policy.Resources
		want float64
	}{
		{policy.Resources{}, 0},
		{policy.Resources{CPU: 1000}, .1},
		{policy.Resources{CPU: 1000, Memory: 16}, .3},
		{policy.Resources{GPU: 1}, 1e9},
	} {
		if got := f.Cost(x.need); got < x.want-1e-12 || got > x.want+1e-12 {
			t.Errorf("%+v costs %v at least, want %v", x.need, got, x.want)
		}
	}
}
