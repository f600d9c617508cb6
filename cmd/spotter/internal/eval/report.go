package eval

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/bill"
	"github.com/spotter-dev/spotter/eval/report"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/sim"
)

// checkReport returns an error for a path to which the HTML report cannot be written, before
// anything is run.
func (f *evalFlags) checkReport() error {
	const advice = "give a file in an existing folder that can be written, as --report out.html"
	if f.report == "" {
		if f.given("report") {
			return cli.Invalid(fmt.Errorf("--report: %q names no file", f.report), advice)
		}
		return nil
	}
	if f.report == terminal {
		return cli.Invalid(errors.New("--report: an HTML page cannot be written to the terminal"), advice)
	}
	if err := cli.CheckEnding("--report", f.report, ".html", ".htm"); err != nil {
		return err
	}
	if err := cli.CheckOut("--report", f.report); err != nil {
		return err
	}
	if f.writes(f.report) {
		return cli.Invalid(fmt.Errorf("--report: %s is also the file of --out", f.report), "give each a file of its own")
	}
	return nil
}

// given reports whether the user set the flag called name.
func (f *evalFlags) given(name string) bool { return f.Flags.Changed(name) }

// runner returns the function that runs a job. Runs for an HTML report, which draws samples over
// time, and for parts, from which one may be made, are sampled, and the cost of nodes is divided
// among namespaces.
func (f *evalFlags) runner(r *runner.Runner) eval.Runner {
	if f.report == "" && f.shard == "" && !f.given("serve") {
		return r.Run
	}
	return func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		cfg, err := r.Config(j)
		if err != nil {
			return nil, err
		}
		cfg.Sample = report.SampleEvery(j.Bound.Duration)
		watch := bill.NewWatch(&cfg, bill.About{})
		result, err := r.Simulate(ctx, j, cfg)
		if err != nil {
			return nil, err
		}
		result.NamespaceCosts, err = namespaceCosts(watch.Usage())
		return result, err
	}
}

// namespaceCosts divides the cost of a run among namespaces, in dollars.
func namespaceCosts(usage *bill.Usage) (map[string]float64, error) {
	sets, err := usage.Allocate("namespace", 0)
	if err != nil {
		return nil, err
	}
	costs := map[string]float64{}
	for _, set := range sets { // one set, for the whole window
		for name, a := range set {
			if name == bill.Idle {
				name = report.Idle
			}
			costs[name] = a.TotalCost
		}
	}
	return costs, nil
}

// writeReport writes the HTML report if it is requested.
func writeReport(p *cli.Program, f *evalFlags, r *eval.Report) error {
	if f.report == "" {
		return nil
	}
	if err := p.Output(f.report, func(w io.Writer) error { return report.Write(w, r, report.Options{}) }); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	fmt.Fprintf(p.Stderr, "report for a browser written to %s\n", f.report)
	return nil
}
