// Package bill implements the command that writes the node costs of a run or of a recording in the
// formats of FOCUS and OpenCost. It handles the flags; package eval/bill computes the bill.
package bill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/eval/bill"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
)

// The formats of a bill.
const (
	formTable    = "table"
	formFocus    = "focus"
	formOpenCost = "opencost"
)

var formNames = []string{formTable, formFocus, formOpenCost}

// periods maps the name of a charge period to its length.
var periods = map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour}

// billFlags are the flags of the command bill.
type billFlags struct {
	input.MarketFlags
	policy      string
	seed        uint64
	form, out   string
	granularity string
	aggregate   string
	account     string
	by          string
	savings     string
}

// divisions are the dimensions by which the table can be divided.
var divisions = []string{bill.ByPool, bill.ByNamespace, bill.ByDay}

// Command returns the command bill.
func Command(p *cli.Program) *cobra.Command {
	var f billFlags
	c := &cobra.Command{
		Use:   "bill SCENARIO|RESULTS|RECORDING [RUN…]",
		Short: "Write the bill of a run or a cluster, also in the format of FOCUS or OpenCost",
		Long: "bill prints on a terminal what pools, namespaces and days cost. In a pipe, to a file\n" +
			"or with --format it writes what each node cost, hour by hour or day by day, with the columns of\n" +
			"FOCUS " + bill.FocusVersion + "; or divides it among pods by what they request, as OpenCost's\n" +
			"/allocation does, and assigns what no pod requested to __idle__. Either adds up to the\n" +
			"bill to the micro-dollar.\n\n" +
			"It simulates a SCENARIO once, or repeats runs of RESULTS, a file of spotter eval\n" +
			"--out results.json or results.parquet: each RUN is written POLICY@SEED. A RECORDING is\n" +
			"the folder that spotter run --record or spotter sim --record wrote; of a cluster it\n" +
			"knows prices, nodes and pods as the steps saw them.\n\n" +
			"Exit code: 0 good, 2 the call or an input is wrong, or lacks what the bill needs,\n" +
			"3 it broke.",
		Example: "  spotter bill web-week --by namespace\n" +
			"  spotter bill web-week --policy portfolio --out bill.parquet\n" +
			"  spotter bill results.json portfolio@3 karpenter@3 --granularity day --out bill.csv\n" +
			"  spotter bill /var/lib/spotter/record --account 123456789012 --out bill.parquet\n" +
			"  spotter bill /var/lib/spotter/record --savings label:team\n" +
			"  spotter bill web-week --format opencost --aggregate label:team",
		Args:              cli.Arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: input.CompleteScenarios,
		RunE:              func(c *cobra.Command, args []string) error { return run(c.Context(), p, &f, args) },
	}
	flags := c.Flags()
	f.Register(flags)
	flags.StringVar(&f.policy, "policy", registry.Manifest,
		"policy `P` of the run of a SCENARIO, as NAME[:key=value…]; manifest is what each pool's manifest names, "+registry.DefaultPolicy+" where it names none")
	flags.Uint64Var(&f.seed, "seed", 1, "seed `N` of the weather of the run of a SCENARIO")
	flags.StringVarP(&f.form, "format", "o", "", "form `F` of the bill: "+strings.Join(formNames,
		", ")+" (default: "+formTable+" on a terminal and with --by, else "+formFocus+")")
	flags.StringVar(&f.by, "by", "", "divide the table by `D`: "+strings.Join(divisions,
		", ")+" (default: a table for each)")
	flags.StringVar(&f.savings, "savings", "",
		"show for each month what pods, added up by `A`, saved against the same nodes on demand: "+strings.Join(bill.Aggregates(), ", "))
	flags.StringVar(&f.out, "out", "",
		"write to `FILE` and not to the terminal: .csv or .parquet for "+formFocus+", .json for "+formOpenCost+", .txt for "+formTable)
	flags.StringVar(&f.granularity, "granularity", "",
		"length `L` of a period of charge: hour, day (default: hour; with --format opencost all in one)")
	flags.StringVar(&f.aggregate, "aggregate", "namespace",
		"with --format opencost, what pods are added up by, `A`: "+strings.Join(bill.Aggregates(), ", "))
	flags.StringVar(&f.account, "account", "",
		"`ID` of the account that is billed (default: simulated/SCENARIO; a recording of a cluster has none)")
	cli.CompleteBy(c, "policy", input.CompletePolicy)
	cli.Complete(c, "truth", input.TruthNames())
	cli.Complete(c, "format", formNames)
	cli.Complete(c, "by", divisions)
	cli.Complete(c, "savings", bill.Aggregates())
	cli.Complete(c, "granularity", slices.Sorted(maps.Keys(periods)))
	cli.Complete(c, "aggregate", bill.Aggregates())
	return c
}

