package groups

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
	ca "github.com/spotter-dev/spotter/sim/autoscaler"
	"github.com/spotter-dev/spotter/sim/engine"
)

// A loop is the main loop of the Cluster Autoscaler.
type loop struct {
	*Autoscaler

	// scanAt is the time of the next iteration, 0 if none is planned, and scanned the time of the
	// last one.
	scanAt, scanned policy.Time

	memory ca.Memory
	traits []ca.Traits // by template
	draws  uint64

	// placed are the pending pods that fit existing or expected nodes. They are bound in the space
	// during an iteration.
	placed []policy.Pod
}

// A class is a pair of groups for nodes of one size: one on-demand group and one Spot group. An
// index is −1 if the pool has no such markets.
type class struct{ twin [2]int32 }

// The two groups of a class.
const (
	onDemandTwin = iota
	spotTwin
)

// init reads the traits of pods from the scenario.
func (a *loop) init() {
	for i := range a.Scenario.Templates {
		w := &a.Scenario.Workloads[a.Scenario.Templates[i].Workload]
		x := ca.Traits{Owner: ca.OwnerReplicated, LocalStorage: w.LocalStorage}
		switch w.Kind {
		case policy.KindBare:
			x.Owner = ca.OwnerNone
		case policy.KindDaemonSet:
			x.Owner = ca.OwnerDaemonSet
		}
		a.traits = append(a.traits, x)
	}
}

// noteUse plans an iteration if a pod was bound to an unneeded node.
func (a *loop) noteUse(n policy.NodeID) {
	if a.memory.Since(n) != 0 {
		a.Want()
	}
}

// scanBy plans an iteration at the first tick at or after t, unless an earlier one is planned.
func (a *loop) scanBy(t policy.Time) {
	t = max(t, a.scanned+1)
	tick := policy.Time(a.ScanInterval.Milliseconds())
	t = a.Prepared.Begin + (t-a.Prepared.Begin+tick-1)/tick*tick
	if a.scanAt == 0 || t < a.scanAt {
		a.scanAt = t
		a.Clock.Add(t, engine.Scan, 0, 0, 0)
	}
}

// podsNew is the age below which pods do not trigger a scale-up. If all pods that need a node are
// younger, the iteration ends early.
const podsNew = 2 * time.Second

// scan runs one iteration of the Cluster Autoscaler: it gives up instances that do not arrive,
// grows a group for pods that fit nowhere, and looks for nodes to delete. The next iteration is
// planned for the earliest time at which its result may differ without another event.
func (a *loop) scan() {
	if a.scanAt != a.Clock.Now {
		return // replaced by an earlier iteration
	}
	a.scanAt, a.scanned = 0, a.Clock.Now
	next := a.giveUp()
	soon := func(t policy.Time) { next = sooner(next, t) }
	pods := a.placePending()
	if len(pods) > 0 &&
		!slices.ContainsFunc(pods, func(p policy.Pod) bool { return p.Created.Add(podsNew) <= a.Clock.Now }) {
		a.unplace()
		a.scanBy(a.Clock.Now.Add(a.ScanInterval)) // more pods of the same kind are likely to follow
		return
	}
	grew, waiting := a.scaleUp(pods)
	if grew {
		a.scaleDown.grown = a.Clock.Now
		soon(a.Clock.Now.Add(a.ScanInterval))
	}
	if t := a.scaleDown.shrink(); t != 0 {
		soon(t)
	}
	a.unplace()
	if waiting {
		// No instances were available for these pods. Prices, limits and markets change without an
		// event, and the back-off of a group ends.
		soon(a.Clock.Now.Add(time.Minute))
	}
	if next != 0 {
		a.scanBy(next)
	}
}

// giveUp reduces the desired sizes of groups whose launches are refused, and deletes instances that
// do not register in time. It returns the time of the next check, or 0 if none is needed.
func (a *loop) giveUp() (next policy.Time) {
	soon := func(t policy.Time) { next = sooner(next, t) }
	for i := range a.groups.all {
		g := &a.groups.all[i]
		if g.missing() == 0 || g.failedAt == 0 {
			continue
		}
		if due := g.failedAt.Add(capacityCheck); due > a.Clock.Now {
			soon(due)
			continue
		}
		a.groups.setDesired(g, max(g.live, g.least))
		g.backOff(a.Clock.Now)
		g.failedAt = 0
		soon(a.Clock.Now.Add(a.ScanInterval))
	}
	for _, id := range slices.Clone(a.Launches.InFlight) {
		g := a.groups.groupOf(id)
		if g == nil || a.Nodes.All[id].Phase >= policy.NodeRegistered || !a.Runs(id) {
			continue
		}
		if due := a.Nodes.All[id].Launched.Add(provisionMax); due > a.Clock.Now {
			soon(due)
			continue
		}
		a.Removals.Delete(id)
		g.backOff(a.Clock.Now)
		soon(a.Clock.Now.Add(a.ScanInterval))
	}
	return next
}

