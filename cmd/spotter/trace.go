package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

func (p *program) traceCommand() *cobra.Command {
	c := group("trace", "Import recorded prices and look at traces")
	c.AddCommand(p.traceImportCommand(), p.traceInfoCommand())
	return c
}

func (p *program) traceImportCommand() *cobra.Command {
	var o trace.ImportOptions
	var dir string
	c := &cobra.Command{
		Use:   "import SRC… -o DIR",
		Short: "Turn recorded prices into a trace",
		Long: "import reads what a provider or a collector recorded and writes it as one trace\n" +
			"of Parquet files. It understands, also gzipped: the JSON of `aws ec2\n" +
			"describe-spot-price-history`, and the CSV files of the common public collections.\n" +
			"What a file is, its content tells. Rows that cannot be used are counted and the\n" +
			"first ones shown.",
		Example: "  spotter trace import prices.csv.gz -o prices\n" +
			"  aws ec2 describe-spot-price-history --region eu-west-1 > history.json\n" +
			"  spotter trace import history.json -o eu-west-1",
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return p.traceImport(args, dir, o) },
	}
	flags := c.Flags()
	flags.StringVarP(&dir, "output", "o", "", "write the trace to the folder `DIR`; a trace that is there is replaced")
	flags.StringVar(&o.Provider, "provider", "aws", "`PROVIDER` of all rows")
	flags.StringVar(&o.Region, "region", "", "`REGION` of rows that name none and whose zone does not tell")
	flags.BoolVar(&o.Strict, "strict", false, "fail at the first row that cannot be used")
	return c
}

func (p *program) traceImport(srcs []string, dir string, o trace.ImportOptions) error {
	if dir == "" {
		return wrong(errors.New("-o is missing: where the trace should go"), "run `spotter trace import --help`")
	}
	t, report, err := trace.Import(srcs, o)
	if err != nil {
		return wrong(fmt.Errorf("import: %w", err), importAdvice(err))
	}
	if err := trace.Write(dir, t); err != nil {
		if errors.Is(err, trace.ErrTarget) {
			return wrong(err, "give -o a folder that is new or holds a trace, where it can be written")
		}
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	return p.output("", func(w io.Writer) error { return writeImport(w, dir, report) })
}

func importAdvice(err error) string {
	switch {
	case errors.Is(err, trace.ErrBadRows):
		return "leave --strict out to count such rows and go on"
	case errors.Is(err, trace.ErrNoRegion):
		return "name the region of the recording with --region"
	}
	return "run `spotter trace import --help` for what is understood"
}

func writeImport(w io.Writer, dir string, r *trace.ImportReport) error {
	fmt.Fprintf(w, "%d rows read, %d could not be used\n", r.Rows, r.Bad)
	for _, bad := range r.BadRows {
		fmt.Fprintf(w, "  %s\n", bad)
	}
	if more := r.Bad - len(r.BadRows); more > 0 && len(r.BadRows) > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	fmt.Fprintf(w, "%d duplicates, %d repeats of the price in force, %d changes left\n", r.Duplicates, r.Repeats, r.Changes)
	fmt.Fprintf(w, "%d markets from %s to %s\n", r.Markets, minute(r.From), minute(r.To))
	if n := len(r.WithoutOnDemand); n > 0 {
		fmt.Fprintf(w, "%d markets have no on-demand price and are left out of runs: %s\n", n, some(r.WithoutOnDemand, 5))
	}
	_, err := fmt.Fprintf(w, "written to %s; compare policies on it with `spotter eval --trace %s`\n", dir, shell([]string{dir}))
	return err
}

// some returns the first n words, and how many there are beyond them.
func some(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}

func (p *program) traceInfoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "info [DIR|FILE]",
		Short: "Say what a trace holds; without an argument, the embedded one",
		Args:  arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			t, err := openTrace(path)
			if err != nil {
				return err
			}
			p.warn(map[string]bool{}, t.Warnings)
			return p.output("", func(w io.Writer) error {
				_, err := io.WriteString(w, trace.Info(t).Text())
				return err
			})
		},
	}
}
