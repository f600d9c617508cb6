package oracle

import (
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
)

// slots returns the bounds of w in the weather of a seed.
func slots(t *testing.T, w *scenarios.BoundScenario) Bound {
	t.Helper()
	o, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	// A missing pod costs 2 × its value; with a high value only nodes are compared.
	for i := range o.value {
		o.value[i] = 1e9
	}
	b, err := o.Under(1)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// exactly allows for the rounding of floats, and for what the meter may round off
// of 20 nodes, see oracle.rounding.
func exactly(t *testing.T, what string, got policy.Money, want float64) {
	t.Helper()
	if most := policy.Dollars(want); got > most+1 || got < most-30 {
		t.Errorf("%s: the bound is %v, want %v", what, got, most)
	}
}

// TestSlotsCheapestFirst: where pods fill whole nodes the bound is the price of
// the cheapest slots, and of nodes on demand beyond them.
func TestSlotsCheapestFirst(t *testing.T) {
	for _, c := range []struct {
		pods int32
		hour float64
	}{
		{6, 3 * 0.04},
		{10, 3*0.04 + 2*0.06},
		{11, 3*0.04 + 2.5*0.06},
		{26, 3*0.04 + 10*0.06},
		{30, 3*0.04 + 10*0.06 + 2*0.10},
	} {
		b := slots(t, evaltest.Slotted(c.pods))
		exactly(t, "nodes as many as are wanted", b.Cost, 24*float64(c.pods)/2*0.04)
		exactly(t, "nodes as many as there are slots", b.Slots, 24*c.hour)
	}

	w := evaltest.Slotted(10)
	big := w.Types[0]
	big.ID, big.Name, big.Allocatable = 1, "m5.xlarge", policy.Resources{CPU: 4000, Memory: 16 << 30, Pods: 20}
	w.Types = append(w.Types, big)
	w.Markets = append(w.Markets, policy.Market{ID: 3, Name: "aws/r/a/m5.xlarge/spot", Type: 1, Capacity: policy.Spot})
	w.Pools[0].Markets = append(w.Pools[0].Markets, 3)
	w.Prices = append(w.Prices, scenarios.PriceCurve{At: []policy.Time{1}, Price: []policy.Money{70_000}})
	w.Available = append(w.Available, evaltest.Deep(1))
	exactly(t, "one big node holds four pods for $0.07, three small ones the rest", slots(t, w).Slots, 24*(0.07+3*0.04))

	w = evaltest.Slotted(10)
	w.Available[1] = scenarios.AvailabilityCurve{At: []policy.Time{1, w.Start.Add(6 * time.Hour)},
		Available: []bool{true, true}, Nodes: []int32{1, 3}}
	exactly(t, "one node of the cheap market until six", slots(t, w).Slots, 6*(0.04+4*0.06)+18*(3*0.04+2*0.06))
	w.Available[1].Nodes = []int32{3, 1}
	exactly(t, "what is held stays when a market gets shallow", slots(t, w).Slots, 24*(3*0.04+2*0.06))
}

// TestSlotsShared: two pools that buy in one market share its slots, which are released only
// once.
func TestSlotsShared(t *testing.T) {
	w := evaltest.Slotted(10)
	w.Pools[0].Markets = []policy.MarketID{0, 1}
	w.Pools[0].Taints = []policy.Taint{{Key: "team", Value: "a", Effect: policy.NoSchedule}}
	w.Templates[0].Tolerations = []policy.Toleration{{Key: "team", Value: "a"}}
	w.Templates[0].NodeSelector = []policy.Label{{Key: "pool", Value: "a"}}
	w.Pools[0].Labels = []policy.Label{{Key: "pool", Value: "a"}}
	w.Pools = append(w.Pools, policy.Pool{ID: 1, Name: "other", Markets: []policy.MarketID{0, 1},
		Labels: []policy.Label{{Key: "pool", Value: "b"}}})
	other := w.Templates[0]
	other.ID, other.Workload, other.Name, other.NodeSelector = 1, 1, "default/other", []policy.Label{{Key: "pool", Value: "b"}}
	w.Templates, w.Workloads = append(w.Templates, other), append(w.Workloads, w.Workloads[0])
	w.Workloads[1].ID, w.Workloads[1].Name = 1, "default/other"
	exactly(t, "ten nodes, three of them cheap", slots(t, w).Slots, 24*(3*0.04+7*0.10))
}

// TestSlotsOf compares the slots in which a node can be alive with the plain form:
// those of which some launch before is not lost since.
func TestSlotsOf(t *testing.T) {
	random := rapid.Custom(drawScenario)
	fewer := 0
	for i := range 100 {
		w := random.Example(i)
		w.Intensity = 300 // a slot is lost many times an hour
		o, err := New(w)
		if err != nil {
			continue
		}
		drawn, err := o.prepared.DrawWeather(uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		for m := range w.Markets {
			if w.Markets[m].Capacity != policy.Spot {
				continue
			}
			c := o.slotsOf(policy.MarketID(m), drawn)
			begin := w.Start.Add(-w.WarmUp)
			launches := slices.Clone(o.depthsOf(policy.MarketID(m), drawn).at)
			for slot := range drawn.Slots(m) {
				for r, ok := drawn.Reclaim(m, slot, begin); ok && r.At < o.window.To; r, ok = drawn.Reclaim(m, slot, r.At) {
					launches = append(launches, r.At)
				}
			}
			for _, now := range append(slices.Clone(launches), o.window.From, o.window.From+1_234_567, o.window.To-1) {
				if now < begin || now >= o.window.To {
					continue
				}
				alive := int32(0)
				for slot := range drawn.Slots(m) {
					if slices.ContainsFunc(launches, func(at policy.Time) bool {
						lost, ok := drawn.Reclaim(m, slot, at)
						return begin <= at && at <= now && drawn.Depth(m, at) > slot && (!ok || lost.At > now)
					}) {
						alive++
					}
				}
				k, found := slices.BinarySearch(c.at, now)
				if !found {
					k--
				}
				if c.count[k] != alive {
					t.Fatalf("scenario %d, market %s at %v: %d slots, want %d", i, w.Markets[m].Name, now, c.count[k], alive)
				}
				if int(alive) < drawn.Slots(m) {
					fewer++
				}
			}
		}
	}
	if fewer < 100 {
		t.Errorf("in %d instants only a slot was lost", fewer)
	}
}

// TestSupplyOver: a piece has the least price and the most slots of each market that
// there are within it, and none of a market that is closed all the while.
func TestSupplyOver(t *testing.T) {
	f := fleet{supplies: []supply{
		{charge: scenarios.PriceCurve{At: []policy.Time{0, 12, 15, 30}, Price: []policy.Money{5, 3, 4, closed}},
			slots: &slotCurve{at: []policy.Time{0, 14, 16, 25}, count: []int32{2, 6, 1, 0}}},
	}}
	pieces := []piece{{span: billing.Span{From: 0, To: 10}}, {span: billing.Span{From: 10, To: 20}},
		{span: billing.Span{From: 20, To: 30}}, {span: billing.Span{From: 30, To: 40}}}
	f.supplyOver(pieces)
	for i, want := range []struct {
		price policy.Money
		slots int32
	}{{5, 2}, {3, 6}, {4, 1}, {closed, 0}} {
		if p := &pieces[i]; p.supply[0] != want.price || p.slots[0] != want.slots {
			t.Errorf("piece %d has %d slots at %d, want %d at %d", i, p.slots[0], p.supply[0], want.slots, want.price)
		}
	}
}

// TestOracleAlike: of two services that request the same one keeps its own pods
// apart and lets the other's in.
func TestOracleAlike(t *testing.T) {
	w := evaltest.Scenario("w", 0) // two pods fill a node
	term := policy.PodTerm{TopologyKey: corev1.LabelHostname,
		Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"web"}}}}}
	other := w.Templates[0]
	other.ID, other.Workload, other.Name = 1, 1, "default/other"
	w.Templates[0].Labels, w.Templates[0].PodAntiAffinity = []policy.Label{{Key: "app", Value: "web"}}, []policy.PodTerm{term}
	w.Templates, w.Workloads = append(w.Templates, other), append(w.Workloads, w.Workloads[0])
	w.Workloads[1].ID, w.Workloads[1].Name = 1, "default/other"
	exactly(t, "four nodes hold one of each", slots(t, w).Cost, 24*4*0.04)
}

