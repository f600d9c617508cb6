package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/lab"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/models/onnx"
	"github.com/spotter-dev/spotter/policy"
)

func (p *program) modelsCommand() *cobra.Command {
	c := cli.Group("models", "Verify, describe and measure bundles of trained models")
	c.Long = "A bundle is a folder with " + models.ManifestName + ", ONNX graphs and their weights. A\n" +
		"policy is given one as in model:bundle=DIR, spotvortex:bundle=DIR or portfolio:bundle=DIR."
	c.AddCommand(p.modelsVerifyCommand(), p.modelsInfoCommand(), p.modelsBenchCommand(),
		lab.ModelsDataset.Forward(p.Program), lab.ModelsEvaluate.Forward(p.Program), lab.ModelsTrain.Forward(p.Program))
	return c
}

func (p *program) modelsVerifyCommand() *cobra.Command {
	var cloud string
	var form cli.Form
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check every file of a bundle, its graphs and that they answer",
		Long: "verify checks the checksum of every file that the manifest lists, that weights are\n" +
			"in listed files only, the names and shapes of what goes into the graphs and comes\n" +
			"out, and that each answers an ordinary input with numbers.\n\n" +
			"Exit code: 0 good, 1 a check failed, 2 the call is wrong.",
		Example: "  spotter models verify bundle\n  spotter models verify bundle --cloud gcp",
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return p.modelsVerify(args[0], cloud, &form) },
	}
	c.Flags().StringVar(&cloud, "cloud", bundles.Cloud, "the cloud `NAME` that the bundle must be for; empty takes any")
	form.Register(c)
	return c
}

// A verifiedBundle is a bundle whose files match its manifest.
type verifiedBundle struct {
	Bundle string `json:"bundle"`
	Files  int    `json:"files"`
	Graphs int    `json:"graphs"`

	// ONNXRuntime is the runtime under which the graphs were checked, or nil if it is not
	// available.
	ONNXRuntime *onnxRuntime `json:"onnx_runtime,omitempty"`
}

type onnxRuntime struct {
	Version string `json:"version"`
	Library string `json:"library"`
}

func (v *verifiedBundle) write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d files and %d graphs are as the manifest says\n", v.Bundle, v.Files, v.Graphs)
	if v.ONNXRuntime == nil {
		_, err := fmt.Fprintf(w, "skipped: whether the graphs answer; ONNX Runtime is not here: %s\n", bundles.ONNXAdvice)
		return err
	}
	_, err := fmt.Fprintf(w, "they answer under ONNX Runtime %s (%s)\n", v.ONNXRuntime.Version, v.ONNXRuntime.Library)
	return err
}

func (p *program) modelsVerify(dir, cloud string, form *cli.Form) error {
	if err := checkFolder(dir); err != nil {
		return err
	}
	b, err := bundles.Read(dir, cloud)
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrCheck, err)
	}
	v := verifiedBundle{Bundle: dir, Files: len(b.Files), Graphs: len(nets(b))}
	library, version, err := bundles.StartONNX()
	if errors.Is(err, onnx.ErrUnavailable) && os.Getenv("SPOTTER_ONNXRUNTIME") != "" {
		return cli.Invalid(err, bundles.ONNXAdvice)
	}
	if errors.Is(err, onnx.ErrUnavailable) {
		return p.Print(form, v, func(w io.Writer, _ bool) error { return v.write(w) })
	}
	if err != nil {
		return err
	}
	o, err := bundles.OpenSessions(b)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", cli.ErrCheck, dir, err)
	}
	v.ONNXRuntime = &onnxRuntime{version, library}
	return errors.Join(p.Print(form, v, func(w io.Writer, _ bool) error { return v.write(w) }), o.Close())
}

// checkFolder returns an error about invalid usage if a folder cannot be read.
func checkFolder(dir string) error {
	if _, err := bundles.Folder(dir); err != nil {
		return cli.Invalid(err, "give the folder of a bundle, in which "+models.ManifestName+" lies")
	}
	return nil
}

// A namedNet is a graph with its role.
type namedNet struct {
	name string
	*models.Net
}

// nets returns the graphs of b.
func nets(b *models.Bundle) []namedNet {
	var all []namedNet
	if b.Forecaster != nil {
		all = append(all, namedNet{"forecaster", b.Forecaster})
	}
	if b.Actions != nil {
		all = append(all, namedNet{"actions", b.Actions})
	}
	return all
}

