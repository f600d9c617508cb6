package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/policy"
)

// A snapshotClock provides the times at which objects are read. It never goes back, and no time in
// a snapshot is later than the snapshot's time.
type snapshotClock struct {
	clock clock.PassiveClock

	now     policy.Time // time of the last snapshot, or of the start of the one being built
	latest  policy.Time // latest time that the clock has shown
	heard   policy.Time // time at which the current object arrived from the API server
	started bool        // a snapshot was built
}

// wall returns the time of the clock, which may go back. It needs no lock.
func (c *snapshotClock) wall() policy.Time { return policy.TimeOf(c.clock.Now()) }

// instant returns the latest time of the clock so far, which never goes back.
func (c *snapshotClock) instant() policy.Time {
	c.latest = max(c.latest, c.wall())
	return c.latest
}

// clamp limits t to [0, instant]: clocks differ, and no time may be after the snapshot.
func (c *snapshotClock) clamp(t policy.Time) policy.Time { return max(0, min(t, c.instant())) }

// deletedAt returns the time at which the deletion of an object was requested. The object must be
// terminating.
func (c *snapshotClock) deletedAt(x metav1.Object) policy.Time {
	grace := time.Duration(ptr.Deref(x.GetDeletionGracePeriodSeconds(), 0)) * time.Second
	return c.clamp(policy.TimeOf(x.GetDeletionTimestamp().Add(-grace)))
}
