package eval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/scenarios"
)

// cases loads and binds every window of every scenario, and says what was left
// out.
func cases(ctx context.Context, p *cli.Program, f *evalFlags, args []string) ([]eval.Case, error) {
	windows, err := input.ParseWindows(f.windows)
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("--windows: %w", err), "give 1 or more, a range as 26-45, or all")
	}
	if f.every < 0 {
		return nil, cli.Invalid(fmt.Errorf("--every: %v is not a length of time", f.every), "give 168h for a window a week")
	}
	names, all := scenariosOf(args)
	opened, warned := input.Traces{}, map[string]bool{}
	var cases []eval.Case
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("loading %s: %w", name, err)
		}
		sc, err := input.LoadScenario(ctx, name)
		if err != nil {
			return nil, err
		}
		of, err := f.windowsOf(sc, name, opened, windows)
		if all && errors.Is(err, scenarios.ErrNoMarket) {
			p.Warn(warned, []string{fmt.Sprintf("%s left out: %v", name, err)})
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range of {
			p.Warn(warned, of[i].Bound.Warnings)
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
		return []string{input.DefaultScenario}, false
	}
	for _, a := range args {
		if a != input.All {
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
func (f *evalFlags) windowsOf(sc *scenarios.Scenario, name string, opened input.Traces, r input.WindowRange) ([]eval.Case, error) {
	stride := f.every
	if stride == 0 {
		stride = sc.Duration
	}
	if stride < sc.Duration {
		return nil, cli.Invalid(fmt.Errorf("--every: windows of %s are %v long and would lie over each other every %v", name, sc.Duration, stride), "give the length of a window or more")
	}
	var cases []eval.Case
	for window := r.First; r.Last < 0 || window <= r.Last; window++ {
		w, err := f.BindAt(sc, opened, r, time.Duration(window)*stride)
		if r.Last < 0 && len(cases) > 0 && errors.Is(err, scenarios.ErrTooShort) {
			return cases, nil
		}
		if err != nil {
			return nil, err
		}
		cases = append(cases, eval.Case{Scenario: name, Window: window, Bound: w})
	}
	return cases, nil
}
