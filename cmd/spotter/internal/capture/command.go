package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// captureFlags are the flags of the command capture.
type captureFlags struct {
	Options

	// cluster selects the API server.
	cluster access.Cluster

	output           string
	force            bool
	run, at          string
	trace            string
	duration, warmUp time.Duration
	seed             uint64
	labels           []string
	nodes            string

	then sinceFlags
}

// Command returns the command capture.
func Command(p *cli.Program) *cobra.Command {
	var f captureFlags
	c := &cobra.Command{
		Use:   "capture --out FILE",
		Short: "Write a running cluster, or a step of a recording, as a scenario",
		Long: "capture reads a cluster, and changes nothing in it, and writes what it finds as a\n" +
			"scenario that sim and eval take: its nodes, pools, workloads, disruption budgets\n" +
			"and accelerator budgets. With --run it is a cluster as a recording has it.\n\n" +
			"Prices come from --trace, else from the recording where it covers an hour or\n" +
			"more; else they are drawn, and are called synthetic wherever they are shown. What\n" +
			"is not of --trace is written next to FILE. Assumptions and omissions\n" +
			"are listed at the head of the scenario.\n\n" +
			"With --since it is what the cluster did for that long, and not a still picture:\n" +
			"replicas over time, jobs as they ran and the nodes at its start, out of metrics\n" +
			"that Prometheus kept or of logs. --audit takes audit logs of the API server and\n" +
			"Karpenter's own logs, alone or together, and recognises both by their content.\n" +
			"Karpenter's logs have the lives of nodes, why they were disrupted and which were\n" +
			"interrupted; workloads are then those of now. The history is simulated as it was,\n" +
			"and the head has how far that is from what happened.\n\n" +
			"--interruptions uses the provider's records of Spot interruptions in place of the\n" +
			"metrics. Events count where their instance is a node by its provider ID, which\n" +
			"kube_node_info, audit logs and the cluster have; the others are counted at the\n" +
			"head. EC2 Capacity Manager names no instances: its rate is that of all of its\n" +
			"accounts in the regions of the cluster. --bill compares dollars with what the\n" +
			"instances of the cluster cost, commitments by their effective cost, where the bill\n" +
			"has 90% of the node-hours. Files of either may be compressed, and their content\n" +
			"says what they are.",
		Example: "  spotter capture --out cluster.yaml --trace prices\n" +
			"  spotter capture --out cluster.yaml --anonymise\n" +
			"  spotter capture --out week.yaml --since 7d --prometheus http://localhost:9090 --trace prices\n" +
			"  spotter capture --out day.yaml --since 1d --audit karpenter.log\n" +
			"  spotter capture --out then.yaml --run /var/lib/spotter/record --at 2026-01-03T14:00:00Z\n" +
			"  spotter eval cluster.yaml",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case f.then.on() && c.Flags().Changed("duration"):
				return cli.Invalid(errors.New("--duration: with --since a run takes as long as what was captured"),
					"leave --duration out")
			case f.then.on() && f.nodes == nodesOnDemand:
				return cli.Invalid(errors.New("--nodes: with --since a run starts with the nodes that existed then"),
					"leave --nodes out")
			}
			return run(c.Context(), p, &f)
		},
	}
	f.register(c.Flags())
	cli.Complete(c, "provider", catalog.Providers())
	f.cluster.Complete(c)
	cli.Complete(c, "nodes", []string{nodesKept, nodesOnDemand})
	return c
}

