package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/report"
	"github.com/spotter-dev/spotter/sim"
)

// checkReport refuses, before anything is run, a path that the HTML report
// cannot be written to.
func (f *evalFlags) checkReport() error {
	const advice = "give a file in a folder that is there and can be written, as --report out.html"
	if f.report == "" {
		if f.given("report") {
			return wrong(fmt.Errorf("--report: %q names no file", f.report), advice)
		}
		return nil
	}
	if f.report == terminal {
		return wrong(errors.New("--report: a page for a browser is no text for the terminal"), advice)
	}
	if err := checkTarget(f.report); err != nil {
		return wrong(fmt.Errorf("--report: %w", err), advice)
	}
	if f.writes(f.report) {
		return wrong(fmt.Errorf("--report: %s is the file of --out as well", f.report), "give each a file of its own")
	}
	return nil
}

// given reports whether the user wrote the flag called name.
func (f *evalFlags) given(name string) bool { return f.flags.Changed(name) }

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	a, _ = existing(a)
	b, _ = existing(b)
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}

// runner returns how runs are done: sampled over time when the HTML report,
// which draws that, is asked for.
func (f *evalFlags) runner(r *runner) eval.Runner {
	if f.report == "" {
		return r.run
	}
	return func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		cfg, err := r.config(j)
		if err != nil {
			return nil, err
		}
		cfg.Sample = report.SampleEvery(j.World.Duration)
		return r.play(ctx, j, cfg)
	}
}

// writeReport writes the HTML report where one is asked for.
func (p *program) writeReport(f *evalFlags, r *eval.Report) error {
	if f.report == "" {
		return nil
	}
	if err := replaceFile(f.report, func(w io.Writer) error { return report.Write(w, r) }); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	fmt.Fprintf(p.stderr, "report for a browser written to %s\n", f.report)
	return nil
}
