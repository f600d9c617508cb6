package replan_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/replan"
	"github.com/spotter-dev/spotter/policy/share"
)

func parse(t *testing.T, text string) *policy.Snapshot {
	t.Helper()
	s, _, err := policytest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRebalanceProperties checks what holds of every shift: it goes nearer to the
// share and not past it by more than half a node, keeps within its number, and
// every pod that has to leave has a place.
func TestRebalanceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		s.Pools[0].Mode = policy.ModeActive // who calls Rebalance has looked at it
		o := replan.RebalanceOptions{
			Pool: 0, Share: rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "share"),
			DrainsMax: rapid.IntRange(0, 6).Draw(t, "drainsMax"), Reason: policy.ReasonShare, Text: "a test",
		}
		sp := placement.FromSnapshot(s)
		over := overfull(s, sp)
		launches, drains, holds := replan.Rebalance(s, sp, o)
		plan := policy.Plan{Launches: launches, Drains: drains, Holds: holds, Wake: s.Now + 1}
		if err := policytest.Check(s, &plan); err != nil {
			t.Fatal(err)
		}
		if len(drains) > o.DrainsMax {
			t.Fatalf("%d drains, at most %d wanted", len(drains), o.DrainsMax)
		}
		checkDistance(t, s, o, &plan)
		for _, n := range overfull(s, sp) {
			if !slices.Contains(over, n) {
				t.Fatalf("the plan overfills %s:\n%s", s.Nodes[n].Name, plan.Format(s))
			}
		}
		for i := range launches {
			checkReplacement(t, s, launches, &launches[i])
		}
		for i := range drains {
			if n := &s.Nodes[drains[i].Node]; n.DoNotDisrupt || n.ActedBy != policy.ActorNone {
				t.Fatalf("%s must not be moved", n.Name)
			}
		}
		again, drains2, _ := replan.Rebalance(s, nil, o)
		if !slices.EqualFunc(launches, again, func(a, b policy.Launch) bool { return a.Token == b.Token }) || len(drains2) != len(drains) {
			t.Fatalf("without a space the shift is another")
		}
	})
}

// checkDistance works out the share after the plan, plainly.
func checkDistance(t *rapid.T, s *policy.Snapshot, o replan.RebalanceOptions, plan *policy.Plan) {
	at := placement.BalanceOf(s, o.Pool)
	spot, total := float64(at.Spot), float64(at.Total)
	before := math.Abs(o.Share*total - spot)
	largest := 0.0
	count := func(m policy.MarketID, sign float64) {
		size := sign * float64(share.Units(s, o.Pool, m))
		total += size
		if s.Markets[m].Capacity == policy.Spot {
			spot += size
		}
	}
	for _, d := range plan.Drains {
		count(s.Nodes[d.Node].Market, -1)
		largest = max(largest, float64(share.Units(s, o.Pool, s.Nodes[d.Node].Market)))
	}
	for _, l := range plan.Launches {
		count(l.Markets[0], 1)
	}
	if len(plan.Drains) == 0 {
		return
	}
	after := math.Abs(o.Share*total - spot)
	if after >= before {
		t.Fatalf("the pool was %v from its share and is %v:\n%s", before, after, plan.Format(s))
	}
	if crossed := (o.Share*total > spot) != (o.Share*float64(at.Total) > float64(at.Spot)); crossed && after > largest/2 {
		t.Fatalf("the pool passes its share by %v:\n%s", after, plan.Format(s))
	}
}

func overfull(s *policy.Snapshot, sp *placement.Space) []policy.NodeID {
	var over []policy.NodeID
	for i := range s.Nodes {
		id := policy.NodeID(i)
		if s.Nodes[i].Live() && !(policy.Resources{}).Within(sp.Free(id)) {
			over = append(over, id)
		}
	}
	return over
}

// checkReplacement puts the pods of the node that l replaces onto each market of
// l, and of the other launches that replace it.
func checkReplacement(t *rapid.T, s *policy.Snapshot, launches []policy.Launch, l *policy.Launch) {
	var need policy.Resources
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Node == l.Replaces && p.Phase != policy.PodGone && p.Phase != policy.PodTerminating {
			need = need.Plus(s.Templates[p.Template].Requests)
		}
	}
	var others policy.Resources
	for i := range launches {
		if x := &launches[i]; x.Replaces == l.Replaces && x.Token != l.Token {
			others = others.Plus(s.Types[s.Markets[x.Markets[0]].Type].Allocatable)
		}
	}
	price := policy.Money(0)
	for _, m := range l.Markets {
		if it := &s.Types[s.Markets[m].Type]; !need.Within(it.Allocatable.Plus(others)) {
			t.Fatalf("%s does not hold %+v", s.Markets[m].Name, need)
		}
		if s.Markets[m].Price < price {
			t.Fatalf("markets are not cheapest first")
		}
		price = s.Markets[m].Price
		if s.Markets[m].Capacity == s.Markets[s.Nodes[l.Replaces].Market].Capacity {
			t.Fatalf("%s is of the same capacity type", s.Markets[m].Name)
		}
	}
}

