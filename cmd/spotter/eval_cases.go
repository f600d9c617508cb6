package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// everything is the name that stands for all embedded scenarios, all policies
// or all windows.
const everything = "all"

// setAside is the beginning of a trace in which windows counted over the whole
// of it do not lie: who chooses constants by looking at a recording starts with
// it, and a warm-up needs prices before the first window.
const setAside = 7 * 24 * time.Hour

// windowsMax bounds --windows, as seedsMax does --seeds.
const windowsMax = 100_000

// A windowRange says which windows are run.
type windowRange struct {
	first, last int // counted from 0; last is −1 for as many as there are

	// whole says that they are counted over the whole trace after its first
	// week, and not from --from or the scenario's start.
	whole bool
}

// parseWindows reads N, A-B or all.
func parseWindows(s string) (windowRange, error) {
	if s == everything {
		return windowRange{0, -1, true}, nil
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		from, to = "1", s
	}
	first, firstErr := strconv.Atoi(from)
	last, lastErr := strconv.Atoi(to)
	switch {
	case firstErr != nil || lastErr != nil:
		return windowRange{}, fmt.Errorf("%q is neither a number of windows nor a range A-B of them nor %s", s, everything)
	case first < 1:
		return windowRange{}, fmt.Errorf("%q begins before window 1", s)
	case last < first:
		return windowRange{}, fmt.Errorf("%q holds no window", s)
	case last > windowsMax:
		return windowRange{}, fmt.Errorf("%q goes beyond window %d", s, windowsMax)
	}
	return windowRange{first - 1, last - 1, isRange}, nil
}

// begin returns when window 0 of sc begins on a trace whose first time is from:
// where the user says, else where the scenario does, else for windows counted
// over the whole trace at the first midnight after the week that is set aside.
// Zero leaves it to the scenario and the trace.
func (r windowRange) begin(asked, scenario, from policy.Time) policy.Time {
	if asked != 0 || scenario != 0 || !r.whole {
		return asked
	}
	const day = policy.Time(24 * time.Hour / time.Millisecond)
	return (from.Add(setAside) + day - 1) / day * day
}

// cases loads and binds every window of every scenario, and says what was left
// out.
func (p *program) cases(ctx context.Context, f *evalFlags, args []string) ([]eval.Case, error) {
	windows, err := parseWindows(f.windows)
	if err != nil {
		return nil, wrong(fmt.Errorf("--windows: %w", err), "give 1 or more, a range as 26-45, or all")
	}
	if f.every < 0 {
		return nil, wrong(fmt.Errorf("--every: %v is not a length of time", f.every), "give 168h for a window a week")
	}
	names, all := scenariosOf(args)
	opened, warned := traces{}, map[string]bool{}
	var cases []eval.Case
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("loading %s: %w", name, err)
		}
		sc, err := loadScenario(name)
		if err != nil {
			return nil, err
		}
		of, err := f.windowsOf(sc, name, opened, windows)
		if all && errors.Is(err, scenarios.ErrNoMarket) {
			p.warn(warned, []string{fmt.Sprintf("%s left out: %v", name, err)})
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range of {
			p.warn(warned, of[i].World.Warnings)
		}
		cases = append(cases, of...)
	}
	return cases, nil
}

// scenariosOf returns the scenarios to compare on, and whether some of them are
// there because all were asked for: of those that cannot be run on a trace the
// others must not fail.
func scenariosOf(args []string) (names []string, all bool) {
	if len(args) == 0 {
		return []string{defaultScenario}, false
	}
	for _, a := range args {
		if a != everything {
			names = append(names, a)
			continue
		}
		all = true
		for _, name := range scenarios.Names() {
			if !strings.HasPrefix(name, "bench-") {
				names = append(names, name)
			}
		}
	}
	return names, all
}

// windowsOf binds the windows of one scenario.
func (f *evalFlags) windowsOf(sc *scenarios.Scenario, name string, opened traces, r windowRange) ([]eval.Case, error) {
	stride := f.every
	if stride == 0 {
		stride = sc.Duration
	}
	if stride < sc.Duration {
		return nil, wrong(fmt.Errorf("--every: windows of %s are %v long and would lie over each other every %v", name, sc.Duration, stride), "give the length of a window or more")
	}
	var cases []eval.Case
	for window := r.first; r.last < 0 || window <= r.last; window++ {
		w, err := f.bindAt(sc, opened, r, time.Duration(window)*stride)
		if r.last < 0 && len(cases) > 0 && errors.Is(err, scenarios.ErrTooShort) {
			return cases, nil
		}
		if err != nil {
			return nil, err
		}
		cases = append(cases, eval.Case{Scenario: name, Window: window, World: w})
	}
	return cases, nil
}
