package catalog

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// podsGKE is the pod limit of a node of GKE by default.
const podsGKE = 110

// describeGCP fills in what the name of a machine type says.
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
	t.Labels = labelsGKE(t)
}

// sharedCore reports whether a type has a part of its processors at times. It
// attaches 16 disks, others 128, of which the boot disk is one (Google Cloud
// documentation, "Persistent Disk" limits).
func sharedCore(name string) bool {
	return slices.Contains([]string{"e2-micro", "e2-small", "e2-medium", "f1-micro", "g1-small"}, name)
}

// bootDiskGKE is what a file system on the default boot disk of 100 GiB holds
// (Google Cloud documentation, "Plan GKE node sizes").
const bootDiskGKE = 98_831_908 << 10

// memoryGKE are the shares of memory that GKE keeps back.
var memoryGKE = []grade{{4 * gib, 2500}, {8 * gib, 2000}, {16 * gib, 1000}, {128 * gib, 600}, {1 << 62, 200}}

// allocatableGKE returns the resources that are left for pods by the rules of GKE (Google Cloud
// documentation, "Plan GKE node sizes"). It subtracts, of the processors, [reservedCPU], or 1.06 of
// the 2 cores that a shared-core type of E2 shows; of memory, 25% of the first 4 GiB, 20% of the
// next 4, 10% of the next 8, 6% of the next 112 and 2% of the rest, but 255 MiB below 1 GiB; of a
// boot disk of 100 GiB, the lesser of half and 6 GiB plus 35%; and the thresholds of hard eviction
// (of the disk, a tenth).
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

// labelsGKE returns those that GKE puts on every node of t, ascending by key.
func labelsGKE(t *policy.InstanceType) []policy.Label {
	all := make([]policy.Label, 0, 4)
	if accelerator, ok := acceleratorGKE[t.GPUName]; ok {
		all = append(all, policy.Label{Key: "cloud.google.com/gke-accelerator", Value: accelerator})
	}
	all = append(all, policy.Label{Key: "cloud.google.com/machine-family", Value: t.Family})
	return append(all, common(t)...)
}

// acceleratorGKE are the names that GKE has for accelerators.
var acceleratorGKE = map[string]string{
	"a100": "nvidia-tesla-a100", "a100-80gb": "nvidia-a100-80gb", "h100": "nvidia-h100-80gb", "l4": "nvidia-l4",
}
