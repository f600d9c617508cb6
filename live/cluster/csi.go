package cluster

import (
	"cmp"

	storagev1 "k8s.io/api/storage/v1"
)

// A volumeLimits contains the maximum number of volumes of nodes, by name. A node whose limit
// changes is marked to be read again.
type volumeLimits struct {
	nodes  *nodeSlots
	byNode map[string]int32
}

// blockDrivers are the drivers of common volumes, for several providers. A node has a limit for
// each of its drivers, whereas a snapshot contains one number.
var blockDrivers = map[string]bool{"ebs.csi.aws.com": true, "disk.csi.azure.com": true, "pd.csi.storage.gke.io": true,
	"cinder.csi.openstack.org": true}

// csiMax returns the maximum number of volumes of a node: the limit of its block driver, or else
// the lowest limit of its drivers. It is 0 if no driver has a limit.
func csiMax(x *storagev1.CSINode) int32 {
	block, least := int32(0), int32(0)
	for i := range x.Spec.Drivers {
		d := &x.Spec.Drivers[i]
		if d.Allocatable == nil || d.Allocatable.Count == nil || *d.Allocatable.Count <= 0 {
			continue
		}
		n := *d.Allocatable.Count
		if blockDrivers[d.Name] {
			block = n
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return cmp.Or(block, least)
}

// set updates the limit of a node from its drivers.
func (l *volumeLimits) set(x *storagev1.CSINode) { l.limit(x.Name, csiMax(x)) }

func (l *volumeLimits) drop(x *storagev1.CSINode) { l.limit(x.Name, 0) }

// limit sets the limit of a node; 0 means unknown.
func (l *volumeLimits) limit(node string, n int32) {
	if l.byNode[node] == n {
		return
	}
	if l.byNode[node] = n; n == 0 {
		delete(l.byNode, node)
	}
	if i, known := l.nodes.byName[node]; known {
		l.nodes.touch(i)
	}
}
