package workload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/workload"
)

// threeZones is a pool that may buy on spot and on demand in three zones.
const threeZones = `type m 8
market a m on-demand 0.4
market a m spot 0.1
market b m on-demand 0.4
market b m spot 0.1
market c m on-demand 0.4
market c m spot 0.1
pool web
`

func parse(t *testing.T, text string, change func(*policy.Snapshot)) *policy.Snapshot {
	t.Helper()
	s, _, err := policytest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Pods {
		w := s.Templates[s.Pods[i].Template].Workload
		s.Workloads[w].Replicas++
	}
	if change != nil {
		change(s)
	}
	return s
}

func describe(s *policy.Snapshot, l workload.Loss) string {
	where := func(e workload.Exposed) string {
		switch {
		case e.Group.Market >= 0:
			return s.Markets[e.Group.Market].Name
		case e.Group.Zone >= 0:
			return "zone " + s.Zones[e.Group.Zone]
		}
		return "nowhere"
	}
	kind := func(e workload.Exposed) string {
		return fmt.Sprintf("%d of %s, at best %d, short %d, unavoidable %d, mendable %d", e.Pods, where(e), e.Best,
			l.Short(e), l.Unavoidable(e), l.Mendable(e))
	}
	return fmt.Sprintf("%d of %d required: %s; %s", l.Required, l.Desired, kind(l.Market), kind(l.Zone))
}

