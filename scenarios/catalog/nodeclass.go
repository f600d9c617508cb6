package catalog

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
)

// A NodeClass contains the settings of an EC2NodeClass of Karpenter that change the resources for
// pods on a node. The zero value changes nothing. The rules are those of
// github.com/aws/karpenter-provider-aws v1.14.1, pkg/providers/instancetype/types.go.
type NodeClass struct {
	// PodsMax and PodsPerCore limit the pods of a node. If they are 0, the addresses of its network
	// interfaces limit them.
	PodsMax, PodsPerCore int64

	// Bottlerocket reports that the image is Bottlerocket. Its kubelet has no setting for pods per
	// core, and reserves memory for the pods that the node may run instead of those that its
	// network interfaces would allow.
	Bottlerocket bool

	// System are the resources reserved for the system; none by default.
	System policy.Resources

	// KubeCPU, KubeMemory and KubeStorage are the reservations for Kubernetes; nil means the
	// default.
	KubeCPU, KubeMemory, KubeStorage *int64

	// EvictMemory and EvictStorage are the thresholds of hard eviction; if not set, the defaults
	// apply.
	EvictMemory, EvictStorage Threshold

	// RootVolume is the size in bytes of the disk that pods write to, 0 for the default.
	RootVolume int64
}

// A Threshold is a threshold of eviction, as an amount in bytes or as a percentage of the capacity.
// Set is false if it is not stated.
type Threshold struct {
	Set     bool
	Amount  int64
	Percent float64
}

// of returns the threshold for a capacity of all. A percentage of 100 disables it.
func (h Threshold) of(all int64) int64 {
	switch {
	case h.Percent == 100:
		return 0
	case h.Percent > 0:
		return int64(math.Ceil(float64(all) / 100 * h.Percent))
	}
	return h.Amount
}

// Apply sets the capacity and the allocatable resources of t, an AWS type of the catalog, to those
// under c.
func (c *NodeClass) Apply(t *policy.InstanceType) {
	addresses := t.Capacity.Pods
	if c.PodsMax > 0 {
		t.Capacity.Pods = c.PodsMax
	}
	if c.PodsPerCore > 0 && !c.Bottlerocket {
		t.Capacity.Pods = min(t.Capacity.Pods, c.PodsPerCore*t.VCPU)
	}
	if c.RootVolume > 0 {
		t.Capacity.Storage = c.RootVolume
	}
	if c.Bottlerocket {
		addresses = t.Capacity.Pods
	}
	t.Allocatable = c.allocatable(t.Capacity, addresses)
}

// allocatable returns the resources that the kubelet leaves for pods. It subtracts the reservation
// for Kubernetes (by default [reservedCPU], 255 MiB plus 11 MiB for each of a number of pods, and 1
// GiB of disk), the reservation for the system, and the thresholds of hard eviction (by default a
// tenth of the disk).
func (c *NodeClass) allocatable(capacity policy.Resources, pods int64) policy.Resources {
	or := func(x *int64, otherwise int64) int64 {
		if x != nil {
			return *x
		}
		return otherwise
	}
	memory, storage := int64(evictionMemory), Threshold{Percent: 10}.of(capacity.Storage)
	if c.EvictMemory.Set {
		memory = c.EvictMemory.of(capacity.Memory)
	}
	if c.EvictStorage.Set {
		storage = c.EvictStorage.of(capacity.Storage)
	}
	r := capacity.Minus(c.System)
	r.CPU -= or(c.KubeCPU, reservedCPU(capacity.CPU))
	r.Memory -= or(c.KubeMemory, (255+11*pods)*mib) + memory
	r.Storage -= or(c.KubeStorage, gib) + storage
	return r
}
