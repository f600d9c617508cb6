package catalog

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// podsAKS is the default pod limit of an AKS node with Azure CNI Overlay, the network that AKS
// recommends (Azure documentation, "IP address planning in AKS").
const podsAKS = 250

// diskAKS is the default size of the disk of a node that AKS node auto-provisioning creates.
const diskAKS = 128 * gib

// describeAzure sets the fields of t that follow from the name of the VM size.
func describeAzure(t *policy.InstanceType, _ []string, memoryMiB int64) {
	n := parseAzure(t.Name)
	t.Family, t.Category, t.Arch = n.series(), n.category(), "amd64"
	if strings.Contains(n.features, "p") {
		t.Arch = "arm64"
	}
	t.VolumesMax = disksAzure(max(t.VCPU, n.whole))
	t.Capacity.Memory = reportedByKernel(memoryMiB)
	t.Capacity.Storage = diskAKS
	t.Capacity.Pods = podsAKS
	t.Allocatable = allocatableAKS(t.Capacity, memoryMiB)
	t.Labels = labelsAKS(t, n, memoryMiB)
}

// disksAzure returns the number of data disks that a VM size can attach: two per core, at most 32,
// as in most series (Azure documentation of the series; some, and most of the sixth generation, can
// attach more). For a constrained size, cores is the number of cores of the whole size.
func disksAzure(cores int64) int32 { return int32(min(2*cores, 32)) }

// cpuAKS are the shares of CPU that AKS reserves: 60 milli-CPU on a node with one core, 100 with
// two, 140 with four, and 10 more for each further core.
var cpuAKS = []grade{{1000, 600}, {2000, 400}, {4000, 200}, {1 << 62, 100}}

// allocatableAKS returns the resources left for pods under the rules of AKS 1.29 and later (Azure
// documentation, "Node resource reservations in AKS"). The memory reservation is the lesser of a
// quarter and 50 MiB plus 20 MiB for each pod of the limit, plus the threshold of hard eviction;
// the disk reservation is a tenth.
func allocatableAKS(capacity policy.Resources, memoryMiB int64) policy.Resources {
	r := capacity
	r.CPU -= graded(r.CPU, cpuAKS)
	r.Memory -= min(50+20*capacity.Pods, memoryMiB/4)*mib + evictionMemory
	r.Storage -= r.Storage / 10
	return r
}

// An azureName consists of the parts of a size's name, such as Standard_E16-4ads_v5: tier, letters,
// number, features and the rest.
type azureName struct {
	tier     string // "Standard" or "Basic"
	letters  string // "E"
	whole    int64  // 16: the cores of the whole size; 0 if the size is not constrained
	features string // "ads"
	rest     string // "v5", "A100_v4"
}

func parseAzure(name string) azureName {
	tier, body, _ := strings.Cut(name, "_")
	body, rest, _ := strings.Cut(body, "_")
	from := strings.IndexAny(body, "0123456789")
	if from < 0 {
		return azureName{tier: tier, letters: body, rest: rest}
	}
	to := from
	for to < len(body) && body[to] >= '0' && body[to] <= '9' {
		to++
	}
	n := azureName{tier: tier, letters: body[:from], rest: rest, features: strings.TrimLeft(body[to:], "-0123456789")}
	// In DS13-2 and GS5-8, the number is the index of a size and not its cores.
	if strings.HasPrefix(body[to:], "-") && n.letters != "DS" && n.letters != "GS" {
		n.whole = number(body[from:to])
	}
	return n
}

// series returns the name of the series as Azure writes it, such as "Eadsv5" or "NCadsA100v4". A
// promotional size belongs to the series that it promotes.
func (n azureName) series() string {
	rest := strings.TrimSuffix(strings.TrimSuffix(n.rest, "Promo"), "_")
	s := n.letters + n.features
	for part := range strings.SplitSeq(rest, "_") {
		if len(part) > 1 { // the "2" in Standard_M96ds_2_v3 is a size
			s += part
		}
	}
	if n.tier == "Basic" {
		return "Basic" + s
	}
	return s
}

// category returns the letters before the number, without the S that distinguished the first series
// with premium disks from those without them.
func (n azureName) category() string {
	if len(n.letters) == 2 {
		return strings.TrimSuffix(n.letters, "S")
	}
	return n.letters
}

// generation returns the number after the "v", or "" for the first generation.
func (n azureName) generation() string {
	for part := range strings.SplitSeq(n.rest, "_") {
		if v, ok := strings.CutPrefix(part, "v"); ok {
			return v
		}
	}
	return ""
}

// labelsAKS returns the labels that the kubelet and the node provisioning of AKS set on every node
// of type t, ascending by key.
func labelsAKS(t *policy.InstanceType, n azureName, memoryMiB int64) []policy.Label {
	all := make([]policy.Label, 0, 9)
	all = append(all,
		label("karpenter.azure.com/sku-cpu", t.VCPU),
		policy.Label{Key: "karpenter.azure.com/sku-family", Value: t.Category},
	)
	if t.Capacity.GPU > 0 {
		all = append(all,
			label("karpenter.azure.com/sku-gpu-count", t.Capacity.GPU),
			policy.Label{Key: "karpenter.azure.com/sku-gpu-name", Value: t.GPUName},
		)
	}
	all = append(all,
		label("karpenter.azure.com/sku-memory", memoryMiB),
		policy.Label{Key: "karpenter.azure.com/sku-name", Value: t.Name},
	)
	if v := n.generation(); v != "" {
		all = append(all, policy.Label{Key: "karpenter.azure.com/sku-version", Value: v})
	}
	return append(all, common(t)...)
}