// register adds the flags.
func (f *captureFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.output, "out", "", "write the scenario to `FILE`")
	flags.BoolVar(&f.force, "force", false, "replace what is there")
	f.cluster.Register(flags)
	flags.StringVar(&f.run, "run", "", "take the cluster from the recording in the folder `DIR`")
	flags.StringVar(&f.at, "at", "",
		"take the step of that number, or the one in force at that time: `STEP` (default: the last)")
	flags.StringVar(&f.trace, "trace", "", "run it on the prices of this trace, `DIR|FILE`")
	flags.DurationVar(&f.duration, "duration", 7*24*time.Hour, "run it for `TIME`, or for as long as there are prices")
	flags.DurationVar(&f.warmUp, "warm-up", 0, "begin `TIME` before what is metered, with the cluster as it was captured")
	flags.StringVar(&f.nodes, "nodes", nodesKept,
		"begin with the nodes `HOW` as-is, or on-demand: the same, all of them bought on demand")
	flags.StringVar(&f.Name, "name", "", "name the scenario `N` (default: of FILE)")
	flags.BoolVar(&f.Anonymise, "anonymise", false, "replace names of namespaces, workloads, pools and labels")
	flags.StringVar(&f.Provider, "provider", catalog.AWS, "take nodes that do not say who sells them for those of `NAME`")
	flags.StringArrayVar(&f.labels, "spot-label", nil,
		"take nodes with the label `NAME[=VALUE]` for spot, before all labels that are known; may be given again")
	flags.DurationVar(&f.JobDuration, "job-duration", time.Hour,
		"take `TIME` for a completion of a job that does not say how long it takes")
	flags.Uint64Var(&f.seed, "seed", 1, "seed `N` of prices that are drawn")
	f.then.register(flags)
}

// The values of --nodes.
const (
	nodesKept     = "as-is"
	nodesOnDemand = "on-demand"
)

const captureAdvice = "run `spotter capture --help`"

// check validates the flags before anything is read.
func (f *captureFlags) check() error {
	switch {
	case f.output == "":
		return cli.Invalid(errors.New("--out is missing: where the scenario should go"), captureAdvice)
	case f.run == "" && f.at != "":
		return cli.Invalid(fmt.Errorf("--at: %q needs --run: a cluster is captured as it is now", f.at), captureAdvice)
	case f.run != "" && (f.cluster.Kubeconfig != "" || f.cluster.Context != ""):
		return cli.Invalid(errors.New("--run: a recording has its own cluster"),
			"leave --kubeconfig and --context out, or leave --run out")
	case f.duration < durationCaptured:
		return cli.Invalid(fmt.Errorf("--duration: %v is less than %v", f.duration, durationCaptured), captureAdvice)
	case f.warmUp < 0:
		return cli.Invalid(fmt.Errorf("--warm-up: %v is negative", f.warmUp), captureAdvice)
	case f.JobDuration <= 0:
		return cli.Invalid(fmt.Errorf("--job-duration: %v is not above 0", f.JobDuration), captureAdvice)
	case f.nodes != nodesKept && f.nodes != nodesOnDemand:
		return cli.Invalid(fmt.Errorf("--nodes: %q is neither %s nor %s", f.nodes, nodesKept, nodesOnDemand), captureAdvice)
	case !slices.Contains(catalog.Providers(), f.Provider):
		return cli.Invalid(fmt.Errorf("--provider: %q is not known", f.Provider),
			"known are "+strings.Join(catalog.Providers(), ", "))
	}
	f.OnDemand, f.Priced = f.nodes == nodesOnDemand, f.trace == "" && f.run == ""
	for _, l := range f.labels {
		label, err := kube.ParseCapacityLabel(l)
		if err != nil {
			return cli.Invalid(fmt.Errorf("--spot-label: %w", err), "write it as name or name=value")
		}
		f.Capacity.Own = append(f.Capacity.Own, label)
	}
	if err := f.then.check(); err != nil {
		return err
	}
	if f.Name == "" {
		f.Name = strings.TrimSuffix(filepath.Base(f.output), filepath.Ext(f.output))
	}
	if err := cli.CheckEnding("--out", f.output, ".yaml", ".yml"); err != nil {
		return err
	}
	for _, path := range []string{f.output, f.prices()} {
		if _, err := os.Lstat(path); err == nil && !f.force && !cli.IsDevice(path) {
			return cli.Invalid(fmt.Errorf("--out: %s already exists", path), "give another file, or --force to replace it")
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cli.Invalid(fmt.Errorf("--out: %w", err), "give a file in a folder that is there")
		}
	}
	if err := cli.CheckOut("--out", f.output); err != nil {
		return err
	}
	return nil
}

// durationCaptured is the least duration of a useful run: prices change every few hours.
const durationCaptured = time.Hour

