package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/scenarios"
)

// auctions turns the markets of b into those of Rackspace Spot, with pools that
// no provisioner serves and a reserve price of one bid step.
func (b *builder) auctions() {
	for i := range b.w.Types {
		b.w.Types[i].Provider = policy.Rackspace
	}
	for i := range b.w.Markets {
		m := &b.w.Markets[i]
		m.Provider = policy.Rackspace
		m.Name = strings.Replace(m.Name, "aws/", "rackspace/", 1)
		if m.Auction() {
			m.Reserve = policy.BidStep
		}
	}
	for i := range b.w.Pools {
		b.w.Pools[i].Provisioner, b.w.Pools[i].Levers = policy.ProvisionerNone, policy.Levers{Launch: true}
	}
}

// auction returns a calm scenario of one service in two classes of one region, a
// node of four cores worth $0.20 and one of eight $0.40. prices are those of the
// smaller class, each from its number of hours after the start on; the larger
// costs $0.30 at auction all the time.
func auction(replicas int32, prices map[int]policy.Money) *builder {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 200, time.Hour // there is nothing to multiply
	b.markets(1, 2, false)
	b.pool("p")
	b.workload("web", policy.KindDeployment, replicas, policy.Resources{CPU: 1800, Memory: gib})
	b.auctions()
	for i := range b.w.Markets {
		c := &b.w.Prices[i]
		switch {
		case !b.w.Markets[i].Auction():
		case b.w.Markets[i].Type == 1:
			c.Price[0] = 300_000
		default:
			for hour := -48; hour < 12; hour++ {
				if price, ok := prices[hour]; ok {
					c.At, c.Price = append(c.At, at(time.Duration(hour)*time.Hour)), append(c.Price, price)
				}
			}
			c.At, c.Price = c.At[1:], c.Price[1:]
		}
	}
	return b
}

// seeded returns a scenario that starts with count nodes of the smaller class at auction.
func (b *builder) seeded(count int) *scenarios.BoundScenario {
	for i := range b.w.Markets {
		if b.w.Markets[i].Auction() && b.w.Markets[i].Type == 0 {
			b.w.StartCluster = scenarios.StartNodes
			b.w.Seeds = []scenarios.NodeSeed{{Market: policy.MarketID(i), Count: count}}
		}
	}
	return b.scenario()
}

// TestAuctionBill pays three nodes for twelve hours: five at a market price below
// the reserve of $0.005, four at $0.0123 and three at $0.08.
func TestAuctionBill(t *testing.T) {
	for _, spec := range []string{"spot", "static:share=1", "spotvortex"} {
		w := auction(6, map[int]policy.Money{-48: 1000, 5: 12_300, 9: 80_000}).seeded(3)
		res, log := runScenario(t, w, spec)
		if want := policy.Money(3 * (5*5000 + 4*12_300 + 3*80_000)); spec != "spotvortex" && res.Bill != want {
			t.Errorf("%s: bill %v, want %v\n%s", spec, res.Bill, want, strings.Join(log, "\n"))
		}
		if res.Reclaims != 0 || res.Recommendations != 0 {
			t.Errorf("%s: %d reclaims and %d recommendations in an auction that nobody wins", spec, res.Reclaims, res.Recommendations)
		}
	}
}

// TestOutbid lets the price rise to the bid of $0.20 at three, and above it at
// six: the nodes stay until six, get a notice then and are gone six minutes later,
// having paid their bid and no more since.
func TestOutbid(t *testing.T) {
	b := auction(6, map[int]policy.Money{-48: 1000, 3: 200_000, 6: 200_001, 7: 1000})
	b.w.Pools[0].OnDemandFallback = false // or they are drained before they are taken
	b.budget(0, policy.Quantity{Set: true})
	res, log := runScenario(t, b.seeded(3), "spot")
	if n := count(log, "T06:00:00.000Z outbid "); n != 3 || res.Outbid != 3 || res.Reclaims != 3 {
		t.Errorf("%d outbid at six, %d in all, %d reclaims; want 3 of each\n%s", n, res.Outbid, res.Reclaims, strings.Join(log, "\n"))
	}
	if n := count(log, "T06:00:00.000Z notice "); n != 3 {
		t.Errorf("%d notices at six, want 3", n)
	}
	if n := count(log, "T06:06:00.000Z reclaimed "); n != 3 {
		t.Errorf("%d nodes taken at six past six, want 3", n)
	}
	each := 3*5000 + 3*200_000 + (200_000*6+30)/60 // three hours at the reserve, three and six minutes at the bid
	if n := count(log, "T06:06:00.000Z bill ", fmt.Sprint(" ", each)); n != 3 {
		t.Errorf("%d nodes billed %d, want 3\n%s", n, each, strings.Join(log, "\n"))
	}
}

