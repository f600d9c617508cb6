package nodepools

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/fleet"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// A provisioner launches nodes for pending pods like Karpenter, including its errors. It forgets
// that a label must exist if another requirement excludes one of its values. Requirements on a
// label that contradict each other, even merely preferred ones, count as "must be missing". A
// placed pod's requirement on a label that its node lacks is treated as a label of the node. A zone
// in which a pool can launch nothing bounds the skew of topology spread. Once a pod tolerates
// PreferNoSchedule, its spread is counted again without the pods placed in the same run. The node
// limit of a NodePool is not reduced within a run.
type provisioner struct {
	*Karpenter

	// provisionAt is when the batch window that opened at batchFrom closes, or 0 if none is open.
	// lastPending is when the last pod was created. fresh reports whether one was created since the
	// last evaluation, which was at looked.
	provisionAt, batchFrom, lastPending, looked policy.Time
	fresh                                       bool

	onlyGroups bool   // the Cluster Autoscaler serves all pools
	exotic     []bool // by instance type: has accelerators or is bare metal
	halves     []half // NodePools in the order in which Karpenter tries them

	// Scratch memory of an evaluation.
	batch      placement.Batch
	requestBuf []fleet.Offering
	comingBuf  []policy.NodeID
}

// init sets the initial state from the scenario's pools and instance types.
func (kp *provisioner) init() {
	kp.onlyGroups = !slices.ContainsFunc(kp.Scenario.Pools, func(p policy.Pool) bool {
		return p.Provisioner != policy.ProvisionerClusterAutoscaler
	})
	for i := range kp.Scenario.Types {
		t := &kp.Scenario.Types[i]
		kp.exotic = append(kp.exotic, t.GPUResource != "" || strings.Contains(t.Name, "metal"))
	}
}

// A half is one of the two NodePools that represent a pool of Karpenter. The first launches the
// nodes that the pool wants. The second, of lower weight, launches on-demand instead of Spot nodes.
// For a ratio that must be exact, the first launches only Spot, up to its share of the pool, and
// the second the rest.
type half struct {
	id     policy.PoolID // id of its offers: the pool's id, or an id above those of all pools
	pool   policy.PoolID
	second bool
}