// TestRebalanceDisplaces moves the pod of a node to a Spot node that has free capacity: no node is
// bought for it.
func TestRebalanceDisplaces(t *testing.T) {
	s := parse(t, `type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool web
app one 1
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
node n3 web z b.4 spot
pod one n1 2
pod one n2
`)
	launches, drains, _ := replan.Rebalance(s, nil, replan.RebalanceOptions{Pool: 0, Share: 0.6, DrainsMax: 5,
		Reason: policy.ReasonShare, Text: "x"})
	if len(launches) != 0 || len(drains) != 1 || s.Nodes[drains[0].Node].Name != "n2" {
		t.Fatalf("launches %+v, drains %+v", launches, drains)
	}
	if w := drains[0].Why; w.Before != 200_000 || w.After != 0 {
		t.Errorf("the drain accounts for %v → %v", w.Before, w.After)
	}
}

// TestRebalanceKeepsLimits buys nothing beyond the limits of the pool and the
// quota of the provider, and says so.
func TestRebalanceKeepsLimits(t *testing.T) {
	for name, limit := range map[string]func(*policy.Snapshot){
		"limits": func(s *policy.Snapshot) {
			s.Pools[0].Limits.CPU, s.Pools[0].Used.CPU = 10_000, 8_000
		},
		"quota": func(s *policy.Snapshot) {
			s.Quotas = []policy.Quota{{Name: "spot", Region: "region", Capacity: policy.Spot, VCPU: 3}}
		},
	} {
		s := parse(t, `type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool web
app one 1
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
pod one n1
pod one n2
`)
		o := replan.RebalanceOptions{Pool: 0, Share: 0.5, DrainsMax: 5, Reason: policy.ReasonShare, Text: "x"}
		if launches, _, _ := replan.Rebalance(s, nil, o); len(launches) != 1 {
			t.Fatalf("%s: without it %d launches", name, len(launches))
		}
		limit(s)
		if launches, drains, holds := replan.Rebalance(s, nil, o); len(launches)+len(drains) > 0 || len(holds) != 2 ||
			holds[0].Why.Reason != policy.ReasonInfeasible {
			t.Errorf("%s: launches %+v, drains %+v, holds %+v", name, launches, drains, holds)
		}
	}
}

// TestRebalanceCountsWhatItBuys has room for one node more and two to replace.
func TestRebalanceCountsWhatItBuys(t *testing.T) {
	s := parse(t, `type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool web
app one 1
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
pod one n1
pod one n2
`)
	s.Quotas = []policy.Quota{{Name: "spot", Region: "region", Capacity: policy.Spot, VCPU: 7}}
	launches, _, holds := replan.Rebalance(s, nil, replan.RebalanceOptions{Pool: 0, Share: 1, DrainsMax: 5,
		Reason: policy.ReasonShare, Text: "x"})
	if len(launches) != 1 || len(holds) != 1 {
		t.Errorf("launches %+v, holds %+v", launches, holds)
	}
}

// TestReplaceNodeBuysOneCapacityType names no market on demand in a launch on spot.
func TestReplaceNodeBuysOneCapacityType(t *testing.T) {
	s := parse(t, `type b.4 4
type c.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
market z c.4 spot 0.30
pool web
app one 1
node n1 web z b.4 on-demand
pod one n1
`)
	launches, _, _ := replan.ReplaceNode(s, func() *placement.Space { return placement.FromSnapshot(s) }, 0,
		s.Pools[0].Markets, policy.ReasonRebalance, "x")
	if len(launches) != 1 || !slices.Equal(launches[0].Markets, []policy.MarketID{1}) {
		t.Errorf("launches %+v", launches)
	}
}

// BenchmarkRebalance moves ten of 2,000 nodes with 8,000 pods, space included.
func BenchmarkRebalance(b *testing.B) {
	s := large()
	o := replan.RebalanceOptions{Pool: 0, Share: 0.5, DrainsMax: 10, Reason: policy.ReasonShare, Text: "x"}
	b.ReportAllocs()
	for b.Loop() {
		if launches, _, _ := replan.Rebalance(s, nil, o); len(launches) != 10 {
			b.Fatalf("%d launches", len(launches))
		}
	}
}

