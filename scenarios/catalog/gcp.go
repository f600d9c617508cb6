package catalog

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// podsGKE is the default pod limit of a GKE node.
const podsGKE = 110

// describeGCP sets the fields of t that follow from the name of the machine type.
func describeGCP(t *policy.InstanceType, _ []string, memoryMiB int64) {
	t.Family, _, _ = strings.Cut(t.Name, "-")
	t.Category, _ = split(t.Family)
	t.Arch = "amd64"
	if t.Family == "t2a" || t.Family == "c4a" {
		t.Arch = "arm64"
	}
	t.VolumesMax = 127
	if sharedCore(t.Name) {
		t.VolumesMax = 15
	}
	t.Capacity.Memory = reportedByKernel(memoryMiB)
	t.Capacity.Storage = bootDiskGKE
	t.Capacity.Pods = podsGKE
	t.Allocatable = allocatableGKE(t, memoryMiB)
	t.Labels = labelsGKE(t, memoryMiB)
}

// sharedCore reports whether a machine type has a shared core. Such a type attaches 16 disks,
// others 128; the boot disk is one of them (Google Cloud documentation, "Persistent Disk" limits).
func sharedCore(name string) bool {
	return slices.Contains([]string{"e2-micro", "e2-small", "e2-medium", "f1-micro", "g1-small"}, name)
}

// bootDiskGKE is the capacity, in bytes, of the file system on the default boot disk of 100 GiB
// (Google Cloud documentation, "Plan GKE node sizes").
const bootDiskGKE = 98_831_908 << 10

// memoryGKE are the shares of memory that GKE reserves.
var memoryGKE = []grade{{4 * gib, 2500}, {8 * gib, 2000}, {16 * gib, 1000}, {128 * gib, 600}, {1 << 62, 200}}

// allocatableGKE returns the resources left for pods under the rules of GKE (Google Cloud
// documentation, "Plan GKE node sizes"). The CPU reservation is [reservedCPU], or 1.06 of the 2
// cores that a shared-core type of E2 reports. The memory reservation is 25% of the first 4 GiB,
// 20% of the next 4, 10% of the next 8, 6% of the next 112 and 2% of the rest, but 255 MiB on nodes
// with less than 1 GiB. The storage reservation, for a boot disk of 100 GiB, is the lesser of half
// of it and 6 GiB plus 35%. The thresholds of hard eviction (a tenth of the disk) are subtracted
// too.
func allocatableGKE(t *policy.InstanceType, memoryMiB int64) policy.Resources {
	r := t.Capacity
	if t.Family == "e2" && sharedCore(t.Name) {
		r.CPU -= 1060
	} else {
		r.CPU -= reservedCPU(r.CPU)
	}
	reserved := graded(memoryMiB*mib, memoryGKE)
	if memoryMiB < 1024 {
		reserved = 255 * mib
	}
	r.Memory -= reserved + evictionMemory
	r.Storage -= r.Storage/10 + 41*gib
	return r
}

// labelsGKE returns the labels that GKE and Karpenter's provider for Google Cloud set on every node
// of type t, ascending by key. The provider counts the kinds of accelerators of a type and not the
// accelerators: a node with eight has the count 1.
func labelsGKE(t *policy.InstanceType, memoryMiB int64) []policy.Label {
	all := make([]policy.Label, 0, 13)
	accelerator, accelerated := acceleratorGKE[t.GPUName]
	if accelerated {
		all = append(all, policy.Label{Key: labelAcceleratorGKE, Value: accelerator})
	}
	parts := strings.Split(t.Name, "-")
	size := parts[len(parts)-1]
	if len(parts) > 3 { // c3-standard-8-lssd
		size = parts[len(parts)-2]
	}
	_, generation := split(t.Family)
	all = append(all,
		policy.Label{Key: labelFamilyGKE, Value: t.Family},
		policy.Label{Key: labelGoogle + "category", Value: t.Category},
		label(labelGoogle+"cpu", t.VCPU),
		policy.Label{Key: labelGoogle + "family", Value: t.Family},
		policy.Label{Key: labelGoogle + "generation", Value: generation})
	if accelerated {
		all = append(all, label(labelGoogle+"gpu-count", 1), policy.Label{Key: labelGoogle + "gpu-name", Value: accelerator})
	}
	all = append(all, label(labelGoogle+"memory", memoryMiB))
	if len(parts) > 1 {
		all = append(all, policy.Label{Key: labelGoogle + "shape", Value: parts[1]})
	}
	all = append(all, policy.Label{Key: labelGoogle + "size", Value: size})
	return append(all, common(t)...)
}

// acceleratorGKE maps the names of accelerators in the catalog to those in GKE.
var acceleratorGKE = map[string]string{
	"a100": "nvidia-tesla-a100", "a100-80gb": "nvidia-a100-80gb", "h100": "nvidia-h100-80gb", "l4": "nvidia-l4",
}
