package guard_test

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/guard"
)

// fixed is a policy that plans one thing and keeps what it saw.
type fixed struct {
	plan policy.Plan
	seen []policy.MarketID
}

func (*fixed) Name() string { return "fixed" }

func (f *fixed) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	f.seen = s.Pools[0].Markets
	return f.plan, m
}

// TestWithinPriceMax shows a policy the markets that a pool affords, lowers bids to
// what it may pay, and says where nothing is left.
func TestWithinPriceMax(t *testing.T) {
	market := func(id policy.MarketID, provider string, c policy.CapacityType, price policy.Money) policy.Market {
		return policy.Market{ID: id, Name: provider + "/" + c.String(), Provider: provider, Capacity: c, Offered: true, Price: price}
	}
	for _, c := range []struct {
		max     policy.Money
		bid     policy.Money
		pending bool
		seen    int
		holds   []string
	}{
		{max: 0, bid: 95_000, seen: 3},
		{max: 100_000, bid: 95_000, seen: 3},
		{max: 90_000, bid: 90_000, seen: 2},
		{max: 90_000, bid: 90_000, pending: true, seen: 2, holds: []string{"no on-demand node is bought", "$0.096 in aws/on-demand"}},
		{max: 30_000, bid: 30_000, seen: 0, holds: []string{"no on-demand node", "no spot node", "$0.039 in aws/spot"}},
	} {
		f := &fixed{plan: policy.Plan{
			Launches: []policy.Launch{{Token: "a", Markets: []policy.MarketID{2}, Bid: 95_000}},
			Steers:   []policy.Steer{{Bid: 95_000}},
		}}
		s := &policy.Snapshot{
			Markets: []policy.Market{market(0, "aws", policy.OnDemand, 96_000), market(1, "aws", policy.Spot, 39_000),
				market(2, policy.Rackspace, policy.Spot, 50_000)},
			Pools: []policy.Pool{{Name: "p", Markets: []policy.MarketID{0, 1, 2}, PriceMax: c.max}},
		}
		if c.pending {
			s.Pods = []policy.Pod{{Phase: policy.PodPending}}
		}
		plan, _ := guard.WithinPriceMax(f).Decide(s, policy.Memory{})
		var said []string
		for _, h := range plan.Holds {
			said = append(said, h.Why.Text)
		}
		text := strings.Join(said, "\n")
		for _, want := range c.holds {
			if !strings.Contains(text, want) {
				t.Errorf("maxPrice %v: says %q, want %q in it", c.max, text, want)
			}
		}
		if len(f.seen) != c.seen || (len(plan.Holds) > 0) != (len(c.holds) > 0) || len(s.Pools[0].Markets) != 3 {
			t.Errorf("maxPrice %v: the policy saw %v of %v; holds %q", c.max, f.seen, s.Pools[0].Markets, text)
		}
		if plan.Launches[0].Bid != c.bid || plan.Steers[0].Bid != c.bid {
			t.Errorf("maxPrice %v: bids %v and %v, want %v", c.max, plan.Launches[0].Bid, plan.Steers[0].Bid, c.bid)
		}
	}
}
