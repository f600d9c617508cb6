package catalog

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
)

// A NodeClass is what an EC2NodeClass of Karpenter changes of the nodes of a type: what of
// the machine is left for pods. The zero value changes nothing. The rules are those of
// github.com/aws/karpenter-provider-aws v1.14.1, pkg/providers/instancetype/types.go.
type NodeClass struct {
	// PodsMax and PodsPerCore bound the pods of a node; 0 leaves that to the addresses of
	// its network interfaces.
	PodsMax, PodsPerCore int64

	// Bottlerocket says that the image is one. Its kubelet knows no pods per core, and
	// keeps memory back for the pods that it may hold and not for those that the network
	// would let it have.
	Bottlerocket bool

	// System is kept back for the system; by default nothing is.
	System policy.Resources

	// Kube are the reservations for Kubernetes that replace the default ones; a nil one
	// replaces nothing.
	KubeCPU, KubeMemory, KubeStorage *int64

	// EvictMemory and EvictStorage are the thresholds of hard eviction that replace the
	// default ones.
	EvictMemory, EvictStorage Threshold

	// RootVolume is the size of the disk, 0 for the default one.
	RootVolume int64
}

// A Threshold of eviction is an amount or a percentage of what there is. Set is false for
// one that is not stated.
type Threshold struct {
	Set     bool
	Amount  int64
	Percent float64
}

// of returns the threshold for what there is in all. A percentage of 100 means none.
func (h Threshold) of(all int64) int64 {
	switch {
	case h.Percent == 100:
		return 0
	case h.Percent > 0:
		return int64(math.Ceil(float64(all) / 100 * h.Percent))
	}
	return h.Amount
}

// Apply sets what a type of AWS as the catalog has it offers to pods under c.
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

// allocatable returns what the kubelet leaves to pods of capacity: less what is kept back
// for Kubernetes, by default of the processors [reservedCPU], 255 MiB and 11 MiB for each
// of a number of pods, and 1 GiB of disk; for the system; and the thresholds of hard
// eviction, by default of the disk a tenth.
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
