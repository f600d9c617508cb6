package scenarios

import (
	"cmp"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Weeks is the number of windows of a comparison on a trace that is long enough: sufficient for
// intervals over windows, each at the same time of the same day of the week.
const Weeks = 12

// Week returns the time between the starts of weekly windows of sc: a week, or its duration where
// that is longer.
func (sc *Scenario) Week() time.Duration { return max(7*24*time.Hour, sc.Duration) }

// FirstWeek returns the start of the first of [Weeks] windows of sc that start stride apart on
// prices from one time to another. It is a midnight in UTC after a warm-up with prices; 0 if there
// are too few prices.
func (sc *Scenario) FirstWeek(from, to policy.Time, stride time.Duration) policy.Time {
	start := Midnight(from.Add(sc.WarmUp))
	if sc.CheckCovered(start.Add((Weeks-1)*stride), "", from, to) != nil {
		return 0
	}
	return start
}

// FirstWindow returns the default start of a run of sc on t: that of the scenario, else of its
// first week, else of the trace.
func (sc *Scenario) FirstWindow(t *trace.Trace) policy.Time {
	return cmp.Or(sc.Start, sc.FirstWeek(t.From, t.To, sc.Week()), t.From)
}

// Midnight returns the first midnight in UTC that is not before t.
func Midnight(t policy.Time) policy.Time {
	const day = policy.Time(24 * time.Hour / time.Millisecond)
	return (t + day - 1) / day * day
}
