// Package week does one comparison in one embedded scenario, as
// `spotter eval SCENARIO --policies POLICY --windows 1 --seeds SEED-SEED` does, with nothing but
// embedded data: no file, no flag and no bundle of models. The page docs/web.md runs it in a browser.
package week

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

// ErrChoice is wrapped by the error about a choice that there is not.
var ErrChoice = errors.New("there is no such choice")

// A Choice is what is compared: Policy with on-demand and the baseline, in the first window of
// Scenario, under the weather of Seed.
type Choice struct {
	Scenario, Policy string
	Seed             uint64
}

// A Result is a comparison as it is shown.
type Result struct {
	// Verdict is the result in a sentence, Table the figures as HTML, and Text what `spotter eval`
	// prints without a terminal.
	Verdict, Table, Text string

	// Command is what repeats it.
	Command string
}

// Scenarios returns the names of the embedded scenarios that may be chosen, in order: all but those
// that measure the speed of a program.
func Scenarios() []string {
	return slices.DeleteFunc(scenarios.Names(), func(name string) bool { return strings.HasPrefix(name, "bench-") })
}

// Policies returns the names of the policies that may be chosen, in order: those that need no
// parameters, but for the one that the manifests of a scenario choose.
func Policies() []string {
	return slices.DeleteFunc(registry.Names(), func(name string) bool { return name == registry.Manifest })
}

// Compare does the runs of c and returns their result. Progress is called after every run and bound
// with how many are done. The error wraps [ErrChoice] if Scenario or Policy may not be chosen.
func Compare(ctx context.Context, c Choice, progress func(done, total int)) (*Result, error) {
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	run, err := runner(cfg.Cases[0].Bound, c.Seed)
	if err != nil {
		return nil, err
	}
	runs := len(cfg.Compared())
	total := runs + 2 // the bounds of the window and of the seed
	cfg.Progress = func(p eval.Progress) {
		if p.Step == eval.StepBounds {
			p.Done += runs
		}
		progress(p.Done, total)
	}
	report, err := eval.Run(ctx, *cfg, run)
	if err != nil {
		return nil, err
	}
	if broken := eval.Broken(report.Runs); broken != nil {
		return nil, fmt.Errorf("the run of %s broke: %w", broken.Policy, broken.Err)
	}
	answer := format.AnswerOf(report)
	var text bytes.Buffer
	if err := answer.Write(&text, format.Options{}); err != nil {
		return nil, err
	}
	return &Result{Verdict: answer.Verdicts[0].String(), Table: answer.Tables[0].HTML(), Text: text.String(),
		Command: cfg.Invocation}, nil
}

// config returns the configuration of the comparison.
func (c Choice) config() (*eval.Config, error) {
	for _, x := range []struct {
		what, name string
		known      []string
	}{{"scenario", c.Scenario, Scenarios()}, {"policy", c.Policy, Policies()}} {
		if !slices.Contains(x.known, x.name) {
			return nil, fmt.Errorf("%w: %s %q, known are %s", ErrChoice, x.what, x.name, strings.Join(x.known, ", "))
		}
	}
	sc, err := scenarios.Load(c.Scenario)
	if err != nil {
		return nil, err
	}
	tr, _, err := trace.EmbeddedNamed(cmp.Or(sc.Trace, trace.Recorded))
	if err != nil {
		return nil, err
	}
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{From: sc.FirstWindow(tr)})
	if err != nil {
		return nil, err
	}
	cfg := eval.DefaultConfig()
	cfg.Policies, cfg.Seeds = []string{c.Policy}, []uint64{c.Seed}
	cfg.Cases = []eval.Case{{Scenario: c.Scenario, Bound: w}}
	cfg.Invocation = fmt.Sprintf("spotter eval %s --policies %s --windows 1 --seeds %d-%[3]d", c.Scenario, c.Policy, c.Seed)
	return &cfg, nil
}

// runner returns what does the runs of w, which share the weather of the seed.
func runner(w *scenarios.BoundScenario, seed uint64) (eval.Runner, error) {
	prepared, err := sim.Prepare(w)
	if err != nil {
		return nil, err
	}
	drawn, err := prepared.DrawWeather(seed)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		p, err := registry.New(j.Policy, registry.Options{})
		if err != nil {
			return nil, err
		}
		f, err := models.NewClosedForm(models.DefaultConfig())
		if err != nil {
			return nil, err
		}
		return sim.Run(ctx, sim.Config{Prepared: prepared, Policy: p, Forecaster: f, Seed: j.Seed, Weather: drawn,
			OnDemandStart: j.Policy == eval.OnDemand})
	}, nil
}
