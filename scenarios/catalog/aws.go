package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// rootVolume is the size of a node's disk: the default block device of the EKS images in
// Karpenter's EC2NodeClass.
const rootVolume = 20 * gib

// describeAWS sets the fields of t that follow from its name and its line in the table.
func describeAWS(t *policy.InstanceType, f []string, memoryMiB int64) {
	t.Family, _, _ = strings.Cut(t.Name, ".")
	t.Category, t.Arch = category(t.Family), arch(t.Family)
	t.Credits = credits(t)
	t.VolumesMax = volumesMax(t.Family, t.Name)
	t.NetworkMbps = number(f[colMbps])
	t.Capacity.Memory = belowHypervisor(memoryMiB * mib)
	t.Capacity.Storage = rootVolume
	t.Capacity.Pods = podsMax(number(f[colENIs]), number(f[colIPv4]))
	t.Allocatable = new(NodeClass).allocatable(t.Capacity, t.Capacity.Pods)
	t.Labels = labelsAWS(t, f, memoryMiB)
}

// belowHypervisor returns the memory that the kernel of an instance sees: all but the 7.5%, rounded
// up to whole MiB, that Karpenter reserves for the hypervisor (vmMemoryOverheadPercent).
func belowHypervisor(bytes int64) int64 {
	return bytes - (bytes*75/1000+mib-1)/mib*mib
}

// podsMax returns the pod limit of the AWS VPC CNI without prefix delegation. The primary address
// of each interface is not available to pods, and two pods use the host network.
func podsMax(enis, ipv4 int64) int64 { return enis*(ipv4-1) + 2 }

// xen lists the families that run on the Xen hypervisor. All others run on Nitro.
var xen = []string{
	"c1", "c3", "c4", "cc2", "cg1", "cr1", "d2", "f1", "g2", "g3", "g3s", "h1", "hi1", "hs1", "i2", "i3",
	"m1", "m2", "m3", "m4", "p2", "p3", "r3", "r4", "t1", "t2", "x1", "x1e",
}

func inXen(family string) bool { return slices.Contains(xen, family) }

// dedicated lists the families with a dedicated limit of EBS volumes (AWS documentation, "Amazon
// EBS volume limits for Amazon EC2 instances").
var dedicated = []string{
	"c7a", "c7i", "c7i-flex", "c8g", "f2", "g6", "g6e", "gr6", "hpc7a", "i7ie", "i8g", "m7a", "m7i", "m7i-flex", "m8g",
	"p5", "p5e", "p5en", "r7a", "r7i", "r7iz", "r8g", "trn2", "x8g",
}

// volumesBySize are the volume limits of dedicated families by size (same document). A size that is
// not listed has the shared limit, which is lower.
var volumesBySize = map[string]int32{
	"medium": 32, "large": 32, "xlarge": 32, "2xlarge": 32, "4xlarge": 32, "8xlarge": 32, "12xlarge": 32,
	"16xlarge": 48, "24xlarge": 64, "32xlarge": 88, "48xlarge": 128,
	"metal-16xl": 39, "metal-24xl": 39, "metal-32xl": 79, "metal-48xl": 79,
}

// fewVolumes are the instance types whose volume limit is below the limit of their kind (same
// document).
var fewVolumes = map[string]int32{
	"d3.8xlarge": 3, "d3en.12xlarge": 3, "g5.48xlarge": 9,
	"inf1.xlarge": 26, "inf1.2xlarge": 26, "inf1.6xlarge": 23, "inf1.24xlarge": 11,
}

