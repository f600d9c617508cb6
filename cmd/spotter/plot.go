package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/pictures"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// plotFlags are the flags of the command plot.
type plotFlags struct {
	input.MarketFlags
	policies      string
	seed          uint64
	what, out     string
	format        string
	since, until  string
	dark          bool
	width, height int
}

func (p *program) plotCommand() *cobra.Command {
	var f plotFlags
	c := &cobra.Command{
		Use:   "plot DIR|SCENARIO",
		Short: "Draw a recorded or a fresh run: prices, fleet, savings",
		Long: "plot draws what sim --record or a cluster recorded in the folder DIR, or plays\n" +
			"SCENARIO under one or more policies and draws that.\n\n" +
			"  prices     Spot prices of the markets most used\n" +
			"  fleet      nodes on spot and on demand\n" +
			"  savings    saved so far, outages deducted, against on-demand in the same weather;\n" +
			"             of a recording, against its own nodes at on-demand prices\n" +
			"  reclaims   where nodes ran, and where and when they were taken\n" +
			"  workloads  when pods were missing, and when that was an outage\n\n" +
			"A recording has what the policy saw at its steps. Unlike a fresh run it is drawn from its\n" +
			"first step, warm-up included, and lacks the cost of outages, an on-demand run (savings\n" +
			"compare the time that nodes were seen, at their prices, with the same nodes at on-demand\n" +
			"prices, without what was paid in advance), ready grace (growth of a workload counts as\n" +
			"wanted after ten minutes), and nodes that came and went between two steps; a lost node\n" +
			"shows only once the cluster noticed.",
		Example: "  spotter plot web-week --out pictures\n" +
			"  spotter plot web-week --policies portfolio,spotvortex --what savings --out savings.svg\n" +
			"  spotter plot steps --what fleet,reclaims --since 24h --until 72h",
		Args:              cli.Arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: input.CompleteScenarios,
		RunE:              func(c *cobra.Command, args []string) error { return p.plot(c.Context(), &f, args[0]) },
	}
	flags := c.Flags()
	f.Register(flags)
	input.PoliciesVar(flags, &f.policies, "policies", registry.Manifest,
		"play the policies `LIST`, as NAME[:key=value…],…; manifest is what each pool's manifest names, "+registry.DefaultPolicy+" where it names none")
	flags.Uint64Var(&f.seed, "seed", 1, "seed `N` of the weather")
	flags.StringVar(&f.what, "what", "prices,fleet,savings",
		"draw `LIST` of prices, fleet, savings, reclaims and workloads")
	flags.StringVar(&f.out, "out", ".", "write into the folder `DIR`, or one picture to FILE.png or FILE.svg")
	flags.StringVarP(&f.format, "format", "o", "", "`F` png or svg (default: as the name in --out says, else png)")
	flags.StringVar(&f.since, "since", "",
		"draw from `TIME` on, as 2026-01-03, RFC 3339 or 36h after the start (default: when metering starts)")
	flags.StringVar(&f.until, "until", "", "draw up to `TIME`, likewise (default: the end)")
	flags.BoolVar(&f.dark, "dark", false, "draw on dark paper")
	flags.IntVar(&f.width, "width", 0, "width in pixels `N` (default 720)")
	flags.IntVar(&f.height, "height", 0, "height in pixels `N` (default: as the picture needs)")
	cli.CompleteBy(c, "policies", input.CompletePolicies)
	cli.Complete(c, "what", plotNames())
	cli.Complete(c, "format", []string{"png", "svg"})
	return c
}

// A plotted is the data to draw: runs in one weather, or one recording.
type plotted struct {
	runs []*timeline.Timeline

	// onDemand is the run against which savings are computed; nil for a recording.
	onDemand *timeline.Timeline

	// source describes the origin of the data, and from and to are the interval to draw.
	source   string
	from, to policy.Time
	frame    chart.Frame

	// views caches the runs that have been read.
	views map[*timeline.Timeline]*seen
}

func (p *program) plot(ctx context.Context, f *plotFlags, name string) error {
	what, err := parseWhat(f.what)
	if err != nil {
		return err
	}
	format, single, err := f.target(what)
	if err != nil {
		return err
	}
	d := &plotted{views: map[*timeline.Timeline]*seen{}, frame: chart.Frame{Width: f.width, Height: f.height}}
	if f.dark {
		d.frame.Theme = chart.Dark
	}
	if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
		err = p.plotRecording(f, d, name)
	} else {
		err = p.plotScenario(ctx, f, d, name, slices.Contains(what, "savings"))
	}
	if err != nil {
		return err
	}
	if err := d.cut(f); err != nil {
		return err
	}
	pictures, err := d.pictures(what)
	if err != nil {
		return err
	}
	files, err := writePictures(f.out, single, format, pictures)
	if errors.Is(err, chart.ErrValue) {
		return cli.Invalid(err, "choose another size, or a longer time with --since and --until")
	}
	if err != nil {
		return outFault(err)
	}
	for _, file := range files {
		if _, err := fmt.Fprintln(p.Stdout, file); err != nil {
			return err
		}
	}
	return nil
}

