package eval

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/report"
	"github.com/spotter-dev/spotter/internal/cli"
)

// compareCommand returns the command that compares two reports.
func compareCommand(p *cli.Program) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Compare two reports that were written as JSON or Parquet",
		Long: "compare shows how a report differs from an older one, run by run, for each\n" +
			"policy in each scenario. Both were written by `spotter eval --out FILE.json` or\n" +
			"FILE.parquet. Nothing is run; seeds and policies that only one of them has are left\n" +
			"out with a note.\n\n" +
			"Exit code: 0 good, 1 a policy is worse, 2 the call or a file is wrong, 3 it broke.",
		Example: "  spotter eval compare old.json new.json\n" +
			"  spotter eval compare old.parquet new.parquet --out compared.html",
		Args: cli.Arguments(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error { return compareFiles(p, args[0], args[1], out) },
	}
	c.Flags().StringVar(&out, "out", "", "also write the comparison as one HTML `FILE`, with charts")
	return c
}

// compareFiles compares the report at path newer with the one at older.
func compareFiles(p *cli.Program, older, newer, out string) error {
	if out != "" {
		if err := cli.CheckOut("--out", out); err != nil {
			return err
		}
	}
	a, err := readRecorded(older)
	if err != nil {
		return err
	}
	b, err := readRecorded(newer)
	if err != nil {
		return err
	}
	if a.Name == b.Name { // the same file name in two folders
		a.Name, b.Name = older, newer
	}
	c, err := eval.CompareRecorded(a, b)
	if err != nil {
		return refused(err)
	}
	if err := p.Output("", func(w io.Writer) error {
		return format.WriteComparison(w, c, format.Options{Width: p.Width(""), Color: p.Colors("")})
	}); err != nil {
		return err
	}
	if out != "" {
		if err := p.Output(out, func(w io.Writer) error { return report.WriteComparison(w, c, a, b) }); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		fmt.Fprintf(p.Stderr, "comparison for a browser written to %s\n", out)
	}
	if c.Outcome == eval.Worse {
		return fmt.Errorf("%w: worse than %s: %s", cli.ErrGate, c.Other, format.Headline(c))
	}
	return nil
}

// readRecorded reads a report in JSON or Parquet.
func readRecorded(path string) (*eval.Recorded, error) {
	const advice = "give two files that `spotter eval --out FILE.json` or FILE.parquet wrote"
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Invalid(err, advice)
	}
	r, err := format.ReadReport(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, cli.Invalid(fmt.Errorf("%s: %w", path, err), advice)
	}
	r.Name = filepath.Base(path)
	return r, nil
}
