// Package eval implements the command that compares policies. It handles the flags and writes the
// results; [github.com/spotter-dev/spotter/eval] computes the comparison.
package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/progress"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/shard"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy/registry"
)

// evalFlags are the flags of the command eval.
type evalFlags struct {
	input.CaseFlags
	outputs
	policies, baseline        string
	compare, files, seedsFrom string
	gates                     []string
	discount1y, discount3y    float64
	stress                    bool
	cluster                   clusterFlags

	serveAt string // value of --serve

	// texts maps the name of a scenario file to its content: from the plan, otherwise as it was
	// read.
	texts map[string]string
}

// outputs are the flags that determine how a comparison is computed and where its result is
// written. None of them changes the result.
type outputs struct {
	format, report string
	out            []string
	details, yes   bool
	noRuns         bool
	metrics        []string
	shard, plan    string
	reuse          []string

	// merged are the parts of the comparison, or nil if it is run.
	merged []*shard.Part
}

// Command returns the command eval.
func Command(p *cli.Program) *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval [SCENARIO…]",
		Short: "Compare policies by net savings and outages over windows and seeds",
		Long: "eval runs every policy over every window of every scenario under the same\n" +
			"weather, once per seed, and compares what they save and what outages they cost.\n\n" +
			"A SCENARIO is an embedded name (see `spotter scenario list`) or a file; without\n" +
			"one it is " + input.DefaultScenario + ", all means every embedded one except those for measuring\n" +
			"speed, and " + input.Hunted + " those in which a policy was found to do badly. Windows follow each\n" +
			"other from --from, each as long as the scenario; --windows all, or A-B for numbers A\n" +
			"to B, takes them from the whole trace after its first week.\n" +
			"A policy is written NAME[:key=value…]; all means every policy that has a name, and\n" +
			"key=A..B/STEP one for each step. The policies on-demand and the baseline are\n" +
			"always run. The policy manifest is the one that the pools' manifests name.\n\n" +
			"On a terminal it shows progress and interim results. Ctrl-C, or\n" +
			"SIGTERM, ends it: what is finished is written, marked as incomplete, and no gate\n" +
			"passes. A second one ends it at once.\n\n" +
			"Exit code: 0 good, 1 a gate failed, 2 the call or an input is wrong, 3 it broke or\n" +
			"was stopped.",
		Example: "  spotter eval\n" +
			"  spotter eval web-week batch-night --policies static:share=0.7,portfolio --seeds 50\n" +
			"  spotter eval web-week --trace prices --from 2023-03-01 --windows 8\n" +
			"  spotter eval web-week batch-night --trace prices --windows 26-45 --every 168h --seeds 1001-1020\n" +
			"  spotter eval all --policies all,static:share=0..1/0.1 --format markdown --out results.md\n" +
			"  spotter eval web-week --policies portfolio --compare ./spotter-base --out - --out results.json --out junit.xml\n" +
			"  spotter eval web-week gpu-training --stress\n" +
			"  spotter eval scenarios/shop.yaml --compare-scenarios ../base --seeds-from 41405d6\n" +
			"  spotter eval web-week --policies static --baseline spotvortex --gate 'net_profit_improvement_pct.median >= 2' --gate 'outage_delta.max <= 0'",
		ValidArgsFunction: input.CompleteScenarios,
		RunE:              func(c *cobra.Command, args []string) error { return run(c.Context(), p, &f, args) },
	}
	f.register(c.Flags())
	f.cluster.Complete(c)
	cli.CompleteBy(c, "policies", input.CompletePolicies)
	cli.CompleteBy(c, "gate", input.CompleteGates)
	cli.Complete(c, "truth", input.TruthNames())
	cli.CompleteBy(c, "baseline", input.CompletePolicy)
	cli.Complete(c, "format", strings.Split(formatList(), ", "))
	c.AddCommand(initCommand(p), compareCommand(p), mergeCommand(p))
	return c
}

