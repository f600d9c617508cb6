package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrSuperseded says that another replica leads. Who meets it ends without doing
// anything more.
var ErrSuperseded = errors.New("another replica leads")

// LeaseName is the name of the lease that replicas compete for.
const LeaseName = "spotter-leader"

// A Lease is the leader's. Election alone does not keep a leader that was asleep
// from acting after another was elected, so that [permit.Authority] asks it before each
// write.
type Lease struct {
	client coordinationv1.LeasesGetter
	lock   *resourcelock.LeaseLock
	clock  clock.PassiveClock

	// duration is how long the lease lasts, and margin how much of it must be left for a
	// write to begin: a leader that has less should have stopped.
	duration, margin time.Duration
}

// NewLease returns the lease of cfg. The client has a timeout of its own, shorter
// than the time in which a leader must renew.
func NewLease(cfg *Config, r *rest.Config, c clock.PassiveClock) (*Lease, error) {
	quick := rest.CopyConfig(r)
	quick.Timeout = cfg.RenewDeadline / 2
	client, err := coordinationv1.NewForConfig(quick)
	if err != nil {
		return nil, fmt.Errorf("client of the lease: %w", err)
	}
	return &Lease{
		client: client, duration: cfg.LeaseDuration, margin: cfg.LeaseDuration - cfg.RenewDeadline, clock: c,
		lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: cfg.Namespace, Name: LeaseName}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: cfg.Identity},
		},
	}, nil
}

// Fence returns until when no other replica can lead, zero without leader election, and
// [ErrSuperseded] once another does or too little of the lease is left, as the API server
// has it at this moment. No write may last beyond that instant.
func (l *Lease) Fence(ctx context.Context) (until time.Time, err error) {
	if l == nil {
		return time.Time{}, nil
	}
	got, err := l.client.Leases(l.lock.LeaseMeta.Namespace).Get(ctx, l.lock.LeaseMeta.Name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the lease before acting: %w", err)
	}
	holder := ""
	if got.Spec.HolderIdentity != nil {
		holder = *got.Spec.HolderIdentity
	}
	if got.Spec.RenewTime != nil {
		until = got.Spec.RenewTime.Add(l.duration)
	}
	if holder != l.lock.LockConfig.Identity {
		return time.Time{}, fmt.Errorf("the lease is held by %q: %w", holder, ErrSuperseded)
	}
	if !l.clock.Now().Before(until.Add(-l.margin)) {
		return time.Time{}, fmt.Errorf("the lease was not renewed in time and ends at %v: %w",
			until.UTC().Format(time.RFC3339), ErrSuperseded)
	}
	return until, nil
}
