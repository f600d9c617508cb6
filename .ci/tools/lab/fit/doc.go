// Package fit fits the laws of package generate to recordings: [Fit] those of
// prices, [Estimate] that of when a node could be had, which [Join] draws
// for the markets of a trace.
package fit

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

const (
	day = policy.Time(24 * time.Hour / time.Millisecond)

	// yearHours is a year in hours.
	yearHours = 365.25 * 24
)
