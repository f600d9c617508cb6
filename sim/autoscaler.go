package sim

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
)

// An Autoscaler holds the settings of the Cluster Autoscaler and of the Auto
// Scaling groups that it works on. All pools of its kind share them.
type Autoscaler struct {
	// ScanInterval is how often it looks at the cluster. Raising it makes pods
	// wait longer for nodes.
	ScanInterval time.Duration

	// UtilizationMax is the part of a node's CPU or memory that is requested,
	// whichever is more, from which on the node is needed. UnneededTime is how
	// long a node must have been unneeded before it goes.
	UtilizationMax float64
	UnneededTime   time.Duration

	// DelayAfterAdd and DelayAfterFailure are how long no node is given back
	// after groups grew, and after a node could not be emptied.
	DelayAfterAdd, DelayAfterFailure time.Duration

	// EmptyMax nodes may go at once (max-scale-down-parallelism), of which DrainMax
	// with pods (max-drain-parallelism).
	EmptyMax, DrainMax int

	// RecheckTime is how long a node is left alone whose pods found no place
	// elsewhere, or may not be evicted (unremovable-node-recheck-timeout).
	RecheckTime time.Duration

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
		ScanInterval: 10 * time.Second, UtilizationMax: 0.5, UnneededTime: 10 * time.Minute,
		DelayAfterAdd: 10 * time.Minute, DelayAfterFailure: 3 * time.Minute,
		EmptyMax: 10, DrainMax: 1, RecheckTime: 5 * time.Minute, EvictionMax: 2 * time.Minute,
		ProvisionMax: 15 * time.Minute, CapacityCheck: time.Minute,
		BackoffMin: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour,
		GroupHealth: time.Minute, GroupRetry: time.Minute,
	}
}

// expendable is the priority below which pods neither make groups grow nor keep
// nodes (expendable-pods-priority-cutoff).
const expendable = -10

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
}

// A class is a pair of groups for nodes of one size: one on spot and one on
// demand, or −1 where the pool has no such markets.
type class struct{ twin [2]int32 }

// The two groups of a class.
const (
	onDemandTwin = iota
	spotTwin
)

// want plans a look at the next tick of the Cluster Autoscaler, where one
// serves a pool.
func (a *autoscaler) want() {
	if a.groups.of != nil {
		a.scanBy(a.q.Now)
	}
}

