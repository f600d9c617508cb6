package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A half is one of the NodePools that a pool of Karpenter is made of: the first buys
// what the pool is to buy, the second, of lower weight, on-demand in place of spot.
// Where a ratio is to be held exactly the first buys spot alone, up to its part of
// the pool, and the second the rest.
type half struct {
	id     policy.PoolID // of its offers: that of the pool, or above all of these
	pool   policy.PoolID
	second bool
}

// listHalves returns the NodePools in the order in which Karpenter tries them: by
// weight, and then by name with the last of the alphabet first (OrderByWeight in
// pkg/utils/nodepool/nodepool.go of Karpenter 1.14.1).
func (r *run) listHalves() []half {
	if r.halves != nil {
		return r.halves
	}
	for p := range r.pools {
		if r.pools[p].Provisioner == policy.ProvisionerKarpenter {
			r.halves = append(r.halves, half{policy.PoolID(p), policy.PoolID(p), false}, half{policy.PoolID(len(r.pools) + p), policy.PoolID(p), true})
		}
	}
	slices.SortFunc(r.halves, func(a, b half) int {
		if a.second != b.second {
			if b.second {
				return -1
			}
			return 1
		}
		return cmp.Compare(r.pools[b.pool].Name, r.pools[a.pool].Name)
	})
	return r.halves
}

// place runs Karpenter's scheduler, promises places on nodes that are on their way and
// launches new ones. It returns the pods for which there is none, whether a launch was
// refused, and whether it is to look again for pods that should have been bound.
func (r *run) place() (unplaced []policy.PodID, refused, again bool) {
	b := &r.batch
	b.Pods = r.provisionable(b.Pods[:0])
	pending := len(b.Pods)
	if pending == 0 {
		return nil, false, false
	}
	leaving := r.leaving()
	b.Pods = append(b.Pods, leaving...)
	for i := range leaving {
		r.space.Unbind(&leaving[i], leaving[i].Node)
		b.Pods[pending+i].Phase = policy.PodPending
	}
	b.Nodes = r.staying(b.Nodes[:0])
	b.Offers, b.Pools = b.Offers[:0], b.Pools[:0]
	for _, h := range r.listHalves() {
		b.Offers, b.Pools = r.addHalf(b.Offers, h), append(b.Pools, r.rules(h))
	}
	b.Draw = r.drawDomain
	sol := r.space.Solve(b)
	for i := range leaving {
		r.space.Bind(&leaving[i], leaving[i].Node)
	}
	for i, n := range sol.Nodes[:pending] {
		switch {
		case n == policy.None:
		case r.nodes[n].Phase < policy.NodeInitialized:
			r.promise(b.Pods[i].ID, n)
		default:
			again = true // kube-scheduler judges otherwise, or is yet to bind it
		}
	}
	for _, bin := range sol.Bins {
		refused = !r.launchBin(b.Pods, pending, b.Offers, bin) || refused
	}
	for _, i := range sol.Unplaced {
		if i < pending {
			unplaced = append(unplaced, b.Pods[i].ID)
			r.promise(b.Pods[i].ID, policy.None)
		}
	}
	return unplaced, refused, again
}

// provisionable adds the pending pods to list, but for those that wait for others to be
// preempted (IsProvisionable in pkg/utils/pod/scheduling.go).
func (r *run) provisionable(list []policy.Pod) []policy.Pod {
	for _, id := range r.pending {
		p := &r.pods[id]
		if p.Phase != policy.PodPending || p.Gated || p.Nominated != policy.None && r.nodes[p.Nominated].Phase >= policy.NodeInitialized {
			continue
		}
		list = append(list, *p)
	}
	return list
}

// leaving returns the pods of the nodes that Karpenter takes down: it provides for them
// beforehand.
func (r *run) leaving() (pods []policy.Pod) {
	for _, d := range r.active {
		if r.drains[d].actor != policy.ActorKarpenter {
			continue
		}
		for _, id := range r.space.Pods(r.drains[d].node) {
			if p := &r.pods[id]; p.Phase != policy.PodTerminating && !r.world.Templates[p.Template].DaemonSet {
				pods = append(pods, *p)
			}
		}
	}
	return pods
}

// staying adds to list the nodes on which Karpenter plans with: initialized ones first,
// and by name among these and among the others (addExistingNodes and the sort after it in
// scheduling/scheduler.go of Karpenter 1.14.1). Names end at random, so that a pod that
// waits for a node on its way may find another before it at the next look, and pods that
// come later in the queue no room.
func (r *run) staying(list []policy.NodeID) []policy.NodeID {
	for _, initialized := range [...]bool{true, false} {
		for _, id := range r.kar.order {
			n := &r.nodes[id]
			if initialized != (n.Phase == policy.NodeInitialized) || n.Phase > policy.NodeInitialized || n.NotReady || n.ReclaimAt != 0 || r.nodeX[id].drain >= 0 {
				continue
			}
			list = append(list, id)
		}
	}
	return list
}