// parseWhat parses the list of pictures.
func parseWhat(list string) ([]string, error) {
	var what []string
	for _, name := range strings.Split(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(plotNames(), name) {
			return nil, cli.Invalid(fmt.Errorf("--what: there is no picture %q", name),
				"choose of "+strings.Join(plotNames(), ", "))
		}
		if !slices.Contains(what, name) {
			what = append(what, name)
		}
	}
	return what, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// target returns the format, and whether --out names a file and not a folder.
func (f *plotFlags) target(what []string) (format chart.Format, single bool, err error) {
	name := f.format
	if ext := strings.TrimPrefix(filepath.Ext(f.out), "."); ext == "png" || ext == "svg" {
		if info, statErr := os.Stat(f.out); statErr != nil || !info.IsDir() {
			single = true
			if name != "" && name != ext {
				return 0, false, cli.Invalid(fmt.Errorf("--format: %s, and --out is %s", name, f.out), "leave --format out")
			}
			if name = ext; len(what) > 1 {
				return 0, false, cli.Invalid(fmt.Errorf("--out: %s is one file, --what names %d pictures", f.out, len(what)),
					"give --out a folder, or --what one picture")
			}
			if err := cli.CheckOut("--out", f.out); err != nil {
				return 0, false, err
			}
		}
	}
	if name == "" {
		name = "png"
	}
	if format, err = chart.ParseFormat(name); err != nil {
		return 0, false, cli.Invalid(fmt.Errorf("--format: %w", err), "choose svg or png")
	}
	info, statErr := os.Stat(f.out)
	if ext := filepath.Ext(f.out); statErr != nil && !single && len(ext) > 1 && strings.Trim(ext[1:], letters) == "" {
		return 0, false, cli.Invalid(fmt.Errorf("--out: %s: %s is the ending of no picture", f.out, ext),
			"give --out a file that ends in .png or .svg, or a folder, which may be written "+f.out+"/")
	}
	if statErr == nil && !single && !info.IsDir() {
		return 0, false, cli.Invalid(fmt.Errorf("--out: %s is a file", f.out),
			"give --out a folder, or a file that ends in .png or .svg")
	}
	return format, single, nil
}

// plotRecording reads the recording in dir.
func (p *program) plotRecording(f *plotFlags, d *plotted, dir string) error {
	for _, name := range []string{"policies", "seed", "trace", "from", "intensity", "node-fee"} {
		if f.Flags.Changed(name) {
			return cli.Invalid(fmt.Errorf("--%s: %s is a recording, in which that is settled", name, dir),
				"leave --"+name+" out, or name a scenario")
		}
	}
	r, err := input.OpenRecording(p.Program, dir)
	if err != nil {
		return err
	}
	t, err := timeline.Load(r)
	if err != nil {
		return input.RecordingError(err)
	}
	d.runs = []*timeline.Timeline{t}
	about := t.About()
	d.source = fmt.Sprintf("recorded decisions of %s under %s, seed %d", about.Scenario, about.Policy, about.Seed)
	if about.Seed == 0 {
		d.source = fmt.Sprintf("recorded decisions under %s", about.Policy)
	}
	d.source += "; " + recordedPrices(about.Note) + "; seen at the steps"
	return nil
}

// recordedPrices describes the origin of the prices of a recording, if the command that made it
// noted that.
func recordedPrices(note string) string {
	const unknown = "whether its prices are synthetic it does not say"
	words := strings.Fields(note)
	if len(words) < 3 || words[0] != "spotter" || words[1] != "sim" {
		return unknown
	}
	var path string
	if i := slices.Index(words, "--trace"); i > 0 && i+1 < len(words) {
		path = words[i+1]
	} else if sc, err := scenarios.Load(words[2]); err == nil {
		path = sc.Trace
	} else {
		return unknown
	}
	tr, err := input.OpenTrace(path)
	if err != nil {
		return unknown
	}
	info := scenarios.InfoOf(tr)
	return "prices " + info.Prices()
}

// plotScenario simulates the scenario under each policy, and under on-demand if savings are drawn.
func (p *program) plotScenario(ctx context.Context, f *plotFlags, d *plotted, name string, savings bool) error {
	specs, err := input.ParsePolicies(f.policies)
	if err != nil {
		return cli.Invalid(fmt.Errorf("--policies: %w", err), input.PolicyAdvice)
	}
	sc, err := f.LoadScenario(ctx, p.Program, name)
	if err != nil {
		return err
	}
	w, err := f.Bind(sc, input.Traces{}, 0)
	if err != nil {
		return err
	}
	p.Warn(map[string]bool{}, w.Warnings)
	d.source = fmt.Sprintf("%s, seed %d; prices %s, reclaims %s", w.Name, f.seed, w.Trace.Prices(), w.Reclaims())
	all := specs
	if savings && !slices.Contains(specs, eval.OnDemand) {
		all = append(slices.Clone(specs), eval.OnDemand)
	}
	runs, err := p.playAll(ctx, eval.Job{Case: eval.Case{Scenario: name, Bound: w}, Seed: f.seed}, all)
	if err != nil {
		return err
	}
	if i := slices.Index(all, eval.OnDemand); i >= 0 {
		d.onDemand = runs[i]
	}
	d.runs = runs[:len(specs)]
	return nil
}

// playAll simulates j under each policy, each into a separate timeline.
func (p *program) playAll(ctx context.Context, j eval.Job, specs []string) ([]*timeline.Timeline, error) {
	r, runs := runner.New(), make([]*timeline.Timeline, len(specs))
	c := eval.Config{Cases: []eval.Case{j.Case}, Seeds: []uint64{j.Seed}, Policies: specs}
	rows, err := eval.Cells(ctx, &c, func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		cfg, err := r.Config(j)
		if err != nil {
			return nil, err
		}
		t := timeline.New(cfg.Prepared, j.Policy, cfg.Seed)
		runs[slices.Index(specs, j.Policy)] = t
		t.Watch(&cfg)
		res, err := sim.Run(ctx, cfg)
		t.Finish(res, err)
		return res, err
	})
	if x := eval.Broken(rows); x != nil {
		err = x.Err
	}
	return runs, err
}