// listHalves returns the NodePools in the order in which Karpenter tries them: by weight, which
// only the user's own NodePools have, and then in reverse alphabetical order of names
// (OrderByWeight in pkg/utils/nodepool/nodepool.go of Karpenter 1.14.1).
func (kp *provisioner) listHalves() []half {
	if kp.halves != nil {
		return kp.halves
	}
	for p := range kp.Pools.All {
		if kp.Pools.All[p].Provisioner == policy.ProvisionerKarpenter && kp.Prepared.Static(policy.PoolID(p)) == nil {
			kp.halves = append(kp.halves, half{policy.PoolID(p), policy.PoolID(p), false},
				half{policy.PoolID(len(kp.Pools.All) + p), policy.PoolID(p), true})
		}
	}
	slices.SortFunc(kp.halves, func(a, b half) int {
		if a.second != b.second {
			if b.second {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(kp.weight(b.pool), kp.weight(a.pool)),
			cmp.Compare(kp.Pools.All[b.pool].Name, kp.Pools.All[a.pool].Name))
	})
	return kp.halves
}

func (kp *provisioner) weight(pool policy.PoolID) int32 {
	if own := kp.Prepared.Own(pool); own != nil {
		return own.Weight
	}
	return 0
}

// place runs Karpenter's scheduler, nominates pods to launching nodes and launches new ones. It
// returns the pods that could not be placed, whether a launch was refused, and whether it must run
// again. It must run again for pods that should have been bound or that wait for reserved capacity,
// while pods are expected to leave nodes (provisioning/controller.go, NodeController), and if nodes
// were launched and pods are left, because a NodeClaim counts against the limits as its largest
// type until it is launched.
func (kp *provisioner) place() (unplaced []policy.PodID, refused, again bool) {
	b := &kp.batch
	b.Pods = kp.provisionable(b.Pods[:0])
	pending := len(b.Pods)
	leaving := kp.leaving()
	if pending+len(leaving) == 0 {
		return nil, false, false
	}
	b.Pods = append(b.Pods, leaving...)
	for i := range leaving {
		kp.Space.Unbind(&leaving[i], leaving[i].Node)
		b.Pods[pending+i].Phase = policy.PodPending
	}
	b.Nodes = kp.staying(b.Nodes[:0])
	b.Offers, b.Pools = b.Offers[:0], b.Pools[:0]
	for _, h := range kp.listHalves() {
		b.Offers, b.Pools = kp.addHalf(b.Offers, h), append(b.Pools, kp.rules(h))
	}
	b.Draw, b.AwaitReserved = kp.drawDomain, true
	version := karpenter.Version(kp.Scenario.Karpenter)
	b.SharedPorts, b.SharedDaemons = version.Before(13), version.Before(14)
	sol := kp.solve(b)
	for i := range leaving {
		kp.Space.Bind(&leaving[i], leaving[i].Node)
	}
	kp.looked = kp.Clock.Now
	for i, n := range sol.Nodes {
		if n == policy.None {
			continue
		}
		kp.tracker.keepNominated(n) // Karpenter nominates every existing node that takes a pod (scheduler.go, Record)
		switch {
		case i >= pending:
		case kp.Nodes.All[n].Phase < policy.NodeInitialized:
			kp.Queue.Promise(b.Pods[i].ID, n)
		default:
			again = true // kube-scheduler does not agree, or has not bound it yet
		}
	}
	for _, bin := range sol.Bins {
		refused = !kp.launchBin(b.Pods, pending, b.Offers, bin) || refused
	}
	for _, i := range sol.Unplaced {
		if i < pending {
			unplaced = append(unplaced, b.Pods[i].ID)
			kp.Queue.Promise(b.Pods[i].ID, policy.None)
		}
	}
	again = again || sol.Deferred || len(leaving) > 0 || len(unplaced) > 0 && len(sol.Bins) > 0
	return unplaced, refused, again
}

// provisionable appends the pending pods to list, except those that wait for preempted pods to end
// (IsProvisionable in pkg/utils/pod/scheduling.go).
func (kp *provisioner) provisionable(list []policy.Pod) []policy.Pod {
	for _, id := range kp.Queue.Pending {
		p := &kp.Pods.All[id]
		if p.Phase != policy.PodPending || p.Gated ||
			p.Nominated != policy.None && kp.Nodes.All[p.Nominated].Phase >= policy.NodeInitialized {
			continue
		}
		list = append(list, *p)
	}
	return list
}

// leaving returns the pods that must leave the nodes that Karpenter is draining. Karpenter launches
// nodes for them in advance.
func (kp *provisioner) leaving() (pods []policy.Pod) {
	for _, d := range kp.Drains.Active {
		if kp.Drains.All[d].Actor != policy.ActorKarpenter {
			continue
		}
		for _, id := range kp.Space.Pods(kp.Drains.All[d].Node) {
			p := &kp.Pods.All[id]
			t := &kp.Scenario.Templates[p.Template]
			if karpenter.CurrentlyReschedulable(p, t, kp.Prepared.Kinds[t.Workload], kp.PDBs.All) {
				pods = append(pods, *p)
			}
		}
	}
	return pods
}

// staying appends the nodes that Karpenter plans with to list: initialized ones first, and ordered
// by name within both parts (addExistingNodes and the sort after it in scheduling/scheduler.go of
// Karpenter 1.14.1). Names end in random letters, so a pod that waits for a launching node may be
// placed on another one in the next evaluation, and pods later in the queue may then fit nowhere.
func (kp *provisioner) staying(list []policy.NodeID) []policy.NodeID {
	coming := kp.comingBuf[:0]
	for _, id := range kp.tracker.order {
		switch kp.Nodes.Plans[id] {
		case cluster.PlanThere:
			list = append(list, id)
		case cluster.PlanComing:
			coming = append(coming, id)
		}
	}
	kp.comingBuf = coming
	return append(list, coming...)
}

// addHalf appends the offers that a NodePool can launch now to list.
func (kp *provisioner) addHalf(list []placement.Offer, h half) []placement.Offer {
	x := &kp.Pools.State[h.pool]
	switch {
	case x.Mixed && h.second:
		return list
	case x.Mixed:
		return kp.addOffers(list, h.pool, h.id, true, true)
	case x.Divided():
		return kp.addOffers(list, h.pool, h.id, !h.second, h.second)
	}
	if !h.second {
		spot := x.Share > 0
		if spot && x.Share < 1 && kp.Pools.PricedOut(h.pool) {
			// The Spot NodePool is limited to the share. On-demand nodes do not increase its room
			// while they exceed the maximum price.
			size := kp.Nodes.Sizes[h.pool]
			spot = float64(size.Spot) <= float64(x.Share*float64(size.Total))
		}
		return kp.addOffers(list, h.pool, h.id, spot, x.Share < 1)
	}
	if x.Share < 1 || !x.Fallback {
		return list
	}
	return kp.addOffers(list, h.pool, h.id, false, true)
}

// rules returns the requirements of a NodePool other than its offers, with the pool's limits.
func (kp *provisioner) rules(h half) placement.Pool {
	pool := &kp.Pools.All[h.pool]
	rules := kp.Prepared.Rules[h.pool]
	rules.ID, rules.Limits, rules.Used = h.id, pool.Limits, kp.Pools.Counted(h.pool)
	rules.NodesFull = kp.Pools.Full(h.pool, nil)
	return rules
}

// solve runs Karpenter's scheduler. The limit of a Spot NodePool depends on the nodes that are
// about to be launched, which a first run without this limit determines: live/karpenter writes
// limits immediately while pods are pending.
func (kp *provisioner) solve(b *placement.Batch) placement.Solution {
	solver := kp.Space.Solver()
	solver.Prepare(b)
	sol := solver.Attempt()
	limited := false
	for i, h := range kp.listHalves() {
		if x := &kp.Pools.State[h.pool]; x.Divided() && !h.second {
			limited = kp.limitSpot(h, sol.Bins, &b.Pools[i]) || limited
		}
	}
	if !limited {
		return sol
	}
	return solver.Attempt()
}

// limitSpot limits the Spot NodePool of a pool to its share of the pool, including the bins of this
// NodePool. It returns false if there are no such bins, because a limit would then change nothing.
func (kp *provisioner) limitSpot(h half, bins []placement.Bin, rules *placement.Pool) bool {
	var purchases []placement.Purchase
	size := func(offer int) int64 { return kp.Pools.SizeOf(kp.batch.Offers[offer].Market) }
	for i := range bins {
		if kp.batch.Offers[bins[i].Offers[0]].Pool == h.id {
			purchases = append(purchases, placement.PurchaseOf(bins[i], size))
		}
	}
	if len(purchases) == 0 {
		return false
	}
	held := kp.Nodes.Sizes[h.pool]
	room := placement.SpotRoom{Share: kp.Pools.State[h.pool].Share, Spot: held.Spot, Total: held.Total}
	limit, used, unit := &rules.Limits.CPU, rules.Used.CPU, int64(1000)
	if kp.Prepared.InGPUs {
		limit, used, unit = &rules.Limits.GPU, rules.Used.GPU, 1
	}
	if part := used + room.For(purchases)*unit; *limit == 0 || part < *limit {
		*limit = max(part, 1) // 0 would mean no limit
	}
	return true
}

// drawDomain chooses among equally suitable domains, of which Karpenter takes any. A pod has one
// draw per evaluation and topology key.
func (kp *provisioner) drawDomain(pod int, key string, ties []string) int {
	return chance.New(kp.Seed, "karpenter-domain", kp.batch.Pods[pod].Name).At2(uint64(kp.Clock.Now),
		portable.HashString(key)).IntN(len(ties))
}
