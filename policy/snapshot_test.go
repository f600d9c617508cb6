package policy_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestValidate breaks one rule at a time of a snapshot that is valid.
func TestValidate(t *testing.T) {
	parse := func() *policy.Snapshot {
		s, _, err := policytest.Parse(`type a.2 2
type b.4 4
market z a.2 on-demand 0.10
market z b.4 on-demand 0.20
pool api
pool web
app one 1 pdb=1
node n1 web z b.4 on-demand
pod one n1
`)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for says, spoil := range map[string]func(*policy.Snapshot){
		"now is not set":                    func(s *policy.Snapshot) { s.Now = 0 },
		`type "b.4" has id 7`:               func(s *policy.Snapshot) { s.Types[1].ID = 7 },
		`type "a.2" is not after "a.2"`:     func(s *policy.Snapshot) { s.Types[1].Name = "a.2" },
		"is not positive":                   func(s *policy.Snapshot) { s.Types[0].Allocatable.CPU = 0 },
		"has id 5 in slot 1":                func(s *policy.Snapshot) { s.Markets[1].ID = 5 },
		"is not after":                      func(s *policy.Snapshot) { s.Markets[0].Name = "zzz" },
		"type 9 is not in the table":        func(s *policy.Snapshot) { s.Markets[0].Type = 9 },
		"zone -1 is not in the table":       func(s *policy.Snapshot) { s.Markets[0].Zone = -1 },
		"price $0.000000 is not positive":   func(s *policy.Snapshot) { s.Markets[0].Price = 0 },
		"on-demand price -$0.000001":        func(s *policy.Snapshot) { s.Markets[0].OnDemand = policy.NoPrice },
		"is from after now":                 func(s *policy.Snapshot) { s.Markets[0].PricedAt = s.Now + 1 },
		"hazard NaN is not a rate":          func(s *policy.Snapshot) { s.Markets[0].Forecast.Hazard = math.NaN() },
		"is not in [0, 1]":                  func(s *policy.Snapshot) { s.Markets[0].Forecast.Runtime = 1.5 },
		"band 5":                            func(s *policy.Snapshot) { s.Markets[0].Band = 5 },
		`pool "web" has id 0`:               func(s *policy.Snapshot) { s.Pools[1].ID = 0 },
		`pool "api" is not after "web"`:     func(s *policy.Snapshot) { s.Pools[0].Name, s.Pools[1].Name = "web", "api" },
		"is not a range":                    func(s *policy.Snapshot) { s.Pools[0].Share.Min = 1; s.Pools[0].Share.Max = 0 },
		"are not ascending ids":             func(s *policy.Snapshot) { s.Pools[0].Markets = []policy.MarketID{1, 0} },
		`workload "default/one" has id 3`:   func(s *policy.Snapshot) { s.Workloads[0].ID = 3 },
		`template "default/one" has id 3`:   func(s *policy.Snapshot) { s.Templates[0].ID = 3 },
		"workload 4 is not in the table":    func(s *policy.Snapshot) { s.Templates[0].Workload = 4 },
		"takes 0 pod slots":                 func(s *policy.Snapshot) { s.Templates[0].Requests.Pods = 0 },
		"are negative":                      func(s *policy.Snapshot) { s.Templates[0].Requests.GPU = -1 },
		"budget 4 is not in the table":      func(s *policy.Snapshot) { s.Templates[0].PDBs = []policy.PDBID{4} },
		`node "n1" has id 6`:                func(s *policy.Snapshot) { s.Nodes[0].ID = 6 },
		"has no name":                       func(s *policy.Snapshot) { s.Nodes[0].Name = "" },
		"pool 8 is not in the table":        func(s *policy.Snapshot) { s.Nodes[0].Pool = 8 },
		"market 8 is not in the table":      func(s *policy.Snapshot) { s.Nodes[0].Market = 8 },
		"node \"n1\" is from after":         func(s *policy.Snapshot) { s.Nodes[0].Launched = s.Now + 1 },
		"without a notice":                  func(s *policy.Snapshot) { s.Nodes[0].ReclaimAt = s.Now },
		`pod "default/one-0" has id 4`:      func(s *policy.Snapshot) { s.Pods[0].ID = 4 },
		"template 5 is not in the table":    func(s *policy.Snapshot) { s.Pods[0].Template = 5 },
		"node 5 is not there":               func(s *policy.Snapshot) { s.Pods[0].Node = 5 },
		"is ready on no node":               func(s *policy.Snapshot) { s.Pods[0].Node = policy.None },
		`pod "default/one-0" is from after`: func(s *policy.Snapshot) { s.Pods[0].Created = s.Now + 1 },
		`budget "default/one" has id 2`:     func(s *policy.Snapshot) { s.PDBs[0].ID = 2 },
		"sets both minAvailable and":        func(s *policy.Snapshot) { s.PDBs[0].MinAvailable.Set, s.PDBs[0].MaxUnavailable.Set = true, true },
		"allows -1 disruptions":             func(s *policy.Snapshot) { s.PDBs[0].Allowed = -1 },
	} {
		s := parse()
		spoil(s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	s := parse()
	s.Nodes = append(s.Nodes, policy.Node{ID: 99}) // an empty slot is skipped
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// TestDisruptable follows Karpenter's arithmetic.
func TestDisruptable(t *testing.T) {
	percent := func(n int32) policy.Quantity { return policy.Quantity{Set: true, Percent: true, N: n} }
	count := func(n int32) policy.Quantity { return policy.Quantity{Set: true, N: n} }
	for _, c := range []struct {
		name               string
		nodes, notReady    int
		draining, arriving int
		budgets            []policy.DisruptionBudget
		reason             policy.DisruptionReason
		want               int
	}{
		{"without a budget", 7, 0, 0, 0, nil, policy.Underutilized, 7},
		{"a tenth, rounded up", 11, 0, 0, 0, []policy.DisruptionBudget{{Nodes: percent(10), Active: true}}, policy.Underutilized, 2},
		{"less those that are down", 19, 1, 0, 0, []policy.DisruptionBudget{{Nodes: percent(10), Active: true}}, policy.Underutilized, 1},
		{"those that are down may go", 2, 1, 0, 0, []policy.DisruptionBudget{{Nodes: count(5), Active: true}}, policy.Underutilized, 3},
		{"down without a budget", 2, 1, 1, 0, nil, policy.Underutilized, 3},
		{"less those that go", 9, 0, 1, 0, []policy.DisruptionBudget{{Nodes: percent(10), Active: true}}, policy.Underutilized, 0},
		{"never below none", 5, 3, 2, 0, []policy.DisruptionBudget{{Nodes: count(1), Active: true}}, policy.Underutilized, 0},
		{"arriving nodes do not count", 10, 0, 0, 10, []policy.DisruptionBudget{{Nodes: percent(10), Active: true}}, policy.Underutilized, 1},
		{"the strictest holds", 10, 0, 0, 0, []policy.DisruptionBudget{{Nodes: count(5), Active: true},
			{Nodes: count(2), Active: true}}, policy.Underutilized, 2},
		{"out of its hours", 10, 0, 0, 0, []policy.DisruptionBudget{{Nodes: count(0)}}, policy.Underutilized, 10},
		{"for another reason", 10, 0, 0, 0, []policy.DisruptionBudget{{Nodes: count(0), Active: true,
			Reasons: []policy.DisruptionReason{policy.Drifted}}}, policy.Empty, 10},
		{"for this reason", 10, 0, 0, 0, []policy.DisruptionBudget{{Nodes: count(3), Active: true,
			Reasons: []policy.DisruptionReason{policy.Drifted, policy.Empty}}}, policy.Empty, 3},
	} {
		s := &policy.Snapshot{Pools: []policy.Pool{{Budgets: c.budgets}}}
		add := func(n int, node policy.Node) {
			for range n {
				s.Nodes = append(s.Nodes, node)
			}
		}
		add(c.nodes, policy.Node{Phase: policy.NodeInitialized})
		add(c.notReady, policy.Node{Phase: policy.NodeInitialized, NotReady: true})
		add(c.draining, policy.Node{Phase: policy.NodeDraining})
		add(c.arriving, policy.Node{Phase: policy.NodeLaunching})
		add(3, policy.Node{Phase: policy.NodeInitialized, Pool: policy.None})
		if got := s.Disruptable(0, c.reason); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		pdb            policy.PDB
		expected, want int32
	}{
		{policy.PDB{MinAvailable: policy.Quantity{Set: true, N: 2}}, 5, 2},
		{policy.PDB{MinAvailable: policy.Quantity{Set: true, Percent: true, N: 50}}, 5, 3},
		{policy.PDB{MaxUnavailable: policy.Quantity{Set: true, N: 1}}, 5, 4},
		{policy.PDB{MaxUnavailable: policy.Quantity{Set: true, Percent: true, N: 25}}, 5, 3},
		{policy.PDB{MaxUnavailable: policy.Quantity{Set: true, N: 9}}, 5, 0},
		{policy.PDB{MinAvailable: policy.Quantity{Set: true, Percent: true, N: 100}}, 1 << 30, 1 << 30},
	} {
		if got := c.pdb.Required(c.expected); got != c.want {
			t.Errorf("%+v of %d: %d, want %d", c.pdb, c.expected, got, c.want)
		}
	}
}

// TestResources checks sums and shares against each component by itself.
func TestResources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) policy.Resources {
			n := rapid.SliceOfN(rapid.Int64Range(0, 8), 5, 5).Draw(t, name)
			return policy.Resources{CPU: n[0], Memory: n[1], Storage: n[2], GPU: n[3], Pods: n[4]}
		}
		a, b := draw("a"), draw("b")
		if a.Plus(b).Minus(b) != a || a.Scale(3) != a.Plus(a).Plus(a) {
			t.Fatal("sums do not add up")
		}
		if a.Within(b) != (a.Minus(b).LargestShare(policy.Resources{}) == 0 && a.Pods <= b.Pods) {
			t.Fatalf("%+v within %+v: %v", a, b, a.Within(b))
		}
		if fits := a.LargestShare(b) <= 1; fits != (policy.Resources{CPU: a.CPU, Memory: a.Memory, Storage: a.Storage, GPU: a.GPU}).Within(b) {
			t.Fatalf("share %v of %+v in %+v", a.LargestShare(b), a, b)
		}
	})
}

func TestGeneratedSnapshotsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		if err := policytest.Clone(t, s).Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
