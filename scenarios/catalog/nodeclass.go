package catalog

import (
	"slices"
	"strings"

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
		return ceil(float64(all) / 100 * h.Percent)
	}
	return h.Amount
}

func ceil(x float64) int64 {
	n := int64(x)
	if float64(n) < x {
		n++
	}
	return n
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

// derived are the labels that Karpenter knows of types of AWS and that the catalog's types
// do not carry, but that follow from what it holds.
var derived = map[string]func(t *policy.InstanceType) (value string, known bool){
	"karpenter.k8s.aws/instance-capability-flex": func(t *policy.InstanceType) (string, bool) {
		if strings.Contains(t.Family, "-flex") {
			return "true", true
		}
		return "false", true
	},
	"karpenter.k8s.aws/instance-cpu-manufacturer":  manufacturer,
	"karpenter.k8s.aws/instance-gpu-manufacturer":  gpuManufacturer,
	"karpenter.k8s.aws/instance-hypervisor":        hypervisor,
	"karpenter.k8s.aws/instance-network-bandwidth": bandwidth,
	"karpenter.k8s.aws/instance-tenancy":           func(*policy.InstanceType) (string, bool) { return "default", true },
}

// Derives reports whether the catalog can tell a label that the types of AWS do not carry.
func Derives(key string) bool { return derived[key] != nil }

// Derived returns the value of such a label of t, empty where t does not have it. Known is
// false where that is not known of t.
func Derived(t *policy.InstanceType, key string) (value string, known bool) { return derived[key](t) }

func bandwidth(t *policy.InstanceType) (string, bool) {
	if t.NetworkMbps == 0 {
		return "", false
	}
	return label("", t.NetworkMbps).Value, true
}

// hypervisor is empty on bare metal.
func hypervisor(t *policy.InstanceType) (string, bool) {
	switch {
	case strings.Contains(t.Name, ".metal"):
		return "", true
	case inXen(t.Family):
		return "xen", true
	}
	return "nitro", true
}

func gpuManufacturer(t *policy.InstanceType) (string, bool) {
	switch t.GPUResource {
	case resourceOf["nvidia"]:
		return "nvidia", true
	case resourceOf["amd"]:
		return "amd", true
	case resourceOf["gaudi"]:
		return "habana", true
	}
	return "", true
}

// manufacturer knows who made the processors of the families without accelerators: AWS
// those of arm64, and AMD those with an "a" after the generation.
func manufacturer(t *policy.InstanceType) (string, bool) {
	letters, generation := split(t.Family)
	rest := strings.TrimPrefix(t.Family, letters+generation)
	switch {
	case t.Arch == "arm64":
		return "aws", true
	case t.Capacity.GPU > 0 || !slices.Contains([]string{"c", "d", "h", "i", "m", "r", "t", "u", "x", "z"}, letters):
		return "", false
	case strings.HasPrefix(rest, "a"):
		return "amd", true
	}
	return "intel", true
}