// TestLoss computes what the loss of a market and of a zone would do, and how much of that a better
// spread would avoid.
func TestLoss(t *testing.T) {
	budget := func(minAvailable int32) func(*policy.Snapshot) {
		return func(s *policy.Snapshot) {
			s.PDBs = append(s.PDBs, policy.PDB{Name: "app", MinAvailable: policy.Quantity{Set: true, N: minAvailable}})
			s.Templates[0].PDBs = []policy.PDBID{0}
		}
	}
	for _, c := range []struct {
		name, cluster string
		change        func(*policy.Snapshot)
		want          string
	}{
		{
			// Six pods may miss one. Four are in one Spot market and five in its zone; two to a
			// zone is the best possible.
			"crowded", "app x 1\nnode n1 web a m spot\nnode n2 web a m on-demand\nnode n3 web b m spot\npod x n1 4\npod x n2\npod x n3\n", nil,
			"5 of 6 required: 4 of aws/region/a/m/spot, at best 0, short 3, unavoidable 0, mendable 3; 5 of zone a, at best 2, short 4, unavoidable 1, mendable 3",
		},
		{
			"spread", "app x 1\nnode n1 web a m on-demand\nnode n2 web b m on-demand\nnode n3 web c m on-demand\npod x n1 2\npod x n2 2\npod x n3 2\n", budget(4),
			"4 of 6 required: 0 of nowhere, at best 0, short 0, unavoidable 0, mendable 0; 2 of zone a, at best 2, short 0, unavoidable 0, mendable 0",
		},
		{
			// Nothing makes one pod survive its zone; its market it could leave.
			"a single replica", "app x 1\nnode n1 web a m spot\npod x n1\n", nil,
			"1 of 1 required: 1 of aws/region/a/m/spot, at best 0, short 1, unavoidable 0, mendable 1; 1 of zone a, at best 1, short 1, unavoidable 1, mendable 0",
		},
		{
			"pinned to a zone", "app x 1 zone=a\nnode n1 web a m on-demand\npod x n1 4\n", nil,
			"3 of 4 required: 0 of nowhere, at best 0, short 0, unavoidable 0, mendable 0; 4 of zone a, at best 4, short 3, unavoidable 3, mendable 0",
		},
		{
			"volumes", "app x 1 kind=StatefulSet\nnode n1 web a m on-demand\nnode n2 web b m on-demand\npod x n1 3\npod x n2\n",
			func(s *policy.Snapshot) {
				for i := range 3 {
					s.Pods[i].VolumeZone = 0
				}
			},
			"3 of 4 required: 0 of nowhere, at best 0, short 0, unavoidable 0, mendable 0; 3 of zone a, at best 3, short 2, unavoidable 2, mendable 0",
		},
		{
			// They ask to be in one zone, whichever: any spread takes all of them.
			"kept together", "app x 1\nnode n1 web a m on-demand\npod x n1 4\n",
			func(s *policy.Snapshot) {
				s.Templates[0].Labels = []policy.Label{{Key: "app", Value: "x"}}
				s.Templates[0].PodAffinity = []policy.PodTerm{{
					Selector:    policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"x"}}}},
					TopologyKey: "topology.kubernetes.io/zone",
				}}
			},
			"3 of 4 required: 0 of nowhere, at best 0, short 0, unavoidable 0, mendable 0; 4 of zone a, at best 4, short 3, unavoidable 3, mendable 0",
		},
		{
			// A mere preference leaves them free to spread.
			"rather together", "app x 1\nnode n1 web a m on-demand\npod x n1 4\n",
			func(s *policy.Snapshot) {
				s.Templates[0].Labels = []policy.Label{{Key: "app", Value: "x"}}
				s.Templates[0].PodAffinity = []policy.PodTerm{{
					Weight:      100,
					Selector:    policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"x"}}}},
					TopologyKey: "topology.kubernetes.io/zone",
				}}
			},
			"3 of 4 required: 0 of nowhere, at best 0, short 0, unavoidable 0, mendable 0; 4 of zone a, at best 2, short 3, unavoidable 1, mendable 2",
		},
		{
			// No on-demand: over two Spot markets half is the best.
			"spot alone", "app x 1 on=karpenter.sh/capacity-type:spot\nnode n1 web a m spot\npod x n1 4\n", budget(2),
			"2 of 4 required: 4 of aws/region/a/m/spot, at best 2, short 2, unavoidable 0, mendable 2; 4 of zone a, at best 2, short 2, unavoidable 0, mendable 2",
		},
		{
			// On-demand, which is met last, is in no market that can be lost.
			"on-demand in one zone", "pool xyz\napp x 1\nnode n1 web a m spot\npod x n1 4\n",
			func(s *policy.Snapshot) {
				s.Pools[0].Share.Min = 1
				s.Pools[1].Markets = []policy.MarketID{4}
			},
			"3 of 4 required: 4 of aws/region/a/m/spot, at best 0, short 3, unavoidable 0, mendable 3; 4 of zone a, at best 2, short 3, unavoidable 1, mendable 2",
		},
		{
			// What is too large for every node of the pool stands where it stands.
			"too large", "app x 9\nnode n1 web a m on-demand\npod x n1 2\n", nil,
			"1 of 2 required: 0 of nowhere, at best 0, short 0, unavoidable 0, mendable 0; 2 of zone a, at best 2, short 1, unavoidable 1, mendable 0",
		},
		{
			// Pods on their way count where they will stand, those that leave and
			// those that wait do not.
			"on the move", "app x 1\nnode n1 web a m spot\nnode n2 web b m spot\npod x n1 2\npod x n2 2\npod x pending\n",
			func(s *policy.Snapshot) { s.Pods[0].Phase, s.Pods[2].Phase = policy.PodTerminating, policy.PodStarting },
			"4 of 5 required: 2 of aws/region/b/m/spot, at best 0, short 3, unavoidable 0, mendable 1; 2 of zone b, at best 2, short 3, unavoidable 1, mendable 0",
		},
	} {
		cluster := threeZones
		if c.name == "spot alone" {
			cluster = strings.ReplaceAll(cluster, "market c m spot 0.1", "market c m spot 0.1 closed")
		}
		s := parse(t, cluster+c.cluster, c.change)
		all := losses(s)
		if len(all) != 1 {
			t.Errorf("%s: %d losses", c.name, len(all))
			continue
		}
		if got := describe(s, all[0]); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestRequired holds the number that must be ready.
func TestRequired(t *testing.T) {
	s := &policy.Snapshot{PDBs: []policy.PDB{
		{MinAvailable: policy.Quantity{Set: true, Percent: true, N: 50}},
		{MaxUnavailable: policy.Quantity{Set: true, N: 1}},
		{MinAvailable: policy.Quantity{Set: true, N: 9}},
	}}
	for _, c := range []struct {
		desired, want int32
		budgets       []policy.PDBID
	}{
		{0, 0, nil}, {1, 1, nil}, {2, 1, nil}, {3, 2, nil}, {8, 6, nil}, {11, 9, nil},
		{5, 3, []policy.PDBID{0}}, {5, 4, []policy.PDBID{0, 1}}, {5, 5, []policy.PDBID{2}}, {0, 0, []policy.PDBID{2}}, {1, 0, []policy.PDBID{1}},
	} {
		if got := workload.Required(s, &policy.Template{PDBs: c.budgets}, c.desired); got != c.want {
			t.Errorf("of %d under %v: %d, want %d", c.desired, c.budgets, got, c.want)
		}
	}
}

// drawn is a generated cluster with numbers of replicas, and volumes.
func drawn(t *rapid.T) *policy.Snapshot {
	s := policytest.Snapshot().Draw(t, "snapshot")
	for i := range s.Workloads {
		s.Workloads[i].Replicas = int32(rapid.IntRange(0, 6).Draw(t, "replicas"))
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Node >= 0 && s.Nodes[p.Node].Market >= 0 && rapid.IntRange(0, 3).Draw(t, "volume") == 0 {
			p.VolumeZone = s.Markets[s.Nodes[p.Node].Market].Zone
		}
	}
	return s
}

// plainPods counts the pods of w in a group the slow way.
func plainPods(s *policy.Snapshot, w policy.WorkloadID, in func(*policy.Node) bool) int32 {
	count := int32(0)
	for i := range s.Pods {
		p := &s.Pods[i]
		if (p.Phase == policy.PodReady || p.Phase == policy.PodStarting) && p.Node >= 0 &&
			s.Templates[p.Template].Workload == w && s.Nodes[p.Node].Live() && in(&s.Nodes[p.Node]) {
			count++
		}
	}
	return count
}

// TestExposure compares counts with the plain form, in memory used before.
func TestExposure(t *testing.T) {
	var x workload.Exposure
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		x.Read(s)
		for i := range s.Workloads {
			w := policy.WorkloadID(i)
			if !x.Tracks(w) {
				continue
			}
			worst := map[bool]int32{}
			for m := range s.Markets {
				spot := s.Markets[m].Capacity == policy.Spot
				want := plainPods(s, w, func(n *policy.Node) bool { return spot && n.Market == policy.MarketID(m) })
				if got := x.Pods(w, workload.Group{Market: policy.MarketID(m), Zone: policy.None}); got != want {
					t.Fatalf("workload %d in market %d: %d, want %d", w, m, got, want)
				}
				worst[false] = max(worst[false], want)
			}
			for z := range s.Zones {
				want := plainPods(s, w, func(n *policy.Node) bool {
					return n.Market >= 0 && s.Markets[n.Market].Zone == policy.ZoneID(z)
				})
				if got := x.Pods(w, workload.Group{Market: policy.None, Zone: policy.ZoneID(z)}); got != want {
					t.Fatalf("workload %d in zone %d: %d, want %d", w, z, got, want)
				}
				worst[true] = max(worst[true], want)
			}
			l := x.Loss(w)
			if l.Market.Pods != worst[false] || l.Zone.Pods != worst[true] {
				t.Fatalf("workload %d: %+v, want %v", w, l, worst)
			}
			if l.Zone.Best < 1 || l.Zone.Best > l.Desired+l.Bound || l.Mendable(l.Zone) > l.Zone.Pods {
				t.Fatalf("workload %d: %+v", w, l)
			}
		}
	})
}

