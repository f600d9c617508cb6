package live

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
)

// at returns a snapshot as of some minutes after t0.
func at(s policy.Snapshot, minutes int) *policy.Snapshot {
	s.Now = policy.TimeOf(t0.Add(time.Duration(minutes) * time.Minute))
	return &s
}

// TestSavings computes the cost of a Spot node by hand: half an hour at $0.04 and half at $0.06 is
// $0.05, where on-demand is $0.10. A pod that requests half of the node bears half of that.
func TestSavings(t *testing.T) {
	s := snapshotOf(1)
	s.Nodes[0].Market = 1
	s.Templates = []policy.Template{{Namespace: "shop", Requests: policy.Resources{CPU: 1000}}}
	s.Pods = []policy.Pod{{Name: "shop/a", Phase: policy.PodReady, Node: 0}}
	var m meter
	book := &Savings{}
	m.read(at(s, 0), []*Savings{book})
	dear := s
	dear.Markets = append([]policy.Market(nil), s.Markets...)
	dear.Markets[1].Price, dear.Markets[1].PricedAt = 60_000, policy.TimeOf(t0.Add(30*time.Minute))
	m.read(at(dear, 60), []*Savings{book})
	if book.Total != (Account{Paid: 50_000, OnDemand: 100_000}) {
		t.Errorf("the hour cost %+v", book.Total)
	}
	if got := book.namespace("shop"); *got != (Account{Paid: 25_000, OnDemand: 50_000}) {
		t.Errorf("namespace shop: %+v", *got)
	}
	if got := book.namespace(noNamespace); *got != (Account{Paid: 25_000, OnDemand: 50_000}) {
		t.Errorf("unused: %+v", *got)
	}
	if got := book.Total.SavedAgainst(0.29); got != 21_000 { // 0.10 × 0.71 − 0.05
		t.Errorf("against a commitment of 29 %% %v were saved", got)
	}
	m.read(at(dear, 60), []*Savings{book})
	if book.Total.Paid != 50_000 {
		t.Errorf("read twice at one instant, it is %v", book.Total.Paid)
	}
}

// TestSavingsOfNewNodes charges a node from when it was launched, and the price in
// force where the market was withdrawn, and counts what has no price as such.
func TestSavingsOfNewNodes(t *testing.T) {
	s := snapshotOf(1)
	s.Nodes[0].Market, s.Nodes[0].Launched = 1, policy.TimeOf(t0.Add(-time.Minute))
	book := &Savings{}
	var m meter
	m.read(at(s, 0), []*Savings{book})
	s.Nodes = append(s.Nodes, s.Nodes[0], s.Nodes[0])
	s.Nodes[1].ID, s.Nodes[1].Name, s.Nodes[1].Launched = 1, "n001", policy.TimeOf(t0.Add(30*time.Minute))
	s.Nodes[2].ID, s.Nodes[2].Name, s.Nodes[2].Market = 2, "n002", policy.None
	m.read(at(s, 60), []*Savings{book})
	if book.Total.Paid != 60_000 || book.Unpriced != 3_600_000 {
		t.Errorf("paid %v, without a price %d ms", book.Total.Paid, book.Unpriced)
	}
	gone := s
	gone.Markets = append([]policy.Market(nil), s.Markets...)
	gone.Markets[1].Offered, gone.Markets[1].Price = false, policy.NoPrice
	m.read(at(gone, 90), []*Savings{book})
	if book.Total.Paid != 100_000 {
		t.Errorf("half an hour of two nodes in a market that was withdrawn makes it %v", book.Total.Paid)
	}
	m.read(at(s, 60*10), []*Savings{book})
	if got := book.Total.Paid - 100_000; got != 80_000 {
		t.Errorf("of a gap of more than eight hours %v count, want its last hour", got)
	}
}

// TestNamespacesAreBounded counts those beyond the bound together and loses nothing.
func TestNamespacesAreBounded(t *testing.T) {
	book := &Savings{}
	for i := range 2 * namespacesMax {
		book.namespace(string(rune('a'+i%26)) + time.Duration(i).String()).add(Account{Paid: 1, OnDemand: 2})
	}
	sum := Account{}
	for _, n := range book.Namespaces {
		sum.add(n.Account)
	}
	if len(book.Namespaces) != namespacesMax+1 || sum != (Account{Paid: 2 * namespacesMax, OnDemand: 4 * namespacesMax}) {
		t.Errorf("%d namespaces hold %+v", len(book.Namespaces), sum)
	}
}

// TestSavingsOverRestart charges by the price that was in force before a restart, makes
// good what had no price, and reads what an earlier version wrote: half an hour each at
// $0.04 and at $0.06, and an hour at $0.10.
func TestSavingsOverRestart(t *testing.T) {
	s := snapshotOf(2)
	s.Nodes[0].Market, s.Nodes[1].Market, s.Nodes[1].Launched = 1, policy.None, policy.TimeOf(t0)
	var m meter
	old := &poolBook{Format: memoryFormat}
	if err := json.Unmarshal([]byte(`{"format":1,"savings":{"since":1,"at":0,"total":{"paid":7,"onDemand":9}}}`), old); err != nil {
		t.Fatal(err)
	}
	old.Savings.At = policy.TimeOf(t0)
	m.read(at(s, 0), []*Savings{&old.Savings})
	m.read(at(s, 20), []*Savings{&old.Savings})
	data, err := packBook(old)
	if err != nil {
		t.Fatal(err)
	}
	var next poolBook
	if err := packed.Unpack(data, packed.ReadMax, &next); err != nil {
		t.Fatal(err)
	}
	if next.Savings.Unpriced != 20*60_000 {
		t.Errorf("%d ms have no price", next.Savings.Unpriced)
	}
	s.Nodes[1].Market = 0
	s.Markets[1].Price, s.Markets[1].PricedAt = 60_000, policy.TimeOf(t0.Add(30*time.Minute))
	m = meter{charged: m.charged}
	m.read(at(s, 60), []*Savings{&next.Savings})
	if got := next.Savings; got.Total != (Account{Paid: 7 + 150_000, OnDemand: 9 + 200_000}) || got.Unpriced != 0 || len(got.Open) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestSavingsOfAPoolThatIsGone: the cost of a node whose pool was deleted stays without a price,
// and is not written down again at every step.
func TestSavingsOfAPoolThatIsGone(t *testing.T) {
	s := snapshotOf(1)
	s.Markets[0].Offered = false
	book := &Savings{}
	var m meter
	m.read(at(s, 0), []*Savings{book})
	m.read(at(s, 10), []*Savings{book})
	s.Nodes = nil
	m.read(at(s, 11), []*Savings{book})
	if len(book.Open) != 1 || book.Unpriced != 600_000 || len(m.ended) != 1 || m.ended[0].Ended != policy.TimeOf(t0.Add(10*time.Minute)) {
		t.Fatalf("after ten minutes without a price: %+v, and ended have %+v", book, m.ended)
	}
	pools := s.Pools
	s.Pools = nil
	for minute := 12; minute < 20; minute++ {
		m.read(at(s, minute), nil)
	}
	if len(book.Open) != 1 || len(m.ended) != 0 {
		t.Errorf("%d nodes are remembered of one, and %d have ended since", len(book.Open), len(m.ended))
	}
	s.Pools, s.Markets[0].Offered = pools, true
	m.read(at(s, 20), []*Savings{book})
	if book.Unpriced != 600_000 || len(book.Open) != 0 || book.Total != (Account{}) {
		t.Errorf("once the pool is back: %+v", book)
	}
}
