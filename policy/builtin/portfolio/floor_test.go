package portfolio

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestHopeless: a node that is not tried, since the floor says that it does not pay, does
// not pay with the nodes that are found for it either; and some are not tried, others pay.
func TestHopeless(t *testing.T) {
	untried, paid := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := "type a.2 2\ntype a.4 4\ntype b.4 4\n"
		for _, kind := range []string{"a.2", "a.4", "b.4"} {
			cents := float64(rapid.IntRange(10, 30).Draw(t, kind)) * float64(kind[2]-'0') / 2
			text += fmt.Sprintf("market y %s on-demand %.4f\nmarket y %s spot %.4f\n", kind, cents/50, kind, cents/100)
		}
		text += "pool web\napp api 1 replicas=9\napp db 0.5 replicas=9\n"
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			kind := rapid.SampledFrom([]string{"a.4", "b.4"}).Draw(t, "kind")
			text += fmt.Sprintf("node n%d web y %s spot\n", i, kind)
			for _, app := range []string{"api", "db"} {
				if n := rapid.IntRange(0, 2).Draw(t, app); n > 0 {
					text += fmt.Sprintf("pod %s n%d %d\n", app, i, n)
				}
			}
		}
		s, _, err := policytest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		e.read(s)
		e.readMoves(s)
		d := newPlanState(e, s, &s.Pools[0], new(policy.Plan), policy.PoolMemory{})
		m := d.newRebalance(len(s.Nodes))
		for id := range s.Nodes {
			x := trial{node: &s.Nodes[id], before: policy.Dollars(m.prices.keeping(&s.Nodes[id]))}
			cannot := m.cannotPay(&x)
			if !m.place(&x) {
				continue
			}
			hopeless := m.hopeless(&x)
			pays := m.buy(&x) && m.payoff.pays(&x)
			switch {
			case pays && cannot:
				t.Fatalf("node %s for %v an hour is passed over, and %v would take its place", x.node.Name, x.before, x.after)
			case pays && hopeless:
				t.Fatalf("node %s for %v an hour is not tried, and %v would take its place", x.node.Name, x.before, x.after)
			case pays && len(x.bins) > 0:
				paid++
			case hopeless:
				untried++
			}
			m.unplace(&x)
		}
	})
	if untried == 0 || paid == 0 {
		t.Errorf("%d nodes were not tried, %d paid", untried, paid)
	}
}

// TestFloor: nothing that offers hold costs less than the floor, and an offer that is
// filled to the last costs no more where it sets the price.
func TestFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := floor{}
		var list []nodeOffer
		for range rapid.IntRange(1, 12).Draw(t, "offers") {
			list = append(list, nodeOffer{
				cost: rapid.SampledFrom([]float64{0, 0.1, 0.2, 0.4, 1}).Draw(t, "cost"), cpu: float64(1000 * rapid.IntRange(0, 4).Draw(t, "cpu")),
				memory: float64(rapid.IntRange(0, 4).Draw(t, "memory")) * (1 << 30), gpu: float64(rapid.IntRange(0, 2).Draw(t, "gpu")),
			})
		}
		var few []nodeOffer
		for _, x := range list {
			few = addUndominated(few, x)
		}
		f.gpu = cheapest(few, func(x *nodeOffer) float64 { return x.gpu })
		for i, ratio := range ratios {
			size := func(x *nodeOffer) float64 { return x.cpu + float64(ratio*x.memory)/(1<<20) }
			if f.cpu[i] = cheapest(few, size); f.cpu[i] != cheapest(list, size) {
				t.Fatalf("at %v the few %v cost %v and all %v cost %v", ratio, few, f.cpu[i], list, cheapest(list, size))
			}
		}
		for _, x := range list {
			need := policy.Resources{CPU: int64(x.cpu), Memory: int64(x.memory), GPU: int64(x.gpu)}
			if got := f.cost(&need); got > x.cost*(1+floorPart) {
				t.Fatalf("%+v is said to cost %v and is sold for %v", need, got, x.cost)
			}
		}
	})
}