// noteUse plans a look where a pod came to a node that was not needed.
func (a *autoscaler) noteUse(n policy.NodeID) {
	if a.scaleDown.idle[n].unneeded != 0 {
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

// scan is one loop of the Cluster Autoscaler: it gives up what does not come,
// grows groups for pods that have no place, and only when none grew looks for
// nodes to give back. What nothing has changed for is not looked at again
// before it can come out otherwise.
func (a *autoscaler) scan() {
	if a.scanAt != a.q.Now {
		return // overtaken by an earlier look
	}
	a.scanAt, a.scanned = 0, a.q.Now
	next := a.giveUp()
	grew, waiting := a.scaleUp()
	if grew {
		a.scaleDown.grown = a.q.Now
		next = a.q.Now.Add(a.ScanInterval)
	} else if t := a.scaleDown.shrink(); t != 0 && (next == 0 || t < next) {
		next = t
	}
	if waiting {
		// Nothing could be had for these. Prices, limits and markets move by
		// themselves, and a group comes out of its back-off.
		if t := a.q.Now.Add(time.Minute); next == 0 || t < next {
			next = t
		}
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

// scaleUp grows groups for the pending pods that will find no room on nodes that
// are there or on their way. It reports whether one grew, and whether pods are
// left for which none can.
func (a *autoscaler) scaleUp() (grew, waiting bool) {
	if len(a.queue.pending) == 0 {
		return false, false
	}
	a.reserveNominated()
	pods := slices.DeleteFunc(a.unplaced(), func(p policy.Pod) bool { return a.scenario.Templates[p.Template].Priority < expendable })
	pods = a.awaitMissing(pods)
	for p := range a.pools.all {
		if len(pods) == 0 {
			break
		}
		if len(a.groups.classes[p]) == 0 {
			continue
		}
		before := len(pods)
		pods = a.scaleUpPool(policy.PoolID(p), pods)
		grew = grew || len(pods) < before
	}
	return grew, len(pods) > 0
}

// awaitMissing returns the pods for which there will be no room on the instances
// that groups are still to launch. It ends all reservations.
func (a *autoscaler) awaitMissing(pods []policy.Pod) []policy.Pod {
	first := policy.NodeID(len(a.nodes.all))
	next := first
	for i := range a.groups.all {
		g := &a.groups.all[i]
		for range min(g.missing(), len(pods)) {
			n := policy.Node{ID: next, Name: "missing", Pool: g.pool, Market: g.template.Market, Phase: policy.NodeLaunching,
				Allocatable: g.template.Allocatable, VolumesMax: g.template.VolumesMax, GPUResource: g.template.GPUResource,
				Labels: g.template.Labels, Taints: g.template.Taints}
			a.space.SetNode(&n)
			next++
		}
	}
	if next > first {
		pods = slices.DeleteFunc(pods, func(p policy.Pod) bool {
			for n := first; n < next; n++ {
				if a.space.CheckExpected(&p, n) == placement.OK {
					a.space.Reserve(&p, n)
					return true
				}
			}
			return false
		})
	}
	a.space.Release()
	for n := first; n < next; n++ {
		a.space.RemoveNode(n)
	}
	return pods
}

// An option is what growing the groups of one class would do.
type option struct {
	offers []placement.Offer
	bins   []placement.Bin
	waste  float64 // part of the CPU and of the memory bought that no pod asks for, summed
}

// scaleUpPool grows the groups of one class of pool, as the expander says, and
// returns the pods that are left for the next look. Spot comes first as far as
// the pool was ordered, and on demand in place of it where no spot group may grow.
func (a *autoscaler) scaleUpPool(pool policy.PoolID, pods []policy.Pod) []policy.Pod {
	x := &a.pools.state[pool]
	best := a.expand(pool, pods, x.share > 0, x.share < 1)
	if best == nil && x.share >= 1 && x.fallback {
		best = a.expand(pool, pods, false, true)
	}
	if best == nil {
		return pods
	}
	served := make([]bool, len(pods))
	called := make(map[int32]bool, 2) // groups whose size was changed, and whether it could be
	for i := range best.bins {
		b := &best.bins[i]
		for _, g := range a.twinsFor(pool, best.offers, b) {
			ok, known := called[g]
			if !known {
				ok = a.resize(g)
				called[g] = ok
			}
			if !ok || !a.groups.mayGrow(&a.groups.all[g]) {
				continue
			}
			n, launched := a.groups.grow(g)
			for _, k := range b.Pods {
				served[k] = true
				if launched {
					a.queue.nominate(pods[k].ID, n)
				}
			}
			break
		}
	}
	rest := pods[:0]
	for i := range pods {
		if !served[i] {
			rest = append(rest, pods[i])
		}
	}
	return rest
}

// expand returns the option with the least waste among the classes of pool; nil
// when none helps a pod. Ties go to the class that is listed first.
func (a *autoscaler) expand(pool policy.PoolID, pods []policy.Pod, spot, onDemand bool) *option {
	var best *option
	for _, c := range a.groups.classes[pool] {
		var o option
		for twin, wanted := range [...]bool{onDemandTwin: onDemand, spotTwin: spot} {
			g := c.twin[twin]
			whole := twin == spotTwin && onDemand && g == c.twin[onDemandTwin] // it has been taken
			if wanted && g >= 0 && !whole && a.groups.mayGrow(&a.groups.all[g]) {
				o.offers = append(o.offers, a.groups.all[g].template)
			}
		}
		if len(o.offers) == 0 {
			continue
		}
		o.bins, _ = placement.Provision(a.space, pods, o.offers)
		if len(o.bins) == 0 {
			continue
		}
		o.waste = a.wasteOf(&o, pods)
		if best == nil || o.waste < best.waste {
			best = &o
		}
	}
	return best
}

// wasteOf returns the part of CPU and of memory that o would buy for nothing.
func (a *autoscaler) wasteOf(o *option, pods []policy.Pod) float64 {
	var bought, asked policy.Resources
	for i := range o.bins {
		bought = bought.Plus(o.offers[o.bins[i].Offers[0]].Allocatable)
		for _, k := range o.bins[i].Pods {
			asked = asked.Plus(a.scenario.Templates[pods[k].Template].Requests)
		}
	}
	return float64(bought.CPU-asked.CPU)/float64(max(bought.CPU, 1)) + float64(bought.Memory-asked.Memory)/float64(max(bought.Memory, 1))
}

// twinsFor returns the groups that may hold bin b, in the order in which they
// are to be grown: first the one that brings the share of the pool nearest to
// what it was ordered, then the other if it may stand in for it.
func (a *autoscaler) twinsFor(pool policy.PoolID, offers []placement.Offer, b *placement.Bin) []int32 {
	var spot, fixed []int32
	for _, o := range b.Offers {
		g := a.groups.of[pool][offers[o].Market]
		if a.groups.all[g].spot {
			spot = append(spot, g)
		} else {
			fixed = append(fixed, g)
		}
	}
	switch {
	case len(spot) == 0: // or a group that chooses by itself
		return fixed
	case len(fixed) == 0 || !a.pools.wantsSpot(pool, a.groups.all[spot[0]].template.Market):
		if len(fixed) == 0 {
			return spot
		}
		return fixed
	case a.pools.state[pool].fallback:
		return append(spot, fixed...)
	}
	return spot
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
