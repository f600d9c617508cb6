package sim

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios/chance"
	ca "github.com/spotter-dev/spotter/sim/autoscaler"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
)

// An Autoscaler holds the settings of the Cluster Autoscaler and of the Auto
// Scaling groups that it works on. All pools of its kind share them.
type Autoscaler struct {
	// Options are what its decisions depend on.
	ca.Options

	// DelayAfterAdd and DelayAfterFailure are how long no node is given back
	// after groups grew, and after a node could not be emptied.
	DelayAfterAdd, DelayAfterFailure time.Duration

	// EvictionMax is how long evictions are tried before a node is given up.
	EvictionMax time.Duration

	// ProvisionMax is how long an instance may take to join. CapacityCheck is
	// how long it takes to see that a group cannot launch what it is to hold.
	ProvisionMax, CapacityCheck time.Duration

	// A group that failed is not grown for BackoffMin, twice as long after each
	// failure that follows, up to BackoffMax. After BackoffReset without one it
	// begins anew.
	BackoffMin, BackoffMax, BackoffReset time.Duration

	// GroupHealth is how long a group takes to replace an instance that is gone,
	// and GroupRetry how long it waits after a refused launch.
	GroupHealth, GroupRetry time.Duration
}

// DefaultAutoscaler returns the defaults of the Cluster Autoscaler
// (cluster-autoscaler/config/flags/flags.go, version 1.35) and of groups as its documentation for AWS advises:
// with the AZRebalance process and capacity rebalancing off, since both let a
// group terminate instances without asking a disruption budget. Similar groups
// are not balanced.
func DefaultAutoscaler() Autoscaler {
	return Autoscaler{
		Options: ca.DefaultOptions(), DelayAfterAdd: 10 * time.Minute, DelayAfterFailure: 3 * time.Minute, EvictionMax: 2 * time.Minute,
		ProvisionMax: 15 * time.Minute, CapacityCheck: time.Minute,
		BackoffMin: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour,
		GroupHealth: time.Minute, GroupRetry: time.Minute,
	}
}

// An autoscaler is the Cluster Autoscaler of a run.
type autoscaler struct {
	*environment
	*Autoscaler
	groups    *scalingGroups
	market    *market.Market
	nodes     *nodes
	launches  *launches
	removals  *removals
	pods      *pods
	pools     *pools
	queue     *schedulingQueue
	scaleDown *scaleDown
	space     *placement.Space

	// scanAt is when it looks next, scanned when it did last.
	scanAt, scanned policy.Time

	memory ca.Memory
	traits []ca.Traits // by template
	draws  uint64

	// placed are the pending pods that have room, bound in the space while a look lasts.
	placed []policy.Pod
}

// A class is a pair of groups for nodes of one size: one on spot and one on
// demand, or −1 where the pool has no such markets.
type class struct{ twin [2]int32 }

// The two groups of a class.
const (
	onDemandTwin = iota
	spotTwin
)