// prices returns the file for prices that do not come from a trace.
func (f *captureFlags) prices() string {
	return strings.TrimSuffix(f.output, filepath.Ext(f.output)) + ".prices.parquet"
}

// A captureSource is the input of a capture.
type captureSource struct {
	snapshot *policy.Snapshot
	from     string // description of the source

	// recording is nil for a running cluster.
	recording *record.Recording
}

func run(ctx context.Context, p *cli.Program, f *captureFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	var from captureSource
	var err error
	if f.run != "" {
		from, err = recordedCluster(p, f)
	} else {
		from, err = runningCluster(ctx, p, f)
	}
	if err != nil {
		return err
	}
	head := []string{fmt.Sprintf("What %s at %v.", from.from, from.snapshot.Now.Std().Format(time.RFC3339))}
	if f.then.on() {
		line, err := f.readPast(ctx, p, &from)
		if err != nil {
			return err
		}
		head = append(head, line)
	}
	taken, err := Take(from.snapshot, f.Options)
	if err != nil {
		return cli.Invalid(fmt.Errorf("capture: %w", err),
			"see the nodes with `kubectl get nodes --show-labels`; --provider and --spot-label say what they do not")
	}
	run := Run{WarmUp: f.warmUp, Head: head}
	prices, own, err := f.market(&from, taken, &run)
	if err != nil {
		return err
	}
	text, err := taken.Write(run)
	if err != nil {
		return err
	}
	if _, err := f.bind(text, prices); err != nil {
		return err
	}
	if f.History != nil {
		if text, err = f.compared(ctx, taken, &run, prices); err != nil {
			return err
		}
	}
	if own {
		if err := trace.WriteFile(f.prices(), prices); err != nil {
			return err
		}
	}
	err = cli.ReplaceFile(f.output, func(w io.Writer) error { _, err := w.Write(text); return err })
	if err != nil && own {
		err = errors.Join(err, os.Remove(f.prices())) // prices are useless without their scenario
	}
	if err != nil {
		return err
	}
	return p.Output("", func(w io.Writer) error {
		for _, line := range run.Compared {
			fmt.Fprintln(w, line)
		}
		return f.report(w, taken, prices, own)
	})
}

// recordedCluster returns a step of a recording.
func recordedCluster(p *cli.Program, f *captureFlags) (captureSource, error) {
	r, err := input.OpenRecording(p, f.run)
	if err != nil {
		return captureSource{}, err
	}
	var st *record.Step
	if f.at == "" {
		st, err = r.Last()
	} else if n, e := strconv.ParseInt(f.at, 10, 64); e == nil {
		st, err = r.Step(n)
	} else {
		var at policy.Time
		if at, err = input.ParseTime(f.at); err != nil {
			return captureSource{}, cli.Invalid(fmt.Errorf("--at: %w", err),
				"give the number of a step, a date as 2026-01-03 or a time as 2026-01-03T14:00:00Z")
		}
		st, err = r.At(at)
	}
	switch {
	case errors.Is(err, record.ErrNoStep):
		return captureSource{}, cli.Invalid(fmt.Errorf("--at: %w", err), "choose another step")
	case err != nil:
		return captureSource{}, input.RecordingError(err)
	}
	return captureSource{st.Snapshot, fmt.Sprintf("the recording of %s held as of step %d", r.Meta.Scenario,
		st.Number), r}, nil
}

