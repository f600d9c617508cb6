package sim

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// A node that goes by our drain is terminated with decrement: its group does not
// replace it. The same node lost to the provider comes back in a minute or so.
func TestGroupReplacesWhatIsLost(t *testing.T) {
	b := grouped(8)
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultZoneOutage, At: at(3 * time.Hour), Duration: time.Minute, Zone: "z0"}}
	_, log := runScenario(t, b.scenario(), "on-demand")
	lost, launched := when(t, log, " reclaimed "), when(t, log, " launch ")
	if len(lost) == 0 || len(launched) < len(lost) {
		t.Fatalf("%d nodes lost, %d launched", len(lost), len(launched))
	}
	for i := range lost {
		if d := launched[i].Sub(lost[len(lost)-1]); d < 0 || d > 2*time.Minute {
			t.Errorf("a node was launched %v after the last loss, want within two minutes", d)
		}
	}
}

// Moving half of four nodes to spot takes as many launches as drains, and leaves
// four nodes: no group replaces what was drained.
func TestGroupSwap(t *testing.T) {
	b := grouped(8).startOnDemand()
	b.w.WarmUp = 0
	res, log := runScenario(t, b.scenario(), "static")
	if n := count(log, " deleted "); n != 2 || res.Launches != 2+4 && res.Launches != 2 {
		t.Errorf("%d launches and %d nodes given back, want two each (and four nodes at the start)", res.Launches, n)
	}
	if res.NodeHours > 4*12+1 || res.SpotShare < 0.45 {
		t.Errorf("%.1f node-hours at spot share %.2f, want 48 and little more at a half", res.NodeHours, res.SpotShare)
	}
}

// Spot has nothing to give when four more pods come at six. The group is seen to
// be short a minute later and backs off, and the group on demand grows instead:
// the pods wait for two minutes more than they would.
func TestGroupFallsBack(t *testing.T) {
	b := grouped(4, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 8})
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(5*time.Hour + 30*time.Minute),
		Duration: 4 * time.Hour, Share: 1}}
	for i := range b.w.Markets { // what runs is not taken
		if b.w.Markets[i].Capacity == policy.OnDemand {
			b.w.StartCluster = scenarios.StartNodes
			b.w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: policy.MarketID(i), Count: 2}}
			break
		}
	}
	_, log := runScenario(t, b.scenario(), "spot")
	launched := when(t, log, "T06:", " launch ", "on-demand")
	if len(launched) != 2 || launched[0] < at(6*time.Hour+time.Minute) || launched[0] > at(6*time.Hour+2*time.Minute) {
		t.Errorf("on-demand nodes were launched at %v, want two between 6:01 and 6:02", launched)
	}
}

// What a group is still to launch counts as on its way: spot is closed for the
// first forty seconds in which four pods wait, and when the group tries again it
// launches two nodes for them and no more.
func TestGroupCountsWhatIsMissing(t *testing.T) {
	b := grouped(0, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 4})
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(5*time.Hour + 30*time.Minute),
		Duration: 30*time.Minute + 40*time.Second, Share: 1}}
	_, log := runScenario(t, b.scenario(), "spot")
	if n := count(log, " launch "); n != 2 || count(log, " refused ") != 1 {
		t.Errorf("%d nodes were launched after %d refusals, want 2 after 1", n, count(log, " refused "))
	}
}

// Nodes that take forty times as long to join are given up after a quarter of an
// hour, and their group backs off.
func TestGroupGivesUpSlowNodes(t *testing.T) {
	b := grouped(2, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 4})
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultSlowNodes, At: at(5 * time.Hour), Duration: 90 * time.Minute, Factor: 40}}
	_, log := runScenario(t, b.scenario(), "on-demand")
	launched, gone := when(t, log, " launch "), when(t, log, " deleted ")
	if len(launched) < 2 || len(gone) == 0 {
		t.Fatalf("%d launches, %d given up", len(launched), len(gone))
	}
	if d := gone[0].Sub(launched[0]); d < 15*time.Minute || d > 15*time.Minute+20*time.Second {
		t.Errorf("the node was given up after %v, want 15 min", d)
	}
	if d := launched[1].Sub(gone[0]); d < 5*time.Minute {
		t.Errorf("the group grew again after %v, want five minutes at least", d)
	}
}

// Four instances of a group that spans two zones are two in each.
func TestGroupBalancesZones(t *testing.T) {
	_, log := runScenario(t, grouped(0, scenarios.ReplicaStep{At: at(time.Hour), Replicas: 8}).scenario(), "on-demand")
	if a, b := count(log, " launch ", "/z0/"), count(log, " launch ", "/z1/"); a != 2 || b != 2 {
		t.Errorf("%d nodes in one zone and %d in the other, want 2 each", a, b)
	}
}

