package portfolio

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/workload"
)

// expectedLoss returns the loss in dollars per hour that is expected with markets and zones for the
// tentative placement of the pods, counted group by group.
func expectedLoss(d *planState, c *moveCosts) float64 {
	sum := 0.0
	for w := range d.s.Workloads {
		id := policy.WorkloadID(w)
		if !d.e.exposure.Tracks(id) {
			continue
		}
		add := func(g workload.Group) {
			over := d.e.exposure.Pods(id, g) - max(0, c.slack[w])
			sum += float64(max(0, over)) * c.penalty[w] * d.reclaims.losses(g)
		}
		for m := range d.s.Markets {
			add(workload.Group{Market: policy.MarketID(m), Zone: policy.None})
		}
		for z := range d.s.Zones {
			add(workload.Group{Market: policy.None, Zone: policy.ZoneID(z)})
		}
	}
	return sum
}

// TestRisk: the risk of moves is the growth of the expected loss, also where pods that were moved
// tentatively go to another market instead, and undone moves leave pods where they were.
func TestRisk(t *testing.T) {
	grew, fell := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		e, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		e.read(s)
		e.readMoves(s)
		d := newPlanState(e, s, &s.Pools[0], new(policy.Plan), policy.PoolMemory{})
		costs := moveCostsOf(s, e, d.perPod)
		risk := moveRisk{d.poolContext, d.reclaims, &costs}
		var moves []podMove
		for i := range s.Pods {
			p := &s.Pods[i]
			if p.Node < 0 || p.Phase != policy.PodReady || s.Nodes[p.Node].Market < 0 || !rapid.Bool().Draw(t, "moves") {
				continue
			}
			if w := s.Templates[p.Template].Workload; w >= 0 {
				to := policy.MarketID(rapid.IntRange(0, len(s.Markets)-1).Draw(t, "to"))
				moves = append(moves, podMove{w, p.Node, to})
			}
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9 {
				t.Fatalf("%s puts $%v an hour at risk, and the expected loss grows by $%v", what, got, want)
			}
		}
		before := expectedLoss(d, &costs)
		added := risk.of(moves)
		after := expectedLoss(d, &costs)
		near("the moves", added.sum, after-before)
		if again := risk.since(0); again != added {
			t.Fatalf("the same moves put %+v at risk, then %+v", added, again)
		}
		switch {
		case added.sum > 0:
			grew++
		case added.sum < 0:
			fell++
		}
		to := policy.MarketID(rapid.IntRange(0, len(s.Markets)-1).Draw(t, "instead"))
		got := risk.instead(moves, to)
		near("what is taken back", expectedLoss(d, &costs), after)
		e.undo(0)
		near("what is taken back", expectedLoss(d, &costs), before)
		for i := range moves {
			moves[i].to = to
		}
		risk.of(moves)
		near("another market", got, expectedLoss(d, &costs)-after)
	})
	if grew == 0 || fell == 0 {
		t.Errorf("the risk grew with the moves of %d cases, and fell with those of %d", grew, fell)
	}
}