// TestOracleCutShortOpens: prices found while a kind of node could not be had do
// not hold when it can.
func TestOracleCutShortOpens(t *testing.T) {
	w := evaltest.Scenario("w", 0)
	big := w.Types[0]
	big.ID, big.Name, big.Allocatable = 1, "m5.8xlarge", policy.Resources{CPU: 32000, Memory: 128 << 30, Pods: 200}
	w.Types = append(w.Types, big)
	w.Markets = append(w.Markets, policy.Market{ID: 2, Name: "aws/r/a/m5.8xlarge/spot", Type: 1, Capacity: policy.Spot})
	w.Pools[0].Markets = append(w.Pools[0].Markets, 2)
	w.Prices = append(w.Prices, scenarios.PriceCurve{At: []policy.Time{1, w.Start.Add(12 * time.Hour)},
		Price: []policy.Money{policy.NoPrice, 1_000}})
	o, err := New(w)
	if err != nil {
		t.Fatal(err)
	}
	o.workMax = 0
	if b, most := o.Every(), policy.Dollars(12*2*0.04+12*0.001); b.Cost <= 0 || b.Cost > most || b.Short == 0 {
		t.Errorf("the bound is %v, cut short in %d pieces; all can be had for %v", b.Cost, b.Short, most)
	}
}

