package permit

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// claim has the pool claimed by a release, as its controller does.
func (b *bench) claim(t *testing.T, namespace string) {
	t.Helper()
	var p v1alpha1.CapacityPool
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
		t.Fatal(err)
	}
	p.Status.Controller = namespace
	if err := b.client.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

// leadFrom makes the lease of a release, renewed now, and returns how it is changed.
func (b *bench) leadFrom(t *testing.T, namespace, holder string) func(holder string, renewed time.Time) {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leader"}}
	if err := b.client.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	change := func(holder string, renewed time.Time) {
		t.Helper()
		l.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: ptr.To(metav1.NewMicroTime(renewed)),
			LeaseDurationSeconds: ptr.To(int32(15))}
		if err := b.client.Update(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	change(holder, b.clock.Now())
	return change
}

// unclaimed returns how many pools must be claimed.
func (b *bench) unclaimed(t *testing.T) int {
	t.Helper()
	b.Forget()
	_, all, err := b.Claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestClaims: a pool is changed by the release that has claimed it, which another may not
// while a controller of the first leads.
func TestClaims(t *testing.T) {
	b := newBench(t, policy.ModeActive, func(c *Config) { c.Lease = "leader" })
	act, undo, enforce := Act(t.Context(), "web"), Undo(t.Context()), Enforce(t.Context())
	b.wants(act, t, Unclaimed)
	b.wants(undo, t, Active)
	if n := b.unclaimed(t); n != 1 {
		t.Errorf("%d pools are to be claimed", n)
	}
	b.claim(t, "spotter")
	b.wants(act, t, Active)
	if n := b.unclaimed(t); n != 0 {
		t.Errorf("%d pools of ours are to be claimed", n)
	}

	b.claim(t, "other")
	b.wants(act, t, Unclaimed) // it has no lease
	change := b.leadFrom(t, "other", "other-0")
	for _, ctx := range []context.Context{act, undo, enforce, Act(t.Context(), "web")} {
		b.wants(ctx, t, Claimed)
	}
	if n := b.unclaimed(t); n != 0 {
		t.Errorf("%d pools of a rival are to be claimed", n)
	}
	change("other-0", b.clock.Now().Add(-28*time.Second)) // its time is over, and it may be about to lead again
	b.wants(act, t, Claimed)
	change("other-0", b.clock.Now().Add(-30*time.Second))
	b.wants(act, t, Unclaimed)
	b.wants(enforce, t, Active)
	change("", b.clock.Now()) // it has been given up
	if n := b.unclaimed(t); n != 1 {
		t.Errorf("%d pools of a release that has ended are to be claimed", n)
	}
}

// TestClaimsAreReadNow: a release that leads again a moment after the last reading keeps its pools.
func TestClaimsAreReadNow(t *testing.T) {
	b := newBench(t, policy.ModeActive, func(c *Config) { c.Lease = "leader" })
	b.claim(t, "other")
	change := b.leadFrom(t, "other", "other-0")
	change("other-0", b.clock.Now().Add(-time.Minute))
	b.wants(Act(t.Context(), "web"), t, Unclaimed)
	change("other-1", b.clock.Now())
	if rival, unclaimed, err := b.Claims(t.Context()); rival != "other" || len(unclaimed) != 0 || err != nil {
		t.Errorf("the rival is %q, and %d pools are to be claimed, %v", rival, len(unclaimed), err)
	}
}

// TestClaimUnreadable: a rival whose lease cannot be read may lead.
func TestClaimUnreadable(t *testing.T) {
	b := newBench(t, policy.ModeActive, func(c *Config) { c.Lease = "leader" })
	b.claim(t, "other")
	b.lease = errors.New("forbidden")
	b.wants(Act(t.Context(), "web"), t, Claimed)
	b.lease = nil
	b.wants(Act(t.Context(), "web"), t, Unclaimed)
}

// TestClaimsOfShadow: who changes nothing claims nothing.
func TestClaimsOfShadow(t *testing.T) {
	b := newBench(t, policy.ModeShadow, func(c *Config) { c.Lease = "leader" })
	if n := b.unclaimed(t); n != 0 {
		t.Errorf("%d pools are to be claimed", n)
	}
	b.wants(Act(t.Context(), "web"), t, Shadow)
}

// TestClaimsOfTwo: of two releases that lead and have each claimed some pools, since one
// ended amid its claims, one acts and claims the rest, and the other does not.
func TestClaimsOfTwo(t *testing.T) {
	for _, first := range []string{"spotter", "other"} {
		b := newBench(t, policy.ModeActive, func(c *Config) { c.Lease = "leader" })
		cfg := b.cfg
		cfg.Namespace = "other"
		both := map[string]*Authority{"spotter": b.Authority, "other": New(cfg, b.client)}
		batch := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Status: v1alpha1.CapacityPoolStatus{Controller: first}}
		if err := b.client.Create(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		b.claim(t, map[string]string{"spotter": "other", "other": "spotter"}[first])
		for namespace := range both {
			b.leadFrom(t, namespace, namespace+"-0")
		}
		for namespace, a := range both {
			rival, unclaimed, err := a.Claims(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wantRival, wantUnclaimed := first, 0
			if namespace == first {
				wantRival, wantUnclaimed = "", 1
			}
			if rival != wantRival || len(unclaimed) != wantUnclaimed {
				t.Errorf("batch is of %s: release %s has the rival %q and %d pools to claim", first, namespace, rival, len(unclaimed))
			}
		}
	}
}
