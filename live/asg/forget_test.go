package asg

import (
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// TestNothingIsKeptForEver: no state is kept for pools, groups and nodes that no longer exist.
func TestNothingIsKeptForEver(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.must(w.launch("t1", policy.Spot))
	id := w.cloud.Group("web-od").Instances[0].ID
	n := w.node(id)
	w.must(w.kube.Create(w.ctx(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Spec: storagev1.VolumeAttachmentSpec{NodeName: n.Name}}))
	if err := w.backend.Release(w.ctx(), n); err == nil {
		t.Error("a node is released with a volume attached")
	}
	_ = w.backend.groups.keepHeld("web", backend.Hold(ReasonAtMin, "a test"))
	b := w.backend
	if len(b.launcher.raised) != 1 || len(b.releases.volumes) != 1 || len(b.groups.notes) != 1 {
		t.Fatalf("raised %v, volumes %v, notes %v: want one each", b.launcher.raised, b.releases.volumes, b.groups.notes)
	}
	w.poll()
	w.must(b.Cleanup(w.ctx(), nil, []string{"t1"}))
	if len(b.launcher.raised) != 1 || len(b.releases.volumes) != 1 || len(b.groups.notes) != 1 {
		t.Errorf("raised %v, volumes %v, notes %v: what is there was forgotten", b.launcher.raised, b.releases.volumes, b.groups.notes)
	}
	w.must(w.kube.Delete(w.ctx(), capacityPool("web")))
	w.must(w.kube.Delete(w.ctx(), n))
	w.cloud.DropGroup("web-spot")
	w.cloud.Advance(5 * time.Second)
	w.poll()
	w.poll() // the first still knows of the launch that the group carried
	w.must(b.Cleanup(w.ctx(), nil, nil))
	if len(b.launcher.raised) != 0 || len(b.releases.volumes) != 0 || len(b.groups.notes) != 0 {
		t.Errorf("raised %v, volumes %v, notes %v are kept", b.launcher.raised, b.releases.volumes, b.groups.notes)
	}
}
