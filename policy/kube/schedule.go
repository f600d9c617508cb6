package kube

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/spotter-dev/spotter/policy"
)

// InForce reports whether a spell of the given length, begun by the schedule
// (cron, in UTC), covers t. Without a schedule it always does, and so it does by
// one that cannot be read: a budget that holds is the stricter reading.
func InForce(schedule string, length time.Duration, t policy.Time) bool {
	if schedule == "" {
		return true
	}
	s, err := cron.ParseStandard(schedule)
	if err != nil {
		return true
	}
	// The first begin after (t − length) is at or before t exactly when a
	// spell is on.
	return !s.Next(t.Add(-length).Std()).After(t.Std())
}
