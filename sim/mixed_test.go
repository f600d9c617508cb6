package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestMixedNodePool: one NodePool of both capacity types moves from on-demand to Spot during the
// warm-up, by Karpenter's own consolidation. After that nothing moves, although nodes of half the
// size cost a sixth from two o'clock on: Spot nodes are not replaced by Spot nodes.
func TestMixedNodePool(t *testing.T) {
	b := newBuilder(12 * time.Hour)
	b.w.Intensity, b.w.WarmUp = 0, time.Hour
	b.markets(2, 2, false)
	b.pool("p")
	b.workload("web", policy.KindDeployment, 1, policy.Resources{CPU: 1800, Memory: gib})
	for i := range b.w.Markets {
		switch m, prices := &b.w.Markets[i], &b.w.Prices[i]; {
		case m.Capacity != policy.Spot:
		case m.Type == 1:
			prices.Price[0] = 30_000
		default:
			prices.At, prices.Price = append(prices.At, at(2*time.Hour)), append(prices.Price, 5_000)
		}
	}
	res, log := runScenario(t, b.scenario(), "karpenter")
	if res.SpotShare != 1 || res.OnDemandBill != 0 || res.Bill != 12*30_000 {
		t.Errorf("the share of spot is %v, the bill %v, of which %v on demand; want one spot node at $0.03", res.SpotShare,
			res.Bill, res.OnDemandBill)
	}
	if n := count(log, " launch ") + count(log, " draining "); n != 0 {
		t.Errorf("%d nodes launched or drained, want none:\n%s", n, strings.Join(log, "\n"))
	}
}

// TestMixedBuysTheCheaper: for pods that come at one o'clock no spot is bought that costs
// more than on-demand.
func TestMixedBuysTheCheaper(t *testing.T) {
	for factor, spot := range map[policy.Money]bool{9: true, 11: false} {
		b := one(10, scenarios.ReplicaStep{At: at(time.Hour), Replicas: 20})
		for i := range b.w.Markets {
			if b.w.Markets[i].Capacity == policy.Spot {
				b.w.Prices[i].Price[0] = b.w.Markets[i].OnDemand * factor / 10
			}
		}
		_, log := runScenario(t, b.scenario(), "karpenter")
		if n, dear := count(log, " launch "), count(log, " launch ", "/on-demand"); n == 0 || spot && dear > 0 || !spot && dear < n {
			t.Errorf("spot at %d tenths of the price on demand: %d of %d nodes are bought on demand", factor, dear, n)
		}
	}
}

// TestMixedFallsBack: while all spot is refused, from two to four o'clock, pods that come
// get nodes on demand although the manifest forbids it, which the run says; some hours
// later these are spot too.
func TestMixedFallsBack(t *testing.T) {
	b := one(10, scenarios.ReplicaStep{At: at(3 * time.Hour), Replicas: 20})
	b.w.Pools[0].OnDemandFallback = false
	for _, zone := range []string{"z0", "z1"} {
		b.w.Faults = append(b.w.Faults, scenarios.Fault{Kind: scenarios.FaultCapacityShortage, At: at(2 * time.Hour),
			Duration: 2 * time.Hour, Share: 0.01, Zone: zone})
	}
	w := b.scenario()
	res, log := runScenario(t, w, "karpenter")
	if n := count(log, " launch ", "/on-demand"); n == 0 {
		t.Errorf("nothing was bought on demand:\n%s", strings.Join(log, "\n"))
	}
	if res.Unserved > 0 && res.Availability < 0.99 {
		t.Errorf("available for %v of the time", res.Availability)
	}
	last := policy.Time(0)
	for _, line := range log {
		if strings.Contains(line, " deleted ") {
			last = when(t, []string{line}, " deleted ")[0]
		}
	}
	if last < at(4*time.Hour) {
		t.Errorf("the last node left at %v: those on demand stay", last)
	}
	if want := []string{"pool p buys on demand in place of Spot that was refused, which onDemandFallback forbids"}; !slices.Equal(res.Violations, want) {
		t.Errorf("violations %q, want %q", res.Violations, want)
	}
	if res, _ := runScenario(t, w, "spot"); len(res.Violations) > 0 {
		t.Errorf("spot waits for spot, and is said to break %q", res.Violations)
	}
}

// TestMixedInterruption: a node under notice is drained by Karpenter and not by us, and
// for three minutes no node is bought in its market: also where a NodePool that is left to
// itself allows Spot only.
func TestMixedInterruption(t *testing.T) {
	t.Run("both", func(t *testing.T) { interrupted(t, "karpenter", nil) })
	t.Run("spot", func(t *testing.T) { interrupted(t, "as-is", []policy.CapacityType{policy.Spot}) })
}

// interrupted has Spot nodes of a pool that allows capacity types taken under a policy.
func interrupted(t *testing.T, name string, types []policy.CapacityType) {
	b := one(10)
	b.w.Pools[0].CapacityTypes = types
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(2 * time.Hour), Duration: time.Minute, Share: 1}}
	var ours, theirs int
	noticed := map[policy.MarketID]policy.Time{}
	cfg := Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, name), Seed: 1, Check: true,
		Observed: func(s *policy.Snapshot, plan *policy.Plan) {
			ours += len(plan.Drains)
			for i := range s.Nodes {
				n := &s.Nodes[i]
				if n.ReclaimAt != 0 && n.Phase != policy.NodeGone && n.ActedBy == policy.ActorKarpenter {
					theirs++
					noticed[n.Market] = max(noticed[n.Market], n.NoticeAt)
				}
				if at := noticed[n.Market]; at != 0 && n.Phase != policy.NodeGone && n.Launched > at && n.Launched < at.Add(3*time.Minute) {
					t.Errorf("%s was launched at %v in the market of a node that got its notice at %v", n.Name, n.Launched, at)
				}
			}
		}}
	if res := mustRun(t, cfg); ours > 0 || theirs == 0 || res.Notices == 0 {
		t.Errorf("%d notices, %d drains of ours and %d of Karpenter's; want none of ours", res.Notices, ours, theirs)
	}
}

// TestAsIs: pools keep buying what their NodePools allow, whatever the manifest states.
func TestAsIs(t *testing.T) {
	for _, x := range []struct {
		types []policy.CapacityType
		share float64
	}{
		{[]policy.CapacityType{policy.OnDemand}, 0}, {[]policy.CapacityType{policy.Spot}, 1},
		{[]policy.CapacityType{policy.OnDemand, policy.Spot}, 1}, {nil, 1},
	} {
		b := one(10, scenarios.ReplicaStep{At: at(time.Hour), Replicas: 20})
		b.w.Pools[0].CapacityTypes = x.types
		if res, _ := runScenario(t, b.scenario(), "as-is"); res.SpotShare != x.share {
			t.Errorf("NodePools that allow %v: the share of spot is %v, want %v", x.types, res.SpotShare, x.share)
		}
	}
}
