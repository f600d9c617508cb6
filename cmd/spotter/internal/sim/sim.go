// Package sim implements the command that runs one policy once and prints its results.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/sim"
)

// simFlags are the flags of the command sim.
type simFlags struct {
	input.MarketFlags
	policy      string
	seed        uint64
	log, record string
	check       bool
	form        cli.Form
}

// Command returns the command sim.
func Command(p *cli.Program) *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim SCENARIO",
		Short: "Run one policy once and print what it cost",
		Long: "sim runs one scenario with one policy and one seed. It prints the run's results and\n" +
			"what it saves against on-demand under the same weather, outages deducted; then the\n" +
			"hash of the weather, which no policy changes, and the hash of everything that\n" +
			"happened: equal inputs give equal hashes on any machine.",
		Example: "  spotter sim web-week\n" +
			"  spotter sim web-week --policy static:share=0.7 --seed 7 --log events.txt\n" +
			"  spotter sim shop.yaml --policy portfolio --record steps",
		Args:              cli.Arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: input.CompleteScenarios,
		RunE:              func(c *cobra.Command, args []string) error { return run(c.Context(), p, &f, args[0]) },
	}
	flags := c.Flags()
	f.Register(flags)
	f.form.Register(c)
	f.form.RegisterDetails(c)
	flags.StringVar(&f.policy, "policy", registry.Manifest,
		"policy `P`, as NAME[:key=value…]; manifest is what each pool's manifest names, "+registry.DefaultPolicy+" where it names none")
	flags.Uint64Var(&f.seed, "seed", 1, "seed `N` of the weather")
	flags.StringVar(&f.log, "log", "", "write every event to `FILE`")
	flags.StringVar(&f.record, "record", "", "record every decision as Parquet in the folder `DIR`")
	flags.BoolVar(&f.check, "check", false, "check the invariants after every event; slow")
	cli.CompleteBy(c, "policy", input.CompletePolicy)
	cli.Complete(c, "truth", input.TruthNames())
	return c
}

func run(ctx context.Context, p *cli.Program, f *simFlags, name string) error {
	sc, err := f.LoadScenario(ctx, p, name)
	if err != nil {
		return err
	}
	w, err := f.Bind(sc, input.Traces{}, 0)
	if err != nil {
		return err
	}
	p.Warn(map[string]bool{}, w.Warnings)
	job := eval.Job{Case: eval.Case{Scenario: name, Bound: w}, Policy: f.policy, Seed: f.seed}
	runs := runner.New()
	cfg, err := runs.Config(job)
	if err != nil {
		return err
	}
	cfg.Check = f.check
	r, err := runWith(ctx, p, f, runs, job, cfg)
	if err != nil {
		return err
	}
	onDemand, against := r, job
	switch against.Policy = eval.OnDemand; {
	case strings.HasPrefix(name, "bench-"): // they measure the speed of a single run
		onDemand = nil
	case f.policy != eval.OnDemand:
		if onDemand, err = runs.Run(ctx, against); err != nil {
			return fmt.Errorf("running %s, the baseline of savings: %w", eval.OnDemand, err)
		}
	}
	p.Warn(map[string]bool{}, append(r.Warnings, runs.Unanswered()...))
	row := eval.RowOf(job, r, onDemand)
	return p.Print(&f.form, row.Report(f.Command(job)), func(out io.Writer, wide bool) error {
		return answer(w, r, onDemand).Write(out, format.Options{Width: p.Width(""), Color: p.Colors(""),
			Details: f.form.Details(), Wide: wide})
	})
}

// runWith runs cfg with the log and the recording that the flags request.
func runWith(ctx context.Context, p *cli.Program, f *simFlags, runs *runner.Runner, job eval.Job,
	cfg sim.Config) (r *sim.Result, err error) {
	play := func() error {
		r, err = runs.Simulate(ctx, job, cfg)
		return err
	}
	if f.record != "" {
		inner := play
		play = func() error {
			w, err := newRecording(p, f, runs, job)
			if err != nil {
				return err
			}
			cfg.Recorder = w
			if err := errors.Join(inner(), w.Close()); err != nil {
				return errors.Join(err, removeRecording(f.record))
			}
			return nil
		}
	}
	if f.log == "" {
		return r, play()
	}
	if err := cli.CheckOut("--log", f.log); err != nil {
		return nil, err
	}
	err = cli.ReplaceFile(f.log, func(w io.Writer) error {
		cfg.Log = w
		return play()
	})
	return r, err
}

// newRecording opens the folder of --record. A recording must start with the run, so a folder that
// is not empty is refused.
func newRecording(p *cli.Program, f *simFlags, runs *runner.Runner, job eval.Job) (*record.Writer, error) {
	const next = "give --record a folder that is new or empty"
	entries, err := os.ReadDir(f.record)
	if err == nil && len(entries) > 0 {
		return nil, cli.Invalid(fmt.Errorf("--record: %s is not empty: it contains %s", f.record, entries[0].Name()), next)
	}
	bundle, sum := runs.BundleSum(runner.SpecsOf(job)...)
	w, err := record.NewWriter(f.record, record.Meta{
		Version: p.Version, Policy: f.policy, Scenario: filepath.Base(job.Scenario), Seed: f.seed,
		Bundle: bundle, BundleSHA256: sum, Note: f.Command(job),
	})
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("--record: %w", err), next)
	}
	return w, nil
}

// removeRecording removes the files of an incomplete recording. The folder was empty before, so all
// files in it belong to this run.
func removeRecording(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
