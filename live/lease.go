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

// ErrSuperseded means that another replica leads. A replica that gets it must stop without further
// writes.
var ErrSuperseded = errors.New("another replica leads")

// LeaseName is the name of the Lease for leader election.
const LeaseName = "spotter-leader"

// A Lease is the Lease of the leader. Leader election alone does not prevent a leader that was
// suspended from acting after another replica was elected, so [permit.Authority] checks the Lease
// before each write.
type Lease struct {
	client coordinationv1.LeasesGetter
	lock   *resourcelock.LeaseLock
	clock  clock.PassiveClock

	// duration is how long the Lease is valid after a renewal. margin is the part of it that must
	// remain when a write starts: a leader with less time left should have stopped.
	duration, margin time.Duration
}

// NewLease returns the Lease configured by cfg. Its client has its own timeout, which is shorter
// than the time within which a leader must renew.
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

// Fence reads the Lease from the API server and returns the time until which no other replica can
// lead, zero without leader election. It returns [ErrSuperseded] if another replica leads or the
// remaining time is too short. No write may last beyond the returned time.
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
