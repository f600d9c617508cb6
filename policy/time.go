package policy

import "time"

// Time is a time in milliseconds since 1970-01-01 UTC. Zero means not set.
//
// It is an integer, so that times compare and subtract exactly, use eight bytes, and contain no
// time zone.
type Time int64

// TimeOf returns t in milliseconds, rounded down.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Add returns the time d after t. The duration d is truncated to milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Millisecond) }

// Sub returns the duration t − u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Millisecond }

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// String formats t in RFC 3339 with milliseconds, or "-" when it is not set.
func (t Time) String() string {
	if t == 0 {
		return "-"
	}
	return t.Std().Format("2006-01-02T15:04:05.000Z")
}
