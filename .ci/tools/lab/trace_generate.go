package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/.ci/tools/lab/fit"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/lab"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// A generating is what the flags of trace generate say.
type generating struct {
	preset, like, from, dir string
	seed                    uint64
	markets, days           int
	availability            bool
}

// generateDaysMax bounds --days.
const generateDaysMax = 3650

func (p *program) traceGenerateCommand() *cobra.Command {
	var g generating
	c := &cobra.Command{
		Use:   lab.TraceGenerate.Use,
		Short: lab.TraceGenerate.Short,
		Long: "generate draws prices from a law and writes them as a trace that says that it is\n" +
			"synthetic, by which law, parameters and seed. Equal commands give equal bytes.\n\n" +
			"--like fits the law to a trace or a recording, and takes its span and markets\n" +
			"where --from, --days and --markets do not say otherwise; see how near it came\n" +
			"with `spotter trace check`. With --like the draw is one of several whose seeds\n" +
			"follow from --seed: the first that comes near the recording in the figures it is\n" +
			"judged by, else the nearest.\n\n" +
			"The presets were fitted to recordings, and are drawn with --seed itself:\n\n" + presetLines(),
		Example: "  spotter trace generate --preset aws-2024 --seed 7 --markets 500 --days 90 --out drawn\n" +
			"  spotter trace generate --like prices.csv.gz --seed 1 --out drawn\n" +
			"  spotter trace check drawn --against prices.csv.gz",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return p.traceGenerate(c.Context(), &g) },
	}
	flags := c.Flags()
	flags.StringVar(&g.preset, "preset", "", "imitate what the preset `NAME` imitates; \"help\" lists them")
	flags.StringVar(&g.like, "like", "", "imitate `TRACE`: a trace, or a recording that can be imported")
	flags.Uint64Var(&g.seed, "seed", 1, "draw with the seed `N`")
	flags.IntVar(&g.markets, "markets", 0, "draw `M` markets (default: the preset's number, or those of the trace)")
	flags.IntVar(&g.days, "days", 0, "draw `D` days (default: the preset's number, or the span of the trace)")
	flags.StringVar(&g.from, "from", "",
		"begin at `TIME`, as 2026-01-01 or RFC 3339 (default: the preset's, or when the trace begins)")
	flags.BoolVar(&g.availability, "availability", false, "also draw when nodes of scarce types could be had")
	flags.StringVar(&g.dir, "out", "", "write the trace to the folder `DIR`; a trace that is there is replaced")
	return c
}

