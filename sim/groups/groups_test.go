package groups

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	ca "github.com/spotter-dev/spotter/sim/autoscaler"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/machines"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// A node of a group is kept if it does not accept pods, is about to be reclaimed, is being worked
// on by an actor or must not be disrupted, if a pod is nominated for it, if it is used, or if a
// drain of Spotter's still needs it.
func TestGroupMayScaleIn(t *testing.T) {
	for name, change := range map[string]func(a *Autoscaler){
		"not initialized": func(a *Autoscaler) { a.Nodes.All[0].Phase = policy.NodeRegistered },
		"not ready":       func(a *Autoscaler) { a.Nodes.All[0].NotReady = true },
		"notice":          func(a *Autoscaler) { a.Nodes.All[0].ReclaimAt = a.Clock.Now + 1 },
		"do not disrupt":  func(a *Autoscaler) { a.Nodes.All[0].DoNotDisrupt = true },
		"worked on":       func(a *Autoscaler) { a.Nodes.All[0].ActedBy = policy.ActorNTH },
		"promised":        func(a *Autoscaler) { a.Nodes.State[0].Nominated = 1 },
		"used":            func(a *Autoscaler) { a.UtilizationMax = 0.4 },
		"empty only":      func(a *Autoscaler) { a.Pools.State[0].EmptyOnly = true },
		"exact":           func(a *Autoscaler) { a.Pools.State[0].Exact = true },
		"awaited": func(a *Autoscaler) {
			a.Nodes.All[0].Token = "ours"
			a.Drains.Start(1, []string{"to come"}, 0, policy.ActorUs)
		},
	} {
		w := simtest.One(0)
		w.Pools[0].Provisioner, w.Pools[0].Levers = policy.ProvisionerClusterAutoscaler, policy.Levers{Limits: true, Launch: true}
		for _, pod := range []string{"a", "b"} { // 1.8 of 3.9 cores on each of two nodes
			simtest.AddWorkload(&w, pod, policy.KindDeployment, 1, policy.Resources{CPU: 1800, Memory: simtest.GiB})
		}
		w.StartCluster = scenarios.StartNodes
		w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 0, Count: 2}}
		simtest.SortMarkets(&w)
		run, m := simtest.NewRun(t, &w, 1)
		a := New(machines.New(cluster.New(run), m))
		a.Workloads.Start()
		a.Launches.Start(false)
		a.Queue.Start()
		a.Launches.Tokens["to come"] = 0
		a.Nodes.All[0].Token = ""
		if !considers(a, 0) {
			t.Fatalf("%s: the node may not go before anything is changed", name)
		}
		if change(a); considers(a, 0) {
			t.Errorf("%s: the node may go", name)
		}
	}
}

// considers reports whether the Cluster Autoscaler would look for places for the pods of a node.
func considers(a *Autoscaler, id policy.NodeID) bool {
	c := a.scaleDown.view()
	return slices.ContainsFunc(c.Nodes, func(n ca.Node) bool {
		return n.ID == id && !n.Kept && !n.Disabled && c.Utilization(id) <= c.UtilizationMax
	})
}

func TestBackOffDoubles(t *testing.T) {
	now := simtest.Start
	var g scalingGroup
	for i, want := range []time.Duration{5, 10, 20, 30, 30} {
		g.backOff(now)
		if got := g.backedOff.Sub(now); got != want*time.Minute {
			t.Errorf("failure %d costs %v, want %v min", i, got, want)
		}
		now = g.backedOff
	}
	if g.backOff(now.Add(4 * time.Hour)); g.wait != firstBackoff {
		t.Errorf("four hours later a failure costs %v, want %v", g.wait, firstBackoff)
	}
}

// Where pods are spread over zones by force each zone has a pair of groups.
func TestGroupPerZone(t *testing.T) {
	for _, spread := range []bool{false, true} {
		w := simtest.One(0)
		w.Pools[0].Provisioner = policy.ProvisionerClusterAutoscaler
		want := 2
		if spread {
			w.Templates[0].Spread, want = []policy.Spread{{TopologyKey: labelZone, MaxSkew: 1}}, 4
		}
		simtest.SortMarkets(&w)
		run, m := simtest.NewRun(t, &w, 1)
		if n := len(New(machines.New(cluster.New(run), m)).groups.all); n != want {
			t.Errorf("spread over zones: %v, %d groups, want %d", spread, n, want)
		}
	}
}
