package placement_test

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func decided(t *testing.T, text string) *policy.Snapshot {
	t.Helper()
	s, _, err := policytest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(share float64) func(policy.PoolID) float64 {
	return func(policy.PoolID) float64 { return share }
}

// TestConsolidateAfter gives an empty node back ten minutes after its last pod
// went, and asks to be woken then.
func TestConsolidateAfter(t *testing.T) {
	s := decided(t, `type b.4 4
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
	plan, m := placement.Consolidate(s, policy.Plan{Wake: later}, policy.Memory{}, placement.ConsolidateOptions{Share: at(0)})
	if len(plan.Drains) != 0 || plan.Wake != gone.Add(10*time.Minute) {
		t.Fatalf("drains %v, wakes at %v; want none, and to wake at %v", plan.Drains, plan.Wake, gone.Add(10*time.Minute))
	}
	s.Now, s.Ended = plan.Wake-1, nil
	if plan, _ = placement.Consolidate(s, policy.Plan{Wake: later}, m, placement.ConsolidateOptions{Share: at(0)}); len(plan.Drains) != 0 {
		t.Errorf("drained a millisecond too soon")
	}
	s.Now++
	if plan, m = placement.Consolidate(s, policy.Plan{Wake: later}, m, placement.ConsolidateOptions{Share: at(0)}); len(plan.Drains) != 1 || plan.Drains[0].Node != 1 || plan.Wake != later {
		t.Errorf("drains %v, wakes at %v; want n2 drained, and no other wake", plan.Drains, plan.Wake)
	}
	if idle := m.Pool("web").Idle; len(idle) != 1 || idle[0] != (policy.Idle{Node: "n2", Since: gone}) {
		t.Errorf("remembers %v", idle)
	}
}

// TestConsolidateKeepsReplacements leaves an empty node alone that came while
// another is still being emptied: its pods are coming.
func TestConsolidateKeepsReplacements(t *testing.T) {
	s := decided(t, `type b.4 4
market z b.4 on-demand 0.20
pool web none
app one 3
node n1 web z b.4 on-demand by=us
node n2 web z b.4 on-demand
pod one n1`)
	s.Nodes[1].Initialized = s.Now.Add(-19 * time.Minute)
	if plan, _ := placement.Consolidate(s, policy.Plan{}, policy.Memory{}, placement.ConsolidateOptions{Share: at(0)}); len(plan.Drains) != 0 {
		t.Error("the replacement was given back")
	}
	s.Nodes[1].Initialized = s.Now.Add(-20 * time.Minute)
	if plan, _ := placement.Consolidate(s, policy.Plan{}, policy.Memory{}, placement.ConsolidateOptions{Share: at(0)}); len(plan.Drains) != 1 {
		t.Error("a node that nobody came to is kept")
	}
}

// TestConsolidateHoldsTheShare empties no spot node where that would take the
// pool from its share of one half.
func TestConsolidateHoldsTheShare(t *testing.T) {
	s := decided(t, `type b.4 4
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
		plan, _ := placement.Consolidate(s, policy.Plan{}, policy.Memory{}, placement.ConsolidateOptions{Share: at(share)})
		if len(plan.Drains) != 1 || plan.Drains[0].Node != want {
			t.Errorf("share %v: %s, want node %d alone", share, plan.Format(s), want)
		}
	}
}

// bids turns the spot markets of s into auctions.
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
	s := decided(t, `type a.4 4
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
	s := decided(t, `type a.4 4
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
	s := decided(t, `type a.4 4
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
	s := decided(t, text)
	bids(s, 0)
	launches, drains, _ := placement.Rebalance(s, nil, placement.RebalanceOptions{Share: 1, DrainsMax: 1})
	if len(launches) != 2 || len(drains) != 1 || len(drains[0].After) != 2 || launches[0].Token == launches[1].Token {
		t.Fatalf("launches %+v, drains %+v; want two and one that waits for both", launches, drains)
	}
	if drains[0].Why.After != policy.Dollars(0.02) {
		t.Errorf("the drain is said to lead to %v, want $0.02", drains[0].Why.After)
	}
	s = decided(t, text)
	s.Markets[1].Price = policy.Dollars(0.019) // one machine for less than two
	if launches, _, _ = placement.Rebalance(s, nil, placement.RebalanceOptions{Share: 1, DrainsMax: 1}); len(launches) != 1 {
		t.Errorf("launches %+v, want the single one", launches)
	}
	s = decided(t, text)
	s.Pools[0].Limits.CPU, s.Pools[0].Used.CPU = 12_000, 8_000 // n1 and one small one more
	if launches, _, _ = placement.Rebalance(s, nil, placement.RebalanceOptions{Share: 1, DrainsMax: 1}); len(launches) != 0 {
		t.Errorf("launches %+v beyond the limits", launches)
	}
}
