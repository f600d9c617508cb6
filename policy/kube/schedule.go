package kube

import (
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/spotter-dev/spotter/policy"
)

// InForce reports whether b is in force at t. If a schedule is invalid, the stricter reading
// applies: a budget with an invalid schedule is always in force, and a window with one is never
// open.
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

// covers reports whether t is in an interval of the given length that starts when the schedule
// (cron, in UTC) is due. The start is inclusive, the end exclusive.
func covers(schedule string, length time.Duration, t policy.Time) (bool, error) {
	s, err := cron.ParseStandard(schedule)
	if err != nil {
		return false, err
	}
	// The first start after t − length is at or before t exactly if t is in an interval.
	begin := s.Next(t.Add(-length).Std())
	if begin.IsZero() {
		return false, errors.New("it never comes due")
	}
	return !begin.After(t.Std()), nil
}
