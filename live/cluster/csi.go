package cluster

import (
	"cmp"

	storagev1 "k8s.io/api/storage/v1"
)

// A volumeLimits knows how many volumes a node takes, by its name. A node whose limit
// changes is read again.
type volumeLimits struct {
	nodes  *nodeSlots
	byNode map[string]int32
}

// blockDrivers are the drivers of the volumes that pods commonly have, by provider.
// A node says of each of its drivers how many volumes it takes, and a snapshot holds
// one number.
var blockDrivers = map[string]bool{"ebs.csi.aws.com": true, "disk.csi.azure.com": true, "pd.csi.storage.gke.io": true,
	"cinder.csi.openstack.org": true}

// csiMax returns how many volumes a node takes by what its drivers say: that of its
// block devices, else the least of any. It is 0 where none says.
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

// set takes in what the drivers of a node say.
func (l *volumeLimits) set(x *storagev1.CSINode) { l.limit(x.Name, csiMax(x)) }

func (l *volumeLimits) drop(x *storagev1.CSINode) { l.limit(x.Name, 0) }

// limit notes how many volumes a node takes, 0 where that is not known.
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
