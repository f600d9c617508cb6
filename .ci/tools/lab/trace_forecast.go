package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/lab"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A forecasting is what the flags of trace forecast say.
type forecasting struct {
	bundle, dir, from, to string
	every                 time.Duration
}

func (p *program) traceForecastCommand() *cobra.Command {
	var f forecasting
	c := &cobra.Command{
		Use:   lab.TraceForecast.Use,
		Short: lab.TraceForecast.Short,
		Long: "forecast asks the forecaster of a bundle of every market at every hour, and writes\n" +
			"the trace again with the reclaims per node-hour that it foretells as the column\n" +
			"hazard. `sim` and `eval` give policies that hazard without ONNX Runtime, in the\n" +
			"place of the closed form's.\n\n" +
			"It is made of prices up to that hour, the hour itself, the type and the published\n" +
			"band alone. A trace does not hold what a cluster met, so that nothing is known of\n" +
			"refusals and reclaims: with the bundle itself a policy sees more. Without TRACE it\n" +
			"is the embedded one.",
		Example: "  spotter trace forecast prices --bundle builtin --out forecasts\n" +
			"  spotter trace forecast prices --from 2023-03-01 --to 2023-03-15 --every 3h --out forecasts\n" +
			"  spotter sim web-week --trace forecasts --policy portfolio",
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			return p.traceForecast(&f, path)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.bundle, "bundle", bundles.Builtin, "ask the bundle in `DIR`")
	flags.StringVar(&f.from, "from", "",
		"begin at `TIME`, as 2026-01-01 or RFC 3339, with the day before it (default: when the trace begins)")
	flags.StringVar(&f.to, "to", "", "end at `TIME` (default: when the trace ends)")
	flags.DurationVar(&f.every, "every", time.Hour, "ask once in every `DURATION`, from 10m")
	flags.StringVar(&f.dir, "out", "", "write the trace to the folder `DIR`; a trace that is there is replaced")
	return c
}

// check validates the flags on their own and returns the requested span; 0 is open.
func (f *forecasting) check() (from, to policy.Time, err error) {
	const help = "run `spotter trace forecast --help`"
	switch {
	case f.dir == "":
		return 0, 0, cli.Invalid(errors.New("--out is missing: where the trace should go"), help)
	case f.every < 10*time.Minute || f.every > 24*time.Hour || f.every%(10*time.Minute) != 0:
		return 0, 0, cli.Invalid(fmt.Errorf("--every: %v is not a multiple of 10m up to 24h", f.every), help)
	}
	for _, x := range []struct {
		flag, text string
		to         *policy.Time
	}{{"--from", f.from, &from}, {"--to", f.to, &to}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = input.ParseTime(x.text); err != nil {
			return 0, 0,
				cli.Invalid(fmt.Errorf("%s: %w", x.flag, err), "give a date as 2023-03-01 or a time as 2023-03-01T00:00:00Z")
		}
	}
	if to != 0 && from >= to {
		return 0, 0, cli.Invalid(fmt.Errorf("--to: %v is not after %v", to, from), help)
	}
	return from, to, nil
}

func (p *program) traceForecast(f *forecasting, path string) error {
	from, to, err := f.check()
	if err != nil {
		return err
	}
	t, err := openSpan(path, from, to)
	if err != nil {
		return err
	}
	p.Warn(map[string]bool{}, t.Warnings)
	var opened bundles.Cache
	b, err := opened.Get(f.bundle)
	if err != nil {
		return cli.Invalid(fmt.Errorf("--bundle: %w", err), bundles.Advice)
	}
	x, err := newMarketForecaster(t, b, f.every)
	if err != nil {
		return cli.Invalid(fmt.Errorf("--bundle: %s: %w", f.bundle, err), bundles.Advice)
	}
	if err := x.run(); err != nil {
		return fmt.Errorf("forecasting with %s: %w", f.bundle, err)
	}
	out, err := x.trace()
	if err != nil {
		return fmt.Errorf("joining forecasts to %s: %w", t.Name, err)
	}
	out.Meta["forecast.bundle"], out.Meta["forecast.sha256"] = f.bundle, b.Fingerprint
	out.Meta["forecast.every"], out.Meta["forecast.features"] = f.every.String(), "prices, time, type and band; nothing that a cluster met"
	if err := trace.Write(f.dir, out); err != nil {
		if errors.Is(err, trace.ErrTarget) {
			return cli.Invalid(err, "give --out a folder that is new or holds a trace, where it can be written")
		}
		return fmt.Errorf("writing %s: %w", f.dir, err)
	}
	return p.Output("", func(w io.Writer) error { return x.report(w, f.dir) })
}

// openSpan reads the part of a trace between two times, 0 being open.
func openSpan(path string, from, to policy.Time) (*trace.Trace, error) {
	if from == 0 && to == 0 {
		return input.OpenTrace(path)
	}
	if _, embedded, _ := trace.EmbeddedNamed(path); embedded {
		return nil, cli.Invalid(errors.New("--from, --to: an embedded trace is forecast whole"),
			"leave them out, or name a folder")
	}
	t, err := trace.Open(path, trace.ReadOptions{From: from, To: to})
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("trace: %w", err), input.TraceAdvice(path, err))
	}
	return t, nil
}

// report says what was forecast.
func (x *marketForecaster) report(w io.Writer, dir string) error {
	known, rows := 0, 0
	for i := range x.forecasts {
		if x.changes[i] > 0 {
			known++
		}
		rows += x.changes[i]
	}
	fmt.Fprintf(w, "%d of %d markets have a forecast, at %d times, which changed %d times\n", known, len(x.in.Series),
		x.ticks, rows)
	if n := len(x.unknown); n > 0 {
		fmt.Fprintf(w, "%d markets have none, since their type is not in the catalog or has no price on demand: %s\n", n,
			cli.FirstOf(x.unknown, 5))
	}
	if said := x.model.Counts().String(); said != "" {
		fmt.Fprintln(w, said)
	}
	fmt.Fprintln(w, "they are made of prices, time, type and band; nothing is known in them of what a cluster met")
	_, err := fmt.Fprintf(w, "written to %s; compare policies on it with `spotter eval --trace %s`\n", dir,
		cli.Shell([]string{dir}))
	return err
}
