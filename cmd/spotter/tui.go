package main

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

	"github.com/spotter-dev/spotter/cmd/spotter/tui"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// shownMax is how many policies one screen plays: each holds its whole run in
// memory.
const shownMax = 6

// tuiFlags are the flags of tui.
type tuiFlags struct {
	market
	policies string
	seed     uint64
	runs     []string
	live     string
	since    time.Duration
	terminal tui.Terminal

	// warnings are said when the screen has gone.
	warnings []string
}

func (p *program) tuiCommand() *cobra.Command {
	var f tuiFlags
	c := &cobra.Command{
		Use:   "tui [SCENARIO]",
		Short: "Play a simulated week on the screen",
		Long: "tui plays a scenario under several policies in the same weather, and on-demand\n" +
			"beside them. The shown time can be paused, stepped by event or decision and set\n" +
			"to any moment, while the runs are simulated as fast as they can be. Panes show\n" +
			"the nodes, the markets, the savings, the workloads, the decisions with their\n" +
			"reasons and dollars, and the budgets. Press ? for all keys.\n\n" +
			"Without a SCENARIO it is " + defaultScenario + ". With --run it plays what sim --record wrote.\n" +
			"With --live it follows the record of a running controller: the screen stands at the\n" +
			"last decision and goes on with it, and can be set to any moment before.",
		Example: "  spotter tui\n" +
			"  spotter tui squeeze --policies portfolio,static:share=0.7 --seed 7\n" +
			"  spotter tui --run steps\n" +
			"  spotter tui --live /var/lib/spotter/record",
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeScenarios,
		RunE:              func(c *cobra.Command, args []string) error { return p.tui(c.Context(), &f, args) },
	}
	flags := c.Flags()
	f.register(flags)
	flags.StringVar(&f.policies, "policies", "portfolio,spotvortex", "policies to play, `NAME[:key=value…],…`; the first two stand side by side")
	flags.Uint64Var(&f.seed, "seed", 1, "seed `N` of the weather")
	flags.StringArrayVar(&f.runs, "run", nil, "play the recording in the folder `DIR` that sim --record wrote; may be given twice")
	flags.StringVar(&f.live, "live", "", "follow the record in the folder `DIR` that a controller writes")
	flags.DurationVar(&f.since, "since", liveSince, "with --live begin `TIME` before now; 0 with the whole record")
	flags.StringVar(&f.terminal.Color, "color", "auto", "colours `N`: "+strings.Join(tui.Colors, ", "))
	flags.StringVar(&f.terminal.Background, "background", "auto", "what lies behind them, `B`: "+strings.Join(tui.Backgrounds, ", "))
	complete(c, "policies", registry.Names())
	complete(c, "color", tui.Colors)
	complete(c, "background", tui.Backgrounds)
	return c
}

func (p *program) tui(ctx context.Context, f *tuiFlags, args []string) error {
	if err := f.terminal.Check(); err != nil {
		return wrong(err, "run `spotter tui --help`")
	}
	var (
		title string
		play  func(context.Context, func(any))
		err   error
	)
	if f.live != "" || f.flags.Changed("live") {
		title, play, err = f.follow(args)
	} else if f.flags.Changed("since") {
		err = wrong(errors.New("--since: it is for --live"), "leave it out")
	} else if f.runs != nil {
		title, play, err = f.recordings(args)
	} else {
		title, play, err = p.fresh(f, args)
	}
	if err != nil {
		return err
	}
	if err := p.onTerminal(&f.terminal); err != nil {
		return err
	}
	err = tui.Show(ctx, &f.terminal, title, play)
	p.warn(map[string]bool{}, f.warnings)
	return err
}

// onTerminal finds the terminal that the screen is for.
func (p *program) onTerminal(t *tui.Terminal) error {
	const next = "run it in a terminal; for output that can be piped there are `spotter sim` and `spotter eval`"
	out, ok := p.stdout.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return wrong(errors.New("tui: the output is not a terminal"), next)
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return wrong(errors.New("tui: the input is not a terminal"), next)
	}
	t.In, t.Out = os.Stdin, out
	return nil
}

