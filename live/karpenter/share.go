package karpenter

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A target is the configuration that one of the two NodePools of a pool should have.
type target struct {
	weight int32

	// limits are absolute, like Karpenter's. A resource without an entry is not limited.
	limits corev1.ResourceList

	// emptyOnly reports whether Karpenter may remove only empty nodes.
	emptyOnly bool

	// closed reports whether Karpenter may remove no nodes, because no maintenance window is open
	// or a freeze is in force.
	closed bool
}

// holdings is the capacity of a pool, as its limits count it: all machines that are not being
// deleted, and the requests of its pending pods.
type holdings struct {
	spot, onDemand, pending policy.Resources

	// gpu is the name of the resource that Resources.GPU counts, if every market of the pool has
	// this accelerator: the share is then a share of accelerators. It is empty if the share is a
	// share of vCPUs.
	gpu string

	// The following fields are in the unit of the share, thousandths of a vCPU or GPUs: the present
	// capacity relative to the share, the size of the largest Spot node that may be bought, and the
	// Spot nodes that Karpenter would buy for pending pods without a limit.
	room      placement.SpotRoom
	largest   int64
	purchases []placement.Purchase
}

func (h *holdings) total() policy.Resources { return h.spot.Plus(h.onDemand) }

// unit returns the amount of the resource in r that the share is measured in.
func (h *holdings) unit(r policy.Resources) int64 {
	if h.gpu != "" {
		return r.GPU
	}
	return r.CPU
}

// holdingsOf returns the present capacity of pool and the requests of its pending pods.
func holdingsOf(s *policy.Snapshot, pool *policy.Pool, t *steering) holdings {
	h := holdings{gpu: gpuOf(s, pool), room: placement.SpotRoom{Share: t.Share}}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != pool.ID || n.Phase == policy.NodeGone || n.Phase == policy.NodeDeleting || n.Market < 0 {
			continue
		}
		size, spot := sizeOf(s, n.Market), s.Markets[n.Market].Capacity == policy.Spot
		if spot {
			h.spot = h.spot.Plus(size)
		} else {
			h.onDemand = h.onDemand.Plus(size)
		}
		h.addToRoom(n, size, spot)
	}
	for _, o := range pool.Markets {
		if m := &s.Markets[o]; m.Capacity == policy.Spot && t.names(m.Name) {
			h.largest = max(h.largest, h.unit(sizeOf(s, o)))
		}
	}
	pods := pendingFor(s, pool)
	for i := range pods {
		h.pending = h.pending.Plus(s.Templates[pods[i].Template].Requests)
	}
	if len(pods) > 0 && t.Share > 0 && t.Share < 1 {
		h.purchases = h.purchasesFor(s, pool, t, pods)
	}
	return h
}

// spotRoom returns the Spot capacity that may still be bought, in the unit of the share.
func (h *holdings) spotRoom() int64 {
	if len(h.purchases) == 0 {
		return h.room.Ahead(h.largest)
	}
	return h.room.For(h.purchases)
}

// addToRoom counts a node of the given size unless it is leaving the pool.
func (h *holdings) addToRoom(n *policy.Node, size policy.Resources, spot bool) {
	if held := n.Held(); held == policy.NotHeld || held == policy.HeldWaiting {
		return
	}
	h.room.Total += h.unit(size)
	if spot {
		h.room.Spot += h.unit(size)
	}
}

// pendingFor returns the unschedulable pods that may run in pool.
func pendingFor(s *policy.Snapshot, pool *policy.Pool) (pods []policy.Pod) {
	for p := range s.Pending() {
		if !p.Gated && p.Nominated == policy.None && mayServe(pool, &s.Templates[p.Template]) {
			pods = append(pods, *p)
		}
	}
	return pods
}

// purchasesFor returns the Spot nodes that Karpenter would buy for pods without limits, in the
// order in which it creates their NodeClaims.
func (h *holdings) purchasesFor(s *policy.Snapshot, pool *policy.Pool, t *steering,
	pods []policy.Pod) (list []placement.Purchase) {
	others := func(m policy.MarketID) bool { return !t.names(s.Markets[m].Name) }
	markets := slices.DeleteFunc(placement.OpenMarkets(s, pool.ID, policy.Spot), others)
	b := placement.Batch{Pods: pods, Nodes: planned(s), Offers: placement.OffersIn(s, pool.ID, markets)}
	size := func(offer int) int64 { return h.unit(sizeOf(s, b.Offers[offer].Market)) }
	for _, bin := range placement.FromSnapshot(s).Solver().Solve(&b).Bins {
		list = append(list, placement.PurchaseOf(bin, size))
	}
	return list
}

// planned returns the nodes on which Karpenter places pods: first the initialized nodes, then those
// that are being launched.
func planned(s *policy.Snapshot) (nodes []policy.NodeID) {
	var coming []policy.NodeID
	for i := range s.Nodes {
		switch s.Nodes[i].Held() {
		case policy.HeldStanding:
			nodes = append(nodes, policy.NodeID(i))
		case policy.HeldArriving, policy.HeldOrdered:
			coming = append(coming, policy.NodeID(i))
		}
	}
	return append(nodes, coming...)
}

// sizeOf returns the resources that a machine of market m counts against limits.
func sizeOf(s *policy.Snapshot, m policy.MarketID) policy.Resources {
	t := &s.Types[s.Markets[m].Type]
	return policy.Resources{CPU: t.VCPU * 1000, Memory: t.Capacity.Memory, GPU: t.Capacity.GPU}
}