// TestSlotsIsBound: in a tiny scenario with a limit on the nodes of a market, no sequence of
// actions costs less than the bound, however little work the search may do. With all of its work
// the bound is not far below the best cost.
func TestSlotsIsBound(t *testing.T) {
	var least, plain, found float64
	rapid.Check(t, func(t *rapid.T) {
		w := drawTiny(t)
		w.Slots = rapid.IntRange(1, 2).Draw(t, "slots")
		o, err := New(w)
		if err != nil {
			t.Skip("a pod fits nowhere")
		}
		b := brute{w: w, value: o.value, job: -1, slots: w.Slots}
		best := b.cost(6, 0, 0)
		for _, work := range []int{0, rapid.IntRange(1, 20_000).Draw(t, "work"), defaultWorkMax} {
			o.workMax = work
			bound, err := o.Under(1)
			if err != nil {
				t.Fatal(err)
			}
			if float64(bound.Slots) > best {
				t.Fatalf("with %d operations the bound %v is above %.6f, which can be had: %s", work, bound.Slots, best/1e6, sketch(w))
			}
			if work == defaultWorkMax {
				least, plain, found = least+float64(bound.Slots), plain+float64(bound.Cost), found+best
			}
		}
	})
	t.Logf("the bounds are %.0f %% of the best that can be had, without slots %.0f %%", least/found*100, plain/found*100)
	if least < 0.7*found || least <= plain {
		t.Errorf("the bounds are %.0f %% of the best that can be had, want 70 at least, and more than %.0f", least/found*100, plain/found*100)
	}
}

// TestOracleCutShort: a bound whose work is cut short says so, is lower, and still
// something.
func TestOracleCutShort(t *testing.T) {
	o, err := New(wide(20, 30, 72*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	best, err := o.Under(1)
	if err != nil {
		t.Fatal(err)
	}
	if best.Short > 0 {
		t.Errorf("%d pieces are cut short with all the work", best.Short)
	}
	last := Bound{Short: math.MaxInt}
	for _, work := range []int{0, 300_000, 3_000_000} {
		o.workMax = work
		b, err := o.Under(1)
		if err != nil {
			t.Fatal(err)
		}
		if b.Short == 0 || b.Short > last.Short {
			t.Errorf("with %d operations %d pieces are cut short, after %d with less", work, b.Short, last.Short)
		}
		if b.Cost > best.Cost || b.Slots > best.Slots || b.Cost <= 0 || b.Slots < b.Cost {
			t.Errorf("with %d operations the bounds are %v and %v, want some of %v and %v", work, b.Cost, b.Slots, best.Cost, best.Slots)
		}
		last = b
	}
	if last.Cost < best.Cost*9/10 {
		t.Errorf("a good part of the work gives %v of %v", last.Cost, best.Cost)
	}
}

// TestOracleAsGood holds the bounds of embedded scenarios, in micro-dollars, against
// changes that make them lower.
func TestOracleAsGood(t *testing.T) {
	for _, c := range []struct {
		name        string
		cost, slots policy.Money
	}{
		{"web-week", 436_920_758, 439_680_644},
		{"gpu-training", 67_630_826, 67_630_826},
		{"gpu-inference", 248_634_972, 248_916_578},
		{"batch-night", 31_762_182, 31_762_182},
		{"mixed-pool", 117_552_691, 117_552_691},
		{"black-friday", 133_794_833, 133_813_210},
		{"stateful-zonal", 56_905_443, 56_992_018},
		{"asg-web", 292_705_118, 292_705_118},
		{"squeeze", 44_203_023, 44_205_513},
		{"committed", 18_897_844, 18_897_844},
		{"long-jobs", 31_887_955, 31_892_645},
		{"bench-100", 1_378_728_150, 1_661_893_144},
		{"bench-500", 6_893_640_825, 16_232_740_717},
		{"bench-2000", 27_574_563_386, 113_543_366_278},
	} {
		o, err := New(evaltest.Embedded(t, c.name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := o.Under(1)
		if err != nil {
			t.Fatal(err)
		}
		if all := o.Every(); all.Cost < c.cost-c.cost/1000 || b.Slots < c.slots-c.slots/1000 || all.Short+b.Short > 0 {
			t.Errorf("%s: the bounds are %v and with slots %v, cut short in %d pieces, want %v and %v at least", c.name,
				all.Cost, b.Slots, all.Short+b.Short, c.cost, c.slots)
		}
	}
}
