package karpenter

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A half is how one of the two NodePools of a pool is to buy.
type half struct {
	weight int32

	// limits are absolute, as Karpenter's; a resource without one is not limited.
	limits corev1.ResourceList

	// emptyOnly says that Karpenter removes nothing but empty nodes.
	emptyOnly bool

	// closed says that it removes none, since no maintenance window is open or a freeze is on.
	closed bool
}

// holdings are what a pool holds and is about to need, as its limits count them:
// the capacity of every machine that is not going away.
type holdings struct {
	spot, onDemand, pending policy.Resources

	// gpu is the resource that Resources.GPU counts where every market of the pool
	// has accelerators, so that the share is one of these; else empty.
	gpu string

	// step is the size of the smallest spot node that may be bought, in units of the
	// share: thousandths of a vCPU, or GPUs.
	step int64
}

func (h *holdings) total() policy.Resources { return h.spot.Plus(h.onDemand) }

// unit returns the part of r that the share is one of.
func (h *holdings) unit(r policy.Resources) int64 {
	if h.gpu != "" {
		return r.GPU
	}
	return r.CPU
}

// holdingsOf returns what pool holds at s, with the smallest of the spot offers.
func holdingsOf(s *policy.Snapshot, pool *policy.Pool, t *steering) holdings {
	h := holdings{gpu: gpuOf(s, pool)}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool != pool.ID || n.Phase == policy.NodeGone || n.Phase == policy.NodeDeleting || n.Market < 0 {
			continue
		}
		m := &s.Markets[n.Market]
		if size := sizeOf(s, n.Market); m.Capacity == policy.Spot {
			h.spot = h.spot.Plus(size)
		} else {
			h.onDemand = h.onDemand.Plus(size)
		}
	}
	for _, o := range pool.Markets {
		if m := &s.Markets[o]; m.Capacity == policy.Spot && t.names(m.Name) {
			if size := h.unit(sizeOf(s, o)); h.step == 0 || size < h.step {
				h.step = size
			}
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodPending && !p.Gated && p.Nominated == policy.None && mayServe(pool, &s.Templates[p.Template]) {
			h.pending = h.pending.Plus(s.Templates[p.Template].Requests)
		}
	}
	return h
}

// sizeOf returns what a machine of market m counts against limits.
func sizeOf(s *policy.Snapshot, m policy.MarketID) policy.Resources {
	t := &s.Types[s.Markets[m].Type]
	return policy.Resources{CPU: t.VCPU * 1000, Memory: t.Capacity.Memory, GPU: t.Capacity.GPU}
}

// gpuOf returns the accelerator that all markets of pool have, or nothing.
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

// mayServe reports whether pods of t may run in pool as far as its own labels and
// taints say.
func mayServe(pool *policy.Pool, t *policy.Template) bool {
	if t.DaemonSet {
		return false
	}
	for i := range pool.Taints {
		if x := &pool.Taints[i]; x.Effect != policy.PreferNoSchedule && !placement.Tolerates(t.Tolerations, x) {
			return false
		}
	}
	for _, want := range t.NodeSelector {
		if v, found := policy.FindLabel(pool.Labels, want.Key); found && v != want.Value {
			return false
		}
	}
	return true
}

// divide returns how the two NodePools of pool are to buy so that together they do
// as t says.
//
// The spot NodePool goes first and is limited to its share of what there is and is
// asked for, one node at least since Karpenter buys before we see for whom, and half of
// its smallest node more: as a node is bought as spot where that brings the share
// nearer. On-demand takes the overflow. It is limited only by
// what the user allows the pool in all; of what is left there, on-demand
// keeps half for spot that is refused, and what pending pods need once it was. Where
// a whole pool is to be spot without a fallback, on-demand buys nothing.
func (c *Config) divide(pool *policy.Pool, t *steering, h *holdings, refused bool) (spot, onDemand half) {
	spot = half{weight: c.SpotWeight, emptyOnly: t.Exact || t.EmptyOnly}
	onDemand = half{weight: c.OnDemandWeight, emptyOnly: spot.emptyOnly || pool.Share.Max < 1}
	bound := bounded(pool.Limits, t.Limits)
	if t.Share <= 0 {
		spot.weight, onDemand.weight = c.OnDemandWeight, c.SpotWeight
		spot.limits = nothing()
		onDemand.limits = h.list(leftOf(bound, h.spot))
		return spot, onDemand
	}
	target := int64(math.MaxInt64)
	if t.Share < 1 {
		all := h.unit(h.total()) + max(h.unit(h.pending), h.step)
		target = int64(math.Ceil(t.Share*float64(all))) + h.step/2
	}
	var spotMax, onDemandMax policy.Resources
	spotMax.CPU, onDemandMax.CPU = c.limitsOf(t, h, refused, bound.CPU, target, func(r policy.Resources) int64 { return r.CPU }, h.gpu == "")
	spotMax.GPU, onDemandMax.GPU = c.limitsOf(t, h, refused, bound.GPU, target, func(r policy.Resources) int64 { return r.GPU }, h.gpu != "")
	spotMax.Memory, onDemandMax.Memory = c.limitsOf(t, h, refused, bound.Memory, target, func(r policy.Resources) int64 { return r.Memory }, false)
	spot.limits, onDemand.limits = h.list(spotMax), h.list(onDemandMax)
	if t.Share >= 1 && !t.Fallback {
		spot.limits, onDemand.limits = h.list(leftOf(bound, h.onDemand)), nothing()
	}
	return spot, onDemand
}

// unlimited is the limit that says there is none.
const unlimited = -1

// limitsOf returns the limits of one resource in the two NodePools; shared says that
// the share is one of it.
func (c *Config) limitsOf(t *steering, h *holdings, refused bool, bound, target int64, of func(policy.Resources) int64, shared bool) (spot, onDemand int64) {
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

// bounded returns the limits in force: the user's, and those of a steer below them.
// Zero components limit nothing.
func bounded(user, steer policy.Resources) policy.Resources {
	least := func(a, b int64) int64 {
		if a == 0 || b == 0 {
			return a + b
		}
		return min(a, b)
	}
	return policy.Resources{CPU: least(user.CPU, steer.CPU), Memory: least(user.Memory, steer.Memory), GPU: least(user.GPU, steer.GPU)}
}

// leftOf returns the limits that bound leaves after what the other NodePool holds.
func leftOf(bound, other policy.Resources) policy.Resources {
	left := func(b, o int64) int64 {
		if b == 0 {
			return unlimited
		}
		return max(0, b-o)
	}
	return policy.Resources{CPU: left(bound.CPU, other.CPU), Memory: left(bound.Memory, other.Memory), GPU: left(bound.GPU, other.GPU)}
}

// nothing returns the limits of a NodePool that is to buy nothing. What it holds
// stays.
func nothing() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(0, resource.DecimalSI)}
}

// list returns limits as a NodePool has them; unlimited components are left out.
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