// gpuOf returns the name of the accelerator resource that all markets of pool have in common, or an
// empty string.
func gpuOf(s *policy.Snapshot, pool *policy.Pool) string {
	name := ""
	for _, m := range pool.Markets {
		t := &s.Types[s.Markets[m].Type]
		if t.Capacity.GPU == 0 || name != "" && t.GPUResource != name {
			return ""
		}
		name = t.GPUResource
	}
	return name
}

// mayServe reports whether the labels and taints of pool allow pods of t.
func mayServe(pool *policy.Pool, t *policy.Template) bool {
	if t.DaemonSet || !policy.TolerateAll(t.Tolerations, pool.Taints) {
		return false
	}
	for _, want := range t.NodeSelector {
		if v, found := policy.FindLabel(pool.Labels, want.Key); found && v != want.Value {
			return false
		}
	}
	return true
}

// divide returns the configurations of the two NodePools of pool with which they together follow t.
//
// The Spot NodePool takes precedence. Its limit leaves the capacity of [placement.SpotRoom]: with
// pending pods, the number of whole nodes that brings the pool closest to its share; otherwise, the
// capacity that Karpenter may buy before Spotter sees the pods that it is for. The on-demand
// NodePool takes the overflow. It is limited only by the user's limit for the whole pool. Half of
// the unused part of that limit is reserved for on-demand, in case Spot launches are refused; after
// a refusal, at least the requests of the pending pods. If the whole pool should be Spot without a
// fallback, on-demand buys nothing.
func (c *Config) divide(pool *policy.Pool, t *steering, h *holdings, refused bool) (spot, onDemand target) {
	spot = target{weight: c.SpotWeight, emptyOnly: t.Exact || t.EmptyOnly}
	onDemand = target{weight: c.OnDemandWeight, emptyOnly: spot.emptyOnly || pool.Share.Max < 1}
	bound := backend.Limits(pool.Limits, t.Limits)
	if t.Share <= 0 {
		spot.weight, onDemand.weight = c.OnDemandWeight, c.SpotWeight
		spot.limits = nothing()
		onDemand.limits = h.list(leftOf(bound, h.spot))
		return spot, onDemand
	}
	target := int64(math.MaxInt64)
	if t.Share < 1 {
		target = h.unit(h.spot) + h.spotRoom()
	}
	var spotMax, onDemandMax policy.Resources
	spotMax.CPU, onDemandMax.CPU = c.limitsOf(t, h, refused, bound.CPU, target,
		func(r policy.Resources) int64 { return r.CPU }, h.gpu == "")
	spotMax.GPU, onDemandMax.GPU = c.limitsOf(t, h, refused, bound.GPU, target,
		func(r policy.Resources) int64 { return r.GPU }, h.gpu != "")
	spotMax.Memory, onDemandMax.Memory = c.limitsOf(t, h, refused, bound.Memory, target,
		func(r policy.Resources) int64 { return r.Memory }, false)
	spot.limits, onDemand.limits = h.list(spotMax), h.list(onDemandMax)
	if t.Share >= 1 && !t.Fallback {
		spot.limits, onDemand.limits = h.list(leftOf(bound, h.onDemand)), nothing()
	}
	return spot, onDemand
}

// unlimited is the value of a limit that is not set.
const unlimited = -1

// limitsOf returns the limits of one resource in the two NodePools. shared reports whether the
// share is a share of this resource. A bound of 0 means that the user set no limit.
func (c *Config) limitsOf(t *steering, h *holdings, refused bool, bound, target int64,
	of func(policy.Resources) int64, shared bool) (spot, onDemand int64) {
	if !shared {
		target = math.MaxInt64
	}
	if bound == 0 {
		if target == math.MaxInt64 {
			return unlimited, unlimited
		}
		return target, unlimited
	}
	free := max(0, bound-of(h.total()))
	freeCapacity := min(free, max(0, target-of(h.spot)))
	if target == math.MaxInt64 {
		kept := free / 2
		if refused {
			kept = max(kept, min(free, of(h.pending)))
		}
		freeCapacity = free - kept
	}
	return of(h.spot) + freeCapacity, of(h.onDemand) + free - freeCapacity
}

// leftOf returns the limits that remain of bound after the capacity of the other NodePool.
func leftOf(bound, other policy.Resources) policy.Resources {
	left := func(b, o int64) int64 {
		if b == 0 {
			return unlimited
		}
		return max(0, b-o)
	}
	return policy.Resources{CPU: left(bound.CPU, other.CPU), Memory: left(bound.Memory, other.Memory),
		GPU: left(bound.GPU, other.GPU)}
}

// nothing returns the limits of a NodePool that must not buy. Its existing nodes remain.
func nothing() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(0, resource.DecimalSI)}
}

// list converts r to the limits of a NodePool. Unlimited resources are omitted.
func (h *holdings) list(r policy.Resources) corev1.ResourceList {
	l := corev1.ResourceList{}
	if r.CPU != unlimited {
		l[corev1.ResourceCPU] = *resource.NewMilliQuantity(r.CPU, resource.DecimalSI)
	}
	if r.Memory != unlimited {
		l[corev1.ResourceMemory] = *resource.NewQuantity(r.Memory, resource.BinarySI)
	}
	if r.GPU != unlimited && h.gpu != "" {
		l[corev1.ResourceName(h.gpu)] = *resource.NewQuantity(r.GPU, resource.DecimalSI)
	}
	return l
}
