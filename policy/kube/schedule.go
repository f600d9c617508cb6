package kube

import (
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/spotter-dev/spotter/policy"
)

// InForce reports whether b is in force at t. A schedule that cannot be read counts in the
// stricter sense: its budget always holds, its window never opens.
func InForce(b *policy.DisruptionBudget, t policy.Time) bool {
	for _, w := range b.Windows {
		if open, err := covers(w.Schedule, w.Duration, t); err == nil && open {
			return false
		}
	}
	if b.To != 0 && (t < b.From || t >= b.To) {
		return false
	}
	if b.Schedule == "" {
		return true
	}
	on, err := covers(b.Schedule, b.Duration, t)
	return err != nil || on
}

// covers reports whether an interval of the given length, begun by the schedule (cron, in
// UTC), covers t.
func covers(schedule string, length time.Duration, t policy.Time) (bool, error) {
	s, err := cron.ParseStandard(schedule)
	if err != nil {
		return false, err
	}
	// The first begin after (t − length) is at or before t exactly when an interval is on.
	begin := s.Next(t.Add(-length).Std())
	if begin.IsZero() {
		return false, errors.New("it never comes due")
	}
	return !begin.After(t.Std()), nil
}