// presetLines lists the presets, one a line.
func presetLines() string {
	var b strings.Builder
	for _, p := range generate.Presets() {
		fmt.Fprintf(&b, "  %-17s %s\n", p.Law.Name, p.Law.Imitates)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// check finds what is wrong with the flags alone.
func (g *generating) check() error {
	const help = "run `spotter trace generate --help`"
	switch {
	case g.preset == "" && g.like == "":
		return cli.Invalid(errors.New("neither --preset nor --like says what to imitate"),
			"choose one of the presets:\n"+presetLines())
	case g.preset != "" && g.like != "":
		return cli.Invalid(errors.New("--preset and --like exclude each other"), help)
	case g.dir == "":
		return cli.Invalid(errors.New("--out is missing: where the trace should go"), help)
	case g.markets < 0:
		return cli.Invalid(fmt.Errorf("--markets: %d is negative", g.markets), help)
	case g.days < 0 || g.days > generateDaysMax:
		return cli.Invalid(fmt.Errorf("--days: %d is not in 0…%d", g.days, generateDaysMax), help)
	}
	return nil
}

func (p *program) traceGenerate(ctx context.Context, g *generating) error {
	if g.preset == "help" {
		return p.Output("", func(w io.Writer) error {
			_, err := fmt.Fprintln(w, presetLines())
			return err
		})
	}
	if err := g.check(); err != nil {
		return err
	}
	law := fit.DefaultAvailability()
	var c generate.Config
	var err error
	if g.preset != "" {
		c, err = g.byPreset()
	} else {
		c, law, err = p.generateLike(g)
	}
	if err != nil {
		return err
	}
	n, err := g.write(ctx, c, law)
	if errors.Is(err, trace.ErrTarget) {
		return cli.Invalid(err, "give --out a folder that is new or holds a trace, where it can be written")
	}
	if err != nil {
		return err
	}
	return p.Output("", func(w io.Writer) error { return g.report(w, &c, n) })
}

// byPreset returns what to draw like a preset.
func (g *generating) byPreset() (c generate.Config, err error) {
	preset, err := generate.FindPreset(g.preset)
	if err != nil {
		return c, cli.Invalid(fmt.Errorf("--preset: %w", err), "they are:\n"+presetLines())
	}
	c = generate.Config{Seed: g.seed, Law: preset.Law, From: preset.Begin()}
	n, days := g.markets, g.days
	if n == 0 {
		n = preset.Markets
	}
	if days == 0 {
		days = preset.Days
	}
	if c.Markets, err = preset.Take(n); err != nil {
		return c, cli.Invalid(fmt.Errorf("--markets: %w", err), "ask for fewer")
	}
	return c, g.span(&c, time.Duration(days)*24*time.Hour)
}

// generateLike returns what to draw like a trace.
func (p *program) generateLike(g *generating) (c generate.Config, law fit.AvailabilityLaw, err error) {
	law = fit.DefaultAvailability()
	t, err := p.openRecording(g.like)
	if err != nil {
		return c, law, err
	}
	fitted, err := fit.Fit(t)
	if err != nil {
		return c, law,
			cli.Invalid(fmt.Errorf("--like: %w", err), "see what it holds with `spotter trace info"+input.Argument(g.like)+"`")
	}
	if n := len(fitted.Left); n > 0 {
		p.Warn(map[string]bool{}, []string{fmt.Sprintf("%d markets without an on-demand price are left out: %s", n,
			cli.FirstOf(fitted.Left, 5))})
	}
	if g.availability {
		switch fitted, err := fit.Estimate(t); {
		case err == nil:
			law = fitted
		case !errors.Is(err, fit.ErrNoAvailability):
			return c, law, cli.Invalid(fmt.Errorf("--like: %w", err), "leave --availability out for prices alone")
		}
	}
	c = generate.Config{Seed: fitted.Seed(g.seed), Law: fitted.Law, From: fitted.From, Markets: fitted.Markets}
	if g.markets > 0 {
		if c.Markets, err = fitted.More(g.markets); err != nil {
			return c, law, cli.Invalid(fmt.Errorf("--markets: %w", err), "ask for fewer")
		}
	}
	length := fitted.To.Sub(fitted.From)
	if g.days > 0 {
		length = time.Duration(g.days) * 24 * time.Hour
	}
	return c, law, g.span(&c, length)
}

// span sets the start and the end of c.
func (g *generating) span(c *generate.Config, length time.Duration) error {
	if g.from != "" {
		from, err := input.ParseTime(g.from)
		if err != nil {
			return cli.Invalid(fmt.Errorf("--from: %w", err), "give a date as 2023-03-01 or a time as 2023-03-01T00:00:00Z")
		}
		c.From = from
	}
	c.To = c.From.Add(length)
	return nil
}

// alikeDraws is how many draws of availability are compared with a recording that a trace
// must resemble.
const alikeDraws = 64

// A written counts what was written: the intervals of all series, and the series that say
// when a node could be had.
type written struct{ rows, known int }

func (n *written) add(series []trace.Series, from policy.Time) {
	for i := range series {
		s := &series[i]
		if n.rows += len(s.At); s.At[0] < from {
			n.rows-- // it was counted before
		}
		if s.Available != nil {
			n.known++
		}
	}
}

// write draws the trace and writes it, some days of a region at a time. Only with availability
// all of it is in memory.
func (g *generating) write(ctx context.Context, c generate.Config, law fit.AvailabilityLaw) (n written, err error) {
	if g.availability {
		return g.writeJoined(c, law)
	}
	head, parts, err := generate.Parts(ctx, c)
	if err != nil {
		return n, cli.Invalid(err, "change --from or --days")
	}
	g.mark(head)
	err = trace.WriteParts(g.dir, head, func(yield func(*trace.Part, error) bool) {
		for part, err := range parts {
			n.add(part.Series, part.From)
			if !yield(part, err) {
				return
			}
		}
	})
	return n, err
}

// writeJoined writes the trace with availability.
func (g *generating) writeJoined(c generate.Config, law fit.AvailabilityLaw) (n written, err error) {
	t, err := generate.Generate(c)
	if err != nil {
		return n, cli.Invalid(err, "change --from or --days")
	}
	g.mark(t)
	days := int(math.Ceil(c.To.Sub(c.From).Hours() / 24))
	o := fit.AvailabilityOptions{Seed: g.seed, From: c.From, Days: days, Gap: law.Gap, Alike: alikeDraws}
	if t, err = fit.Join(t, law, o); err != nil {
		return n, cli.Invalid(err, "leave --availability out for prices alone")
	}
	n.add(t.Series, t.From)
	return n, trace.Write(g.dir, t)
}

// mark notes how the seed came about.
func (g *generating) mark(t *trace.Trace) {
	t.Meta["seed_given"] = fmt.Sprint(g.seed)
	if g.like != "" {
		t.Meta["seed_choice"] = fit.SeedChoice
	}
}

// report says what was written.
func (g *generating) report(w io.Writer, c *generate.Config, n written) error {
	fmt.Fprintf(w, "%d markets, %d prices from %s to %s, drawn with seed %d\n", len(c.Markets), n.rows,
		cli.Minute(c.From), cli.Minute(c.To), g.seed)
	if g.availability {
		fmt.Fprintf(w, "%d of the markets tell when a node could be had\n", n.known)
	}
	if _, err := fmt.Fprintf(w, "written to %s; see what they are like with `spotter trace info%s`", g.dir,
		input.Argument(cli.Shell([]string{g.dir}))); err != nil {
		return err
	}
	if preset, err := generate.FindPreset(g.preset); err == nil && preset.Limits != "" {
		fmt.Fprintf(w, "\nwhat draws of %s miss of the recording: %s", g.preset, preset.Limits)
	}
	if g.like != "" {
		fmt.Fprintf(w, ",\nand how near they come with `spotter trace check %s --against %s`", cli.Shell([]string{g.dir}),
			cli.Shell([]string{g.like}))
	}
	_, err := fmt.Fprintln(w)
	return err
}