func large() *policy.Snapshot {
	s := &policy.Snapshot{Now: policytest.Epoch, Zones: []string{"a", "b", "c"}}
	pool := policy.Pool{Name: "web", Share: policy.ShareRange{Max: 1}, Levers: policy.Levers{Launch: true},
		Provisioner: policy.ProvisionerKarpenter}
	for i := range 100 {
		r := policy.Resources{CPU: 16_000, Memory: 64 << 30, Pods: 50}
		s.Types = append(s.Types, policy.InstanceType{ID: policy.TypeID(i), Name: string(rune('a' + i)), VCPU: 16, Capacity: r, Allocatable: r})
		for z := range s.Zones {
			for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				id := policy.MarketID(len(s.Markets))
				s.Markets = append(s.Markets, policy.Market{
					ID: id, Zone: policy.ZoneID(z), Type: policy.TypeID(i), Capacity: c, Offered: true, Price: policy.Money(200_000 + i - int(c)*100_000),
				})
				pool.Markets = append(pool.Markets, id)
			}
		}
	}
	s.Pools = []policy.Pool{pool}
	for i := range 40 {
		s.Workloads = append(s.Workloads, policy.Workload{ID: policy.WorkloadID(i), Kind: policy.KindDeployment})
		s.Templates = append(s.Templates, policy.Template{
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i), Requests: policy.Resources{CPU: 3600, Memory: 8 << 30,
				Pods: 1}, Grace: 30 * time.Second,
		})
	}
	var labels [3][]policy.Label
	for z := range labels {
		labels[z] = placement.NodeLabels(s.Types, s.Zones, &s.Pools[0], &s.Markets[2*z])
	}
	for i := range 2000 {
		m := &s.Markets[i%3*2]
		s.Nodes = append(s.Nodes, policy.Node{
			ID: policy.NodeID(i), Name: string(rune(0x4e00 + i)), Market: m.ID, Phase: policy.NodeInitialized,
			Allocatable: s.Types[m.Type].Allocatable, Labels: labels[i%3],
		})
		for k := range 4 {
			s.Pods = append(s.Pods, policy.Pod{
				ID: policy.PodID(len(s.Pods)), Template: policy.TemplateID((i + k) % 40), Phase: policy.PodReady, Node: policy.NodeID(i),
				Nominated: policy.None, VolumeZone: policy.None,
			})
		}
	}
	return s
}

// bids turns the Spot markets of s into auctions.
func bids(s *policy.Snapshot, reserve policy.Money) {
	for i := range s.Markets {
		m := &s.Markets[i]
		m.Provider, m.OnDemand = policy.Rackspace, policy.Dollars(0.1921)
		if m.Auction() {
			m.Reserve = reserve
		}
	}
}

// TestSeveralForOne replaces a large node by two small ones where an auction asks
// 30 cents for its size and one for half of it.
func TestSeveralForOne(t *testing.T) {
	text := `type a.8 8
type b.4 4
market z a.8 on-demand 0.40
market z a.8 spot 0.15
market z b.4 spot 0.01
pool web none
app one 3
node n1 web z a.8 on-demand
pod one n1 2`
	s := parse(t, text)
	bids(s, 0)
	launches, drains, _ := replan.Rebalance(s, nil, replan.RebalanceOptions{Share: 1, DrainsMax: 1})
	if len(launches) != 2 || len(drains) != 1 || len(drains[0].After) != 2 || launches[0].Token == launches[1].Token {
		t.Fatalf("launches %+v, drains %+v; want two and one that waits for both", launches, drains)
	}
	if drains[0].Why.After != policy.Dollars(0.02) {
		t.Errorf("the drain is said to lead to %v, want $0.02", drains[0].Why.After)
	}
	s = parse(t, text)
	s.Markets[1].Price = policy.Dollars(0.019) // one machine for less than two
	if launches, _, _ = replan.Rebalance(s, nil, replan.RebalanceOptions{Share: 1, DrainsMax: 1}); len(launches) != 1 {
		t.Errorf("launches %+v, want the single one", launches)
	}
	s = parse(t, text)
	s.Pools[0].Limits.CPU, s.Pools[0].Used.CPU = 12_000, 8_000 // n1 and one small one more
	if launches, _, _ = replan.Rebalance(s, nil, replan.RebalanceOptions{Share: 1, DrainsMax: 1}); len(launches) != 0 {
		t.Errorf("launches %+v beyond the limits", launches)
	}
}