// init begins with what the scenario says of pods.
func (a *autoscaler) init() {
	for i := range a.scenario.Templates {
		w := &a.scenario.Workloads[a.scenario.Templates[i].Workload]
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

// want plans a look at the next tick of the Cluster Autoscaler, where one
// serves a pool.
func (a *autoscaler) want() {
	if a.groups.of != nil {
		a.scanBy(a.q.Now)
	}
}

// noteUse plans a look where a pod came to a node that was not needed.
func (a *autoscaler) noteUse(n policy.NodeID) {
	if a.memory.Since(n) != 0 {
		a.want()
	}
}

// scanBy plans a look at the first tick at or after t, unless one is planned
// before that.
func (a *autoscaler) scanBy(t policy.Time) {
	t = max(t, a.scanned+1)
	tick := policy.Time(a.ScanInterval.Milliseconds())
	t = a.prepared.begin + (t-a.prepared.begin+tick-1)/tick*tick
	if a.scanAt == 0 || t < a.scanAt {
		a.scanAt = t
		a.q.Add(t, engine.Scan, 0, 0, 0)
	}
}

// podsNew is how young pods may be without a look that does nothing, where all that need a node are.
const podsNew = 2 * time.Second

// scan is one loop of the Cluster Autoscaler: it gives up what does not come, grows a group for pods
// that have no place, and looks for nodes to delete. What nothing has changed for is not looked at
// again before it can come out otherwise.
func (a *autoscaler) scan() {
	if a.scanAt != a.q.Now {
		return // overtaken by an earlier look
	}
	a.scanAt, a.scanned = 0, a.q.Now
	next := a.giveUp()
	soon := func(t policy.Time) { next = sooner(next, t) }
	pods := a.placePending()
	if len(pods) > 0 && !slices.ContainsFunc(pods, func(p policy.Pod) bool { return p.Created.Add(podsNew) <= a.q.Now }) {
		a.unplace()
		a.scanBy(a.q.Now.Add(a.ScanInterval)) // others of their kind are about to come
		return
	}
	grew, waiting := a.scaleUp(pods)
	if grew {
		a.scaleDown.grown = a.q.Now
		soon(a.q.Now.Add(a.ScanInterval))
	}
	if t := a.scaleDown.shrink(); t != 0 {
		soon(t)
	}
	a.unplace()
	if waiting {
		// Nothing could be had for these. Prices, limits and markets move by
		// themselves, and a group comes out of its back-off.
		soon(a.q.Now.Add(time.Minute))
	}
	if next != 0 {
		a.scanBy(next)
	}
}

// giveUp takes back what groups were to hold and cannot: launches that are
// refused, and instances that do not join in time. It returns when to look
// again, 0 for no need.
func (a *autoscaler) giveUp() (next policy.Time) {
	soon := func(t policy.Time) {
		if next == 0 || t < next {
			next = t
		}
	}
	for i := range a.groups.all {
		g := &a.groups.all[i]
		if g.missing() == 0 || g.failedAt == 0 {
			continue
		}
		if due := g.failedAt.Add(a.CapacityCheck); due > a.q.Now {
			soon(due)
			continue
		}
		a.groups.setDesired(g, max(g.live, g.least))
		g.backOff(a.Autoscaler, a.q.Now)
		g.failedAt = 0
		soon(a.q.Now.Add(a.ScanInterval))
	}
	for _, id := range slices.Clone(a.launches.inflight) {
		g := a.groups.groupOf(id)
		if g == nil || a.nodes.all[id].Phase >= policy.NodeRegistered || a.nodes.state[id].billed {
			continue
		}
		if due := a.nodes.all[id].Launched.Add(a.ProvisionMax); due > a.q.Now {
			soon(due)
			continue
		}
		a.removals.delete(id)
		g.backOff(a.Autoscaler, a.q.Now)
		soon(a.q.Now.Add(a.ScanInterval))
	}
	return next
}

// view returns the cluster as the Cluster Autoscaler sees it, without nodes.
func (a *autoscaler) view() *ca.Cluster {
	c := &ca.Cluster{Now: a.q.Now, Space: a.space, Templates: a.scenario.Templates, Pods: a.pods.all, Traits: a.traits,
		Free: policy.NodeID(len(a.nodes.all)), Draw: a.draw, Options: a.Options}
	for i := range a.groups.all {
		c.Groups = append(c.Groups, a.groupView(&a.groups.all[i]))
	}
	return c
}

// groupView returns a group as the Cluster Autoscaler sees it.
func (a *autoscaler) groupView(g *scalingGroup) ca.Group {
	t := &g.template
	most := g.most
	if most == 0 && g.own == nil {
		most = math.MaxInt32
	}
	return ca.Group{Name: a.scenario.Pools[g.pool].Name, Min: g.least, Max: most, Size: g.desired, Deleting: a.groups.leaving(g),
		Capacity: t.Capacity, Allocatable: t.Allocatable, Daemons: a.space.Daemons(t.Labels, t.Taints), Labels: t.Labels, Taints: t.Taints,
		VolumesMax: t.VolumesMax, GPUResource: t.GPUResource}
}

// draw draws where the Cluster Autoscaler depends on the order of Go's maps.
func (a *autoscaler) draw(n int) int {
	a.draws++
	return chance.New(a.cfg.Seed, "cluster-autoscaler", "").At2(uint64(a.q.Now), a.draws).IntN(n)
}

// placePending seeks room for pending pods on the nodes that exist or are expected, promises them places
// on nodes that are on their way, and returns those that need more. Those with room stay bound in the
// space until unplace.
func (a *autoscaler) placePending() []policy.Pod {
	if len(a.queue.pending) == 0 {
		return nil
	}
	var pods []policy.Pod
	for _, id := range a.queue.pending {
		p := a.pods.all[id]
		switch {
		case p.Phase != policy.PodPending || p.Gated || a.scenario.Templates[p.Template].Priority < a.Expendable:
		case p.Nominated != policy.None && a.nodes.all[p.Nominated].Phase >= policy.NodeInitialized:
			a.space.Bind(&p, p.Nominated) // others are being preempted for it
			p.Node = p.Nominated
			a.placed = append(a.placed, p)
		default:
			pods = append(pods, p)
		}
	}
	c := a.view()
	for i := range a.nodes.all {
		if n := &a.nodes.all[i]; n.Usable() || n.Phase == policy.NodeLaunching || n.Phase == policy.NodeRegistered {
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
		case int(n) < len(a.nodes.all):
			p.Node = n
			a.placed = append(a.placed, p)
		}
		a.promise(&p, n)
	}
	for _, n := range missing {
		a.space.RemoveNode(n)
	}
	return rest
}

// promise has a pod wait for the node that it was found room on, if that one is on its way.
func (a *autoscaler) promise(p *policy.Pod, n policy.NodeID) {
	if n != policy.None && (int(n) >= len(a.nodes.all) || a.nodes.all[n].Phase >= policy.NodeInitialized) {
		n = policy.None
	}
	if n == policy.None && p.Nominated != policy.None && a.groups.index(p.Nominated) < 0 {
		return // another provisioner promised it a place
	}
	a.queue.promise(p.ID, n)
}

// expectMissing adds the instances that groups are still to launch, up to a number each, as nodes on
// their way.
func (a *autoscaler) expectMissing(c *ca.Cluster, most int) (ids []policy.NodeID) {
	for i := range a.groups.all {
		g := &a.groups.all[i]
		for range min(g.missing(), most) {
			n := &policy.Node{ID: c.Free, Name: "missing", Pool: g.pool, Market: g.template.Market, Phase: policy.NodeLaunching,
				Allocatable: g.template.Allocatable, VolumesMax: g.template.VolumesMax, GPUResource: g.template.GPUResource,
				Labels: g.template.Labels, Taints: g.template.Taints}
			a.space.SetNode(n)
			c.Nodes = append(c.Nodes, ca.Node{Node: n, Group: int32(i)})
			ids = append(ids, n.ID)
			c.Free++
		}
	}
	return ids
}

// unplace takes the pending pods out of the space again.
func (a *autoscaler) unplace() {
	for i := range a.placed {
		a.space.Unbind(&a.placed[i], a.placed[i].Node)
	}
	a.placed = a.placed[:0]
}

// scaleUp grows the group that the expander chooses for pods. It reports whether it grew, and whether
// pods are left that no group helps.
func (a *autoscaler) scaleUp(pods []policy.Pod) (grew, waiting bool) {
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
	called := make(map[int32]bool, 2) // groups whose size was changed, and whether it could be
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
					a.queue.promise(pods[k].ID, n)
				}
			}
			bins = bins[1:]
		}
	}
	return grew, served < len(pods)
}