// TestExposureMoves makes moves and holds that what they were said to change is
// what they change, and that a snapshot with the moves done counts the same.
func TestExposureMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		var x workload.Exposure
		x.Read(s)
		if len(s.Nodes) == 0 {
			return
		}
		gone := false
		for range rapid.IntRange(1, 6).Draw(t, "moves") {
			n := policy.NodeID(rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "node"))
			to := policy.MarketID(rapid.IntRange(-1, len(s.Markets)-1).Draw(t, "market"))
			before, change := x.Excess(), x.Change(n, to)
			x.Move(n, to)
			if after := x.Excess(); after-before != change {
				t.Fatalf("moving node %d to market %d: from %d to %d, said to change by %d", n, to, before, after, change)
			}
			gone = gone || to < 0
			if s.Nodes[n].Live() {
				s.Nodes[n].Market = to
			}
		}
		if gone {
			return // a node in no group has no place in a snapshot
		}
		for w := range s.Workloads {
			for _, g := range groups(s) {
				if !x.Tracks(policy.WorkloadID(w)) {
					continue
				}
				want := plainPods(s, policy.WorkloadID(w), func(n *policy.Node) bool { return in(s, n, g) })
				if got := x.Pods(policy.WorkloadID(w), g); got != want {
					t.Fatalf("workload %d in %+v: %d, want %d", w, g, got, want)
				}
			}
		}
	})
}

