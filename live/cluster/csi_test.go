package cluster_test

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// csiNode returns a CSINode whose drivers report the given numbers of volumes; a driver with a
// number below 0 reports no limit.
func csiNode(name string, drivers map[string]int32) *storagev1.CSINode {
	x := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for driver, n := range drivers {
		d := storagev1.CSINodeDriver{Name: driver}
		if n >= 0 {
			d.Allocatable = &storagev1.VolumeNodeResources{Count: &n}
		}
		x.Spec.Drivers = append(x.Spec.Drivers, d)
	}
	return x
}

// How many volumes a node takes is what its drivers say, as long as they do: its
// network interfaces take attachments away from what its type would take.
func TestVolumesByTheDriversOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		drivers map[string]int32
		want    int32
	}{
		"block devices":       {map[string]int32{"ebs.csi.aws.com": 22}, 22},
		"block devices first": {map[string]int32{"ebs.csi.aws.com": 22, "fsx.csi.aws.com": 8}, 22},
		"others":              {map[string]int32{"a.example": 9, "b.example": 7}, 7},
		"no number":           {map[string]int32{"efs.csi.aws.com": -1}, 25},
		"none yet":            {map[string]int32{"ebs.csi.aws.com": 0}, 25},
		"no driver":           {nil, 25},
	} {
		l := newLab(t, capacityPool("p"), csiNode("n", c.drivers), node("n"))
		if got := nodeIn(t, l.observe(0), "n").VolumesMax; got != c.want {
			t.Errorf("%s: a node takes %d volumes, want %d", name, got, c.want)
		}
	}
	// The driver registers after the node has joined, learns more, and goes.
	l := newLab(t, capacityPool("p"), node("n"), node("other"))
	l.observe(0)
	for _, n := range []int32{22, 19} {
		l.put(csiNode("n", map[string]int32{"ebs.csi.aws.com": n}))
		if got := nodeIn(t, l.observe(0), "n").VolumesMax; got != n {
			t.Errorf("a node whose driver takes %d volumes takes %d", n, got)
		}
	}
	l.remove(csiNode("n", nil))
	s := l.observe(0)
	if a, b := nodeIn(t, s, "n").VolumesMax, nodeIn(t, s, "other").VolumesMax; a != 25 || b != 25 {
		t.Errorf("nodes without a driver take %d and %d volumes, want those of their type", a, b)
	}
}
