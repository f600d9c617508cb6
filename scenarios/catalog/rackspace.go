package catalog

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// Rackspace publishes neither disks nor limits of pods and volumes; these are
// modelled: the kubelet's own pod limit, a small disk, and the 26 volumes that
// a virtual machine of OpenStack can name, less its root disk.
const (
	podsRackspace    = 110
	diskRackspace    = 40 * gib
	volumesRackspace = 25
)

// describeRackspace fills in what the name of a server class contains, as in gp.vs1.medium-iad:
// category, generation, size and data centre. The category is the short name that pools request: gp
// (general purpose), ch (compute heavy), mh (memory heavy), gpu, and bm for bare metal, whose
// classes start with gp.bm and io.bm.
//
// The table deliberately has no reserve price. Rackspace says that there is one for each class and
// that the lowest is $0.001 an hour, and publishes no more. The lowest bids that its API was seen
// to accept are market prices of their day.
func describeRackspace(t *policy.InstanceType, _ []string, memoryMiB int64) {
	t.Family, _, _ = strings.Cut(t.Name, "-")
	if i := strings.LastIndex(t.Family, "."); strings.Count(t.Family, ".") > 1 {
		t.Family = t.Family[:i]
	}
	category, generation, _ := strings.Cut(t.Family, ".")
	if strings.HasPrefix(generation, "bm") {
		category = "bm"
	}
	t.Category, t.Arch = category, "amd64"
	t.VolumesMax = volumesRackspace
	t.Capacity.Memory = reportedByKernel(memoryMiB)
	t.Capacity.Storage = diskRackspace
	t.Capacity.Pods = podsRackspace
	t.Allocatable = allocatableRackspace(t.Capacity)
	t.Labels = append(common(t), policy.Label{Key: "servers.ngpc.rxt.io/class", Value: t.Name})
}

// allocatableRackspace returns what is left to pods: half a core and 1 GiB are
// kept back on every node, whatever its size, as nodes of 2 and of 4 cores were
// seen to do (ch.vs1.medium-ord and mh.vs1.large-ord, August 2026), and the
// thresholds of hard eviction, of the disk a tenth.
func allocatableRackspace(capacity policy.Resources) policy.Resources {
	r := capacity
	r.CPU -= 500
	r.Memory -= gib + evictionMemory
	r.Storage -= r.Storage / 10
	return r
}
