// Package whatif implements the command that compares the costs of changes to a scenario.
package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/progress"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/scenarios/edit"
	"github.com/spotter-dev/spotter/sim"
)

// A call is a call of the command whatif: its flags, and the inputs that it has read.
type call struct {
	input.CaseFlags
	changes  changes
	prune    bool
	asIs     string // path of the existing pools, or empty for those of the scenario
	discount float64
	form     cli.Form
	out      []string
	gates    []string

	scenario string
	text     []byte
	before   *edit.File  // content of asIs, or nil
	cases    []eval.Case // without changes
	seeds    []uint64
	sweep    string   // the setting that is swept
	notes    []string // remarks on the changes

	runner *runner.Runner
	ctx    context.Context // context of the run that a savings plan needs before all others
	first  *sim.Result     // that run, or nil before it is done
}

// Command returns the command whatif.
func Command(p *cli.Program) *cobra.Command {
	var f call
	c := &cobra.Command{
		Use:   "whatif SCENARIO",
		Short: "Show what changes to a cluster would cost: settings, NodePools, versions, Spot, a savings plan",
		Long: "whatif changes a SCENARIO, mostly one that `spotter capture` wrote, and compares every\n" +
			"variant with what runs now (the policy " + eval.CaptureBaseline + ") on the same prices, weather and seeds,\n" +
			"run by run. Each flag that changes something is a variant of its own; --with between\n" +
			"two joins them into one.\n\n" +
			"A setting is written KIND/NAME.path=value, with [2] or [key=value] for an element of a\n" +
			"list and [any.key] for a key with dots; null removes a field, and KIND/NAMESPACE/NAME\n" +
			"distinguishes two objects of one name. --sweep tries values, listed with commas\n" +
			"or as a range: FROM..TO/STEP, or FROM..TO@COUNT, at equal factors where TO is ten times\n" +
			"FROM, else at equal distances. It draws savings over evictions. Its knee is the point of\n" +
			"the convex front (what no mixture of others beats in both) that is furthest from the\n" +
			"chord between the front's ends, both axes scaled to 1. No knee is named within 0.05 of the\n" +
			"chord, nor where chance explains every change.\n\n" +
			"Ctrl-C ends it: what is finished is written, marked as incomplete.\n\n" +
			"A --gate is written as in eval, without a policy: every variant must meet it. Its baseline\n" +
			"is the scenario as it is, and net savings are those against " + eval.OnDemand + " in that, less what\n" +
			"a variant pays more in advance. It has no metrics of the oracle.\n\n" +
			"Exit code: 0 good, 1 a gate failed, 2 the call or an input is wrong, 3 it broke or was\n" +
			"stopped.",
		Example: "  spotter whatif cluster.yaml --set nodepool/default.spec.disruption.consolidateAfter=5m\n" +
			"  spotter whatif cluster.yaml --allow-spot --savings-plan 40,60 --policy portfolio\n" +
			"  spotter whatif cluster.yaml --nodepools nodepools/ --gate 'outage_delta.max <= 0' --format markdown > comment.md\n" +
			"  spotter whatif cluster.yaml --karpenter-version 1.12,1.15 --with --set deployment/web.spec.replicas=4\n" +
			"  spotter whatif web-week --sweep capacitypool/general.spec.disruption.consolidateAfter=1m..4h@5 --out frontier.svg",
		Args:              cli.Arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: input.CompleteScenarios,
		RunE:              func(c *cobra.Command, args []string) error { return f.run(c.Context(), p, args[0]) },
	}
	f.register(c)
	return c
}

