package catalog

import (
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// evictionMemory is the default threshold of hard eviction of a kubelet and of the images of EKS,
// GKE and AKS: with less free memory, the kubelet evicts pods.
const evictionMemory = 100 * mib

// reservedCPU returns the milli-CPU that EKS and GKE reserve: 6% of the first core, 1% of the
// second, 0.5% of the next two and 0.25% of the others, rounded down.
func reservedCPU(milli int64) int64 {
	return graded(milli, []grade{{1000, 600}, {2000, 100}, {4000, 50}, {1 << 62, 25}})
}

// A grade is a rate, in ten-thousandths, for the part of an amount that is above the limit of the
// previous grade and at most upTo.
type grade struct{ upTo, perMyriad int64 }

func graded(x int64, grades []grade) int64 {
	sum, floor := int64(0), int64(0)
	for _, g := range grades {
		if x > floor {
			sum += (min(x, g.upTo) - floor) * g.perMyriad
		}
		floor = g.upTo
	}
	return sum / 10_000
}

// reportedByKernel returns the memory, in bytes, that the kernel of a virtual machine reports: a
// fiftieth and 64 MiB less than its nominal memory. A Rackspace node sold with 3,840 MiB reported
// 3,721, and one with 30,720 reported 30,074; nodes of GKE and AKS are similar.
func reportedByKernel(memoryMiB int64) int64 { return (memoryMiB - memoryMiB/50 - 64) * mib }

// common returns the labels for the instance type that every kubelet sets on its node.
func common(t *policy.InstanceType) []policy.Label {
	return []policy.Label{
		{Key: "kubernetes.io/arch", Value: t.Arch},
		{Key: "node.kubernetes.io/instance-type", Value: t.Name},
	}
}

func label(key string, n int64) policy.Label {
	return policy.Label{Key: key, Value: strconv.FormatInt(n, 10)}
}
