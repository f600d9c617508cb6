package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// rootVolume is the disk of a node: the default block device of the EKS images
// in Karpenter's EC2NodeClass.
const rootVolume = 20 * gib

// seenByKernel returns how much of a machine's memory its kernel has: less the
// 7.5 % that Karpenter reckons for the hypervisor (vmMemoryOverheadPercent),
// rounded up to whole MiB.
func seenByKernel(bytes int64) int64 {
	return bytes - (bytes*75/1000+mib-1)/mib*mib
}

// podsMax is the pod limit of the AWS VPC CNI without prefix delegation: one
// address of each interface is its own, and two pods use the host's network.
func podsMax(enis, ipv4 int64) int64 { return enis*(ipv4-1) + 2 }

// allocatable returns what the kubelet leaves to pods of capacity under the
// reservations of the EKS images, which Karpenter reckons with:
// 6 % of the first core, 1 % of the second, 0.5 % of the next two and 0.25 % of
// the others; 255 MiB and 11 MiB a pod; 1 GiB of disk; and the thresholds of
// hard eviction, 100 MiB of memory and a tenth of the disk.
func allocatable(capacity policy.Resources) policy.Resources {
	r := capacity
	r.CPU -= reservedCPU(capacity.CPU)
	r.Memory -= (255 + 11*capacity.Pods + 100) * mib
	r.Storage -= gib + capacity.Storage/10
	return r
}

// reservedCPU is in thousandths of a core, rounded down as the images do.
func reservedCPU(milli int64) int64 {
	reserved, floor := int64(0), int64(0)
	for _, step := range [...]struct{ upTo, perMyriad int64 }{
		{1000, 600}, {2000, 100}, {4000, 50}, {1 << 62, 25},
	} {
		if milli > floor {
			reserved += (min(milli, step.upTo) - floor) * step.perMyriad
		}
		floor = step.upTo
	}
	return reserved / 10_000
}

// xen are the families that run on the Xen hypervisor; all others are Nitro.
var xen = []string{
	"c1", "c3", "c4", "cc2", "cg1", "cr1", "d2", "f1", "g2", "g3", "g3s", "h1", "hi1", "hs1", "i2", "i3",
	"m1", "m2", "m3", "m4", "p2", "p3", "r3", "r4", "t1", "t2", "x1", "x1e",
}

// volumesMax returns how many block volumes pods can attach: 39 on Xen; on
// Nitro 28 attachments, which an instance shares between its volumes, its
// first network interface and its root disk (AWS documentation and the limits
// of aws-ebs-csi-driver). Types of the seventh generation may have more; the
// lower figure is taken.
func volumesMax(family, name string) int32 {
	if slices.Contains(xen, family) && !strings.Contains(name, ".metal") {
		return 39
	}
	return 28 - 2
}

// category returns the letters of a family before its generation: "m" of
// "m6gd", "inf" of "inf2".
func category(family string) string {
	letters, _ := split(family)
	return letters
}

// split cuts a family before the first digit and after the digits that follow;
// the memory in the name of a high-memory type ("u-12tb1") is passed over.
func split(family string) (letters, generation string) {
	if _, rest, ok := strings.Cut(family, "tb"); ok && strings.HasPrefix(family, "u-") {
		return "u", rest
	}
	i := strings.IndexAny(family, "0123456789")
	if i < 0 {
		return family, ""
	}
	end := i
	for end < len(family) && family[end] >= '0' && family[end] <= '9' {
		end++
	}
	return family[:i], family[i:end]
}

// arch tells AWS's own processors by the "g" that follows the generation; a1
// came before that rule.
func arch(family string) string {
	letters, generation := split(family)
	rest := strings.TrimPrefix(family, letters+generation)
	if family == "a1" || strings.HasPrefix(rest, "g") {
		return "arm64"
	}
	return "amd64"
}

// labels returns those that the kubelet and Karpenter put on every node of t,
// ascending by key.
func labels(t *policy.InstanceType, memoryMiB int64) []policy.Label {
	_, size, _ := strings.Cut(t.Name, ".")
	_, generation := split(t.Family)
	all := make([]policy.Label, 0, 11)
	all = append(all,
		policy.Label{Key: "karpenter.k8s.aws/instance-category", Value: t.Category},
		policy.Label{Key: "karpenter.k8s.aws/instance-cpu", Value: strconv.FormatInt(t.VCPU, 10)},
		policy.Label{Key: "karpenter.k8s.aws/instance-family", Value: t.Family},
		policy.Label{Key: "karpenter.k8s.aws/instance-generation", Value: generation},
	)
	if t.Capacity.GPU > 0 {
		all = append(all,
			policy.Label{Key: "karpenter.k8s.aws/instance-gpu-count", Value: strconv.FormatInt(t.Capacity.GPU, 10)},
			policy.Label{Key: "karpenter.k8s.aws/instance-gpu-name", Value: t.GPUName},
		)
	}
	return append(all,
		policy.Label{Key: "karpenter.k8s.aws/instance-memory", Value: strconv.FormatInt(memoryMiB, 10)},
		policy.Label{Key: "karpenter.k8s.aws/instance-size", Value: size},
		policy.Label{Key: "kubernetes.io/arch", Value: t.Arch},
		policy.Label{Key: "node.kubernetes.io/instance-type", Value: t.Name},
	)
}
