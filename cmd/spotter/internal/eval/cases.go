package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/scenarios"
)

// cases loads and binds every window of every scenario, and warns about scenarios that are left
// out.
func cases(ctx context.Context, p *cli.Program, f *evalFlags, args []string) ([]eval.Case, error) {
	if err := f.ReadWindows(); err != nil {
		return nil, err
	}
	names, all := scenariosOf(args)
	warned := map[string]bool{}
	var cases []eval.Case
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("loading %s: %w", name, err)
		}
		sc, err := f.scenario(ctx, p, name)
		if err != nil {
			return nil, err
		}
		of, err := f.WindowsOf(sc, name)
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

// scenario reads a scenario. It keeps the text of a scenario that is a file.
func (f *evalFlags) scenario(ctx context.Context, p *cli.Program, name string) (*scenarios.Scenario, error) {
	if text, ok := f.texts[name]; ok {
		return input.ParseScenario(name, []byte(text))
	}
	text, sc, err := f.ReadScenario(ctx, p, name)
	if err == nil && !slices.Contains(scenarios.Names(), name) {
		if f.texts == nil {
			f.texts = map[string]string{}
		}
		f.texts[name] = string(text)
	}
	return sc, err
}

// scenariosOf returns the scenarios to compare on, and whether all were requested. In that case a
// scenario that cannot be run on a trace must not make the others fail.
func scenariosOf(args []string) (names []string, all bool) {
	if len(args) == 0 {
		return []string{input.DefaultScenario}, false
	}
	for _, a := range args {
		if a == input.Hunted {
			names = append(names, scenarios.Hunted()...)
			continue
		}
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
