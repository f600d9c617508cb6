package input

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// All is the name that stands for all embedded scenarios, all policies
// or all windows.
const All = "all"

// Hunted is the name that stands for the embedded scenarios in which a policy was found to do badly.
const Hunted = "hunted"

// setAside is the beginning of a trace in which windows counted over the whole
// of it do not lie: who chooses constants by looking at a recording starts with
// it, and a warm-up needs prices before the first window.
const setAside = 7 * 24 * time.Hour

// windowsMax bounds --windows: more are a mistake.
const windowsMax = 100_000

// A WindowRange says which windows are run.
type WindowRange struct {
	First, Last int // counted from 0; Last is −1 for as many as there are

	// whole says that they are counted over the whole trace after its first
	// week, and not from --from or the scenario's start.
	whole bool
}

// ParseWindows reads N, A-B or all.
func ParseWindows(s string) (WindowRange, error) {
	if s == All {
		return WindowRange{0, -1, true}, nil
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		from, to = "1", s
	}
	first, firstErr := strconv.Atoi(from)
	last, lastErr := strconv.Atoi(to)
	switch {
	case firstErr != nil || lastErr != nil:
		return WindowRange{}, fmt.Errorf("%q is neither a number of windows nor a range A-B of them nor %s", s, All)
	case first < 1:
		return WindowRange{}, fmt.Errorf("%q begins before window 1", s)
	case last < first:
		return WindowRange{}, fmt.Errorf("%q holds no window", s)
	case last > windowsMax:
		return WindowRange{}, fmt.Errorf("%q goes beyond window %d", s, windowsMax)
	}
	return WindowRange{first - 1, last - 1, isRange}, nil
}

// begin returns when window 0 of sc begins on a trace whose first time is from:
// where the user says, else where the scenario does, else for windows counted
// over the whole trace at the first midnight after the week that is set aside.
// Zero leaves it to the scenario and the trace.
func (r WindowRange) begin(asked, scenario, from policy.Time) policy.Time {
	if asked != 0 || scenario != 0 || !r.whole {
		return asked
	}
	const day = policy.Time(24 * time.Hour / time.Millisecond)
	return (from.Add(setAside) + day - 1) / day * day
}
