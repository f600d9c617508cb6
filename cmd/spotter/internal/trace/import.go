package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
)

// An importing is the values of the flags of trace import.
type importing struct {
	dir              string
	from, at, prices string
	options          importer.Options
}

// ImportCommand returns the command trace import.
func ImportCommand(p *cli.Program) *cobra.Command {
	im := importing{options: importer.Options{Store: input.StoreOf}}
	o := &im.options
	c := &cobra.Command{
		Use:   "import SRC… --out DIR",
		Short: "Turn recorded prices and availability into a trace",
		Long: "import reads what a provider or a collector recorded and writes it as one trace\n" +
			"of Parquet files. The content of a file, not its name, says what it is;\n" + importer.Understood + ".\n\n" +
			"Several recordings become one trace, and those of one market are joined: prices\n" +
			"from one, availability from another. Rows that cannot be used are counted and\n" +
			"the first ones shown. A market of which only the availability was recorded gets\n" +
			"its prices from --prices, else a modelled one, and the trace says so.",
		Example: "  spotter trace import prices.csv.gz --out prices\n" +
			"  spotter trace import s3://exports/spot-prices --out athena\n" +
			"  aws ec2 describe-spot-price-history --region eu-west-1 > history.json\n" +
			"  spotter trace import history.json --out eu-west-1\n" +
			"  spotter trace import aws-02-15-2023/*.json --out v100\n" +
			"  spotter trace import p3-trace.csv --zone us-east-1a --from 2022-01-01 --out fleet\n" +
			"  spotter trace import percentiles.json --at 2026-05-26T20:00:00Z --out rackspace\n" +
			"  spotter trace import fake-prices.json --from 2026-01-01 --market m5.large:us-west-2a --out script",
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return runImport(p, args, &im) },
	}
	flags := c.Flags()
	flags.StringVar(&im.dir, "out", "", "write the trace to the folder `DIR`; a trace that is there is replaced")
	flags.StringVar(&o.Provider, "provider", "",
		"`PROVIDER` of rows that name none (default: the one whose format it is, else aws)")
	flags.StringVar(&o.Region, "region", "", "`REGION` of rows that name none and whose zone does not tell")
	flags.StringVar(&o.Zone, "zone", "", "`ZONE` of a recording that names none")
	flags.StringVar(&o.Type, "type", "", "instance `TYPE` of a recording of availability, whatever its name says")
	flags.StringVar(&im.from, "from", "", "start of a recording without times, such as a fleet or a script, at `TIME`")
	flags.StringVar(&im.at, "at", "", "a snapshot whose name has no date was taken at `TIME`")
	flags.Float64Var(&o.PriceRatio, "price-ratio", importer.DefaultPriceRatio,
		"price of markets without one, as the share `X` of that on demand")
	flags.StringVar(&im.prices, "prices", "",
		"take the prices of markets without one from the trace `DIR|FILE` where it has them")
	flags.StringArrayVar(&o.Script.Markets, "market", nil,
		"play a script for the market `TYPE:ZONE`, in addition to those it names; may be repeated")
	flags.DurationVar(&o.Script.Tick, "tick", importer.DefaultTick, "ask a script for prices once every `DURATION`")
	flags.DurationVar(&o.Script.For, "for", 0,
		"play a script for `DURATION` (default: until every market is at its last step)")
	flags.BoolVar(&o.Strict, "strict", false, "fail at the first row that cannot be used")
	return c
}

// complete validates the flags and sets the options.
func (im *importing) complete() error {
	o := &im.options
	if im.dir == "" {
		return cli.Invalid(errors.New("--out is missing: where the trace should go"), "run `spotter trace import --help`")
	}
	if err := cmp.Or(input.TimeFlag("from", im.from, &o.From), input.TimeFlag("at", im.at, &o.At)); err != nil {
		return err
	}
	switch {
	case !(o.PriceRatio > 0 && o.PriceRatio <= 10):
		return cli.Invalid(fmt.Errorf("--price-ratio: %v is not above 0 and at most 10", o.PriceRatio),
			"0.30 is the level of most markets that never move")
	case o.Script.Tick < time.Millisecond:
		return cli.Invalid(fmt.Errorf("--tick: %v is below a millisecond", o.Script.Tick), "leave it out for 30 s")
	case o.Script.For < 0:
		return cli.Invalid(fmt.Errorf("--for: %v is negative", o.Script.For), "leave it out to play a script to its end")
	}
	if im.prices != "" {
		prices, err := input.OpenTrace(im.prices)
		if err != nil {
			return err
		}
		o.Prices = prices
	}
	return nil
}