// register adds the flags of eval.
func (f *evalFlags) register(flags *pflag.FlagSet) {
	d := eval.DefaultConfig()
	f.Register(flags)
	input.PoliciesVar(flags, &f.policies, "policies", "",
		"policies to compare, `NAME[:key=value…],…`; they replace those of the manifests (default "+strings.Join(d.Policies,
			",")+", and manifest where a manifest names one)")
	flags.StringVar(&f.baseline, "baseline", "",
		"policy `P` that the others are compared with (default "+eval.DefaultBaseline+", and "+eval.CaptureBaseline+" where every scenario was captured)")
	f.RegisterWeeks(flags, len(d.Seeds))
	flags.StringVar(&f.compare, "compare", "",
		"fail if this build is worse than another, whose `PROGRAM` is run on the same cells; with --compare-scenarios in that folder")
	flags.StringVar(&f.files, "compare-scenarios", "",
		"fail if the scenario files are worse than those of the same paths in another `DIR`, as a checkout of the base branch; without --policies what is compared is manifest")
	flags.StringVar(&f.seedsFrom, "seeds-from", "",
		"derive the first seed from `TEXT`, as the commit compared with (default with --compare: its version)")
	flags.StringArrayVar(&f.gates, "gate", nil,
		"fail unless `EXPR` holds in every scenario, as [POLICY:]METRIC.STAT OP VALUE or POLICY vs POLICY in SCENARIO:METRIC.STAT OP VALUE; may be repeated")
	flags.BoolVar(&f.stress, "stress", false,
		fmt.Sprintf("compare under every truth that --truth names, in one table: what policies save, and their outages, "+
			"where the constants that they assume are wrong (%d runs of each policy over all windows unless --seeds is given)",
			eval.StressSeeds))
	flags.Float64Var(&f.discount1y, "discount-1y", d.Discount1y,
		"`SHARE` of the on-demand price that a one-year commitment saves")
	flags.Float64Var(&f.discount3y, "discount-3y", d.Discount3y, "`SHARE` that a three-year commitment saves")
	f.registerResult(flags)
	flags.StringVar(&f.serveAt, "serve", "",
		"while the runs are done, serve the HTML report of those so far at `ADDRESS` of this machine, as :8080; without a value at a free port")
	flags.Lookup("serve").NoOptDefVal = ":0"
	flags.BoolVarP(&f.yes, "yes", "y", false,
		"start a comparison of more than an hour without asking; needed where there is no terminal")
	flags.StringVar(&f.shard, "shard", "",
		"do part `I/N` of the runs and write it to --out, a file, a folder that ends with a slash or s3://…, for \"spotter eval merge\"; in a pod of an Indexed Job N alone will do")
	flags.StringArrayVar(&f.reuse, "reuse", nil,
		"reuse finished runs of the parts in `FILE|DIR` or s3://…, of this plan or another; may be repeated")
	flags.StringVar(&f.plan, "plan", "", "compare what the plan `FILE` says, as a pod of --on kubernetes does")
	cli.Section(flags, "Against another version", "compare", "compare-scenarios", "seeds-from")
	cli.Section(flags, "Commitments", "discount-1y", "discount-3y")
	cli.Section(flags, "In parts", "shard", "reuse", "plan")
	f.cluster.register(flags)
}

// registerResult adds the flags for the output.
func (o *outputs) registerResult(flags *pflag.FlagSet) {
	flags.StringVarP(&o.format, "format", "o", string(format.Table), "output `F`: "+formatList())
	flags.StringArrayVar(&o.out, "out", nil,
		"write to `[FORMAT=]FILE` instead of the terminal, which is -; without FORMAT or --format the extension decides; "+
			"may be repeated")
	cli.DetailsVar(flags, &o.details)
	flags.BoolVar(&o.noRuns, "no-runs", false, "leave the single runs out of JSON and YAML")
	flags.StringSliceVar(&o.metrics, "metrics", nil,
		"of summaries, have JSON and YAML give the metrics `NAME,…` alone (see \"spotter metrics\")")
	flags.StringVar(&o.report, "report", "", "also write the comparison as one HTML `FILE`, with charts")
}

func run(ctx context.Context, p *cli.Program, f *evalFlags, args []string) error {
	var err error
	if f.plan != "" {
		if f, args, err = f.openPlan(ctx, args); err != nil {
			return err
		}
	}
	switch elsewhere := f.cluster.on != "" || f.cluster.attach != "" || f.shard != ""; {
	case f.given("serve") && elsewhere:
		return cli.Invalid(errors.New("--serve: only a comparison that runs here whole has a report while it runs"),
			"leave --serve out")
	case f.given("serve") && f.stress:
		return cli.Invalid(errors.New("--serve: a stress has no HTML report"), "leave --serve or --stress out")
	}
	if f.cluster.on != "" || f.cluster.attach != "" {
		return runOn(ctx, p, f, args)
	}
	if f.shard != "" {
		return runShard(ctx, p, f, args)
	}
	return compareAndWrite(ctx, p, f, args)
}

