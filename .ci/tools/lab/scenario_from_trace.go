package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/.ci/tools/lab/recorded"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/lab"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// fromTraceFlags are the flags of scenario from-trace.
type fromTraceFlags struct {
	recorded.Options
	output, trace string
}

func (p *program) scenarioFromTraceCommand() *cobra.Command {
	f := fromTraceFlags{Options: recorded.DefaultOptions()}
	c := &cobra.Command{
		Use:   lab.ScenarioFromTrace.Use,
		Short: lab.ScenarioFromTrace.Short,
		Long: "from-trace reads what a cluster ran and writes it as a scenario that sim and eval\n" +
			"take: openb pod lists, hourly machine counts of Snowflake, batch tasks of Alibaba\n" +
			"(2017), SimKube traces, and logs of inference requests; also gzipped. Several files\n" +
			"of one format are read as one recording. What was assumed and what was left out\n" +
			"stands at the head of the scenario.",
		Example: "  spotter scenario from-trace openb_pod_list_default.csv --out openb.yaml\n" +
			"  spotter scenario from-trace demand.csv.gz --from 2022-03-01 --days 14 --scale 0.05 --out demand.yaml\n" +
			"  spotter sim openb.yaml --policy static",
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return p.scenarioFromTrace(&f, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.output, "out", "", "write the scenario to `FILE` (default: print it)")
	flags.StringVar(&f.Format, "format", f.Format, "what the files are: `F` is "+strings.Join(recorded.Formats(), ", "))
	flags.StringVar(&f.From, "from", "",
		"begin at `T` of the recording: a date, a time, or a time since its begin as 36h or 30d (default: its busiest days)")
	flags.Float64Var(&f.Days, "days", 0, fmt.Sprintf("take `D` days (default: %d, or all of a shorter recording)",
		recorded.DaysDefault))
	flags.Float64Var(&f.Scale, "scale", f.Scale, "multiply the number of pods by `F`; below 1 some are drawn")
	flags.StringVar(&f.Name, "name", "", "name the scenario `N` (default: of the format and the file)")
	flags.IntVar(&f.WorkloadsMax, "workloads-max", f.WorkloadsMax, "group pods until there are at most `N` workloads")
	flags.Uint64Var(&f.Seed, "seed", f.Seed, "seed `N` of what --scale draws")
	flags.Float64Var(&f.TokensPerSecond, "tokens-per-second", f.TokensPerSecond,
		"tokens that one replica of an inference service handles in a second, `X`")
	flags.StringVar(&f.trace, "trace", "",
		"leave out pods that fit no node of this trace, `DIR|FILE` (default: the embedded one)")
	cli.Complete(c, "format", recorded.Formats())
	return c
}

const fromTraceAdvice = "run `spotter scenario from-trace --help` for what is understood"

func (p *program) scenarioFromTrace(f *fromTraceFlags, files []string) error {
	if f.output != "" {
		if err := cli.CheckWritable(f.output); err != nil {
			return cli.Invalid(fmt.Errorf("--out: %w", err), "give a file in an existing folder that can be written")
		}
	}
	t, err := input.OpenTrace(f.trace)
	if err != nil {
		return err
	}
	f.Nodes = nodesOf(t)
	res, err := recorded.Convert(files, f.Options)
	if err != nil {
		return cli.Invalid(fmt.Errorf("from-trace: %w", err), adviceFor(err))
	}
	p.Warn(map[string]bool{}, res.Warnings)
	if err := p.Output(f.output, func(w io.Writer) error {
		_, err := w.Write(res.YAML)
		return err
	}); err != nil || f.output == "" {
		return err
	}
	return p.Output("", func(w io.Writer) error { return writeFromTrace(w, f.output, f.trace, res) })
}

func adviceFor(err error) string {
	if errors.Is(err, recorded.ErrEmpty) {
		return "take another part with --from and --days, more of it with --scale, or a trace with larger nodes with --trace"
	}
	return fromTraceAdvice
}

// nodesOf returns the nodes that t sells, each type once.
func nodesOf(t *trace.Trace) []recorded.Node {
	var nodes []recorded.Node
	seen := map[string]bool{}
	for i := range t.Series {
		s := &t.Series[i]
		key := s.Provider + "/" + s.Type
		if seen[key] {
			continue
		}
		seen[key] = true
		if it, ok := catalog.Lookup(s.Provider, s.Type); ok {
			nodes = append(nodes, recorded.Node{VCPU: it.VCPU, Allocatable: it.Allocatable})
		}
	}
	return nodes
}

func writeFromTrace(w io.Writer, path, prices string, res *recorded.Result) error {
	fmt.Fprintf(w, "%s (%s): %s from %s on\n", res.Name, res.Format, figures.Duration(res.Duration), res.From)
	fmt.Fprintf(w, "%s\n", res.Holds())
	for _, l := range res.Left {
		fmt.Fprintf(w, "left out: %s\n", l)
	}
	words := []string{path, "--policy", "static"}
	if prices != "" {
		words = append(words, "--trace", prices)
	}
	_, err := fmt.Fprintf(w, "written to %s; what was assumed stands at its head. Run it with `spotter sim %s`\n", path,
		cli.Shell(words))
	return err
}