// Where pods are spread over zones by force each zone has a pair of groups, and
// the pods all find a node.
func TestGroupPerZone(t *testing.T) {
	b := grouped(0, scenarios.ReplicaStep{At: at(time.Hour), Replicas: 8})
	b.w.Templates[0].Spread = []policy.Spread{{TopologyKey: labelZone, MaxSkew: 1, Selector: policy.Selector{
		Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"web"}}}}}}
	w := b.scenario()
	_, log := runScenario(t, w, "on-demand")
	if n := count(log, " ready "); n != 8 {
		t.Errorf("%d pods became ready, want 8", n)
	}
}

// A group at its minimum size releases no node: a drain by Spotter would only make it launch
// another.
func TestGroupLeastSize(t *testing.T) {
	b := grouped(8)
	b.w.WarmUp = 0
	b.w.Groups.Min = 4
	held := 0
	cfg := Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "static:share=0.9"),
		Forecaster: mustForecaster(t), Seed: 1, Check: true}
	cfg.Observed = func(s *policy.Snapshot, p *policy.Plan) {
		for i := range p.Holds {
			if strings.Contains(p.Holds[i].Why.Text, "minimum size") {
				held++
			}
		}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if onDemand := n.Live() && s.Markets[n.Market].Capacity == policy.OnDemand; onDemand && !n.AtGroupMin {
				t.Errorf("at %v node %s is not shown to be one of the least that its group holds", s.Now, n.Name)
			}
		}
	}
	res := mustRun(t, cfg)
	if want := policy.Money(4 * 12 * 200_000); res.OnDemandBill != want {
		t.Errorf("the nodes on demand cost %v, want %v: four to the end", res.OnDemandBill, want)
	}
	if held == 0 {
		t.Error("no drain was held since the group is at its minimum size")
	}
}

// A call that fails makes the group back off for five minutes.
func TestGroupCallFails(t *testing.T) {
	b := grouped(2, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 4})
	b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultAPIError, At: at(5*time.Hour + 59*time.Minute), Duration: 3 * time.Minute, Share: 1}}
	_, log := runScenario(t, b.scenario(), "on-demand")
	launched := when(t, log, "T06:", " launch ")
	if len(launched) != 1 || launched[0] < at(6*time.Hour+5*time.Minute) || launched[0] > at(6*time.Hour+7*time.Minute) {
		t.Errorf("launched at %v, want once between 6:05 and 6:07", launched)
	}
}

// A group ends an instance that is as old as the pool allows, after it was
// drained, and launches another.
func TestGroupExpire(t *testing.T) {
	b := grouped(4)
	b.w.Pools[0].ExpireAfter = 4 * time.Hour
	res, log := runScenario(t, b.scenario(), "on-demand")
	if n := count(log, " deleted "); n < 4 || res.NodeHours > 12*3 {
		t.Errorf("%d nodes expired in %.1f node-hours, want four or more in about 24", n, res.NodeHours)
	}
}

// When an instance reaches its maximum age, its group does not shrink: it launches another within
// two minutes, though no pod needs one.
func TestGroupExpireReplaces(t *testing.T) {
	b := grouped(4, scenarios.ReplicaStep{At: at(2 * time.Hour), Replicas: 0})
	b.w.Pools[0].ExpireAfter, b.w.Pools[0].Consolidation = 6*time.Hour, policy.ConsolidateNever
	_, log := runScenario(t, b.scenario(), "on-demand")
	gone, launched := when(t, log, " deleted "), when(t, log, " launch ")
	if len(gone) < 2 || len(launched) < len(gone) {
		t.Fatalf("%d nodes expired and %d were launched, want two or more and as many", len(gone), len(launched))
	}
	for i := range gone {
		if d := launched[i].Sub(gone[i]); d <= 0 || d > 2*time.Minute {
			t.Errorf("a node was launched %v after one had gone, want within two minutes", d)
		}
	}
}

// Two runs on groups are the same, on one processor and on all.
func TestGroupSameHash(t *testing.T) {
	w := stormy(200)
	w.Pools[0].Provisioner, w.Pools[0].Levers = policy.ProvisionerClusterAutoscaler, policy.Levers{Limits: true, Launch: true}
	stage := mustPrepare(t, w)
	run := func() *Result {
		return mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, "rescheduler"), Forecaster: mustForecaster(t), Seed: 3})
	}
	first := run()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if second := run(); first.Hash != second.Hash || first.Bill != second.Bill {
		t.Errorf("two runs differ: %x and %x; repeat with -seed=3", first.Hash[:8], second.Hash[:8])
	}
	if first.Reclaims == 0 || first.SpotShare < 0.5 {
		t.Errorf("%d reclaims at spot share %.2f, want some of both", first.Reclaims, first.SpotShare)
	}
}