// A result is a report or a stress report.
type result interface {
	write(io.Writer, format.Format, format.Options) error

	// outcome returns the error that determines the exit code, or nil. It names the gates that
	// failed unless they were shown.
	outcome(shown bool) error
}

// compareAndWrite runs or merges a comparison and writes the result.
func compareAndWrite(ctx context.Context, p *cli.Program, f *evalFlags, args []string) error {
	targets, err := f.checkOutputs(p)
	if err != nil {
		return err
	}
	made, err := f.compared(ctx, p, args)
	if err != nil {
		return refused(err)
	}
	if err := f.write(p, made.write, targets); err != nil {
		return err
	}
	if r, ok := made.(compared); ok {
		if err := writeReport(p, f, r.Report); err != nil {
			return err
		}
	}
	return made.outcome(shown(targets))
}

// checkOutputs returns the targets of the result. It returns an error for a target that cannot be
// written, before anything is run.
func (f *evalFlags) checkOutputs(p *cli.Program) ([]target, error) {
	for _, name := range f.metrics {
		if !slices.Contains(eval.MetricNames(), name) {
			return nil, cli.Invalid(fmt.Errorf("--metrics: %q is unknown%s", name, cli.Meant(name, eval.MetricNames())),
				"run `spotter metrics` for all of them")
		}
	}
	targets, err := f.targets()
	if err == nil && f.stress {
		err = f.checkStress(targets)
	}
	if err == nil {
		err = checkTargets(p, targets)
	}
	if err == nil {
		err = f.checkReport()
	}
	return targets, err
}

// refused marks err as invalid usage if the configuration of the comparison is invalid.
func refused(err error) error {
	if errors.Is(err, eval.ErrConfig) {
		return cli.Invalid(err, "run `spotter eval --help`")
	}
	return err
}

// A session is a comparison that is ready to be run.
type session struct {
	*known
	other  *otherBuild // nil without --compare and --compare-scenarios
	cfg    *eval.Config
	runner *runner.Runner
	shown  *progress.Progress
}

// start reads and validates the inputs of a comparison and determines which runs are already done.
// share is the part of it to run; its zero value means all. On a terminal it shows progress until
// the session's progress is closed.
func (f *evalFlags) start(ctx context.Context, p *cli.Program, args []string, share shard.Share) (s *session,
	err error) {
	s = &session{runner: runner.New(), shown: progress.Show(ctx, p, "loading scenarios and traces")}
	defer func() {
		if err != nil {
			s.shown.Close(p)
		}
	}()
	if s.other, err = openCompare(ctx, p, f, args); err != nil {
		return s, err
	}
	if s.cfg, err = evalConfig(ctx, p, f, s.other, args); err != nil {
		return s, err
	}
	s.shown.Enter("preparing")
	asked := len(s.cfg.Policies)
	if f.merged == nil {
		if err := prepare(ctx, p, s.runner, s.cfg); err != nil {
			return s, err
		}
	}
	if share.N > 0 && len(s.cfg.Policies) < asked {
		return s, cli.Invalid(errors.New("--shard: a policy cannot run here, and a part without it fits no other"),
			"leave it out of --policies everywhere, or install ONNX Runtime")
	}
	s.cfg.Progress = func(g eval.Progress) { s.shown.Send(g) }
	if s.known, err = f.known(ctx, p, s.runner, s.cfg, share); err != nil {
		return s, err
	}
	s.shown, err = f.announce(ctx, p, s.shown, s.cfg, s.remaining(), s.runner.Run)
	return s, err
}

// compared computes the report, or the stress report if all truths are requested.
func (f *evalFlags) compared(ctx context.Context, p *cli.Program, args []string) (result, error) {
	s, err := f.start(ctx, p, args, shard.Share{})
	if err != nil {
		return nil, err
	}
	defer func() { s.shown.Close(p) }()
	if f.stress {
		made, err := eval.RunStress(ctx, *s.cfg, s.run)
		p.Warn(map[string]bool{}, s.runner.Unanswered())
		return stressed{made}, err
	}
	run, stop, err := f.serve(p, s.cfg, s.run)
	if err != nil {
		return nil, err
	}
	defer stop()
	report, err := eval.Run(ctx, *s.cfg, run)
	if err != nil {
		return nil, err
	}
	p.Warn(map[string]bool{}, s.runner.Unanswered())
	s.shown.Enter("comparing and summarising")
	return compared{report}, compare(ctx, f, s.other, s.cfg, report, s.runner.Run)
}

// A compared is the report of a comparison.
type compared struct{ *eval.Report }

