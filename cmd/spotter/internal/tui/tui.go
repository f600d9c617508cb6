// Package tui implements the command that shows runs on the screen. It opens or simulates the runs;
// package screen draws them.
package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/screen"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// shownMax is the maximum number of policies on one screen. Each run is completely in memory.
const shownMax = 6

// storySeed is the seed of [input.DefaultScenario] that is played without a SCENARIO: the first in
// which karpenter has an outage of more than a minute and portfolio has no outage.
const storySeed = 2

// tuiFlags are the flags of the command tui.
type tuiFlags struct {
	input.MarketFlags
	policies string
	seed     uint64
	runs     []string
	live     string
	since    time.Duration
	terminal screen.Terminal

	// atStory starts playback at the story of the runs.
	atStory bool

	// warnings are printed after the screen is closed.
	warnings []string
}

// Command returns the command tui.
func Command(p *cli.Program) *cobra.Command {
	var f tuiFlags
	c := &cobra.Command{
		Use:   "tui [SCENARIO|RESULTS]",
		Short: "Play a simulated week on the screen",
		Long: "tui plays a scenario under several policies and on demand, in the same weather.\n" +
			"The time shown can be paused, stepped by event or decision and set to any moment,\n" +
			"while the runs are simulated at full speed. Panes show the nodes, the markets, the\n" +
			"savings, the workloads, the decisions with their reasons and dollars, and the\n" +
			"budgets. Press ? for all keys and : for commands.\n\n" +
			"Without a SCENARIO it is " + input.DefaultScenario + ", shortly before an outage that one policy has and\n" +
			"the other has not. With --run it plays what sim --record wrote.\n" +
			"RESULTS is a file of spotter eval --out results.json or results.parquet: its runs are\n" +
			"listed, and the one chosen is simulated again.\n" +
			"With --live it follows the record of a running controller: the screen shows the last\n" +
			"decision and its age, and can be set to any moment before.",
		Example: "  spotter tui\n" +
			"  spotter tui squeeze --policies portfolio,static:share=0.7 --seed 7\n" +
			"  spotter tui results.json\n" +
			"  spotter tui --run steps\n" +
			"  spotter tui --live /var/lib/spotter/record",
		Args:              cli.Arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: input.CompleteScenarios,
		RunE:              func(c *cobra.Command, args []string) error { return run(c.Context(), p, &f, args) },
	}
	flags := c.Flags()
	f.Register(flags)
	input.PoliciesVar(flags, &f.policies, "policies", "portfolio,karpenter",
		"policies to play, `NAME[:key=value…],…`; the first two stand side by side")
	flags.Uint64Var(&f.seed, "seed", 1, fmt.Sprintf("seed `N` of the weather; without a SCENARIO it is %d unless given",
		storySeed))
	flags.StringArrayVar(&f.runs, "run", nil,
		"play the recording in the folder `DIR` that sim --record wrote; may be given twice")
	flags.StringVar(&f.live, "live", "", "follow the record in the folder `DIR` that a controller writes")
	flags.DurationVar(&f.since, "since", liveSince, "with --live begin `TIME` before now; 0 with the whole record")
	flags.StringVar(&f.terminal.Color, "color", "auto", "colours `N`: "+strings.Join(screen.Colors, ", "))
	flags.StringVar(&f.terminal.Theme, "theme", "auto", "which colours, `NAME`: "+strings.Join(screen.Themes,
		", ")+"; auto heeds "+screen.ThemeVariable)
	cli.CompleteBy(c, "policies", input.CompletePolicies)
	cli.Complete(c, "color", screen.Colors)
	cli.Complete(c, "theme", screen.Themes)
	return c
}

func run(ctx context.Context, p *cli.Program, f *tuiFlags, args []string) error {
	if err := f.terminal.Check(); err != nil {
		return cli.Invalid(err, "run `spotter tui --help`")
	}
	var (
		title string
		play  func(context.Context, func(any))
		err   error
	)
	if f.live != "" || f.Flags.Changed("live") {
		title, play, err = f.follow(args)
	} else if f.Flags.Changed("since") {
		err = cli.Invalid(errors.New("--since: it is for --live"), "leave it out")
	} else if f.runs != nil {
		title, play, err = f.recordings(args)
	} else {
		title, play, err = f.named(ctx, args)
	}
	if err != nil {
		return err
	}
	if err := onTerminal(p, &f.terminal); err != nil {
		return err
	}
	err = screen.Show(ctx, &f.terminal, title, play)
	p.Warn(map[string]bool{}, f.warnings)
	return err
}

// onTerminal sets the terminal for the screen. It returns an error if input or output is not a
// terminal.
func onTerminal(p *cli.Program, t *screen.Terminal) error {
	const next = "run it in a terminal; for output that can be piped there are `spotter sim` and `spotter eval`"
	out, ok := cli.File(p.Stdout)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return cli.Invalid(errors.New("tui: the output is not a terminal"), next)
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return cli.Invalid(errors.New("tui: the input is not a terminal"), next)
	}
	t.In, t.Out = os.Stdin, out
	return nil
}