func runImport(p *cli.Program, srcs []string, im *importing) error {
	if err := im.complete(); err != nil {
		return err
	}
	t, report, err := importer.Import(srcs, im.options)
	if err != nil {
		return cli.Invalid(fmt.Errorf("import: %w", err), importAdvice(srcs, err))
	}
	if err := trace.Write(im.dir, t); err != nil {
		if errors.Is(err, trace.ErrTarget) {
			return cli.Invalid(err, "give --out a folder that is new or holds a trace, where it can be written")
		}
		return fmt.Errorf("writing %s: %w", im.dir, err)
	}
	p.Warn(map[string]bool{}, report.Warnings)
	return p.Output("", func(w io.Writer) error { return writeImport(w, im.dir, report) })
}

// importAdvice returns advice about an error of importing srcs.
func importAdvice(srcs []string, err error) string {
	fault := (*trace.FileError)(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "name files that exist; `spotter trace import --help` has examples"
	case errors.Is(err, trace.ErrStored) && errors.As(err, &fault):
		// a single file of a trace folder is not a trace
		k := max(0, slices.IndexFunc(srcs, func(src string) bool { return strings.HasPrefix(fault.File, src) }))
		return "use it as it is, with --trace: `spotter trace info " + srcs[k] + "` describes it"
	case errors.Is(err, trace.ErrCorrupt):
		return "fetch or record it again"
	case errors.Is(err, trace.ErrBadRows):
		return "omit --strict to count such rows and continue"
	case errors.Is(err, trace.ErrNoRegion):
		return "name the region of the recording with --region, or its zone with --zone"
	case errors.Is(err, trace.ErrUnnamed):
		return "say what the recording leaves out with --from, --at, --type, --zone or --market; `spotter trace import --help` describes each"
	case errors.Is(err, trace.ErrEmpty):
		return "check that it has rows with a time, a zone, an instance type and a price"
	}
	return "run `spotter trace import --help` for what is understood"
}

func writeImport(w io.Writer, dir string, r *importer.Report) error {
	fmt.Fprintf(w, "%s\n", formats(r.Formats))
	fmt.Fprintf(w, "%d rows read, %d could not be used\n", r.Rows, r.Bad)
	for _, bad := range r.BadRows {
		fmt.Fprintf(w, "  %s\n", bad)
	}
	if more := r.Bad - len(r.BadRows); more > 0 && len(r.BadRows) > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	if len(r.Unused) > 0 {
		fmt.Fprintf(w, "columns ignored: %s\n", cli.FirstOf(r.Unused, 20))
	}
	for _, file := range r.Skipped {
		fmt.Fprintf(w, "skipped: %s\n", file)
	}
	fmt.Fprintf(w, "%d duplicates, %d repeats of what was in force, %d changes left\n", r.Duplicates, r.Repeats, r.Changes)
	if r.Joined > 0 {
		fmt.Fprintf(w, "%d rows joined with others of the same instant\n", r.Joined)
	}
	fmt.Fprintf(w, "%d markets from %s to %s\n", r.Markets, cli.Minute(r.From), cli.Minute(r.To))
	if n := len(r.UnknownTypes); n > 0 {
		fmt.Fprintf(w, "%d instance types are not in the catalog and unused in runs: %s\n", n, cli.FirstOf(r.UnknownTypes, 5))
	}
	if n := len(r.WithoutOnDemand); n > 0 {
		fmt.Fprintf(w, "%d markets have no on-demand price and are unused in runs: %s\n", n,
			cli.FirstOf(r.WithoutOnDemand, 5))
	}
	_, err := fmt.Fprintf(w, "written to %s; compare policies on it with `spotter eval --trace %s`\n", dir,
		cli.Shell([]string{dir}))
	return err
}

// formats lists the detected formats, each once with its number.
func formats(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		n := 1
		for i+n < len(names) && names[i+n] == names[i] {
			n++
		}
		part := names[i]
		if n > 1 {
			part = fmt.Sprintf("%d × %s", n, part)
		}
		parts = append(parts, part)
		i += n
	}
	return strings.Join(parts, ", ")
}