func (c compared) write(w io.Writer, f format.Format, o format.Options) error {
	return format.Write(w, c.Report, f, o)
}

// prepare removes policies that cannot be run, and prepares and validates the rest.
func prepare(ctx context.Context, p *cli.Program, r *runner.Runner, cfg *eval.Config) error {
	if err := skip(p, r, cfg); err != nil {
		return err
	}
	warnings, err := r.Prepare(ctx, cfg)
	if err != nil {
		return err
	}
	p.Warn(map[string]bool{}, warnings)
	return nil
}

func (c compared) outcome(shown bool) error {
	report := c.Report
	if report.Stopped {
		return cli.Incomplete(format.Incomplete(report))
	}
	if n := report.Missing(); n > 0 {
		first := eval.Broken(report.Runs)
		// only the text: the error is not invalid usage at this point
		return fmt.Errorf("%d of %d runs broke; the first, %s: %s", n, len(report.Runs), report.Config.Command(first.Job),
			first.Err.Error())
	}
	if failed := format.FailedGates(report); len(failed) > 0 {
		return cli.FailedGates(len(report.Gates), failed, shown)
	}
	if c := report.Comparison; c != nil && c.Outcome == eval.Worse {
		return fmt.Errorf("%w: worse than %s: %s", cli.ErrGate, c.Other, format.Headline(c))
	}
	return nil
}

// checkGates returns an error for a gate that names no policy if the user did not name the policies
// either: it would have to hold for all that are compared by default, such as Spot alone.
func (f *evalFlags) checkGates(cfg *eval.Config) error {
	if f.given("policies") {
		return nil
	}
	trials := slices.DeleteFunc(cfg.Compared(), func(p string) bool { return !cfg.Trial(p) })
	for _, g := range cfg.Gates {
		if g.Policy == "" && len(trials) > 1 {
			return cli.Invalid(fmt.Errorf("--gate: %q names no policy, and these are compared: %s", g,
				strings.Join(trials, ", ")),
				fmt.Sprintf("name one, as in --gate '%s:%s', or list in --policies each that it must hold for",
					trials[len(trials)-1], g))
		}
	}
	return nil
}

// evalConfig returns the configuration of a comparison from the flags. It reads scenarios and
// traces.
func evalConfig(ctx context.Context, p *cli.Program, f *evalFlags, other *otherBuild, args []string) (*eval.Config,
	error) {
	cfg := eval.DefaultConfig()
	cfg.Version, cfg.Invocation = p.Version, cli.Shell(append([]string{"spotter", "eval"}, f.words(args)...))
	cfg.Discount1y, cfg.Discount3y = f.discount1y, f.discount3y
	var err error
	for _, d := range []struct {
		flag  string
		share float64
	}{{"--discount-1y", f.discount1y}, {"--discount-3y", f.discount3y}} {
		if !(d.share >= 0 && d.share < 1) {
			return nil, cli.Invalid(fmt.Errorf("%s: %v is not a share in [0, 1)", d.flag, d.share), "give 0.29 for 29% off")
		}
	}
	if cfg.Gates, err = input.ParseGates(f.gates); err != nil {
		return nil, err
	}
	if cfg.Cases, err = cases(ctx, p, f, args); err != nil {
		return nil, err
	}
	runs := len(cfg.Seeds)
	if f.stress {
		runs = eval.StressSeeds
	}
	f.SpreadSeeds(cfg.Cases, runs)
	if cfg.Seeds, err = f.seedsOf(other); err != nil {
		return nil, err
	}
	if f.given("baseline") && f.baseline == "" {
		return nil, cli.Invalid(errors.New("--baseline: it names no policy"),
			"name one, or leave --baseline out for "+eval.DefaultBaseline)
	}
	cfg.Baseline = cmp.Or(f.baseline, eval.BaselineOf(cfg.Cases))
	switch {
	case f.given("policies"): // also if the list is empty, as with an unset variable, to report the error
		if cfg.Policies, err = input.ParsePolicies(f.policies); err != nil {
			return nil, cli.Invalid(fmt.Errorf("--policies: %w", err), input.PolicyAdvice)
		}
	case f.files != "":
		cfg.Policies = []string{registry.Manifest}
	case slices.ContainsFunc(cfg.Cases, func(k eval.Case) bool { return len(input.Manifests(k.Bound)) > 0 }):
		cfg.Policies = append(cfg.Policies, registry.Manifest)
	}
	cfg.Command = f.Command
	return &cfg, f.checkGates(&cfg)
}
