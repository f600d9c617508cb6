package sim

import (
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
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

// An autoscaler is the Cluster Autoscaler of a run, with the groups that it
// works on.
type autoscaler struct {
	Autoscaler
	groups  []scalingGroup // the scenario bounds their size
	classes [][]class      // by pool; none where another provisioner serves it
	of      [][]int32      // by pool and market, the group; nil where there is none

	// soft are, by pool, the taints of a node that is about to go.
	soft [][]policy.Taint

	// scanAt is when it looks next, scanned when it did last.
	scanAt, scanned policy.Time

	// grown is when a group was made to grow last, failed when a node could not
	// be emptied.
	grown, failed policy.Time

	scratch shrinkScratch
}

// A class is a pair of groups for nodes of one size: one on spot and one on
// demand, or −1 where the pool has no such markets.
type class struct{ twin [2]int32 }

// The two groups of a class.
const (
	onDemandTwin = iota
	spotTwin
)

// wantScan plans a look at the next tick of the Cluster Autoscaler, where one
// serves a pool.
func (r *run) wantScan() {
	if r.auto != nil {
		r.scanBy(r.q.now)
	}
}

// scanBy plans a look at the first tick at or after t, unless one is planned
// before that.
func (r *run) scanBy(t policy.Time) {
	a := r.auto
	t = max(t, a.scanned+1)
	tick := policy.Time(a.ScanInterval.Milliseconds())
	t = r.stage.begin + (t-r.stage.begin+tick-1)/tick*tick
	if a.scanAt == 0 || t < a.scanAt {
		a.scanAt = t
		r.q.add(t, evScan, 0, 0, 0)
	}
}

// scan is one loop of the Cluster Autoscaler: it gives up what does not come,
// grows groups for pods that have no place, and only when none grew looks for
// nodes to give back. What nothing has changed for is not looked at again
// before it can come out otherwise.
func (r *run) scan() {
	a := r.auto
	if a.scanAt != r.q.now {
		return // overtaken by an earlier look
	}
	a.scanAt, a.scanned = 0, r.q.now
	next := r.giveUp()
	grew, waiting := r.scaleUp()
	if grew {
		a.grown = r.q.now
		next = r.q.now.Add(a.ScanInterval)
	} else if t := r.shrink(); t != 0 && (next == 0 || t < next) {
		next = t
	}
	if waiting {
		// Nothing could be had for these. Prices, limits and markets move by
		// themselves, and a group comes out of its back-off.
		if t := r.q.now.Add(time.Minute); next == 0 || t < next {
			next = t
		}
	}
	if next != 0 {
		r.scanBy(next)
	}
}

// giveUp takes back what groups were to hold and cannot: launches that are
// refused, and instances that do not join in time. It returns when to look
// again, 0 for no need.
func (r *run) giveUp() (next policy.Time) {
	a := r.auto
	soon := func(t policy.Time) {
		if next == 0 || t < next {
			next = t
		}
	}
	for i := range a.groups {
		g := &a.groups[i]
		if g.missing() == 0 || g.failedAt == 0 {
			continue
		}
		if due := g.failedAt.Add(a.CapacityCheck); due > r.q.now {
			soon(due)
			continue
		}
		r.setDesired(g, max(g.live, r.world.Groups.Min))
		g.backOff(&a.Autoscaler, r.q.now)
		g.failedAt = 0
		soon(r.q.now.Add(a.ScanInterval))
	}
	for _, id := range slices.Clone(r.inflight) {
		g := r.groupOf(id)
		if g == nil || r.nodes[id].Phase >= policy.NodeRegistered || r.nodeX[id].billed {
			continue
		}
		if due := r.nodes[id].Launched.Add(a.ProvisionMax); due > r.q.now {
			soon(due)
			continue
		}
		r.deleteNode(id)
		g.backOff(&a.Autoscaler, r.q.now)
		soon(r.q.now.Add(a.ScanInterval))
	}
	return next
}

// scaleUp grows groups for the pending pods that will find no room on nodes that
// are there or on their way. It reports whether one grew, and whether pods are
// left for which none can.
func (r *run) scaleUp() (grew, waiting bool) {
	if len(r.pending) == 0 {
		return false, false
	}
	r.reserveNominated()
	pods := slices.DeleteFunc(r.unplaced(), func(p policy.Pod) bool { return r.world.Templates[p.Template].Priority < expendable })
	pods = r.awaitMissing(pods)
	for p := range r.pools {
		if len(pods) == 0 {
			break
		}
		if len(r.auto.classes[p]) == 0 {
			continue
		}
		before := len(pods)
		pods = r.scaleUpPool(policy.PoolID(p), pods)
		grew = grew || len(pods) < before
	}
	return grew, len(pods) > 0
}

// awaitMissing returns the pods for which there will be no room on the instances
// that groups are still to launch. It ends all reservations.
func (r *run) awaitMissing(pods []policy.Pod) []policy.Pod {
	first := policy.NodeID(len(r.nodes))
	next := first
	for i := range r.auto.groups {
		g := &r.auto.groups[i]
		for range min(g.missing(), len(pods)) {
			n := policy.Node{ID: next, Name: "missing", Pool: g.pool, Market: g.template.Market, Phase: policy.NodeLaunching,
				Allocatable: g.template.Allocatable, VolumesMax: g.template.VolumesMax, GPUResource: g.template.GPUResource,
				Labels: g.template.Labels, Taints: g.template.Taints}
			r.space.SetNode(&n)
			next++
		}
	}
	if next > first {
		pods = slices.DeleteFunc(pods, func(p policy.Pod) bool {
			for n := first; n < next; n++ {
				if r.space.CheckExpected(&p, n) == place.OK {
					r.space.Reserve(&p, n)
					return true
				}
			}
			return false
		})
	}
	r.space.Release()
	for n := first; n < next; n++ {
		r.space.RemoveNode(n)
	}
	return pods
}

// An option is what growing the groups of one class would do.
type option struct {
	offers []place.Offer
	bins   []place.Bin
	waste  float64 // part of the CPU and of the memory bought that no pod asks for, summed
}

// scaleUpPool grows the groups of one class of pool, as the expander says, and
// returns the pods that are left for the next look. Spot comes first as far as
// the pool was told, and on demand in place of it where no spot group may grow.
func (r *run) scaleUpPool(pool policy.PoolID, pods []policy.Pod) []policy.Pod {
	x := &r.poolX[pool]
	best := r.expand(pool, pods, x.share > 0, x.share < 1)
	if best == nil && x.share >= 1 && x.fallback {
		best = r.expand(pool, pods, false, true)
	}
	if best == nil {
		return pods
	}
	served := make([]bool, len(pods))
	called := make(map[int32]bool, 2) // groups whose size was changed, and whether it could be
	for i := range best.bins {
		b := &best.bins[i]
		for _, g := range r.twinsFor(pool, best.offers, b) {
			ok, known := called[g]
			if !known {
				ok = r.resize(g)
				called[g] = ok
			}
			if !ok || !r.mayGrow(&r.auto.groups[g]) {
				continue
			}
			n, launched := r.grow(g)
			for _, k := range b.Pods {
				served[k] = true
				if launched {
					r.nominate(pods[k].ID, n)
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
func (r *run) expand(pool policy.PoolID, pods []policy.Pod, spot, onDemand bool) *option {
	var best *option
	for _, c := range r.auto.classes[pool] {
		var o option
		for twin, wanted := range [...]bool{onDemandTwin: onDemand, spotTwin: spot} {
			if g := c.twin[twin]; wanted && g >= 0 && r.mayGrow(&r.auto.groups[g]) {
				o.offers = append(o.offers, r.auto.groups[g].template)
			}
		}
		if len(o.offers) == 0 {
			continue
		}
		o.bins, _ = r.space.Provision(pods, o.offers)
		if len(o.bins) == 0 {
			continue
		}
		o.waste = r.wasteOf(&o, pods)
		if best == nil || o.waste < best.waste {
			best = &o
		}
	}
	return best
}

// wasteOf returns the part of CPU and of memory that o would buy for nothing.
func (r *run) wasteOf(o *option, pods []policy.Pod) float64 {
	var bought, asked policy.Resources
	for i := range o.bins {
		bought = bought.Plus(o.offers[o.bins[i].Offers[0]].Allocatable)
		for _, k := range o.bins[i].Pods {
			asked = asked.Plus(r.world.Templates[pods[k].Template].Requests)
		}
	}
	return float64(bought.CPU-asked.CPU)/float64(max(bought.CPU, 1)) + float64(bought.Memory-asked.Memory)/float64(max(bought.Memory, 1))
}

// twinsFor returns the groups that may hold bin b, in the order in which they
// are to be grown: first the one that brings the share of the pool nearest to
// what it was told, then the other if it may stand in for it.
func (r *run) twinsFor(pool policy.PoolID, offers []place.Offer, b *place.Bin) []int32 {
	var spot, fixed []int32
	for _, o := range b.Offers {
		g := r.auto.of[pool][offers[o].Market]
		if r.auto.groups[g].spot {
			spot = append(spot, g)
		} else {
			fixed = append(fixed, g)
		}
	}
	switch {
	case len(spot) == 0:
		return fixed
	case len(fixed) == 0 || !r.wantsSpot(pool, r.auto.groups[spot[0]].template.Market):
		if len(fixed) == 0 {
			return spot
		}
		return fixed
	case r.poolX[pool].fallback:
		return append(spot, fixed...)
	}
	return spot
}

// resize asks for another desired size of group g. A call that fails makes the
// Cluster Autoscaler back off.
func (r *run) resize(g int32) bool {
	if !r.weather.CallFails(r.q.now) {
		return true
	}
	r.auto.groups[g].backOff(&r.auto.Autoscaler, r.q.now)
	r.poolX[r.auto.groups[g].pool].refused(r, r.auto.groups[g].pool)
	return false
}