func (p *program) modelsInfoCommand() *cobra.Command {
	var form cli.Form
	c := &cobra.Command{
		Use:     "info DIR",
		Short:   "Say what a bundle is for, what it is fed and how good it was",
		Example: "  spotter models info bundle",
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFolder(args[0]); err != nil {
				return err
			}
			b, err := bundles.Read(args[0], "")
			if err != nil {
				return fmt.Errorf("%w: %w", cli.ErrCheck, err)
			}
			return p.Print(&form, struct {
				Fingerprint string           `json:"fingerprint"`
				Manifest    *models.Manifest `json:"manifest"`
			}{b.Fingerprint, b.Manifest}, func(w io.Writer, _ bool) error { return describe(w, b) })
		},
	}
	form.Register(c)
	return c
}

// describe prints the manifest of b.
func describe(out io.Writer, b *models.Bundle) error {
	m := b.Manifest
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "schema\t%s\n", m.Schema)
	fmt.Fprintf(w, "made\t%s\n", m.Generated)
	fmt.Fprintf(w, "fingerprint\t%s\n", b.Fingerprint)
	fmt.Fprintf(w, "cloud\t%s\n", b.Scope.Cloud)
	fmt.Fprintf(w, "families\t%s\n", strings.Join(b.Scope.Families, " "))
	for _, n := range nets(b) {
		fmt.Fprintf(w, "%s\t%s, fed %s\n", n.name, n.Model.Graph, n.Model.Features)
		fmt.Fprintf(w, "\tin\t%s\n", n.Graph.Inputs[0])
		for i, name := range n.Names() {
			fmt.Fprintf(w, "\t%s\t%s\n", name, n.Outputs[i])
		}
		if n.Model.HorizonHours > 0 {
			fmt.Fprintf(w, "\thorizon\t%g h\n", n.Model.HorizonHours)
			if of := n.Model.HazardFamilies; len(of) > 0 {
				fmt.Fprintf(w, "\thazard of\t%s\n", strings.Join(of, " "))
			}
		}
	}
	if t := m.Training; t != nil {
		fmt.Fprintf(w, "trained on\t%s\n\tSHA-256\t%s\n", t.Data, t.Fingerprint)
	} else {
		fmt.Fprintf(w, "trained on\tthe manifest does not say\n")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Metrics)) {
		fmt.Fprintf(w, "%s\t%.4f\n", name, m.Metrics[name])
	}
	for _, name := range slices.Sorted(maps.Keys(m.Calibration)) {
		for _, bin := range m.Calibration[name] {
			fmt.Fprintf(w, "calibration of %s\t%d cases\tforecast %.3f\tcame true %.3f\n", name, bin.Cases, bin.Predicted,
				bin.Observed)
		}
	}
	for _, f := range b.Files {
		fmt.Fprintf(w, "file\t%s\t%d bytes\n", f.Path, f.Bytes)
	}
	return w.Flush()
}

// benchFlags are the flags of models bench.
type benchFlags struct {
	markets, ticks int
	form           cli.Form
}

// A benched is the time of forecasts in milliseconds per tick.
type benched struct {
	Markets int     `json:"markets"`
	Ticks   int     `json:"ticks"`
	Median  float64 `json:"tick_ms_median"`
	P99     float64 `json:"tick_ms_p99"`
	Most    float64 `json:"tick_ms_most"`

	// Processor is the mean processor time; nil if the system does not report it.
	Processor *float64 `json:"tick_processor_ms_mean,omitempty"`
}

func (b *benched) write(w io.Writer) error {
	fmt.Fprintf(w, "%d markets, %d ticks\n", b.Markets, b.Ticks)
	_, err := fmt.Fprintf(w, "a tick takes %.2f ms in the median, %.2f in 99 of 100, %.2f at most\n", b.Median,
		b.P99, b.Most)
	if b.Processor != nil {
		_, err = fmt.Fprintf(w, "and %.2f ms of processor time in the mean\n", *b.Processor)
	}
	return err
}

