package input

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// All is the word for all embedded scenarios, all policies or all windows.
const All = "all"

// Hunted is the word for the embedded scenarios in which a policy was found to perform badly.
const Hunted = "hunted"

// setAside is the length of the start of a trace that windows counted over the whole trace omit:
// constants are chosen on the start of a recording, and a warm-up requires prices before the first
// window.
const setAside = 7 * 24 * time.Hour

// windowsMax is the maximum number of a window in --windows; higher numbers are mistakes.
const windowsMax = 100_000

// A WindowRange selects the windows to run.
type WindowRange struct {
	// numbers are the indexes of the windows, from 0. all selects every window.
	numbers []int
	all     bool

	// whole reports whether windows are counted over the whole trace after its first week, instead
	// of from --from or the scenario's start.
	whole bool

	// weekly selects the weeks of the trace if it has enough and neither the user nor the scenario
	// sets a start, or else window 0 only.
	weekly bool
}

// weekly returns [scenarios.Scenario.FirstWeek] of sc on the trace.
func (o *opened) weekly(sc *scenarios.Scenario, stride time.Duration) policy.Time {
	from, to := o.span()
	return sc.FirstWeek(from, to, stride)
}

// ParseWindows parses a list of windows in the format of [ranges.Numbers], or all.
func ParseWindows(s string) (WindowRange, error) {
	if s == All {
		return WindowRange{all: true, whole: true}, nil
	}
	r := WindowRange{whole: !ranges.Counts(s)}
	numbers, err := ranges.Numbers(s, windowsMax)
	for _, n := range numbers {
		if n < 1 || n > windowsMax {
			return r, fmt.Errorf("%q: %d is not a window from 1 to %d", s, n, windowsMax)
		}
		r.numbers = append(r.numbers, int(n)-1)
	}
	return r, err
}

// places yields the indexes of the windows.
func (r *WindowRange) places(yield func(int) bool) {
	for i := 0; r.all || i < len(r.numbers); i++ {
		place := i
		if !r.all {
			place = r.numbers[i]
		}
		if !yield(place) {
			return
		}
	}
}

// begin returns the start of window 0 of sc on a trace: the time from the user, else from the
// scenario. Without either, it is the first midnight after [setAside] for windows counted over the
// whole trace, else the first of the trace's weeks, or the first time of a trace with too few
// weeks.
func (r WindowRange) begin(asked policy.Time, sc *scenarios.Scenario, on *opened) policy.Time {
	from, _ := on.span()
	if at := cmp.Or(asked, sc.Start); at != 0 {
		return at
	}
	if r.whole {
		return scenarios.Midnight(from.Add(setAside))
	}
	return cmp.Or(on.weekly(sc, sc.Week()), from)
}