// TestOutbidWithoutNotice takes the same nodes unannounced. The cluster counts
// them as reclaimed once it has noticed.
func TestOutbidWithoutNotice(t *testing.T) {
	b := auction(6, map[int]policy.Money{-48: 1000, 6: 300_000})
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultLateNotice, At: at(5 * time.Hour), Duration: 2 * time.Hour, Share: 1}}
	var log strings.Builder
	met := map[bool]float64{}
	res := mustRun(t, Config{Prepared: mustPrepare(t, b.seeded(3)), Policy: restless{mustPolicy(t, "spot")}, Seed: 1, Check: true, Log: &log,
		Observed: func(s *policy.Snapshot, _ *policy.Plan) {
			for i := range s.Markets {
				late := s.Now >= at(6*time.Hour+6*time.Minute+50*time.Second)
				met[late] = max(met[late], s.Markets[i].Experience.Reclaims)
			}
		}})
	lines := strings.Split(log.String(), "\n")
	if res.Notices != 0 || res.Outbid != 3 || count(lines, "T06:06:00.000Z reclaimed ") != 3 {
		t.Errorf("%d notices, %d outbid; want 0 and 3 taken at six past six\n%s", res.Notices, res.Outbid, log.String())
	}
	if met[false] != 0 || met[true] < 2.9 {
		t.Errorf("%v reclaims met before the loss was noticed and %v after", met[false], met[true])
	}
}

// TestReclaimIsMetOnce takes the same nodes after a notice. Each is one reclaim in the
// experience of its market from the notice on, and no second one when it is gone.
func TestReclaimIsMetOnce(t *testing.T) {
	b := auction(6, map[int]policy.Money{-48: 1000, 6: 300_000})
	met := map[string]float64{}
	res := mustRun(t, Config{Prepared: mustPrepare(t, b.seeded(3)), Policy: restless{mustPolicy(t, "spot")}, Seed: 1, Check: true,
		Observed: func(s *policy.Snapshot, _ *policy.Plan) {
			when := "before the notice"
			switch {
			case s.Now >= at(6*time.Hour+6*time.Minute+50*time.Second):
				when = "after the loss"
			case s.Now >= at(6*time.Hour):
				when = "under notice"
			}
			for i := range s.Markets {
				met[when] = max(met[when], s.Markets[i].Experience.Reclaims)
			}
		}})
	if res.Notices != 3 || res.Reclaims != 3 {
		t.Fatalf("%d notices of %d reclaims, want 3 of 3", res.Notices, res.Reclaims)
	}
	for when, want := range map[string]float64{"before the notice": 0, "under notice": 3, "after the loss": 3} {
		if got := met[when]; got > want || got < want-0.1 {
			t.Errorf("%v reclaims are met %s, want %v", got, when, want)
		}
	}
}

// TestBids requests nodes at various bids while the market charges $0.0123, with a reserve price
// of $0.005, and later below the reserve.
func TestBids(t *testing.T) {
	for _, x := range []struct {
		price, reserve, bid, got policy.Money
	}{
		{12_300, 5000, 12_300, 15_000}, {12_300, 5000, 15_000, 15_000}, {12_300, 5000, 10_000, 0}, {12_300, 5000, 12_299, 15_000},
		{1000, 5000, 1000, 5000}, {1000, 5000, 5000, 5000}, {1000, 10_000, 5000, 0}, {1000, 10_000, 5001, 10_000},
		{35_000, 5000, 35_000, 35_000}, {15_001, 5000, 15_000, 0}, {12_300, 5000, 0, -1},
	} {
		w := auction(1, map[int]policy.Money{-48: x.price}).scenario()
		for i := range w.Markets {
			w.Markets[i].Reserve = x.reserve
		}
		r, err := newRun(Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, "on-demand"), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.controller.Observer.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var market policy.MarketID
		for i := range w.Markets {
			if w.Markets[i].Auction() && w.Markets[i].Type == 0 {
				market = policy.MarketID(i)
			}
		}
		err = r.controller.Actuator.Launch(context.Background(), s, &policy.Launch{Token: "t", Pool: 0,
			Markets: []policy.MarketID{market}, Bid: x.bid})
		switch {
		case x.got < 0:
			if err == nil || errors.Is(err, driver.ErrNoCapacity) {
				t.Errorf("a launch without a bid: %v", err)
			}
		case x.got == 0:
			if !errors.Is(err, driver.ErrNoCapacity) || len(r.cluster.Nodes.All) != 0 {
				t.Errorf("bid %v at %v: %v, want it refused", x.bid, x.price, err)
			}
		case err != nil || len(r.cluster.Nodes.All) != 1 || r.cluster.Nodes.All[0].Bid != x.got:
			t.Errorf("bid %v at %v: %v, nodes %+v; want one that bids %v", x.bid, x.price, err, r.cluster.Nodes.All, x.got)
		}
	}
}

// war is a week's worth of trouble in a day: the class that costs a cent at first
// is worth more than on demand from three to seven, while the other never is
// cheap. Twelve pods need six of the smaller nodes; from nine on four pods do.
func war() *builder {
	b := auction(12, map[int]policy.Money{-48: 10_000, 3: 500_000, 7: 10_000})
	b.w.Workloads[0].Schedule = append(b.w.Workloads[0].Schedule, scenarios.ReplicaStep{At: at(9 * time.Hour), Replicas: 4})
	b.w.Pools[0].Budgets[0].Nodes = policy.Quantity{Set: true, N: 2}
	return b
}

