package catalog

import (
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// evictionMemory is how much memory a kubelet keeps free by default, and with
// it the images of EKS, GKE and AKS: below it, it evicts pods.
const evictionMemory = 100 * mib

// reservedCPU returns the thousandths of a core that EKS and GKE reserve: 6% of the first core, 1%
// of the second, 0.5% of the next two and 0.25% of the others, rounded down.
func reservedCPU(milli int64) int64 {
	return graded(milli, []grade{{1000, 600}, {2000, 100}, {4000, 50}, {1 << 62, 25}})
}

// A grade is a share, in ten-thousandths, of the part above the previous grade's limit and not
// above upTo.
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

// reportedByKernel returns how much of the memory of a virtual machine its
// kernel reports: less a fiftieth and 64 MiB. A Rackspace node sold with 3,840
// MiB was seen to report 3,721, and one with 30,720 to report 30,074; nodes of
// GKE and AKS are alike.
func reportedByKernel(memoryMiB int64) int64 { return (memoryMiB - memoryMiB/50 - 64) * mib }

// common returns the labels that every kubelet puts on its node and that tell
// the type.
func common(t *policy.InstanceType) []policy.Label {
	return []policy.Label{
		{Key: "kubernetes.io/arch", Value: t.Arch},
		{Key: "node.kubernetes.io/instance-type", Value: t.Name},
	}
}

func label(key string, n int64) policy.Label {
	return policy.Label{Key: key, Value: strconv.FormatInt(n, 10)}
}