// register adds the flags and their completion.
func (c *call) register(command *cobra.Command) {
	flags := command.Flags()
	c.RegisterPrices(flags)
	c.RegisterCases(flags, "10")
	c.changes.register(flags, flagSet, "string", "change a setting: `KIND/NAME.path=value`; may be repeated")
	c.changes.register(flags, flagSweep, "string",
		fmt.Sprintf("try values of a setting: `KIND/NAME.path=FROM..TO[/STEP]`, durations, percents or numbers, %d of them "+
			"unless a step or @COUNT is given", ranges.CountDefault))
	c.changes.register(flags, flagPools, "string",
		"replace NodePools, node classes and CapacityPools by those of the same kind and name in `DIR|FILE`, and add new "+
			"ones; may be repeated")
	flags.BoolVar(&c.prune, "prune", false, "let --nodepools remove what DIR|FILE lacks, of each kind that it has")
	flags.StringVar(&c.asIs, "as-is-nodepools", "",
		"give the scenario as it is the pools of `DIR|FILE`, as those of the base of a pull request; --nodepools then "+
			"removes what it lacks of them")
	c.changes.register(flags, flagKarpenter, "string",
		"follow the rules of a version of Karpenter, `VERSION,…`, each a variant")
	c.changes.register(flags, flagSpot, "", "let every pool buy Spot in addition to on demand")
	c.changes.register(flags, flagPolicy, "string", "run a policy of Spotter, `NAME[:key=value…],…`, each a variant")
	c.changes.register(flags, flagPlan, "string",
		"commit to a savings plan that covers `PERCENT,…` of what "+eval.CaptureBaseline+" pays on demand in the first window and seed, each a variant")
	c.changes.register(flags, flagWith, "", "join the change before it and the one after it into one variant")
	flags.Float64Var(&c.discount, "discount-1y", eval.DefaultConfig().Discount1y,
		"`SHARE` of the on-demand price that the savings plan takes off")
	c.form.Register(command, formMarkdown)
	c.form.RegisterDetails(command)
	flags.StringArrayVar(&c.out, "out", nil,
		"also write `FILE`: .svg or .png with the picture of a sweep, .md, .json, .yaml or .txt; may be repeated")
	flags.StringArrayVar(&c.gates, "gate", nil,
		"fail unless every variant meets `EXPR`, as METRIC.STAT OP VALUE; may be repeated")
	cli.CompleteBy(command, "gate", input.CompleteGates)
	cli.CompleteBy(command, flagPolicy, input.CompletePolicies)
	cli.CompleteBy(command, flagSet, completeSettings)
	cli.CompleteBy(command, flagSweep, completeSettings)
	cli.Complete(command, "truth", input.TruthNames())
}

func (c *call) run(ctx context.Context, p *cli.Program, name string) error {
	w, err := c.compare(ctx, p, name)
	if err != nil {
		if errors.Is(err, eval.ErrConfig) {
			return cli.Invalid(err, "run `spotter whatif --help`")
		}
		return err
	}
	if err := c.write(p, w); err != nil {
		return err
	}
	return result(w, c.form.IsText())
}

