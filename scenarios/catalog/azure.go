package catalog

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// podsAKS is the pod limit of a node of AKS by default with Azure CNI Overlay,
// the network that AKS proposes (Azure documentation, "IP address planning in
// AKS").
const podsAKS = 250

// diskAKS is the disk of a node that AKS provisions by itself, by default.
const diskAKS = 128 * gib

// describeAzure fills in what the name of a size says.
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

// disksAzure returns how many data disks a size attaches: two for each of its
// cores, at most 32, as most series do (Azure documentation of the series;
// some, and most of the sixth generation, attach more). A constrained size has
// as many as the whole one.
func disksAzure(cores int64) int32 { return int32(min(2*cores, 32)) }

// cpuAKS are the shares of processors that AKS keeps back: 60 thousandths of a
// core with one, 100 with two, 140 with four and 10 more for each after that.
var cpuAKS = []grade{{1000, 600}, {2000, 400}, {4000, 200}, {1 << 62, 100}}

// allocatableAKS returns what is left to pods by the rules of AKS 1.29 and later
// (Azure documentation, "Node resource reservations in AKS"): of the memory the
// lesser of a quarter and 50 MiB with 20 MiB for each pod of the limit, and the
// thresholds of hard eviction, of the disk a tenth.
func allocatableAKS(capacity policy.Resources, memoryMiB int64) policy.Resources {
	r := capacity
	r.CPU -= graded(r.CPU, cpuAKS)
	r.Memory -= min(50+20*capacity.Pods, memoryMiB/4)*mib + evictionMemory
	r.Storage -= r.Storage / 10
	return r
}

// An azureName is the name of a size taken apart, as in
// Standard_E16-4ads_v5: tier, letters, number, features and what follows.
type azureName struct {
	tier     string // "Standard" or "Basic"
	letters  string // "E"
	whole    int64  // 16: the cores of the whole size, 0 if it is whole
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
	// The number of DS13-2 and GS5-8 counts sizes and not cores.
	if strings.HasPrefix(body[to:], "-") && n.letters != "DS" && n.letters != "GS" {
		n.whole = number(body[from:to])
	}
	return n
}

// series returns the name of the series as Azure writes it: "Eadsv5",
// "NCadsA100v4". A size that is a promotion belongs to the series promoted.
func (n azureName) series() string {
	rest := strings.TrimSuffix(strings.TrimSuffix(n.rest, "Promo"), "_")
	s := n.letters + n.features
	for part := range strings.SplitSeq(rest, "_") {
		if len(part) > 1 { // "2" of Standard_M96ds_2_v3 is a size
			s += part
		}
	}
	if n.tier == "Basic" {
		return "Basic" + s
	}
	return s
}

// category returns the letters before the number, without the S that distinguished the first series
// with premium disks from those without.
func (n azureName) category() string {
	if len(n.letters) == 2 {
		return strings.TrimSuffix(n.letters, "S")
	}
	return n.letters
}

// generation returns the number after the v, empty in the first generation.
func (n azureName) generation() string {
	for part := range strings.SplitSeq(n.rest, "_") {
		if v, ok := strings.CutPrefix(part, "v"); ok {
			return v
		}
	}
	return ""
}

// labelsAKS returns those that the kubelet and AKS's node provisioning put on
// every node of t, ascending by key.
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
