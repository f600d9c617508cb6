package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/policy"
)

// A snapshotClock holds the instants by which objects are read. It never goes back, and
// nothing that is read by it is from after it.
type snapshotClock struct {
	clock clock.PassiveClock

	now     policy.Time // of the last snapshot, or since when the next is being built
	latest  policy.Time // the latest that the clock has shown
	heard   policy.Time // when the object that is being taken in came from the API server
	started bool        // a snapshot was built
}

// wall returns what the clock shows, which may go back. It needs no lock.
func (c *snapshotClock) wall() policy.Time { return policy.TimeOf(c.clock.Now()) }

// instant returns the time, which never goes back.
func (c *snapshotClock) instant() policy.Time {
	c.latest = max(c.latest, c.wall())
	return c.latest
}

// clamp returns t, or now where t is later: clocks differ, and nothing may be from
// after the snapshot.
func (c *snapshotClock) clamp(t policy.Time) policy.Time { return max(0, min(t, c.instant())) }

// deletedAt returns when an object that is being deleted was asked to go.
func (c *snapshotClock) deletedAt(x metav1.Object) policy.Time {
	grace := time.Duration(ptr.Deref(x.GetDeletionGracePeriodSeconds(), 0)) * time.Second
	return c.clamp(policy.TimeOf(x.GetDeletionTimestamp().Add(-grace)))
}