// compare creates the variants and runs them all.
func (c *call) compare(ctx context.Context, p *cli.Program, name string) (*eval.WhatIf, error) {
	groups, err := c.changes.checked()
	if err == nil {
		err = c.checkOut(groups)
	}
	if err != nil {
		return nil, err
	}
	gates, err := c.parsedGates()
	if err != nil {
		return nil, err
	}
	shown := progress.Show(ctx, p, "loading the scenario and its prices")
	defer func() { shown.Close(p) }()
	if err := c.load(ctx, p, name); err != nil {
		return nil, err
	}
	variants, err := c.variants(ctx, groups)
	if err != nil {
		return nil, err
	}
	c.warn(p, variants)
	shown.Enter("preparing")
	cfg := eval.Config{
		Policies: []string{eval.CaptureBaseline}, Baseline: eval.CaptureBaseline, Cases: c.cases, Variants: variants,
		Seeds: c.seeds, Gates: gates,
		Discount1y: c.discount, Discount3y: eval.DefaultConfig().Discount3y,
		Version: p.Version, Invocation: p.Invocation(), Progress: func(g eval.Progress) { shown.Send(g) },
		Command: func(eval.Job) string { return p.Invocation() },
	}
	warnings, err := c.runner.Prepare(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	p.Warn(map[string]bool{}, warnings)
	w, err := eval.RunWhatIf(ctx, cfg, variants, c.runOnce)
	if err != nil {
		return nil, err
	}
	w.Sweep = c.sweep
	p.Warn(map[string]bool{}, c.runner.Unanswered())
	return w, nil
}

// parsedGates parses the gates, which apply to every variant.
func (c *call) parsedGates() ([]eval.Gate, error) {
	gates, err := input.ParseGates(c.gates)
	for _, g := range gates {
		if who := g.Who(); who != "" {
			return nil, cli.Invalid(fmt.Errorf("--gate: %q is of %q, and a gate holds for every variant", g, who),
				fmt.Sprintf("write '%s'", g.Condition()))
		}
	}
	return gates, err
}

// load reads the scenario and binds it without changes.
func (c *call) load(ctx context.Context, p *cli.Program, name string) (err error) {
	c.scenario, c.runner, c.ctx = name, runner.New(), ctx
	if !(c.discount > 0 && c.discount < 1) {
		return cli.Invalid(fmt.Errorf("--discount-1y: %v is not a share above 0 and below 1", c.discount),
			"give 0.29 for 29% off")
	}
	if c.seeds, err = c.ParsedSeeds(); err != nil {
		return err
	}
	if err := c.ReadWindows(); err != nil {
		return err
	}
	text, sc, err := c.ReadScenario(ctx, p, name)
	if err != nil {
		return err
	}
	if c.text = text; c.asIs == "" {
		c.cases, err = c.WindowsOf(sc, name)
		return err
	}
	if err := c.loadPools(); err != nil {
		return cli.Invalid(fmt.Errorf("--as-is-nodepools: %w", err), "give the folder or file of the existing pools")
	}
	return nil
}

// loadPools puts the existing pools into the scenario.
func (c *call) loadPools() error {
	file, err := edit.Read(c.scenario, c.text)
	if err != nil {
		return err
	}
	if c.before, err = readPools(c.asIs); err != nil {
		return err
	}
	if err := file.ReplacePools(c.before, false); err != nil {
		return fmt.Errorf("%s: %w", c.asIs, err)
	}
	if c.text, err = file.Text(); err != nil {
		return err
	}
	c.cases, err = c.bind(&draft{file: file})
	return err
}

// warn prints the remarks on the scenario and on its variants.
func (c *call) warn(p *cli.Program, variants []eval.Variant) {
	warned := map[string]bool{}
	p.Warn(warned, c.notes)
	for i := range c.cases {
		p.Warn(warned, c.cases[i].Bound.Warnings)
	}
	for _, v := range variants {
		for i := range v.Cases {
			p.Warn(warned, v.Cases[i].Bound.Warnings)
		}
	}
}

// onDemandHourly returns what the scenario without changes pays on demand, without fees, in dollars
// per hour, in its first window under the first seed.
func (c *call) onDemandHourly() (float64, error) {
	if c.first == nil {
		r, err := c.runner.Run(c.ctx, c.firstJob())
		if err != nil {
			return 0, fmt.Errorf("running %s to see what it pays on demand: %w", eval.CaptureBaseline, err)
		}
		c.first = r
	}
	return (c.first.OnDemandBill - c.first.OnDemandFees).Float() / c.cases[0].Bound.Duration.Hours(), nil
}

func (c *call) firstJob() eval.Job {
	return eval.Job{Case: c.cases[0], Policy: eval.CaptureBaseline, Seed: c.seeds[0]}
}

// runOnce executes a run, unless it was already done for a savings plan.
func (c *call) runOnce(ctx context.Context, j eval.Job) (*sim.Result, error) {
	if c.first != nil && j == c.firstJob() {
		return c.first, nil
	}
	return c.runner.Run(ctx, j)
}

// result returns the error that determines the exit code, or nil. It names the gates that failed
// unless they were shown.
func result(w *eval.WhatIf, shown bool) error {
	if w.Stopped {
		return cli.Incomplete("stopped before every variant was run")
	}
	for i := -1; i < len(w.Variants); i++ {
		x := &w.AsIs
		if i >= 0 {
			x = &w.Variants[i]
		}
		if x.Broken >= 0 {
			run := &w.Runs[x.Broken]
			return fmt.Errorf("%d of %d runs of %s broke; the first has seed %d: %s", x.Missing,
				len(w.Config.Cases)*len(w.Config.Seeds), x.Name, run.Seed, run.Err.Error())
		}
	}
	if w.Judged == nil || !w.Judged.Failed() {
		return nil
	}
	failed := format.FailedGates(w.Judged)
	return cli.FailedGates(len(w.Judged.Gates), failed, shown)
}

// completeSettings completes the settings of the scenario in the arguments.
func completeSettings(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) == 0 {
		return nil, directive
	}
	var sources input.SourceFlags
	text, _, err := sources.ReadScenario(c.Context(), &cli.Program{Stderr: io.Discard}, args[0])
	if err != nil {
		return nil, directive
	}
	file, err := edit.Read(args[0], text)
	if err != nil {
		return nil, directive
	}
	settings := file.Fields()
	for i := range settings {
		settings[i] += "="
	}
	return settings, directive
}
