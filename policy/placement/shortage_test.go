package placement_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func parse(t *testing.T, text string) *policy.Snapshot {
	t.Helper()
	s, _, err := policytest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
		"at rest":                   {head, placement.Balance{Total: 8, Nodes: 2}},
		"a node that waits, marked": {head + " by=us\nnode n3 web z b.4 spot launching ours", placement.Balance{Spot: 4, Total: 8, Nodes: 1}},
		"a node that waits, not marked": {head + "\nnode n3 web z b.4 spot launching ours",
			placement.Balance{Spot: 4, Total: 8, Nodes: 2, Moving: 1}},
		"the provisioner's": {head + "\nnode n3 web z b.4 spot launching", placement.Balance{Spot: 4, Total: 12, Nodes: 2}},
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
	// 64 − 0.9 × 64 is 6.4, the mean size of 10 nodes, and 6.399… as it is computed.
	if b := (placement.Balance{Spot: 64, Total: 64, Nodes: 10}); !b.Off(0.9) {
		t.Error("64 of 64 on 10 nodes is at rest with a share of 0.9, from which it is one node away")
	}
}

func TestNodeLabels(t *testing.T) {
	types := []policy.InstanceType{{Name: "b.4", Arch: "arm64", Labels: []policy.Label{{Key: "family", Value: "b"},
		{Key: "tier", Value: "type"}}}}
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

func at(share float64) func(policy.PoolID) float64 {
	return func(policy.PoolID) float64 { return share }
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

// TestAuctionLaunches names one class in a launch, the cheapest by what is
// charged, and bids what a node is worth there on the grid.
func TestAuctionLaunches(t *testing.T) {
	s := parse(t, `type a.4 4
type b.4 4
market z a.4 spot 0.001
market z b.4 spot 0.003
pool web none
app one 3
pod one pending`)
	bids(s, policy.BidStep)
	s.Markets[0].Reserve = 2 * policy.BidStep
	launches, holds := placement.Shortages(s, at(1))
	if len(launches) != 1 || len(launches[0].Markets) != 1 || launches[0].Markets[0] != 1 || launches[0].Bid != policy.Dollars(0.195) {
		t.Errorf("launches %+v, holds %v; want one in b.4 that bids $0.195", launches, holds)
	}
	if got := launches[0].Why.After; got != policy.BidStep {
		t.Errorf("it is said to cost %v, want the reserve price", got)
	}
	if got := placement.Bid(s, 0); got != policy.Dollars(0.195) {
		t.Errorf("the pool is told to bid %v", got)
	}
}

// TestOutpriced buys nothing at auction that costs more than on demand, and goes
// to on-demand instead.
func TestOutpriced(t *testing.T) {
	s := parse(t, `type a.4 4
market z a.4 on-demand 0.1921
market z a.4 spot 0.1921
pool web none fallback
app one 3
pod one pending`)
	bids(s, 0)
	if launches, _ := placement.Shortages(s, at(1)); len(launches) != 1 || launches[0].Markets[0] != 1 {
		t.Errorf("at the on-demand price: %+v, want it bought at auction", launches)
	}
	s.Markets[1].Price++
	if launches, _ := placement.Shortages(s, at(1)); len(launches) != 1 || launches[0].Markets[0] != 0 || launches[0].Bid != 0 {
		t.Errorf("above it: %+v, want it bought on demand", launches)
	}
}

// TestShortagesOfNoticed buys for the pods of a node under notice before they are
// evicted, and once.
func TestShortagesOfNoticed(t *testing.T) {
	s := parse(t, `type a.4 4
market z a.4 on-demand 0.20
pool web none
app one 3
node n1 web z a.4 on-demand notice
pod one n1`)
	if launches, _ := placement.Shortages(s, at(0)); len(launches) != 1 {
		t.Fatalf("%d launches, want one", len(launches))
	}
	s.Nodes = append(s.Nodes, s.Nodes[0])
	n := &s.Nodes[1]
	n.ID, n.Name, n.Phase, n.ReclaimAt, n.NoticeAt = 1, "n2", policy.NodeLaunching, 0, 0
	if launches, _ := placement.Shortages(s, at(0)); len(launches) != 0 {
		t.Errorf("bought twice: %+v", launches)
	}
	n.ReclaimAt = s.Now.Add(time.Minute)
	if launches, _ := placement.Shortages(s, at(0)); len(launches) != 1 {
		t.Errorf("%d launches while the node that was to come is under notice itself, want one", len(launches))
	}
	n.ReclaimAt, s.Workloads[0].Kind = 0, policy.KindBare
	s.Nodes = s.Nodes[:1]
	if launches, _ := placement.Shortages(s, at(0)); len(launches) != 0 {
		t.Errorf("%+v for a pod that nobody makes anew", launches)
	}
}

// TestLimitsCountTheLargest has a pool with room for twelve vCPU buy two nodes, of
// which one may be of eight and not both.
func TestLimitsCountTheLargest(t *testing.T) {
	s := parse(t, `type b.4 4
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