// recordings returns the function that plays the recordings of --run. It opens them at once, so
// that a folder that is not a recording is reported before the screen appears; the function reads
// them while the screen is shown.
func (f *tuiFlags) recordings(args []string) (string, func(context.Context, func(any)), error) {
	const next = "run `spotter tui --help`"
	given := slices.ContainsFunc([]string{"policies", "seed", "trace", "from", "intensity", "node-fee"}, f.Flags.Changed)
	switch {
	case len(args) > 0 || given:
		return "", nil, cli.Invalid(errors.New("--run: a recording has its own scenario, prices, policy and seed"),
			"leave SCENARIO and the other flags out, or leave --run out")
	case len(f.runs) > 2:
		return "", nil, cli.Invalid(fmt.Errorf("--run: %d recordings are more than the two that stand side by side",
			len(f.runs)), next)
	}
	var opened []*record.Recording
	for _, dir := range f.runs {
		if err := input.RefuseBucket("--run", dir); err != nil {
			return "", nil, err
		}
		r, err := record.OpenPlain(dir)
		if err != nil {
			return "", nil, input.RecordingError(fmt.Errorf("--run: %w", err))
		}
		opened, f.warnings = append(opened, r), append(f.warnings, r.Warnings...)
	}
	if a, b := &opened[0].Meta, &opened[len(opened)-1].Meta; a.Scenario != b.Scenario || a.Seed != b.Seed {
		return "", nil, cli.Invalid(fmt.Errorf("--run: %s is of %s, seed %d, and %s of %s, seed %d", f.runs[0], a.Scenario,
			a.Seed, f.runs[1], b.Scenario, b.Seed),
			"only recordings of one scenario and seed have met the same weather; play others one by one")
	}
	play := func(_ context.Context, send func(any)) {
		var o screen.Opened
		for i, r := range opened {
			t, err := timeline.Load(r)
			if err != nil {
				send(screen.Failed{Err: input.RecordingError(fmt.Errorf("--run %s: %w", f.runs[i], err))})
				return
			}
			_, from, _ := t.Span()
			o.Runs = append(o.Runs, screen.Run{Name: r.Meta.Policy, Timeline: t,
				Synthetic: input.OnSyntheticTrace(&r.Meta, from)})
			if r.Meta.Policy == eval.OnDemand && len(opened) > 1 {
				o.Baseline = t
			}
		}
		send(o)
	}
	title := filepath.Base(f.runs[0])
	if s := opened[0].Meta.Scenario; s != "" {
		title = s
	}
	return title, play, nil
}

// named returns the function that plays the runs of a results file or of a scenario.
func (f *tuiFlags) named(ctx context.Context, args []string) (string, func(context.Context, func(any)), error) {
	if len(args) > 0 {
		if r, err := input.ReadResults(args[0]); r != nil || err != nil {
			if err != nil {
				return "", nil, err
			}
			return f.results(args[0], r)
		}
	}
	return f.fresh(ctx, args)
}

// fresh returns the function that plays new runs of a scenario. Errors of the call are returned
// before the screen appears; the function reads prices while the screen is shown.
func (f *tuiFlags) fresh(ctx context.Context, args []string) (string, func(context.Context, func(any)), error) {
	name := input.DefaultScenario
	if len(args) > 0 {
		name = args[0]
	}
	if f.atStory = len(args) == 0; f.atStory && !f.Flags.Changed("seed") {
		f.seed = storySeed
	}
	sc, err := input.LoadScenario(ctx, name)
	if err != nil {
		return "", nil, err
	}
	if _, err := f.Options(); err != nil {
		return "", nil, err
	}
	specs, err := input.ParsePolicies(f.policies)
	if err != nil {
		return "", nil, cli.Invalid(fmt.Errorf("--policies: %w", err), input.PolicyAdvice)
	}
	if len(specs) > shownMax {
		return "", nil, cli.Invalid(fmt.Errorf("--policies: %d are more than the %d that one screen plays", len(specs),
			shownMax), "name fewer; `spotter eval` compares any number")
	}
	for _, spec := range specs {
		if spec == registry.Manifest {
			continue // the policies in the manifests are unknown before the scenario is bound
		}
		if _, err := runner.New().Policy(spec, &scenarios.BoundScenario{}); err != nil {
			return "", nil, err
		}
	}
	play := func(ctx context.Context, send func(any)) { f.play(ctx, send, sc, name, specs) }
	return sc.Name, play, nil
}

// play prepares the scenario, sends the runs before they start, and simulates them concurrently.
// Then it computes the lower bound on the cost of any policy.
func (f *tuiFlags) play(ctx context.Context, send func(any), sc *scenarios.Scenario, name string, specs []string) {
	w, err := f.Bind(sc, input.Traces{}, 0)
	if err != nil {
		send(screen.Failed{Err: err})
		return
	}
	f.warnings = w.Warnings
	with := specs
	if !slices.Contains(specs, eval.OnDemand) {
		with = append(slices.Clone(specs), eval.OnDemand)
	}
	o := screen.Opened{AtStory: f.atStory}
	r, configs := runner.New(), make([]sim.Config, len(with))
	lines := make([]*timeline.Timeline, len(with))
	for i, spec := range with {
		configs[i], err = r.Config(eval.Job{Case: eval.Case{Scenario: name, Bound: w}, Policy: spec, Seed: f.seed})
		if err != nil {
			send(screen.Failed{Err: err})
			return
		}
		lines[i] = timeline.New(configs[i].Prepared, spec, f.seed)
		lines[i].Watch(&configs[i])
		if i < len(specs) {
			o.Runs = append(o.Runs, screen.Run{Name: spec, Timeline: lines[i]})
		}
		if spec == eval.OnDemand {
			o.Baseline = lines[i]
		}
	}
	send(o)
	var all sync.WaitGroup
	for i := range configs {
		all.Go(func() { lines[i].Finish(guarded(ctx, configs[i])) })
	}
	all.Wait()
	if ctx.Err() == nil {
		send(screen.Bounded{Cost: oracle.Of(w).Cost})
	}
}

// guarded executes a run. It returns a panic as the run's error, because the terminal must be
// restored.
func guarded(ctx context.Context, cfg sim.Config) (r *sim.Result, err error) {
	defer func() {
		if bug := recover(); bug != nil {
			r, err = nil, fmt.Errorf("panic: %v", bug)
		}
	}()
	return sim.Run(ctx, cfg)
}
