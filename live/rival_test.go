package live

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/permit"
)

// release makes the controller of another release in the cluster of w, with pools that must
// be claimed.
func (w *fixture) release(t testing.TB, namespace string) *Controller {
	t.Helper()
	w.cfg.Namespace, w.cfg.Identity = namespace, namespace+"-0"
	may := permit.DefaultConfig()
	may.Mode, may.Namespace, may.KillSwitch, may.Fresh, may.Clock, may.Lease = w.cfg.Mode, namespace, w.cfg.KillSwitch, 0, w.clock, LeaseName
	w.parts.Authority = permit.New(may, w.parts.Reader)
	c, err := New(w.cfg, w.parts)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.takeOver(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTwoReleases: of two releases in one cluster the first acts on the pools, and the
// other does once the first no longer leads.
func TestTwoReleases(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.flip(t, "false")
	w.decide = drains
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "first", Name: LeaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("first-0"), RenewTime: ptr.To(metav1.NewMicroTime(w.clock.Now())), LeaseDurationSeconds: ptr.To(int32(15)),
	}}
	if err := w.client.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	first, second := w.release(t, "first"), w.release(t, "second")
	step(t, first)
	if got := w.take(); len(got) == 0 {
		t.Error("the first release does nothing")
	}
	if got := w.pool(t).Status.Controller; got != "first" {
		t.Errorf("the pool is claimed by %q", got)
	}
	before := w.pool(t).ResourceVersion
	step(t, second)
	if got := w.take(); len(got) != 0 {
		t.Errorf("the second release did %v", got)
	}
	if p := w.pool(t); p.Status.Controller != "first" || p.ResourceVersion != before {
		t.Errorf("the second release wrote the status: %+v", p.Status)
	}
	w.clock.Step(15 * time.Second) // the first may be about to lead again
	step(t, second)
	if got := w.take(); len(got) != 0 {
		t.Errorf("at the end of the first one's lease the second release did %v", got)
	}
	w.clock.Step(15 * time.Second)
	step(t, second)
	if got := w.take(); len(got) == 0 {
		t.Error("the second release does nothing once the first has ended")
	}
	if got := w.pool(t).Status.Controller; got != "second" {
		t.Errorf("the pool is claimed by %q", got)
	}
}