// TestAuctionPolicies simulates the bidding war under every policy. Each launches nodes itself,
// releases those that are not needed after nine, and serves all pods again after the war.
// Policies that buy Spot are outbid and leave the market.
func TestAuctionPolicies(t *testing.T) {
	bills := map[string]policy.Money{}
	for _, spec := range []string{"on-demand", "spot", "static", "spotvortex", "spotvortex:compat=true"} {
		res, log := runScenario(t, war().scenario(), spec)
		bills[spec] = res.Bill
		if spec != "on-demand" && !strings.HasPrefix(spec, "spotvortex") && res.Outbid == 0 {
			t.Errorf("%s: nobody was outbid\n%s", spec, strings.Join(log, "\n"))
		}
		if spec == "on-demand" && (res.SpotBill != 0 || res.Reclaims != 0) {
			t.Errorf("on-demand paid %v for spot and lost %d nodes", res.SpotBill, res.Reclaims)
		}
		if n := count(log, " deleted "); n < 2 {
			t.Errorf("%s: %d nodes were given back", spec, n)
		}
		last := log[len(log)-1]
		if !strings.Contains(last, "bill") || res.Refusals > 20 {
			t.Errorf("%s: %d refusals", spec, res.Refusals)
		}
	}
	if !(bills["spot"] < bills["static"] && bills["static"] < bills["on-demand"]) {
		t.Errorf("bills %v: spot should cost less than static, and static less than on-demand", bills)
	}
}

// TestAuctionReturns: Spot nodes are bought again after the war, and none was bought during it.
func TestAuctionReturns(t *testing.T) {
	_, log := runScenario(t, war().scenario(), "spot")
	for _, line := range log {
		hour := line[len("2026-01-08T"):][:2]
		if strings.Contains(line, " launch ") && strings.Contains(line, "t0.large/spot") && hour >= "03" && hour < "07" {
			t.Errorf("bought at auction above the on-demand price: %s", line)
		}
	}
	if count(log, "T03:", " launch ", "t1.large/spot") == 0 {
		t.Errorf("the other auction, which costs less than on demand, was not used\n%s", strings.Join(log, "\n"))
	}
	if count(log, "T07:", " launch ", "t0.large/spot") == 0 {
		t.Errorf("no spot node was bought when the price fell\n%s", strings.Join(log, "\n"))
	}
}

// TestAuctionIsNotForeseen changes the prices after an instant and sees every
// snapshot up to it unchanged.
func TestAuctionIsNotForeseen(t *testing.T) {
	observe := func(prices map[int]policy.Money) string {
		var b strings.Builder
		cfg := Config{Prepared: mustPrepare(t, auction(12, prices).scenario()), Policy: mustPolicy(t, "spot"),
			Forecaster: mustForecaster(t), Seed: 5}
		cfg.Observed = func(s *policy.Snapshot, _ *policy.Plan) {
			if s.Now < at(6*time.Hour) {
				fmt.Fprintf(&b, "%+v\n", s.Whole())
			}
		}
		mustRun(t, cfg)
		return b.String()
	}
	calm := observe(map[int]policy.Money{-48: 10_000})
	if stormy := observe(map[int]policy.Money{-48: 10_000, 6: 900_000}); stormy != calm || calm == "" {
		t.Error("a price to come is in a snapshot")
	}
}

// TestOutbidThenOutage lets the zone fail while nodes that were outbid wait for their end. Their
// notices have the end that the auction set, not the failure. Each node is lost once, to the
// higher bid, and has paid its bid since.
func TestOutbidThenOutage(t *testing.T) {
	b := auction(6, map[int]policy.Money{-48: 1000, 6: 900_000})
	b.w.Pools[0].OnDemandFallback = false
	b.budget(0, policy.Quantity{Set: true})
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultZoneOutage, At: at(6*time.Hour + time.Minute), Duration: time.Hour, Zone: "z0"}}
	var log strings.Builder
	res := mustRun(t, Config{Prepared: mustPrepare(t, b.seeded(3)), Policy: restless{mustPolicy(t, "spot")}, Seed: 1, Check: true, Log: &log,
		Observed: func(s *policy.Snapshot, _ *policy.Plan) {
			for i := range s.Nodes {
				n := &s.Nodes[i]
				if end := n.ReclaimAt; n.Phase != policy.NodeGone && (end != 0) != (s.Now >= at(6*time.Hour)) ||
					end != 0 && end != at(6*time.Hour+6*time.Minute) {
					t.Errorf("at %v %s is said to go at %v", s.Now, n.Name, end)
				}
			}
		}})
	lines := strings.Split(log.String(), "\n")
	if res.Outbid != 3 || res.Reclaims != 3 || res.Notices != 3 {
		t.Errorf("%d outbid, %d reclaims, %d notices; want 3 of each", res.Outbid, res.Reclaims, res.Notices)
	}
	if n := count(lines, "T06:0", " reclaimed "); n != 3 || count(lines, "T06:05:", " reclaimed ") != 0 {
		t.Errorf("%d nodes taken by the failure, want 3 and none later\n%s", n, log.String())
	}
}