func run(ctx context.Context, p *cli.Program, f *billFlags, args []string) error {
	if err := f.check(p); err != nil {
		return err
	}
	usages, err := f.usages(ctx, p, args)
	if err != nil {
		return refused(err)
	}
	write, about, err := f.made(p, usages)
	if err != nil {
		return refused(err)
	}
	warned := map[string]bool{}
	for _, u := range usages {
		p.Warn(warned, u.Warnings)
	}
	output := p.Output
	if strings.EqualFold(filepath.Ext(f.out), ".parquet") {
		output = p.Binary
	}
	if err := output(f.out, write); err != nil {
		return err
	}
	if f.out != "" {
		fmt.Fprintf(p.Stderr, "%s written to %s\n", about, f.out)
	}
	return nil
}

// refused marks err as invalid input if the input lacks required data.
func refused(err error) error {
	if errors.Is(err, bill.ErrUnknown) {
		return cli.Invalid(err, "give what is missing, as --account, or bill something that has it")
	}
	return err
}

// check validates the flags before any run starts.
func (f *billFlags) check(p *cli.Program) error {
	if f.out == "-" {
		f.out = ""
	}
	if !f.Flags.Changed("format") {
		f.form = f.usualForm(p)
	}
	extensions, known := map[string][]string{formTable: {".txt"}, formFocus: {".csv", ".parquet"},
		formOpenCost: {".json"}}[f.form]
	if !known {
		return cli.Invalid(fmt.Errorf("--format: %q is unknown%s", f.form, cli.Meant(f.form, formNames)),
			"give one of "+strings.Join(formNames, ", ")+"; a file is named by --out")
	}
	if f.Flags.Changed("by") && (f.form != formTable || !slices.Contains(divisions, f.by)) {
		return cli.Invalid(fmt.Errorf("--by: %q is not a division of format %s", f.by, f.form),
			"give one of "+strings.Join(divisions, ", ")+", with --format "+formTable)
	}
	if f.Flags.Changed("savings") {
		if err := bill.CheckAggregate(f.savings); err != nil {
			return cli.Invalid(fmt.Errorf("--savings: %w", err), "give one of them, as --savings label:team")
		}
		if f.form != formTable || f.by != "" {
			return cli.Invalid(errors.New("--savings: it is a table of its own"),
				"leave --by and other formats than "+formTable+" out")
		}
	}
	if _, ok := periods[f.granularity]; !ok && f.Flags.Changed("granularity") {
		return cli.Invalid(fmt.Errorf("--granularity: %q is not a granularity", f.granularity), "give hour or day")
	}
	if err := bill.CheckAggregate(f.aggregate); err != nil {
		return cli.Invalid(fmt.Errorf("--aggregate: %w", err), "give one of them, as --aggregate label:team")
	}
	if f.form != formOpenCost && f.Flags.Changed("aggregate") {
		return cli.Invalid(errors.New("--aggregate: it is for --format opencost"), "leave it out")
	}
	if f.out == "" {
		return nil
	}
	if !slices.Contains(extensions, strings.ToLower(filepath.Ext(f.out))) && !cli.IsDevice(f.out) {
		return cli.Invalid(fmt.Errorf("--out: %s: %s is written as %s", f.out, f.form, strings.Join(extensions, " or ")),
			"name such a file, or leave --out out")
	}
	if err := cli.CheckOut("--out", f.out); err != nil {
		return err
	}
	return nil
}

// usualForm returns the default format: a table on a terminal, otherwise FOCUS.
func (f *billFlags) usualForm(p *cli.Program) string {
	text := f.out == "" && p.Width("") > 0 && !f.Flags.Changed("granularity") && !f.Flags.Changed("aggregate")
	if text || f.Flags.Changed("by") || f.Flags.Changed("savings") || strings.EqualFold(filepath.Ext(f.out), ".txt") {
		return formTable
	}
	return formFocus
}

// made returns a function that writes the bill of usages, and a description of what it writes.
func (f *billFlags) made(p *cli.Program, usages []*bill.Usage) (write func(io.Writer) error, about string, err error) {
	every := periods[f.granularity]
	if f.form == formTable {
		a, err := f.table(p, usages)
		options := format.Options{Width: p.Width(f.out), Color: p.Colors(f.out)}
		return func(w io.Writer) error { return a.Write(w, options) }, "the bill", err
	}
	if f.form == formOpenCost {
		sets, err := usages[0].Allocate(f.aggregate, every)
		return func(w io.Writer) error { return bill.WriteOpenCost(w, sets) }, "allocations", err
	}
	if every == 0 {
		every = time.Hour
	}
	var lines []bill.Line
	for _, u := range usages {
		more, err := u.Focus(every)
		if err != nil {
			return nil, "", err
		}
		lines = append(lines, more...)
	}
	sum := policy.Money(0)
	for i := range lines {
		sum += lines[i].Billed()
	}
	about = fmt.Sprintf("%d rows, %s in all,", len(lines), sum)
	if strings.EqualFold(filepath.Ext(f.out), ".parquet") {
		return func(w io.Writer) error { return bill.WriteFocusParquet(w, lines, p.Version) }, about, nil
	}
	return func(w io.Writer) error { return bill.WriteFocusCSV(w, lines) }, about, nil
}