// view returns the cluster as the Cluster Autoscaler observes it, without nodes.
func (a *loop) view() *ca.Cluster {
	c := &ca.Cluster{Now: a.Clock.Now, Space: a.Space, Templates: a.Scenario.Templates, Pods: a.Pods.All, Traits: a.traits,
		Free: policy.NodeID(len(a.Nodes.All)), Draw: a.draw, Options: a.Options}
	for i := range a.groups.all {
		c.Groups = append(c.Groups, a.groupView(&a.groups.all[i]))
	}
	return c
}

// groupView returns a group as the Cluster Autoscaler observes it.
func (a *loop) groupView(g *scalingGroup) ca.Group {
	t := &g.template
	most := g.most
	if most == 0 && g.own == nil {
		most = math.MaxInt32
	}
	return ca.Group{Name: a.Scenario.Pools[g.pool].Name, Min: g.least, Max: most, Size: g.desired,
		Deleting: a.groups.leaving(g),
		Capacity: t.Capacity, Allocatable: t.Allocatable, Daemons: a.Space.Daemons(t.Labels,
			t.Taints), Labels: t.Labels, Taints: t.Taints,
		VolumesMax: t.VolumesMax, GPUResource: t.GPUResource}
}

// draw returns a random number in [0, n). It replaces the order of Go maps on which the Cluster
// Autoscaler depends.
func (a *loop) draw(n int) int {
	a.draws++
	return chance.New(a.Seed, "cluster-autoscaler", "").At2(uint64(a.Clock.Now), a.draws).IntN(n)
}

// placePending places pending pods on existing or expected nodes. It nominates pods to nodes that
// are launching, and returns the pods that fit nowhere. The placed pods stay bound in the space
// until unplace.
func (a *loop) placePending() []policy.Pod {
	if len(a.Queue.Pending) == 0 {
		return nil
	}
	var pods []policy.Pod
	for _, id := range a.Queue.Pending {
		p := a.Pods.All[id]
		switch {
		case p.Phase != policy.PodPending || p.Gated || a.Scenario.Templates[p.Template].Priority < a.Expendable:
		case p.Nominated != policy.None && a.Nodes.All[p.Nominated].Phase >= policy.NodeInitialized:
			a.Space.Bind(&p, p.Nominated) // other pods are being preempted for it
			p.Node = p.Nominated
			a.placed = append(a.placed, p)
		default:
			pods = append(pods, p)
		}
	}
	c := a.view()
	for i := range a.Nodes.All {
		if n := &a.Nodes.All[i]; n.Usable() || n.Phase == policy.NodeLaunching || n.Phase == policy.NodeRegistered {
			c.Nodes = append(c.Nodes, ca.Node{Node: n, Group: a.groups.index(n.ID)})
		}
	}
	missing := a.expectMissing(c, len(pods))
	rest := pods[:0:0]
	for i, n := range c.PlacePending(&a.memory, pods) {
		p := pods[i]
		switch {
		case n == policy.None:
			rest = append(rest, p)
		case int(n) < len(a.Nodes.All):
			p.Node = n
			a.placed = append(a.placed, p)
		}
		a.promise(&p, n)
	}
	for _, n := range missing {
		a.Space.RemoveNode(n)
	}
	return rest
}

// promise nominates a pod to the node on which it was placed if that node is launching. Otherwise,
// it drops the nomination, unless another provisioner made it.
func (a *loop) promise(p *policy.Pod, n policy.NodeID) {
	if n != policy.None && (int(n) >= len(a.Nodes.All) || a.Nodes.All[n].Phase >= policy.NodeInitialized) {
		n = policy.None
	}
	if n == policy.None && p.Nominated != policy.None && a.groups.index(p.Nominated) < 0 {
		return // another provisioner nominated it
	}
	a.Queue.Promise(p.ID, n)
}

// expectMissing adds the instances that groups have yet to launch, up to most for each group, as
// launching nodes, and returns their ids.
func (a *loop) expectMissing(c *ca.Cluster, most int) (ids []policy.NodeID) {
	for i := range a.groups.all {
		g := &a.groups.all[i]
		for range min(g.missing(), most) {
			n := &policy.Node{ID: c.Free, Name: "missing", Pool: g.pool, Market: g.template.Market, Phase: policy.NodeLaunching,
				Allocatable: g.template.Allocatable, VolumesMax: g.template.VolumesMax, GPUResource: g.template.GPUResource,
				Labels: g.template.Labels, Taints: g.template.Taints}
			a.Space.SetNode(n)
			c.Nodes = append(c.Nodes, ca.Node{Node: n, Group: int32(i)})
			ids = append(ids, n.ID)
			c.Free++
		}
	}
	return ids
}

// unplace removes the placed pending pods from the space.
func (a *loop) unplace() {
	for i := range a.placed {
		a.Space.Unbind(&a.placed[i], a.placed[i].Node)
	}
	a.placed = a.placed[:0]
}