// addHalf adds what a NodePool may buy now.
func (r *run) addHalf(list []place.Offer, h half) []place.Offer {
	x := &r.poolX[h.pool]
	switch {
	case x.mixed && h.second:
		return list
	case x.mixed:
		return r.addOffers(list, h.pool, h.id, true, true)
	case x.divided():
		return r.addOffers(list, h.pool, h.id, !h.second, h.second)
	}
	if !h.second {
		spot := x.share > 0
		if spot && x.share < 1 && r.pricedOut(h.pool) {
			// The NodePool for spot is limited to the share, and on-demand makes up no
			// more of the pool while it costs too much.
			held, total := r.sizes(h.pool)
			spot = float64(held) <= float64(x.share*float64(total))
		}
		return r.addOffers(list, h.pool, h.id, spot, x.share < 1)
	}
	if x.share < 1 || !x.fallback {
		return list
	}
	return r.addOffers(list, h.pool, h.id, false, true)
}

// rules returns what a NodePool asks for besides its offers: the zones and capacity
// types of its markets, and the pool's limits.
func (r *run) rules(h half) place.Pool {
	pool := &r.pools[h.pool]
	rules := place.Pool{
		ID: h.id, Requirements: r.stage.requirements[h.pool], Taints: pool.Taints, Limits: pool.Limits, Used: pool.Used,
	}
	if x := &r.poolX[h.pool]; x.divided() && !h.second {
		limit, used, unit := &rules.Limits.CPU, pool.Used.CPU, int64(1000)
		if r.stage.gpuWorld {
			limit, used, unit = &rules.Limits.GPU, pool.Used.GPU, 1
		}
		part := used + r.spotMissing(h.pool)*unit
		if *limit == 0 || part < *limit {
			*limit = max(part, 1) // 0 would be none
		}
	}
	return rules
}

// divided reports whether a pool of Karpenter is two NodePools of which the one for
// spot is limited to its part, as live/karpenter writes them where a ratio is exact.
func (x *poolState) divided() bool { return x.exact && !x.mixed && x.share > 0 && x.share < 1 }

// spotMissing returns how much spot the pool may buy for its share of what it holds and
// of what pending pods need, in units of the share: a node of its smallest offer at
// least, and half of one more, since a node is bought as spot where that brings the
// share nearer.
func (r *run) spotMissing(pool policy.PoolID) int64 {
	spot, total := r.sizes(pool)
	step := int64(math.MaxInt64)
	for i := range r.stage.offers[pool] {
		m := r.stage.offers[pool][i].Market
		if x := &r.poolX[pool]; r.world.Markets[m].Capacity == policy.Spot && (x.allowed == nil || x.allowed[m]) {
			step = min(step, r.sizeOf(m))
		}
	}
	if step == math.MaxInt64 {
		return 0
	}
	all := total + max(r.pendingFor(pool), step)
	return max(0, int64(math.Ceil(float64(r.poolX[pool].share*float64(all))))+step/2-spot)
}

// pendingFor returns what pending pods that no node is on its way for ask for, of those
// that the taints of pool let in, in units of the share.
func (r *run) pendingFor(pool policy.PoolID) int64 {
	sum, taints := int64(0), r.world.Pools[pool].Taints
	for _, id := range r.pending {
		p := &r.pods[id]
		t := &r.world.Templates[p.Template]
		if p.Phase != policy.PodPending || p.Gated || p.Nominated != policy.None || slices.ContainsFunc(taints, func(x policy.Taint) bool {
			return x.Effect != policy.PreferNoSchedule && !place.Tolerates(t.Tolerations, &x)
		}) {
			continue
		}
		if r.stage.gpuWorld {
			sum += t.Requests.GPU
		} else {
			sum += t.Requests.CPU
		}
	}
	if r.stage.gpuWorld {
		return sum
	}
	return (sum + 999) / 1000
}

// drawDomain chooses among equal domains, of which Karpenter takes any: a pod draws once
// for each look and topology key.
func (r *run) drawDomain(pod int, key string, ties []string) int {
	return chance.New(r.cfg.Seed, "karpenter-domain", r.batch.Pods[pod].Name).At2(uint64(r.q.now), portable.HashString(key)).IntN(len(ties))
}

// promise has a pod wait for a node that is on its way, or for none.
func (r *run) promise(id policy.PodID, n policy.NodeID) {
	was := r.pods[id].Nominated
	if was == n {
		return
	}
	if was != policy.None {
		r.nodeX[was].nominated--
		r.pods[id].Nominated = policy.None
		r.touchPod(id)
		r.touchNode(was)
	}
	if n != policy.None {
		r.nominate(id, n)
	}
}