// volumesMax returns the number of block volumes that pods can attach; the root disk has taken one.
// The limit is 39 on Xen. On Nitro it is the dedicated limit of the family, or else 28 attachments
// (31 on bare metal) that volumes share with the first network interface and the instance store
// volumes (AWS documentation and the limits of aws-ebs-csi-driver). Further network interfaces,
// which a node gets as pods arrive, are not counted.
func volumesMax(family, name string) int32 {
	_, size, _ := strings.Cut(name, ".")
	metal := strings.HasPrefix(size, "metal")
	if inXen(family) && !metal {
		return 39
	}
	if few, ok := fewVolumes[name]; ok {
		return few - 1
	}
	if n, ok := volumesBySize[size]; ok && slices.Contains(dedicated, family) {
		return n - 1
	}
	attachments := int32(28)
	if metal {
		attachments = 31
	}
	return attachments - 2 - ownDisks(family, size)
}

// A layout is the number of instance store volumes by size, for some families: the number of disks
// of the last step whose size, in multiples of an xlarge, does not exceed the size of the instance.
type layout struct {
	families []string
	steps    []step
}

type step struct {
	size  int
	disks int32
}

// layouts are the instance store volumes of the families in which they count as attachments (AWS
// documentation, "Instance store volumes"). Metal counts as the largest size.
var layouts = []layout{
	{[]string{"m5ad", "m5d", "m5dn", "r5ad", "r5d", "r5dn"}, []step{{0, 1}, {4, 2}, {16, 4}}},
	{[]string{"c5ad"}, []step{{0, 1}, {4, 2}}},
	{[]string{"c5d"}, []step{{0, 1}, {12, 2}, {24, 4}}},
	{[]string{"c6gd", "c7gd", "m6gd", "m7gd", "r6gd", "r7gd", "x2gd", "z1d"}, []step{{0, 1}, {12, 2}}},
	{[]string{"c6id", "m6id", "m6idn", "r6id", "r6idn"}, []step{{0, 1}, {12, 2}, {24, 4}}},
	{[]string{"x2idn", "x2iedn"}, []step{{0, 1}, {24, 2}}},
	{[]string{"i3"}, []step{{16, 8}}},
	{[]string{"i3en"}, []step{{0, 1}, {2, 2}, {3, 1}, {6, 2}, {12, 4}, {24, 8}}},
	{[]string{"i4g", "i4i", "im4gn"}, []step{{0, 1}, {8, 2}, {16, 4}, {32, 8}}},
	{[]string{"is4gen"}, []step{{0, 1}, {4, 2}, {8, 4}}},
	{[]string{"g4dn"}, []step{{0, 1}, {17, 2}}},
	{[]string{"g4ad"}, []step{{0, 1}, {16, 2}}},
	{[]string{"g5"}, []step{{0, 1}}},
	{[]string{"p3dn"}, []step{{24, 2}}},
	{[]string{"dl1", "trn1", "trn1n"}, []step{{24, 4}}},
	{[]string{"p4d", "p4de"}, []step{{24, 8}}},
}

// ownDisks returns the number of instance store volumes of an instance type.
func ownDisks(family, size string) int32 {
	multiple := 0
	if digits, ok := strings.CutSuffix(size, "xlarge"); ok && digits != "" {
		multiple, _ = strconv.Atoi(digits)
	} else if strings.HasPrefix(size, "metal") {
		multiple = 1 << 30
	}
	n := int32(0)
	for _, l := range layouts {
		if slices.Contains(l.families, family) {
			for _, s := range l.steps {
				if multiple >= s.size {
					n = s.disks
				}
			}
		}
	}
	return n
}

// category returns the letters that precede the generation in the name of a family: "m" for "m6gd",
// "inf" for "inf2".
func category(family string) string {
	letters, _ := split(family)
	return letters
}

// split returns the letters before the first digit of a family's name and the digits that follow.
// It ignores the memory in the name of a high-memory type ("u-12tb1").
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

// arch returns the CPU architecture of a family. A "g" after the generation means an AWS processor;
// a1 predates this rule.
func arch(family string) string {
	letters, generation := split(family)
	rest := strings.TrimPrefix(family, letters+generation)
	if family == "a1" || strings.HasPrefix(rest, "g") {
		return "arm64"
	}
	return "amd64"
}