// recordings returns what plays the recordings of --run. They are opened at once,
// so that a folder that is none is said before the screen is there, and read while
// it is.
func (f *tuiFlags) recordings(args []string) (string, func(context.Context, func(any)), error) {
	const next = "run `spotter tui --help`"
	given := slices.ContainsFunc([]string{"policies", "seed", "trace", "from", "intensity"}, f.flags.Changed)
	switch {
	case len(args) > 0 || given:
		return "", nil, wrong(errors.New("--run: a recording has its own scenario, prices, policy and seed"), "leave SCENARIO and the other flags out, or leave --run out")
	case len(f.runs) > 2:
		return "", nil, wrong(fmt.Errorf("--run: %d recordings are more than the two that stand side by side", len(f.runs)), next)
	}
	var opened []*record.Recording
	for _, dir := range f.runs {
		if err := notInBucket("--run", dir); err != nil {
			return "", nil, err
		}
		r, err := record.Open(dir)
		if err != nil {
			return "", nil, broken(fmt.Errorf("--run: %w", err))
		}
		opened, f.warnings = append(opened, r), append(f.warnings, r.Warnings...)
	}
	if a, b := &opened[0].Meta, &opened[len(opened)-1].Meta; a.Scenario != b.Scenario || a.Seed != b.Seed {
		return "", nil, wrong(fmt.Errorf("--run: %s is of %s, seed %d, and %s of %s, seed %d", f.runs[0], a.Scenario, a.Seed, f.runs[1], b.Scenario, b.Seed),
			"only recordings of one scenario and seed have met the same weather; play others one by one")
	}
	play := func(_ context.Context, send func(any)) {
		var o tui.Opened
		for i, r := range opened {
			t, err := timeline.Load(r)
			if err != nil {
				send(tui.Failed{Err: broken(fmt.Errorf("--run %s: %w", f.runs[i], err))})
				return
			}
			o.Runs = append(o.Runs, tui.Run{Name: r.Meta.Policy, Timeline: t, Synthetic: ofEmbedded(&r.Meta)})
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

// ofEmbedded reports whether a recording is of a run on an embedded trace, all of
// which are synthetic: a recording has its prices and not where they came from, but
// the command that made it says so.
func ofEmbedded(m *record.Meta) bool {
	sc, err := scenarios.Load(m.Scenario)
	if err != nil || m.Note == "" || !slices.Contains(scenarios.Names(), m.Scenario) {
		return false
	}
	return !strings.Contains(m.Note, "--trace") && (sc.Trace == "" || strings.HasPrefix(sc.Trace, "embedded:"))
}

// fresh returns what plays new runs of a scenario. What can be wrong with the call
// is said before the screen is there; prices are read while it is.
func (p *program) fresh(f *tuiFlags, args []string) (string, func(context.Context, func(any)), error) {
	name := defaultScenario
	if len(args) > 0 {
		name = args[0]
	}
	sc, err := loadScenario(name)
	if err != nil {
		return "", nil, err
	}
	if _, err := f.options(); err != nil {
		return "", nil, err
	}
	specs, err := parsePolicies(f.policies)
	if err != nil {
		return "", nil, wrong(fmt.Errorf("--policies: %w", err), policyAdvice)
	}
	if len(specs) > shownMax {
		return "", nil, wrong(fmt.Errorf("--policies: %d are more than the %d that one screen plays", len(specs), shownMax), "name fewer; `spotter eval` compares any number")
	}
	for _, spec := range specs {
		if spec == registry.Manifest {
			continue // what the manifests name is known with the world
		}
		if _, err := newRunner().policy(spec, &scenarios.World{}); err != nil {
			return "", nil, err
		}
	}
	play := func(ctx context.Context, send func(any)) { f.play(ctx, send, sc, name, specs) }
	return sc.Name, play, nil
}

// play prepares the world, sends the runs before they begin, and does them all at
// once; then it looks for what no policy costs less than.
func (f *tuiFlags) play(ctx context.Context, send func(any), sc *scenarios.Scenario, name string, specs []string) {
	w, err := f.bind(sc, traces{}, 0)
	if err != nil {
		send(tui.Failed{Err: err})
		return
	}
	f.warnings = w.Warnings
	with := specs
	if !slices.Contains(specs, eval.OnDemand) {
		with = append(slices.Clone(specs), eval.OnDemand)
	}
	var o tui.Opened
	r, configs := newRunner(), make([]sim.Config, len(with))
	lines := make([]*timeline.Timeline, len(with))
	for i, spec := range with {
		configs[i], err = r.config(eval.Job{Case: eval.Case{Scenario: name, World: w}, Policy: spec, Seed: f.seed})
		if err != nil {
			send(tui.Failed{Err: err})
			return
		}
		lines[i] = timeline.New(configs[i].Stage, spec, f.seed)
		lines[i].Watch(&configs[i])
		if i < len(specs) {
			o.Runs = append(o.Runs, tui.Run{Name: spec, Timeline: lines[i]})
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
		send(tui.Bounded{Cost: eval.Oracle(w).Cost})
	}
}

// guarded does a run. A panic of it is the run's error: the terminal must be given
// back as it was.
func guarded(ctx context.Context, cfg sim.Config) (r *sim.Result, err error) {
	defer func() {
		if bug := recover(); bug != nil {
			r, err = nil, fmt.Errorf("panic: %v", bug)
		}
	}()
	return sim.Run(ctx, cfg)
}