// TestExposureOfSomePods moves a part of a node's pods.
func TestExposureOfSomePods(t *testing.T) {
	s := parse(t,
		threeZones+"app x 1\napp job 1 kind=Job\nnode n1 web a m spot\nnode n2 web b m spot\npod x n1 4\npod x n2 2\npod job n1\n", nil)
	var x workload.Exposure
	x.Read(s)
	spotC := policy.MarketID(slices.IndexFunc(s.Markets, func(m policy.Market) bool { return m.Name == "aws/region/c/m/spot" }))
	// Six pods may miss one, but two to a zone cannot be helped. On spot 3 and 1
	// stand beyond one, in zones 2 beyond two.
	if got := x.Excess(); got != 6 {
		t.Errorf("%d pods stand where they may not, want 6", got)
	}
	// Two of them to zone c leave one too many in each of three markets, and none
	// in the zones.
	if got := x.ChangeOf(0, 2, 0, spotC); got != -3 {
		t.Errorf("moving two pods changes it by %d, want -3", got)
	}
	x.MoveOf(0, 2, 0, spotC)
	if got := x.Excess(); got != 3 {
		t.Errorf("%d pods stand where they may not after the move, want 3", got)
	}
	if x.Tracks(1) || x.Tracks(policy.None) || x.ChangeOf(1, 1, 0, spotC) != 0 {
		t.Error("a job has a desired number")
	}
	x.MoveOf(1, 1, 0, spotC)
	if market, zone := x.Allowed(0); market != 1 || zone != 2 {
		t.Errorf("%d pods may stand in a market and %d in a zone, want 1 and 2", market, zone)
	}
	if got := x.Excess(); got != 3 {
		t.Errorf("moving a job changed it to %d", got)
	}
}

// TestZoneByLabel finds the zone of nodes that no pool holds.
func TestZoneByLabel(t *testing.T) {
	s := parse(t, threeZones+"app x 1\nnode n1 web b m on-demand\npod x n1 2\n", func(s *policy.Snapshot) {
		s.Nodes[0].Pool, s.Nodes[0].Market = policy.None, policy.None
	})
	if l := losses(s)[0]; l.Zone.Group.Zone != 1 || l.Zone.Pods != 2 {
		t.Errorf("%+v", l)
	}
}

// TestExposureMemory reads the same cluster again without allocating.
func TestExposureMemory(t *testing.T) {
	s := large()
	var x workload.Exposure
	x.Read(s)
	if n := policytest.Allocations(20, func() { x.Read(s) }); n > 0 {
		t.Errorf("reading again costs %v allocations", n)
	}
}