// scaleUp grows the group that the expander chooses for pods. grew reports whether a group grew,
// waiting whether pods are left that it does not help.
func (a *loop) scaleUp(pods []policy.Pod) (grew, waiting bool) {
	if len(pods) == 0 {
		return false, false
	}
	c := a.view()
	options := a.options(c, pods)
	best := c.Best(pods, options)
	if len(best) == 0 {
		return false, true
	}
	chosen := &best[0]
	if len(best) > 1 {
		chosen = &best[a.draw(len(best))]
	}
	served := 0
	called := make(map[int32]bool, 2) // groups that were resized, and whether the call succeeded
	bins := chosen.Bins
	for _, x := range c.BalanceOption(chosen) {
		twins := a.twinsOf(int32(x.Group), chosen, options)
		for range x.Nodes {
			n, ok := a.growOne(twins, called)
			if !ok {
				continue
			}
			grew = true
			if len(bins) == 0 {
				continue
			}
			for _, k := range bins[0] {
				served++
				if n != policy.None {
					a.Queue.Promise(pods[k].ID, n)
				}
			}
			bins = bins[1:]
		}
	}
	return grew, served < len(pods)
}

// options returns the effect of growing each group that the pools' settings allow. On-demand groups
// replace Spot groups only if no Spot group of the pool helps.
func (a *loop) options(c *ca.Cluster, pods []policy.Pod) []ca.Option {
	standIn := func(i int) bool {
		x := &a.Pools.State[a.groups.all[i].pool]
		return a.groups.all[i].own == nil && !a.groups.all[i].spot && x.Share >= 1
	}
	for i := range c.Groups {
		g := &a.groups.all[i]
		unwanted := g.own == nil && g.spot && a.Pools.State[g.pool].Share <= 0
		c.Groups[i].Blocked = unwanted || standIn(i) || !a.groups.mayGrow(g)
	}
	options := c.ScaleUp(&a.memory, pods)
	helped := make([]bool, len(a.Pools.All))
	for i := range options {
		helped[a.groups.all[i].pool] = helped[a.groups.all[i].pool] || options[i].Nodes > 0
	}
	again := false
	for i := range c.Groups {
		g := &a.groups.all[i]
		wanted := standIn(i) && a.Pools.State[g.pool].Fallback && !helped[g.pool] && a.groups.mayGrow(g)
		c.Groups[i].Blocked = !wanted
		again = again || wanted
	}
	if again {
		for i, o := range c.ScaleUp(&a.memory, pods) {
			if !c.Groups[i].Blocked {
				options[i] = o
			}
		}
	}
	for i := range c.Groups {
		c.Groups[i].Blocked = !a.groups.mayGrow(&a.groups.all[i])
	}
	return options
}

// twinsOf returns the groups over which new nodes of group g are spread: g, and the group of the
// other capacity type in its class if the same pods fit its nodes.
func (a *loop) twinsOf(g int32, chosen *ca.Option, options []ca.Option) []int32 {
	for _, x := range a.groups.classes[a.groups.all[g].pool] {
		other := x.twin[onDemandTwin]
		if other == g {
			other = x.twin[spotTwin]
		} else if x.twin[spotTwin] != g {
			continue
		}
		if other >= 0 && other != g && options[other].Nodes > 0 && slices.Equal(options[other].Schedulable,
			chosen.Schedulable) {
			return []int32{g, other}
		}
	}
	return []int32{g}
}

// growOne grows the first of the twins that can grow by one instance. It returns policy.None as the
// node if the instance is not launched yet, and false if no twin can grow.
func (a *loop) growOne(twins []int32, called map[int32]bool) (policy.NodeID, bool) {
	for _, g := range a.preferred(twins) {
		ok, known := called[g]
		if !known {
			ok = a.resize(g)
			called[g] = ok
		}
		if !ok || !a.groups.mayGrow(&a.groups.all[g]) {
			continue
		}
		n, launched := a.groups.grow(g)
		if !launched {
			n = policy.None
		}
		return n, true
	}
	return policy.None, false
}

// preferred returns twins in the order in which they grow: first the one that brings the Spot share
// of the pool nearest to its target, then the other one if it may be used instead.
func (a *loop) preferred(twins []int32) []int32 {
	if len(twins) == 1 {
		return twins
	}
	spot, fixed := twins[0], twins[1]
	if !a.groups.all[spot].spot {
		spot, fixed = fixed, spot
	}
	pool := a.groups.all[spot].pool
	switch {
	case !a.Pools.WantsSpot(pool, a.groups.all[spot].template.Market):
		return []int32{fixed}
	case a.Pools.State[pool].Fallback:
		return []int32{spot, fixed}
	}
	return []int32{spot}
}

// resize reports whether a call that changes the desired size of group g succeeds. If it fails, the
// Cluster Autoscaler backs off.
func (a *loop) resize(g int32) bool {
	if !a.Market.CallFails() {
		return true
	}
	a.groups.all[g].backOff(a.Clock.Now)
	a.Pools.Refused(a.groups.all[g].pool)
	return false
}
