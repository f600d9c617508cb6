package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

const labelAWS = "karpenter.k8s.aws/instance-"

// awsLabels are the labels that Karpenter sets on nodes by instance type (computeRequirements in
// pkg/providers/instancetype/types.go of karpenter-provider-aws v1.14.1), without their prefix. The
// value is true if only described types have the label.
var awsLabels = map[string]bool{
	"accelerator-count": true, "accelerator-manufacturer": true, "accelerator-name": true,
	"capability-flex": false, "category": false, "cpu": false, "cpu-manufacturer": true, "cpu-sustained-clock-speed-mhz": true,
	"ebs-bandwidth": true, "encryption-in-transit-supported": true, "family": false, "generation": false,
	"gpu-count": false, "gpu-manufacturer": false, "gpu-memory": true, "gpu-name": false, "hypervisor": false,
	"local-nvme": true, "memory": false, "network-bandwidth": false, "size": false, "tenancy": false,
}

const labelAzure = "karpenter.azure.com/sku-"

// azureLabels are the labels that Karpenter's provider for Azure sets on nodes by VM size and that
// [Lookup] returns, without their prefix.
var azureLabels = []string{"cpu", "family", "gpu-count", "gpu-name", "memory", "name", "version"}

// IsTypeLabel reports whether key is a label that nodes of AWS or Azure have because of their
// instance type.
func IsTypeLabel(key string) bool {
	if name, ours := strings.CutPrefix(key, labelAzure); ours {
		return slices.Contains(azureLabels, name)
	}
	name, ours := strings.CutPrefix(key, labelAWS)
	_, known := awsLabels[name]
	return ours && known
}

// Knows reports whether the labels of t determine whether its nodes have the label key. They do not
// for a few retired types that EC2 does not describe: for these the catalog has only the contents
// of price lists.
func Knows(t *policy.InstanceType, key string) bool {
	if name, ours := strings.CutPrefix(key, labelAWS); t.Provider != AWS || !ours || !awsLabels[name] {
		return true
	}
	_, described := policy.FindLabel(t.Labels, labelAWS+"cpu-manufacturer")
	return described
}

// A device is the accelerator of an instance type, as EC2 describes it.
type device struct {
	class              string // "gpu" or "accelerator"
	maker, name, count string
	memoryMiB          string // of a GPU
}

// deviceOf parses the device column. For a type that EC2 does not describe, it returns the
// accelerator in the price lists.
func deviceOf(t *policy.InstanceType, column string) (d device) {
	if f := strings.Fields(column); len(f) >= 4 {
		d = device{class: f[0], maker: f[1], name: f[2], count: f[3]}
		if len(f) > 4 {
			d.memoryMiB = f[4]
		}
	} else if t.Capacity.GPU > 0 {
		d = device{class: "gpu", maker: "nvidia", name: t.GPUName, count: label("", t.Capacity.GPU).Value}
	}
	return d
}

// labelsAWS returns the labels that the kubelet and Karpenter set on every node of type t,
// ascending by key. A label without a value is omitted, except the hypervisor, which is empty on
// bare metal.
func labelsAWS(t *policy.InstanceType, f []string, memoryMiB int64) []policy.Label {
	_, size, _ := strings.Cut(t.Name, ".")
	_, generation := split(t.Family)
	flex := "false"
	if strings.Contains(t.Family, "-flex") {
		flex = "true"
	}
	d := deviceOf(t, f[colDevice])
	all := []policy.Label{
		{Key: "capability-flex", Value: flex}, {Key: "category", Value: t.Category}, label("cpu", t.VCPU),
		{Key: "cpu-manufacturer", Value: f[colCPU]}, {Key: "cpu-sustained-clock-speed-mhz", Value: f[colMHz]},
		{Key: "ebs-bandwidth", Value: positive(f[colEBSMbps])}, {Key: "encryption-in-transit-supported",
			Value: f[colEncrypted]},
		{Key: "family", Value: t.Family}, {Key: "generation", Value: generation},
		{Key: "hypervisor", Value: hypervisor(t)}, {Key: "local-nvme", Value: positive(f[colNVMeGB])},
		label("memory", memoryMiB), {Key: "network-bandwidth", Value: positive(f[colMbps])},
		{Key: "size", Value: size}, {Key: "tenancy", Value: "default"},
	}
	if d.class != "" {
		all = append(all,
			policy.Label{Key: d.class + "-count", Value: d.count}, policy.Label{Key: d.class + "-manufacturer", Value: d.maker},
			policy.Label{Key: d.class + "-memory", Value: d.memoryMiB}, policy.Label{Key: d.class + "-name", Value: d.name})
	}
	all = slices.DeleteFunc(all, func(l policy.Label) bool { return l.Value == "" && l.Key != "hypervisor" })
	slices.SortFunc(all, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
	for i := range all {
		all[i].Key = labelAWS + all[i].Key
	}
	return append(all, common(t)...)
}

// positive returns a number of the table, or "" for 0.
func positive(field string) string {
	if field == "0" {
		return ""
	}
	return field
}

// hypervisor returns the hypervisor of an instance type, or "" on bare metal.
func hypervisor(t *policy.InstanceType) string {
	switch {
	case strings.Contains(t.Name, ".metal"):
		return ""
	case inXen(t.Family):
		return "xen"
	}
	return "nitro"
}
