package portfolio

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestNumbered: whatever costs nodes have already, the new ones are all different
// and below 0, follow the order within the tolerance, and once written stay.
func TestNumbered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]int32, rapid.IntRange(2, 30).Draw(t, "nodes"))
		for i := range list {
			list[i] = rapid.OneOf(rapid.Int32Range(-40, 3), rapid.Int32Range(-2_000_000, 0), rapid.Just(int32(leavingCost))).Draw(t, "held")
		}
		var x numbering
		costs := slices.Clone(x.of(list))
		order := make([]int, len(list))
		for i := range order {
			order[i] = i
			if costs[i] >= 0 || costs[i] <= leavingCost {
				t.Fatalf("cost %d of %v", costs[i], costs)
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[b], costs[a]) })
		for k := 1; k < len(order); k++ {
			if costs[order[k]] == costs[order[k-1]] {
				t.Fatalf("two nodes have the cost %d: %v", costs[order[k]], costs)
			}
		}
		if again := x.of(costs); !slices.Equal(again, costs) {
			t.Fatalf("costs %v become %v with nothing changed", costs, again)
		}
	})
}

// TestOrderMoves: a node that should stand far from where it stands is given
// another cost, and only that.
func TestOrderMoves(t *testing.T) {
	list := make([]int32, 20)
	evenly(list)
	list[0], list[19] = list[19]-1, 0 // the last should be kept longest; one has none yet
	var x numbering
	costs := x.of(list)
	for i := 1; i < 19; i++ {
		if costs[i] != list[i] {
			t.Errorf("node %d goes from %d to %d", i, list[i], costs[i])
		}
	}
	if costs[0] <= costs[1] || costs[19] >= costs[18] {
		t.Errorf("costs %v do not fall", costs)
	}
}

// TestOrderKeepsSpread: of eight equal nodes in two zones, those that are kept
// longest are not all of one zone, however many go.
func TestOrderKeepsSpread(t *testing.T) {
	text := "type a.4 4\nmarket y a.4 on-demand 0.20\nmarket y a.4 spot 0.0601\nmarket z a.4 on-demand 0.20\nmarket z a.4 spot 0.06\npool web min=1 steer=1\napp api 1 replicas=24 pdb=12\n"
	for _, n := range []string{"n1 web y", "n2 web y", "n3 web y", "n4 web y", "n5 web z", "n6 web z", "n7 web z", "n8 web z"} {
		text += "node " + n + " a.4 spot\n"
	}
	for _, n := range []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"} {
		text += "pod api " + n + " 3\n"
	}
	d := planStateOf(t, text)
	order := deletionOrder{d.poolContext, d.prices, d.perPod, d.choice.share}
	order.order()
	order.keep()
	list := d.e.ranking.kept
	zones := make([]int, len(d.s.Zones))
	for k, r := range list {
		zones[d.s.Markets[d.s.Nodes[r.node].Market].Zone]++
		if away := zones[0] - zones[1]; away < -1 || away > 1 {
			t.Fatalf("of the %d nodes kept longest %v stand in the two zones", k+1, zones)
		}
	}
}

// TestOrderOnce: what a plan orders is not ordered again once it has happened.
func TestOrderOnce(t *testing.T) {
	p, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		plan, _ := p.Decide(s, m)
		asked := plan.DeletionCosts
		for k := range asked {
			for i := range s.Pods {
				if asked[k].Ranks(s, &s.Pods[i]) {
					s.Pods[i].DeletionCost = asked[k].Cost
				}
			}
		}
		plan, _ = p.Decide(s, m)
		if len(plan.DeletionCosts) > 0 {
			t.Fatalf("asked for %v and then for %v", asked, plan.DeletionCosts)
		}
	})
}

// TestOrderKeepsRatio: of six nodes on spot and four on demand with an exact ratio of
// 0.6, those that are kept longest hold it within half a node, however many go, though
// a node on demand costs three times as much.
func TestOrderKeepsRatio(t *testing.T) {
	text := "type a.4 4\nmarket y a.4 on-demand 0.20\nmarket y a.4 spot 0.06\npool web exact=0.6 steer=0.6\napp api 1 replicas=30 pdb=12\n"
	for i := range 10 {
		kind := "spot"
		if i < 4 {
			kind = "on-demand"
		}
		text += fmt.Sprintf("node n%d web y a.4 %s\n", i, kind)
	}
	for i := range 10 {
		text += fmt.Sprintf("pod api n%d 3\n", i)
	}
	d := planStateOf(t, text)
	spot := 0.0
	order := deletionOrder{d.poolContext, d.prices, d.perPod, d.choice.share}
	order.order()
	order.keep()
	list := d.e.ranking.kept
	for k, r := range list {
		if d.s.Markets[d.s.Nodes[r.node].Market].Capacity == policy.Spot {
			spot++
		}
		if away := spot - 0.6*float64(k+1); away < -0.51 || away > 0.51 {
			t.Errorf("of the %d nodes kept longest %v are on spot", k+1, spot)
		}
	}
	if len(list) != 10 {
		t.Errorf("%d nodes are ordered", len(list))
	}
}