// large is a cluster of 1,000 nodes, 10,000 pods of 200 workloads, and 300
// markets.
func large() *policy.Snapshot {
	s := &policy.Snapshot{Zones: []string{"a", "b", "c"}, Pools: []policy.Pool{{Share: policy.ShareRange{Max: 1}, Mode: policy.ModeActive}}}
	for i := range 50 {
		r := policy.Resources{CPU: int64(2+i) * 1000, Memory: 1 << 40, Pods: 100}
		s.Types = append(s.Types, policy.InstanceType{ID: policy.TypeID(i), Allocatable: r, Capacity: r})
	}
	for i := range 300 {
		capacity := policy.CapacityType(i % 2)
		s.Markets = append(s.Markets, policy.Market{ID: policy.MarketID(i), Zone: policy.ZoneID(i % 3),
			Type: policy.TypeID(i / 6), Capacity: capacity, Offered: true})
		s.Pools[0].Markets = append(s.Pools[0].Markets, policy.MarketID(i))
	}
	for i := range 1000 {
		s.Nodes = append(s.Nodes, policy.Node{ID: policy.NodeID(i), Name: fmt.Sprint(i),
			Market: policy.MarketID(i * 7 % 300), Phase: policy.NodeInitialized})
	}
	for i := range 200 {
		s.Workloads = append(s.Workloads, policy.Workload{ID: policy.WorkloadID(i), Kind: policy.KindDeployment, Replicas: 50})
		s.Templates = append(s.Templates, policy.Template{ID: policy.TemplateID(i), Workload: policy.WorkloadID(i),
			Requests: policy.Resources{CPU: int64(i), Pods: 1}})
	}
	for i := range 10000 {
		s.Pods = append(s.Pods, policy.Pod{ID: policy.PodID(i), Template: policy.TemplateID(i % 200),
			Node: policy.NodeID(i * 13 % 1000), Phase: policy.PodReady, VolumeZone: policy.None})
	}
	return s
}

func BenchmarkExposure(b *testing.B) {
	s := large()
	var x workload.Exposure
	x.Read(s)
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Read(s)
		}
	})
	b.Run("change", func(b *testing.B) {
		sum := int32(0)
		for b.Loop() {
			for m := range s.Markets {
				sum += x.Change(17, policy.MarketID(m))
			}
		}
		if sum > 1<<30 {
			b.Fatal(sum)
		}
	})
}

func groups(s *policy.Snapshot) []workload.Group {
	var list []workload.Group
	for m := range s.Markets {
		if s.Markets[m].Capacity == policy.Spot {
			list = append(list, workload.Group{Market: policy.MarketID(m), Zone: policy.None})
		}
	}
	for z := range s.Zones {
		list = append(list, workload.Group{Market: policy.None, Zone: policy.ZoneID(z)})
	}
	return list
}

func in(s *policy.Snapshot, n *policy.Node, g workload.Group) bool {
	if n.Market < 0 {
		return false
	}
	if g.Market >= 0 {
		return n.Market == g.Market
	}
	return s.Markets[n.Market].Zone == g.Zone
}

// TestBestOfMarkets: the best spread is the same in whatever order a pool names its
// markets, and however often.
func TestBestOfMarkets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t)
		if rapid.Bool().Draw(t, "spot alone") {
			s.Pools = slices.Clone(s.Pools)
			for i := range s.Pools {
				s.Pools[i].Share = policy.ShareRange{Min: 1, Max: 1}
			}
		}
		other := *s
		other.Pools = slices.Clone(s.Pools)
		for i := range other.Pools {
			p := &other.Pools[i]
			p.Markets = slices.Concat(p.Markets, p.Markets)
			slices.Reverse(p.Markets)
		}
		if got, want := losses(&other), losses(s); !slices.Equal(got, want) {
			t.Fatalf("losses are %+v with the markets in another order, and %+v", got, want)
		}
	})
}

// losses returns what the loss of a group would do to each workload that has a desired number
// of pods, ascending by id.
func losses(s *policy.Snapshot) []workload.Loss {
	var x workload.Exposure
	x.Read(s)
	var list []workload.Loss
	for w := range s.Workloads {
		if x.Tracks(policy.WorkloadID(w)) {
			list = append(list, x.Loss(policy.WorkloadID(w)))
		}
	}
	return list
}
