package policy_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestBidFloors bids what the admission webhook of Rackspace Spot required when each server class
// was tried: the least price of the grid that is not refused. It reads prices as decimals, as users
// write them.
func TestBidFloors(t *testing.T) {
	var file struct {
		Discovered map[string]struct {
			Result, Kind string
			Floor        *json.Number
		}
		Static map[string]json.Number `json:"static_table"`
	}
	if err := json.Unmarshal(policytest.Golden(t, "rackspace_min_bid_prices.json"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Discovered) == 0 || len(file.Static) == 0 {
		t.Fatalf("%d classes tried and %d in the table: there is nothing to compare with", len(file.Discovered), len(file.Static))
	}
	for class, x := range file.Discovered {
		switch {
		case x.Floor != nil:
			checkFloor(t, class, *x.Floor)
		case x.Kind == "market_price" || x.Result == "accepted":
			t.Errorf("%s: %s without a price", class, x.Result)
		}
	}
	for class, floor := range file.Static {
		checkFloor(t, class, floor)
	}
}

// checkFloor compares with exact fractions: the bid is on the grid, at least the
// floor, and less than a step above it unless it is the first.
func checkFloor(t *testing.T, class string, floor json.Number) {
	t.Helper()
	want, ok := new(big.Rat).SetString(floor.String())
	x, err := floor.Float64()
	if !ok || err != nil {
		t.Fatalf("%s: floor %q is not a price", class, floor)
	}
	bid := policy.Bid(policy.Dollars(x))
	got := big.NewRat(int64(bid), int64(policy.Dollar))
	if bid%policy.BidStep != 0 || got.Cmp(want) < 0 {
		t.Errorf("%s: a bid of %v is refused at %s", class, bid, floor)
	}
	below := new(big.Rat).Sub(got, big.NewRat(int64(policy.BidStep), int64(policy.Dollar)))
	if below.Cmp(want) >= 0 {
		t.Errorf("%s: %v is bid, and a step less would do at %s", class, bid, floor)
	}
}

// TestAffords compares what a node is charged with the bound, and in an auction with
// the highest bid under it.
func TestAffords(t *testing.T) {
	spot := policy.Market{Provider: "aws", Capacity: policy.Spot, Price: 60_000}
	auction := policy.Market{Provider: policy.Rackspace, Capacity: policy.Spot, Price: 61_000, Reserve: 5000}
	for _, c := range []struct {
		max  policy.Money
		m    policy.Market
		want bool
		bid  policy.Money
	}{
		{0, spot, true, 100_000}, {60_000, spot, true, 60_000}, {59_999, spot, false, 55_000},
		{62_000, auction, false, 60_000}, {65_000, auction, true, 65_000}, {200_000, auction, true, 100_000},
		{4000, policy.Market{Provider: policy.Rackspace, Capacity: policy.Spot, Price: 1000, Reserve: 5000}, false, 0},
	} {
		p := policy.Pool{PriceMax: c.max}
		if got := p.Affords(&c.m); got != c.want {
			t.Errorf("at most %v for %v (reserve %v): %t", c.max, c.m.Price, c.m.Reserve, got)
		}
		if got := p.Bid(96_000); got != c.bid {
			t.Errorf("at most %v: a bid of %v, want %v", c.max, got, c.bid)
		}
	}
}