// options returns what growing each group would do, of the groups that pools were ordered to use: on
// demand in place of spot only where no group on spot of the pool helps.
func (a *autoscaler) options(c *ca.Cluster, pods []policy.Pod) []ca.Option {
	standIn := func(i int) bool {
		x := &a.pools.state[a.groups.all[i].pool]
		return a.groups.all[i].own == nil && !a.groups.all[i].spot && x.share >= 1
	}
	for i := range c.Groups {
		g := &a.groups.all[i]
		unwanted := g.own == nil && g.spot && a.pools.state[g.pool].share <= 0
		c.Groups[i].Blocked = unwanted || standIn(i) || !a.groups.mayGrow(g)
	}
	options := c.ScaleUp(&a.memory, pods)
	helped := make([]bool, len(a.pools.all))
	for i := range options {
		helped[a.groups.all[i].pool] = helped[a.groups.all[i].pool] || options[i].Nodes > 0
	}
	again := false
	for i := range c.Groups {
		g := &a.groups.all[i]
		wanted := standIn(i) && a.pools.state[g.pool].fallback && !helped[g.pool] && a.groups.mayGrow(g)
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

// twinsOf returns the groups over which nodes of group g are spread: itself, and the one of the other
// capacity type in its class if the same pods fit its nodes.
func (a *autoscaler) twinsOf(g int32, chosen *ca.Option, options []ca.Option) []int32 {
	for _, x := range a.groups.classes[a.groups.all[g].pool] {
		other := x.twin[onDemandTwin]
		if other == g {
			other = x.twin[spotTwin]
		} else if x.twin[spotTwin] != g {
			continue
		}
		if other >= 0 && other != g && options[other].Nodes > 0 && slices.Equal(options[other].Schedulable, chosen.Schedulable) {
			return []int32{g, other}
		}
	}
	return []int32{g}
}

// growOne makes the first of twins that can be one instance larger. The node is policy.None where
// none was launched yet.
func (a *autoscaler) growOne(twins []int32, called map[int32]bool) (policy.NodeID, bool) {
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

// preferred returns twins in the order in which they grow: first the one that brings the share of the pool
// nearest to what it was ordered, then the other if it may stand in for it.
func (a *autoscaler) preferred(twins []int32) []int32 {
	if len(twins) == 1 {
		return twins
	}
	spot, fixed := twins[0], twins[1]
	if !a.groups.all[spot].spot {
		spot, fixed = fixed, spot
	}
	pool := a.groups.all[spot].pool
	switch {
	case !a.pools.wantsSpot(pool, a.groups.all[spot].template.Market):
		return []int32{fixed}
	case a.pools.state[pool].fallback:
		return []int32{spot, fixed}
	}
	return []int32{spot}
}

// resize asks for another desired size of group g. A call that fails makes the
// Cluster Autoscaler back off.
func (a *autoscaler) resize(g int32) bool {
	if !a.market.CallFails() {
		return true
	}
	a.groups.all[g].backOff(a.Autoscaler, a.q.Now)
	a.pools.refused(a.groups.all[g].pool)
	return false
}
