// Package groups simulates Auto Scaling groups, and the Cluster Autoscaler that resizes them.
package groups

import (
	"github.com/spotter-dev/spotter/policy"
	ca "github.com/spotter-dev/spotter/sim/autoscaler"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/machines"
)

// An Autoscaler is the Cluster Autoscaler of a run with the groups that it manages.
type Autoscaler struct {
	*machines.Machines
	ca.Options // the defaults

	loop      *loop
	groups    *scalingGroups
	scaleDown *scaleDown
}

// New returns the Cluster Autoscaler of a run.
func New(ms *machines.Machines) *Autoscaler {
	a := &Autoscaler{Machines: ms, Options: ca.DefaultOptions()}
	a.loop = &loop{Autoscaler: a}
	a.groups = &scalingGroups{Autoscaler: a}
	a.scaleDown = &scaleDown{Autoscaler: a}
	a.loop.init()
	a.groups.init()
	a.watch()
	return a
}

// watch subscribes the Cluster Autoscaler and its groups to events.
func (a *Autoscaler) watch() {
	a.Clock.On(engine.Scan, func(*engine.Event) { a.loop.scan() })
	a.Clock.On(engine.GroupFills, func(e *engine.Event) { a.groups.fill(e.A) })

	a.PodsWait.Subscribe(func(int) { a.Want() })
	a.PodBound.Subscribe(func(p policy.PodID) { a.loop.noteUse(a.Pods.All[p].Node) })
	a.PodUnprotected.Subscribe(func(policy.PodID) { a.Want() })
	a.PodEnded.Subscribe(func(p cluster.EndedPod) {
		if p.Node != policy.None && !a.Scenario.Templates[p.Template].DaemonSet {
			a.Want()
		}
	})
	a.NodeReady.Subscribe(func(n policy.NodeID) {
		if g := a.groups.groupOf(n); g != nil {
			g.recover(a.Clock.Now)
		}
		a.Want()
	})
	a.NodeGone.Subscribe(func(policy.NodeID) {
		if len(a.Queue.Pending) > 0 {
			a.Want()
		}
	})
	a.Launched.Subscribe(func(n policy.NodeID) {
		a.loop.memory.Forget(n)
		a.groups.join(n)
	})
	a.Terminating.Subscribe(a.groups.release)
	a.Stopped.Subscribe(a.groups.leave)
	a.DrainUndone.Subscribe(func(n policy.NodeID) {
		if a.Nodes.All[n].ActedBy == policy.ActorClusterAutoscaler {
			a.scaleDown.failed = a.Clock.Now
		}
	})
	a.DrainEnded.Subscribe(func(policy.NodeID) { a.Want() })
}

// Want plans an iteration at the next tick of the Cluster Autoscaler, if it serves any pool.
func (a *Autoscaler) Want() {
	if a.groups.of != nil {
		a.loop.scanBy(a.Clock.Now)
	}
}

// Serves reports whether the nodes of pool are instances of groups.
func (a *Autoscaler) Serves(pool policy.PoolID) bool { return a.groups.serves(pool) }

// MayLose reports whether a node may be released without replacement: it has no group, or its group
// may shrink.
func (a *Autoscaler) MayLose(n policy.NodeID) bool {
	g := a.groups.groupOf(n)
	return g == nil || a.groups.maySpare(g)
}

// Launch carries out a launch of the policy in a pool of groups: it grows the group of the first
// market that can launch an instance. It returns driver.ErrNoCapacity if no group can.
func (a *Autoscaler) Launch(pool policy.PoolID, markets []policy.MarketID, token string) error {
	return a.groups.launch(pool, markets, token)
}
