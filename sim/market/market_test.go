package market

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/engine"
)

const hour policy.Time = 3_600_000

// newMarket returns n Spot markets of one scenario two hours after its start. The number of their
// nodes follows available, and is unlimited if that is nil.
func newMarket(t *testing.T, n int, available *weather.Availability) *Market {
	t.Helper()
	begin := policy.Time(1_700_000_000_000)
	w := &scenarios.BoundScenario{}
	drawn := make([]weather.Market, n)
	for i := range n {
		name := fmt.Sprintf("m%d", i)
		w.Markets = append(w.Markets, policy.Market{ID: policy.MarketID(i), Name: name, Capacity: policy.Spot})
		w.Prices = append(w.Prices, scenarios.PriceCurve{At: []policy.Time{begin}, Price: []policy.Money{1000}})
		drawn[i] = weather.Market{Name: name, Region: "r", Zone: name, Type: name, Spot: true, Band: policy.Band(i % 5), Available: available}
	}
	cfg := weather.Config{Seed: 1, From: begin, To: begin + 24*hour, Intensity: 1, Params: weather.DefaultParams()}
	x, err := weather.New(cfg, drawn)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPrices(w, cfg.From, cfg.To)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Seed: 1}, p, x, &engine.Queue{Now: begin + 2*hour})
}

// TestAllocateLeavesTheWorstThird holds that of four open markets the one of the
// most pressure is not chosen, though it is the cheapest, and the third still is.
func TestAllocateLeavesTheWorstThird(t *testing.T) {
	m := newMarket(t, 4, nil)
	ids := []policy.MarketID{0, 1, 2, 3}
	bySafety := slices.SortedFunc(slices.Values(ids), func(a, b policy.MarketID) int {
		return cmp.Compare(m.pressure(a), m.pressure(b))
	})
	for rank, id := range bySafety {
		if _, open := m.freeSlot(id); !open {
			t.Fatalf("market %d is short", id)
		}
		m.prices.curves[id].Price[0] = policy.Money(1000 - rank)
	}
	if id, _, ok := m.Allocate(ids, Allocation{Number: 1}); !ok || id != bySafety[2] {
		t.Errorf("market %d is chosen, %v; from the safest on they are %v", id, ok, bySafety)
	}
}

// TestPressureOfDepth holds that of markets with one past the provider leaves out the one that it
// has fewest nodes left in, though it is the cheapest.
func TestPressureOfDepth(t *testing.T) {
	begin := policy.Time(1_700_000_000_000)
	m := newMarket(t, 3, &weather.Availability{At: []policy.Time{begin}, Up: []bool{true}, Nodes: []int32{5}})
	ids := []policy.MarketID{0, 1, 2}
	cheapest := slices.SortedFunc(slices.Values(ids), func(a, b policy.MarketID) int { return cmp.Compare(m.pressure(a), m.pressure(b)) })[1]
	m.prices.curves[cheapest].Price[0] = 900
	if id, _, _ := m.Allocate(ids, Allocation{Number: 1}); id != cheapest {
		t.Fatalf("market %d is chosen, want %d, the cheapest", id, cheapest)
	}
	for slot := range int32(4) {
		m.Launch(cheapest, slot)
	}
	if id, _, ok := m.Allocate(ids, Allocation{Number: 1}); !ok || id == cheapest {
		t.Errorf("market %d is chosen, %v, though it has one node left and others have five", id, ok)
	}
}

// TestSlots holds that the lowest slot is taken and can be taken again once it is free,
// and that a market has no node where it holds fewer than are taken.
func TestSlots(t *testing.T) {
	begin := policy.Time(1_700_000_000_000)
	m := newMarket(t, 1, &weather.Availability{At: []policy.Time{begin, begin + hour}, Up: []bool{true, true}, Nodes: []int32{5, 2}})
	want := func(slot int32, ok bool) {
		t.Helper()
		if s, free := m.freeSlot(0); free != ok || ok && s != slot {
			t.Errorf("slot %d, %v; want %d, %v", s, free, slot, ok)
		}
	}
	want(0, true)
	m.Launch(0, 0)
	want(1, true)
	m.Free(0, 0)
	want(0, true)
	m.Launch(0, 1)
	want(0, true)
	m.Launch(0, 2)
	want(0, false) // it holds two, in whatever slots
	if s, ok := m.Slot(0); !ok || s != 0 {
		t.Errorf("slot %d, %v is the lowest that is free", s, ok)
	}
}

// TestReclaimed holds that a reclaim is part of the experience of its market.
func TestReclaimed(t *testing.T) {
	m := newMarket(t, 1, nil)
	m.Launch(0, 0)
	m.clock.Now += hour
	m.Reclaimed(0)
	if e := m.state[0].seen; e.Reclaims != 1 || e.Reclaimed != m.clock.Now || e.NodeHours != 1 {
		t.Errorf("experience %+v after a reclaim in the first hour", e)
	}
}
