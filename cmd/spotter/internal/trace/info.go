// Package trace implements the commands that import, record and describe traces.
package trace

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// InfoCommand returns the command trace info.
func InfoCommand(p *cli.Program) *cobra.Command {
	var form cli.Form
	var from, to string
	o := trace.ReadOptions{Traffic: &trace.Traffic{}}
	c := &cobra.Command{
		Use:   "info [DIR|FILE|NAME]",
		Short: "Say what a trace holds; without an argument, the default one",
		Long: "info describes a trace: a folder, a file, an s3:// name or the name of an embedded\n" +
			"trace; without one, the default trace. Of a large one a part can be chosen, which\n" +
			"is all that is read of one that `spotter trace compact` wrote. Over 20 million rows\n" +
			"of such a one are not read without --types or --zones: its index says what there\n" +
			"is.",
		Example: "  spotter trace info prices\n" +
			"  spotter trace info s3://traces/2026 --region us-east-1 --types m5.large --from 2026-03-01 --to 2026-04-01",
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			if err := parseSpan(&o, from, to); err != nil {
				return err
			}
			if x, err := tooLarge(path, o, describedMax); err != nil {
				return input.TraceError(path, err)
			} else if x != nil {
				return p.Print(&form, x, x.write)
			}
			t, err := input.OpenPart(path, o)
			if err != nil {
				return err
			}
			p.Warn(map[string]bool{}, t.Warnings)
			v := inventoryOf(t)
			v.Traffic = *o.Traffic
			return p.Print(&form, v.object(), func(w io.Writer, wide bool) error {
				_, err := io.WriteString(w, v.text(wide))
				return err
			})
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.Regions, "region", nil, "only `REGION,…`")
	flags.StringSliceVar(&o.Zones, "zones", nil, "only `ZONE,…`")
	flags.StringSliceVar(&o.Types, "types", nil, "only the instance types `TYPE,…`")
	flags.StringVar(&from, "from", "", "start a day before `TIME`, as a run that starts then would")
	flags.StringVar(&to, "to", "", "end at `TIME`")
	form.Register(c)
	return c
}

// parseSpan sets the interval of the flags in o.
func parseSpan(o *trace.ReadOptions, from, to string) error {
	if err := cmp.Or(input.TimeFlag("from", from, &o.From), input.TimeFlag("to", to, &o.To)); err != nil {
		return err
	}
	if o.To != 0 && o.To < o.From {
		return cli.Invalid(fmt.Errorf("--to: %s is before --from %s", to, from), "give the later one to --to")
	}
	return nil
}