// cut sets the interval to draw.
func (d *plotted) cut(f *plotFlags) error {
	begin, from, to := d.runs[0].Span()
	d.from, d.to = from, to
	for _, side := range [...]struct {
		flag, value string
		at          *policy.Time
	}{{"--since", f.since, &d.from}, {"--until", f.until, &d.to}} {
		if side.value == "" {
			continue
		}
		at, err := parseInstant(side.value, from)
		if err != nil {
			return cli.Invalid(fmt.Errorf("%s: %w", side.flag, err),
				"give a time as 2026-01-03T14:00:00Z, or hours after the start as 36h")
		}
		if at < begin || at > to {
			return cli.Invalid(fmt.Errorf("%s: %v is not within the run, %v to %v", side.flag, at, begin, to),
				"choose a time within it")
		}
		*side.at = at
	}
	if d.from >= d.to {
		return cli.Invalid(fmt.Errorf("--since: %v is not before %v, where the pictures end", d.from, d.to),
			"choose another --since or --until")
	}
	return nil
}

// parseInstant parses a time, or a duration after begin.
func parseInstant(s string, begin policy.Time) (policy.Time, error) {
	if after, err := time.ParseDuration(s); err == nil {
		return begin.Add(after), nil
	}
	at, err := input.ParseTime(s)
	if err != nil {
		return 0, fmt.Errorf("%w, nor a duration", err)
	}
	return at, nil
}

// writePictures draws all pictures and then writes them to the folder out, or the only one to the
// file out. It returns the paths of the files.
func writePictures(out string, single bool, format chart.Format, all []pictures.Named) ([]string, error) {
	if single {
		return []string{out}, pictures.Write([]string{out}, format, all)
	}
	var files []string
	for i := range all {
		files = append(files, filepath.Join(out, all[i].Name+"."+format.String()))
	}
	return files, pictures.Write(files, format, all)
}

// outFault distinguishes a path that cannot be written, which is invalid usage, from a disk that
// fails or is full.
func outFault(err error) error {
	err = fmt.Errorf("--out: %w", err)
	for _, broke := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EFBIG} {
		if errors.Is(err, broke) {
			return &cli.StoppedError{Err: err, Next: "no picture was written: make room, or give --out another folder"}
		}
	}
	return cli.Invalid(err, "give --out a folder that can be written")
}
