package catalog

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// Rackspace publishes neither disk sizes nor limits of pods and volumes. They are modelled: the
// default pod limit of the kubelet, a small disk, and the 26 volumes that an OpenStack virtual
// machine can name, minus its root disk.
const (
	podsRackspace    = 110
	diskRackspace    = 40 * gib
	volumesRackspace = 25
)

// describeRackspace sets the fields of t that follow from the name of a server class. A name such
// as gp.vs1.medium-iad consists of category, generation, size and data centre. The category is the
// short name that pools use: gp (general purpose), ch (compute heavy), mh (memory heavy), gpu, or
// bm for bare metal, whose classes start with gp.bm and io.bm.
//
// The table deliberately has no reserve prices. Rackspace states only that each class has one and
// that the lowest is $0.001 an hour. The lowest bids that its API was observed to accept are market
// prices of that day.
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

// allocatableRackspace returns the resources left for pods. Half a core and 1 GiB are reserved on
// every node regardless of its size, as observed on nodes with 2 and with 4 cores
// (ch.vs1.medium-ord and mh.vs1.large-ord, August 2026). The thresholds of hard eviction (a tenth
// of the disk) are subtracted too.
func allocatableRackspace(capacity policy.Resources) policy.Resources {
	r := capacity
	r.CPU -= 500
	r.Memory -= gib + evictionMemory
	r.Storage -= r.Storage / 10
	return r
}
