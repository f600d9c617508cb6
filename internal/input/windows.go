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
	// numbers are their places, counted from 0; all asks for as many as there are.
	numbers []int
	all     bool

	// whole says that they are counted over the whole trace after its first
	// week, and not from --from or the scenario's start.
	whole bool

	// weekly says that they are the weeks of the trace if it has enough and neither
	// the user nor the scenario says when to begin, and else window 0 alone.
	weekly bool
}

// The windows of a comparison on which nothing is said, where a trace has them: so many that there
// are intervals over them, each at the same hour of the same day of the week.
const (
	weeksDefault = 12
	week         = 7 * 24 * time.Hour
)

// weekly returns the start of the first of [weeksDefault] windows of sc on a trace that lie so far
// apart. It is a midnight, after a warm-up that has prices; 0 where the trace is too short for all.
func (o *opened) weekly(sc *scenarios.Scenario, stride time.Duration) policy.Time {
	from, to := o.span()
	start := midnight(from.Add(sc.WarmUp))
	if sc.CoveredBy(o.path, from, to, start.Add((weeksDefault-1)*stride)) != nil {
		return 0
	}
	return start
}

// weekOf returns how far apart the windows of sc lie that are weeks of a trace.
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

// begin returns when window 0 of sc begins on a trace: when the user says, else when the scenario
// does, else for windows counted over the whole trace at the first midnight after the week that is
// set aside, else with the first of the trace's weeks, or at its first time where it has too few.
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