// market returns the prices, and sets in run their path and the interval to simulate. own reports
// whether the prices must be written.
func (f *captureFlags) market(from *captureSource, taken *Captured, run *Run) (t *trace.Trace, own bool, err error) {
	now := from.snapshot.Now
	if f.trace != "" {
		if t, err = input.OpenTrace(f.trace); err != nil {
			return nil, false, err
		}
		run.Trace = f.seen(f.trace)
		if f.History != nil {
			return t, false, f.then.covered(t, f.History, run)
		}
		return t, false, f.window(t, t.From, run)
	}
	run.Trace = filepath.Base(f.prices())
	if from.recording != nil && f.History == nil {
		if t, err = Prices(f.prices(), from.recording.Steps()); err != nil && !errors.Is(err, trace.ErrEmpty) {
			return nil, false, input.RecordingError(err)
		}
		if err == nil && t.To.Sub(t.From) >= durationCaptured {
			t.Synthetic = input.OnSyntheticTrace(&from.recording.Meta, t.From)
			begin := t.From
			if t.To.Sub(now) >= durationCaptured {
				begin = now // the prices after it are known
			} else {
				run.Head = append(run.Head, "The recording covers less than an hour after it: the prices are those before it.")
			}
			return t, true, f.window(t, begin, run)
		}
	}
	const day = policy.Time(24 * time.Hour / time.Millisecond)
	begin := now - now%day
	end := begin.Add(f.duration)
	if h := f.History; h != nil {
		begin, end = h.From-h.From%day, h.To
	}
	if t, err = taken.Draw(f.seed, drawnMax, begin, end); err != nil {
		return nil, false, cli.Invalid(fmt.Errorf("drawing prices: %w", err), "give a trace with --trace")
	}
	run.Start, run.Duration = begin, f.duration
	if h := f.History; h != nil {
		run.Start, run.Duration = h.From, h.To.Sub(h.From)
	}
	return t, true, nil
}

// seen returns path relative to the folder of the scenario.
func (f *captureFlags) seen(path string) string {
	if trace.IsEmbedded(path) {
		return path
	}
	base, err := filepath.Abs(filepath.Dir(f.output))
	if err != nil {
		return path
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if near, err := filepath.Rel(base, whole); err == nil {
		return near
	}
	return whole
}

// window sets the interval of a trace to simulate: it starts at begin. If the trace is longer than
// requested and begin is the start of the trace, it is the last part of the trace.
func (f *captureFlags) window(t *trace.Trace, begin policy.Time, run *Run) error {
	const minute = policy.Time(60 * 1000)
	begin = (begin + minute - 1) / minute * minute
	length := t.To.Sub(begin).Truncate(time.Minute)
	if length > f.duration && begin <= t.From+minute {
		begin, length = begin.Add(length-f.duration), f.duration
	}
	run.Start, run.Duration = begin, min(length, f.duration)
	if run.Duration < durationCaptured {
		return cli.Invalid(fmt.Errorf("--trace: %s has prices for %v, and a run needs %v", t.Name, length,
			durationCaptured), "give a longer trace, or none for prices that are drawn")
	}
	return nil
}

// bind parses the scenario as sim does, and binds it to its prices.
func (f *captureFlags) bind(text []byte, t *trace.Trace) (*scenarios.BoundScenario, error) {
	sc, err := scenarios.Parse(f.output, text)
	if err != nil {
		return nil, fmt.Errorf("what was captured is no scenario: %w", err)
	}
	w, err := scenarios.Bind(sc, t, scenarios.BindOptions{})
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("%s cannot be run on these prices: %w", f.Name, err),
			"give a trace of the region of the cluster with --trace, or none for prices that are drawn")
	}
	return w, nil
}

// report writes a summary of what was captured.
func (f *captureFlags) report(w io.Writer, taken *Captured, t *trace.Trace, own bool) error {
	fmt.Fprintf(w, "%s in %s, %s with %s\n", figures.Count(taken.Nodes, "node"), figures.Count(taken.Pools, "pool"),
		figures.Count(taken.Workloads, "workload"), figures.Count(taken.Pods, "pod"))
	for _, l := range taken.Left {
		fmt.Fprintf(w, "omitted: %s\n", l)
	}
	for _, a := range taken.Assumed {
		fmt.Fprintf(w, "assumed: %s\n", a)
	}
	if own {
		kind := "recorded"
		if t.Synthetic {
			kind = "synthetic"
		}
		fmt.Fprintf(w, "%s prices of %d markets written to %s\n", kind, len(t.Series), f.prices())
	}
	if taken.Spot > 0 {
		fmt.Fprintf(w,
			"every run starts with %s, that of the on-demand policy too; --nodes on-demand starts with on-demand nodes alone\n", figures.Count(taken.Spot, "Spot node"))
	}
	_, err := fmt.Fprintf(w, "written to %s. Run it with `spotter sim %s`, and compare policies with `spotter eval %s`\n",
		f.output, cli.Shell([]string{f.output}), cli.Shell([]string{f.output}))
	return err
}
