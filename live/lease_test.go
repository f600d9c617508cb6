package live

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// apiErrors are the ways in which an API server can fail that say nothing of another
// leader.
func apiErrors() []error {
	r := schema.GroupResource{Resource: "things"}
	return []error{
		apierrors.NewTooManyRequests("slow down", 1), apierrors.NewInternalError(errors.New("etcd")), apierrors.NewServerTimeout(r, "update", 1),
		apierrors.NewUnauthorized("the token expired"), apierrors.NewForbidden(r, "x",
			errors.New("RBAC")), apierrors.NewServiceUnavailable("starting"),
		context.DeadlineExceeded, io.ErrUnexpectedEOF,
	}
}

// TestRule14Fence lets nothing be done once another replica holds the lease, or ours
// has run out.
func TestRule14Fence(t *testing.T) {
	clock := clocktesting.NewFakeClock(t0)
	holder, renewed := "replica-a", t0
	reads := 0
	var failure error
	kube := kubefake.NewClientset()
	kube.PrependReactor("get", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
		reads++
		return true, &coordination.Lease{Spec: coordination.LeaseSpec{HolderIdentity: &holder,
			RenewTime: &metav1.MicroTime{Time: renewed}}}, failure
	})
	l := &Lease{client: kube.CoordinationV1(), duration: 15 * time.Second, margin: 5 * time.Second, clock: clock,
		lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "spotter", Name: LeaseName}, LockConfig: resourcelock.ResourceLockConfig{Identity: "replica-a"},
		}}
	ctx := context.Background()
	if until, err := l.Fence(ctx); err != nil || reads != 1 || !until.Equal(t0.Add(15*time.Second)) {
		t.Fatalf("until %v, %v after %d reads", until, err, reads)
	}
	clock.Step(10*time.Second - 1)
	if _, err := l.Fence(ctx); err != nil {
		t.Errorf("renewed in time: %v", err)
	}
	reads = 1
	clock.Step(1) // a write that starts now could still be under way when another leads
	if _, err := l.Fence(ctx); !errors.Is(err, ErrSuperseded) || reads != 2 {
		t.Errorf("a lease that ran out: %v after %d reads", err, reads)
	}
	renewed = clock.Now()
	if _, err := l.Fence(ctx); err != nil {
		t.Errorf("renewed: %v", err)
	}
	holder = "replica-b"
	if _, err := l.Fence(ctx); !errors.Is(err, ErrSuperseded) {
		t.Errorf("held by another: %v", err)
	}
	holder = "replica-a"
	for _, failure = range apiErrors() {
		if _, err := l.Fence(ctx); !errors.Is(err, failure) || errors.Is(err, ErrSuperseded) {
			t.Errorf("%v: %v", failure, err)
		}
	}
	var none *Lease
	if _, err := none.Fence(ctx); err != nil {
		t.Errorf("without election: %v", err)
	}
}

// TestRule14FencedStep does nothing of a plan when the lease is lost before it is saved,
// or between saving and acting, and ends.
func TestRule14FencedStep(t *testing.T) {
	w := newFixture(t, 3, interceptor.Funcs{})
	w.decide = everything
	var lost error
	w.fence = func(context.Context) error { return lost }
	c := w.controller(t)
	w.take()
	decideOnly(t, c)
	w.take()
	lost = ErrSuperseded
	settle(t, c)
	if _, err := c.step(context.Background(), nil); !errors.Is(err, ErrSuperseded) {
		t.Errorf("the step says %v", err)
	}
	if got := w.take(); len(got) != 0 {
		t.Errorf("it did %v", got)
	}
	if r := <-c.waker.wakes; r != wakeLease {
		t.Errorf("who met the other leader asks for a step because of %q", r)
	}
	lost = context.DeadlineExceeded
	if _, err := c.step(context.Background(), nil); !errors.Is(err, lost) || errors.Is(err, ErrSuperseded) {
		t.Errorf("without knowing who leads the step says %v", err)
	}
	settle(t, c)
	if got := w.take(); len(got) != 0 {
		t.Errorf("without knowing who leads it did %v", got)
	}
	lost = nil
	w.clock.Step(time.Minute)
	step(t, c)
	if got := w.take(); !slices.Equal(got, []string{"steer 0.5", "launch a", "launch b", "drain n000"}) {
		t.Errorf("leading again it did %v", got)
	}
}
