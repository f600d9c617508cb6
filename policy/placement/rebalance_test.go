package placement_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
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
		o := placement.RebalanceOptions{
			Pool: 0, Share: rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "share"),
			DrainsMax: rapid.IntRange(0, 6).Draw(t, "drainsMax"), Reason: policy.ReasonShare, Text: "a test",
		}
		sp := placement.FromSnapshot(s)
		over := overfull(s, sp)
		launches, drains, holds := placement.Rebalance(s, sp, o)
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
		again, drains2, _ := placement.Rebalance(s, nil, o)
		if !slices.EqualFunc(launches, again, func(a, b policy.Launch) bool { return a.Token == b.Token }) || len(drains2) != len(drains) {
			t.Fatalf("without a space the shift is another")
		}
	})
}

// checkDistance works out the share after the plan, plainly.
func checkDistance(t *rapid.T, s *policy.Snapshot, o placement.RebalanceOptions, plan *policy.Plan) {
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

// TestRebalanceDisplaces moves the pod of a node to a spot node that has room: no
// node is bought for it.
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
	launches, drains, _ := placement.Rebalance(s, nil, placement.RebalanceOptions{Pool: 0, Share: 0.6, DrainsMax: 5, Reason: policy.ReasonShare, Text: "x"})
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
		o := placement.RebalanceOptions{Pool: 0, Share: 0.5, DrainsMax: 5, Reason: policy.ReasonShare, Text: "x"}
		if launches, _, _ := placement.Rebalance(s, nil, o); len(launches) != 1 {
			t.Fatalf("%s: without it %d launches", name, len(launches))
		}
		limit(s)
		if launches, drains, holds := placement.Rebalance(s, nil, o); len(launches)+len(drains) > 0 || len(holds) != 2 || holds[0].Why.Reason != policy.ReasonInfeasible {
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
	launches, _, holds := placement.Rebalance(s, nil, placement.RebalanceOptions{Pool: 0, Share: 1, DrainsMax: 5, Reason: policy.ReasonShare, Text: "x"})
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
	launches, _, _ := placement.ReplaceNode(s, func() *placement.Space { return placement.FromSnapshot(s) }, 0, s.Pools[0].Markets, policy.ReasonRebalance, "x")
	if len(launches) != 1 || !slices.Equal(launches[0].Markets, []policy.MarketID{1}) {
		t.Errorf("launches %+v", launches)
	}
}

// TestShortagesBid bids what a node is worth, on the grid of bids, and buys
// nothing for a pod that is gated or promised a place.
func TestShortagesBid(t *testing.T) {
	s := parse(t, `type b.4 4
market z b.4 spot 0.06
pool web none
app one 3
pod one pending 3
`)
	s.Markets[0].Provider, s.Markets[0].OnDemand = "rackspace", policy.Dollars(0.1921)
	s.Pods[0].Gated = true
	s.Pods[1].Nominated = 0
	launches, _ := placement.Shortages(s, func(policy.PoolID) float64 { return 1 })
	if len(launches) != 1 || launches[0].Bid != policy.Dollars(0.195) {
		t.Errorf("launches %+v", launches)
	}
}

// TestBalance counts what is under way as done.
func TestBalance(t *testing.T) {
	const head = "type b.4 4\nmarket z b.4 on-demand 0.20\nmarket z b.4 spot 0.06\npool web\nnode n1 web z b.4 on-demand\nnode n2 web z b.4 on-demand"
	for name, c := range map[string]struct {
		text string
		want placement.Balance
	}{
		"at rest":                       {head, placement.Balance{Total: 8, Nodes: 2}},
		"a node that waits, marked":     {head + " by=us\nnode n3 web z b.4 spot launching ours", placement.Balance{Spot: 4, Total: 8, Nodes: 1}},
		"a node that waits, not marked": {head + "\nnode n3 web z b.4 spot launching ours", placement.Balance{Spot: 4, Total: 8, Nodes: 2, Moving: 1}},
		"the provisioner's":             {head + "\nnode n3 web z b.4 spot launching", placement.Balance{Spot: 4, Total: 12, Nodes: 2}},
	} {
		if got := placement.BalanceOf(parse(t, c.text), 0); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	b := placement.Balance{Spot: 0, Total: 12, Nodes: 3}
	for share, want := range map[float64]bool{0: false, 0.33: false, 0.34: true, 1: true} {
		if b.Off(share) != want {
			t.Errorf("0 of 12 on 3 nodes is off %v: %v", share, !want)
		}
	}
	// A last small node on demand is less than a node of mean size, and still one.
	if b := (placement.Balance{Spot: 11, Total: 12, Nodes: 3}); !b.Off(1) || b.Off(0.99) {
		t.Error("11 of 12 on 3 nodes is at rest with a share of 1, or is not with one of 0.99")
	}
}

func TestNodeLabels(t *testing.T) {
	types := []policy.InstanceType{{Name: "b.4", Arch: "arm64", Labels: []policy.Label{{Key: "family", Value: "b"}, {Key: "tier", Value: "type"}}}}
	pool := &policy.Pool{Name: "web", Labels: []policy.Label{{Key: "kubernetes.io/os", Value: "plan9"}, {Key: "tier", Value: "pool"}}}
	m := &policy.Market{Region: "r", Zone: 1, Capacity: policy.Spot}
	got := placement.NodeLabels(types, []string{"za", "zb"}, pool, m)
	want := []policy.Label{
		{Key: "family", Value: "b"},
		{Key: "karpenter.sh/capacity-type", Value: "spot"},
		{Key: "karpenter.sh/nodepool", Value: "web"},
		{Key: "kubernetes.io/arch", Value: "arm64"},
		{Key: "kubernetes.io/os", Value: "linux"},
		{Key: "node.kubernetes.io/instance-type", Value: "b.4"},
		{Key: "tier", Value: "pool"},
		{Key: "topology.kubernetes.io/region", Value: "r"},
		{Key: "topology.kubernetes.io/zone", Value: "zb"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestOffers leaves out what is closed and what refused us lately.
func TestOffers(t *testing.T) {
	s := parse(t, `type b.4 4
market z1 b.4 spot 0.06
market z2 b.4 spot 0.06 closed
market z3 b.4 spot 0.06 refused=29m
market z4 b.4 on-demand 0.2
market z5 b.4 spot 0.06 refused=30m
pool web
`)
	var got []policy.MarketID
	for _, o := range placement.Offers(s, 0, policy.Spot) {
		got = append(got, o.Market)
	}
	if want := []policy.MarketID{0, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := placement.MarketsOf(s, 0, policy.OnDemand); !slices.Equal(got, []policy.MarketID{3}) {
		t.Errorf("on demand: %v", got)
	}
}

// TestShortagesProperties: what is bought is needed, within limits, and pods
// that already have a place in sight buy nothing.
func TestShortagesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		for i := range s.Pools {
			s.Pools[i].Limits.CPU = rapid.SampledFrom([]int64{0, 4_000, 16_000}).Draw(t, "limit")
		}
		share := rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "share")
		launches, holds := placement.Shortages(s, func(policy.PoolID) float64 { return share })
		plan := policy.Plan{Launches: launches, Holds: holds, Wake: s.Now + 1}
		if err := policytest.Check(s, &plan); err != nil {
			t.Fatal(err)
		}
		waiting := 0
		for i := range s.Pods {
			p := &s.Pods[i]
			noticed := p.Node >= 0 && p.Phase != policy.PodGone && s.Nodes[p.Node].ReclaimAt != 0
			if p.Phase == policy.PodPending || noticed {
				waiting++
			}
		}
		if len(launches) > waiting {
			t.Fatalf("%d nodes for %d pods", len(launches), waiting)
		}
		used := make([]int64, len(s.Pools))
		for _, l := range launches {
			p := &s.Pools[l.Pool]
			if p.Provisioner != policy.ProvisionerNone || p.Mode == policy.ModeOff {
				t.Fatalf("pool %s is not ours to buy for", p.Name)
			}
			used[l.Pool] += s.Types[s.Markets[l.Markets[0]].Type].Capacity.CPU
			if p.Limits.CPU > 0 && used[l.Pool] > p.Limits.CPU {
				t.Fatalf("pool %s: %d of %d", p.Name, used[l.Pool], p.Limits.CPU)
			}
			if share == 0 && s.Markets[l.Markets[0]].Capacity == policy.Spot {
				t.Fatal("spot was bought at a share of 0")
			}
		}
	})
}

// BenchmarkRebalance moves ten of 2,000 nodes with 8,000 pods, space included.
func BenchmarkRebalance(b *testing.B) {
	s := large()
	o := placement.RebalanceOptions{Pool: 0, Share: 0.5, DrainsMax: 10, Reason: policy.ReasonShare, Text: "x"}
	b.ReportAllocs()
	for b.Loop() {
		if launches, _, _ := placement.Rebalance(s, nil, o); len(launches) != 10 {
			b.Fatalf("%d launches", len(launches))
		}
	}
}

func large() *policy.Snapshot {
	s := &policy.Snapshot{Now: policytest.Epoch, Zones: []string{"a", "b", "c"}}
	pool := policy.Pool{Name: "web", Share: policy.ShareRange{Max: 1}, Levers: policy.Levers{Launch: true}, Provisioner: policy.ProvisionerKarpenter}
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
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i), Requests: policy.Resources{CPU: 3600, Memory: 8 << 30, Pods: 1}, Grace: 30 * time.Second,
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