func (p *program) modelsBenchCommand() *cobra.Command {
	f := benchFlags{}
	c := &cobra.Command{
		Use:   "bench DIR",
		Short: "Measure what a forecast costs",
		Long: "bench forecasts markets whose prices all change, tick by tick, on one thread, and\n" +
			"prints the median, the 99th percentile and the greatest time of a tick, and the\n" +
			"processor time of all of them, which other load on the machine changes least.",
		Example: "  spotter models bench bundle\n  spotter models bench bundle --markets 2000 --ticks 50",
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return p.modelsBench(args[0], &f) },
	}
	c.Flags().IntVar(&f.markets, "markets", 300, "forecast `N` markets at a time")
	c.Flags().IntVar(&f.ticks, "ticks", 200, "forecast them `N` times")
	f.form.Register(c)
	return c
}

func (p *program) modelsBench(dir string, f *benchFlags) error {
	for _, x := range []struct {
		flag string
		n    int
	}{{"--markets", f.markets}, {"--ticks", f.ticks}} {
		if x.n < 1 || x.n > 100_000 {
			return cli.Invalid(fmt.Errorf("%s: %d is not from 1 to 100,000", x.flag, x.n), "run `spotter models bench --help`")
		}
	}
	if err := checkFolder(dir); err != nil {
		return err
	}
	var opened bundles.Cache
	o, err := opened.Get(dir)
	if err != nil {
		return cli.Invalid(err, bundles.Advice)
	}
	if o.Forecaster == nil {
		return cli.Invalid(fmt.Errorf("%s: the bundle has no forecaster", dir), bundles.Advice)
	}
	b, err := bench(o, f.markets, f.ticks)
	if err == nil {
		err = p.Print(&f.form, b, func(w io.Writer, _ bool) error { return b.write(w) })
	}
	return errors.Join(err, o.Close())
}

// bench forecasts the given number of markets, ticks times.
func bench(o *bundles.Loaded, markets, ticks int) (*benched, error) {
	closed, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return nil, err
	}
	t, err := models.NewTrained(o.Bundle, closed, o.ForecasterSession, o.ActionsSession, models.TrainedConfig{})
	if err != nil {
		return nil, err
	}
	s := benchSnapshot(o.Scope, markets)
	times := make([]time.Duration, ticks)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := processorTime()
	for i := range times {
		move(s, i)
		start := time.Now()
		if err := t.Forecast(s, &policy.Memory{}); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	after, known := processorTime()
	if n := t.Counts().Scored; n != markets*ticks {
		return nil, fmt.Errorf("%d of %d forecasts were the bundle's: %s", n, markets*ticks, t.Counts())
	}
	slices.Sort(times)
	b := &benched{
		Markets: markets, Ticks: ticks, Median: milliseconds(times[len(times)/2]),
		P99: milliseconds(times[(len(times)*99-1)/100]), Most: milliseconds(times[len(times)-1]),
	}
	if known {
		mean := milliseconds(after-before) / float64(ticks)
		b.Processor = &mean
	}
	return b, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// benchSnapshot returns a snapshot with a pool of n markets of the first family of a scope.
func benchSnapshot(scope models.Scope, n int) *policy.Snapshot {
	family := strings.TrimRight(scope.Families[0], ".*")
	name := family
	if !strings.Contains(name, ".") {
		name += ".large"
	}
	s := &policy.Snapshot{
		Now: 1_700_000_000_000, Zones: []string{"a"},
		Types: []policy.InstanceType{{Provider: scope.Cloud, Name: name, Family: family, VCPU: 2}},
		Pools: []policy.Pool{{Name: "bench", Mode: policy.ModeActive}},
	}
	for i := range n {
		s.Markets = append(s.Markets, policy.Market{
			ID: policy.MarketID(i), Capacity: policy.Spot, Offered: true, Band: 1,
			OnDemand: policy.Dollars(1), History: make([]policy.Money, 24),
		})
		s.Pools[0].Markets = append(s.Pools[0].Markets, policy.MarketID(i))
	}
	return s
}

// move advances the snapshot by ten minutes, with another price in every market.
func move(s *policy.Snapshot, tick int) {
	s.Now = s.Now.Add(10 * time.Minute)
	for i := range s.Markets {
		m := &s.Markets[i]
		m.Price = policy.Dollars(0.3 + 0.1*math.Abs(float64((tick+i)%20-10))/10)
		copy(m.History, m.History[1:])
		m.History[len(m.History)-1] = m.Price
	}
}
