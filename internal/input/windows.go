package input

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// All is the name of all embedded scenarios, all policies or all windows.
const All = "all"

// Hunted is the name of the embedded scenarios in which a policy was found to do badly.
const Hunted = "hunted"

// setAside is the first part of a trace, which windows counted over the whole trace leave out:
// constants are chosen on the start of a recording, and a warm-up needs prices before the first
// window.
const setAside = 7 * 24 * time.Hour

// windowsMax bounds --windows: more are a mistake.
const windowsMax = 100_000

// A WindowRange says which windows are run.
type WindowRange struct {
	// numbers are their places, counted from 0. all means every window.
	numbers []int
	all     bool

	// whole says that they are counted over the whole trace after its first
	// week, and not from --from or the scenario's start.
	whole bool

	// weekly says that they are the weeks of the trace if it has enough and neither
	// the user nor the scenario says when to begin, and else window 0 alone.
	weekly bool
}

// The default windows of a comparison, where a trace is long enough for them: enough for intervals
// over windows, each at the same hour of the same day of the week.
const (
	weeksDefault = 12
	week         = 7 * 24 * time.Hour
)

// weekly returns the start of the first of [weeksDefault] windows of sc on a trace that start
// stride apart. It is a midnight, after a warm-up that has prices; 0 if the trace is too short for
// all.
func (o *opened) weekly(sc *scenarios.Scenario, stride time.Duration) policy.Time {
	from, to := o.span()
	start := midnight(from.Add(sc.WarmUp))
	if sc.CoveredBy(o.path, from, to, start.Add((weeksDefault-1)*stride)) != nil {
		return 0
	}
	return start
}

// weekOf returns the time between the starts of windows of sc that are weeks of a trace.
func weekOf(sc *scenarios.Scenario) time.Duration { return max(week, sc.Duration) }

// midnight returns the first midnight in UTC that is not before t.
func midnight(t policy.Time) policy.Time {
	const day = policy.Time(24 * time.Hour / time.Millisecond)
	return (t + day - 1) / day * day
}

// ParseWindows reads a list of windows as [ranges.Numbers] does, or all.
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

// places yields the places of the windows.
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

// FirstWindow returns when sc is run on t where neither the user nor the scenario says.
func FirstWindow(sc *scenarios.Scenario, t *trace.Trace) policy.Time {
	return WindowRange{}.begin(0, sc, &opened{path: t.Name, whole: t})
}

// begin returns when window 0 of sc starts on a trace: the time that the user sets, else that of
// the scenario. Without either it is the first midnight after [setAside] for windows counted over
// the whole trace, else the first of the trace's weeks, or the first time of a trace that has too
// few.
func (r WindowRange) begin(asked policy.Time, sc *scenarios.Scenario, on *opened) policy.Time {
	from, _ := on.span()
	if at := cmp.Or(asked, sc.Start); at != 0 {
		return at
	}
	if r.whole {
		return midnight(from.Add(setAside))
	}
	return cmp.Or(on.weekly(sc, weekOf(sc)), from)
}
