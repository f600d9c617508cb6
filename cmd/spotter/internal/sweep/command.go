// Package sweep implements the command that searches for good values of settings.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/progress"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/shard"
	"github.com/spotter-dev/spotter/eval/sweep"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/scenarios"
)

// A call is a call of the command sweep.
type call struct {
	input.CaseFlags
	form cli.Form
	out  string

	plan *sweep.Plan
}

// Command returns the command sweep.
func Command(p *cli.Program) *cobra.Command {
	var f call
	c := &cobra.Command{
		Use:   "sweep PLAN",
		Short: "Look for good values of a policy's parameters and a scenario's fields",
		Long: "sweep runs the candidates of a PLAN on the same prices, weather and seeds, drops those\n" +
			"that are worse beyond chance, and runs what it chooses again on fresh seeds. A plan:\n\n" +
			planText + "\n" +
			"parameter is one of the policy's (spotter policies NAME), set a field of the scenario\n" +
			"as `spotter whatif --set` writes it. values are listed; a range is FROM..TO[/STEP] or\n" +
			"FROM..TO@COUNT, as in `spotter whatif --sweep`. method is grid (every combination),\n" +
			"random or latin-hypercube, which make as many points as the plan says, by its seed (1\n" +
			"where it states none). conditions are fields that are not yours to choose: demand, faults,\n" +
			"the market. A race is run for each combination of them.\n\n" +
			"A race has up to 3 rungs: --seeds, as many more, and twice as many more. After each,\n" +
			"candidates drop out that lose to the leader by the tests and the tolerance of\n" +
			"`eval --compare`; the chance that the best one drops is at most 5%. Of those left the\n" +
			"one with the greatest median of net savings is chosen. It has been lucky too, so its\n" +
			"result on fresh seeds counts, with its interval. If no candidate is better there, keep\n" +
			"what you have.\n\n" +
			"The folder --out gets runs.parquet (a row per run: DuckDB, pandas), the front of savings\n" +
			"over outage minutes and over evictions as SVG and on a page, the scenario chosen, and\n" +
			"every run, by its content: the same call resumes a stopped sweep, and equal calls write\n" +
			"equal files.\n\n" +
			"Exit code: 0 good, 2 the call or the plan is wrong, 3 it broke or was stopped.",
		Example: "  spotter sweep plan.yaml\n" +
			"  spotter sweep plan.yaml --trace prices --windows 8 --seeds 6 --out sweep\n" +
			"  duckdb -c \"SELECT candidate, median(net_savings_pct) FROM 'sweep/runs.parquet' WHERE NOT fresh GROUP BY ALL\"",
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), p, args[0]) },
	}
	flags := c.Flags()
	f.RegisterPrices(flags)
	f.RegisterCases(flags, "12")
	flags.StringVar(&f.out, "out", "", "write into the folder `DIR` (default: the name of the plan and .sweep)")
	f.form.Register(c)
	f.form.RegisterDetails(c)
	cli.Complete(c, "truth", input.TruthNames())
	return c
}

// planText is the example plan in the help text.
const planText = `  apiVersion: spotter.dev/v1alpha1
  kind: Sweep
  metadata: {name: web}
  spec:
    scenario: web-week            # an embedded name, or a file next to the plan
    policy: static                # with the parameters that all candidates have
    method: latin-hypercube
    points: 24
    parameters:
      - {parameter: share, range: 0..1}
      - {set: capacitypool/general.spec.disruption.consolidateAfter, range: 1m..4h}
    conditions:
      - {set: scenario/web-week.spec.market.intensity, values: [1, 20]}
    rungs: 3
    fresh: 20
`

const planAdvice = "fix the plan; `spotter sweep --help` shows one"

func (f *call) run(ctx context.Context, p *cli.Program, file string) error {
	c, err := f.config(ctx, p, file)
	if err != nil {
		return err
	}
	store, err := f.open()
	if err != nil {
		return err
	}
	c.Store = store
	shown := progress.Show(ctx, p, "preparing")
	defer func() { shown.Close(p) }()
	step := ""
	c.Progress = func(s string, done, total int) {
		if s != step {
			step = s
			shown.Enter(s)
		}
		shown.Send(progress.Counted{Done: done, Total: total})
	}
	r, err := sweep.Sweep(ctx, *c)
	switch {
	case ctx.Err() != nil:
		return &cli.StoppedError{Err: errors.New("stopped before every run was done"),
			Next: fmt.Sprintf("%d runs are kept in %s; the same call resumes", store.kept(), f.out)}
	case err != nil && store.kept() == 0:
		return cli.Invalid(err, planAdvice)
	case err != nil:
		return err
	}
	return f.write(p, r)
}

// config reads the plan and the flags.
func (f *call) config(ctx context.Context, p *cli.Program, file string) (*sweep.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Invalid(err, "give the file of a plan; `spotter sweep --help` shows one")
	}
	if f.plan, err = sweep.ReadPlan(file, text); err != nil {
		return nil, cli.Invalid(err, planAdvice)
	}
	seeds, err := f.ParsedSeeds()
	if err == nil {
		err = f.ReadWindows()
	}
	if err != nil {
		return nil, err
	}
	if f.out == "" {
		f.out = f.plan.Name + ".sweep"
	}
	c := &sweep.Config{Plan: f.plan, Scenario: f.plan.Spec.Scenario, Seeds: seeds}
	if !scenarios.Embedded(c.Scenario) && !filepath.IsAbs(c.Scenario) {
		if beside := filepath.Join(filepath.Dir(file), c.Scenario); exists(beside) {
			c.Scenario = beside
		}
	}
	if c.Text, _, err = f.ReadScenario(ctx, p, c.Scenario); err != nil {
		return nil, fmt.Errorf("%s: spec.scenario: %w", file, err)
	}
	c.Bind = func(text []byte) ([]eval.Case, error) { return f.WindowsOfText(text, c.Scenario) }
	checking := runner.New()
	build := shard.Build{Version: p.Version}
	if build.Engine, err = checking.Engine(ctx, p.Version); err != nil {
		return nil, err
	}
	c.NewKey = func() func(eval.Job) (string, error) { return (&shard.Keys{Build: build, Files: checking.FilesOf}).Of }
	c.Check = func(spec string, cases []eval.Case) error {
		_, err := checking.Policy(spec, cases[0].Bound)
		return err
	}
	c.NewRunner = func() eval.Runner { return runner.New().Run }
	return c, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
