package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/.ci/tools/lab/check"
	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/lab"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
)

// formMarkdown is an output format of trace check in addition to those of all commands.
const formMarkdown = "markdown"

// A checking is what the flags of trace check say.
type checking struct {
	against    string
	tolerances []string
	form       cli.Form
	plot       string
	pictures   string
	dark       bool
}

func (p *program) traceCheckCommand() *cobra.Command {
	var k checking
	c := &cobra.Command{
		Use:   lab.TraceCheck.Use,
		Short: lab.TraceCheck.Short,
		Long: "check measures a trace, looks in it for what no market can have done, and, with\n" +
			"--against, judges how far it is from another by tolerances that it prints with\n" +
			"their reasons. It fails when one is missed, or when nothing could be judged.\n\n" +
			"A and B are folders or files of a trace, \"embedded\", or recordings as `spotter\n" +
			"trace import` reads them, also a folder of such. Both are first seen with the\n" +
			"eyes of the one that was sampled more coarsely: prices at its instants,\n" +
			"availability at its probes.",
		Example: "  spotter trace check embedded\n" +
			"  spotter trace check generated --against prices.csv.gz\n" +
			"  spotter trace check generated --against prices --tolerance ratio=0.1 --tolerance step-ks=0.2\n" +
			"  spotter trace check generated --against prices --plot pictures --pictures png",
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return p.traceCheck(args[0], &k) },
	}
	flags := c.Flags()
	flags.StringVar(&k.against, "against", "", "compare with `B`, what the trace should be like")
	flags.StringArrayVar(&k.tolerances, "tolerance", nil,
		"let the figure or tolerance be off by `NAME=VALUE`; may be repeated")
	flags.StringVar(&k.plot, "plot", "", "write pictures into the folder `DIR`")
	flags.StringVar(&k.pictures, "pictures", "svg", "draw pictures as `FORMAT`: svg or png")
	flags.BoolVar(&k.dark, "dark", false, "draw pictures on dark paper")
	k.form.Register(c, formMarkdown)
	return c
}

// A checked is what was found out about one trace or two.
type checked struct {
	A, B       *trace.Trace // B is nil without a comparison
	Comparison *check.Comparison
	Statistics *measure.Statistics
	Findings   []check.Finding
}

func (p *program) traceCheck(path string, k *checking) error {
	o, format, err := k.parse()
	if err != nil {
		return err
	}
	r := &checked{}
	if r.A, err = p.openRecording(path); err != nil {
		return err
	}
	r.Findings = check.Inspect(r.A)
	if k.against != "" {
		if r.B, err = p.openRecording(k.against); err != nil {
			return err
		}
		if r.Comparison, err = check.Compare(r.A, r.B, o); err != nil {
			return cli.Invalid(err, "see the names of the figures with `spotter trace check "+cli.Shell([]string{path})+"`")
		}
		r.Statistics = r.Comparison.A
	} else {
		r.Statistics = measure.Measure(r.A, o.Options)
	}
	if k.plot != "" {
		if err := r.draw(k.plot, format, k.dark); err != nil {
			return err
		}
	}
	if err := p.Print(&k.form, r.object(), func(w io.Writer, _ bool) error {
		return r.write(w,
			k.form.String() == formMarkdown)
	}); err != nil {
		return err
	}
	return r.result()
}

// parse reads the flags.
func (k *checking) parse() (o check.Options, format chart.Format, err error) {
	if format, err = chart.ParseFormat(k.pictures); err != nil {
		return o, format, cli.Invalid(fmt.Errorf("--pictures: %w", err), "leave it out for svg")
	}
	if len(k.tolerances) > 0 && k.against == "" {
		return o, format, cli.Invalid(errors.New("--tolerance without --against: there is nothing to compare with"),
			"name a trace with --against")
	}
	o.Tolerances = map[string]float64{}
	for _, t := range k.tolerances {
		name, text, _ := strings.Cut(t, "=")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return o, format, cli.Invalid(fmt.Errorf("--tolerance: %q is not NAME=VALUE with a number for VALUE", t),
				"write for example --tolerance ratio=0.1")
		}
		o.Tolerances[name] = value
	}
	return o, format, nil
}

// result is errCheck if anything failed.
func (r *checked) result() error {
	if failures := check.Failures(r.Findings); len(failures) > 0 {
		return fmt.Errorf("%w: %s: %s", cli.ErrCheck, failures[0].Name, failures[0].Text)
	}
	if r.Comparison != nil && !r.Comparison.Passed {
		return fmt.Errorf("%w: %s", cli.ErrCheck, r.Comparison.Summary())
	}
	return nil
}

// write prints r as tables.
func (r *checked) write(w io.Writer, markdown bool) error {
	var body interface {
		WriteTable(io.Writer) error
		WriteMarkdown(io.Writer) error
	} = check.Report{Statistics: r.Statistics}
	if r.Comparison != nil {
		body = r.Comparison
	}
	write := body.WriteTable
	if markdown {
		write = body.WriteMarkdown
	}
	if err := write(w); err != nil {
		return err
	}
	if r.Comparison != nil && len(r.Findings) == 0 {
		return nil
	}
	heading := "\n%s"
	if markdown {
		heading = "\n```\n%s```\n"
	}
	_, err := fmt.Fprintf(w, heading, check.FindingsText(r.Findings))
	return err
}

// object returns r as programs read it.
func (r *checked) object() any {
	findings := r.Findings
	if findings == nil {
		findings = []check.Finding{}
	}
	if r.Comparison != nil {
		return struct {
			Comparison *check.Comparison `json:"comparison"`
			Findings   []check.Finding   `json:"findings"`
		}{r.Comparison, findings}
	}
	return struct {
		Statistics check.Report    `json:"statistics"`
		Findings   []check.Finding `json:"findings"`
	}{check.Report{Statistics: r.Statistics}, findings}
}

// openRecording reads a trace or, where path is not a trace, a file or a folder of files
// that can be imported as one.
func (p *program) openRecording(path string) (*trace.Trace, error) {
	srcs, err := recordings(path)
	if err != nil {
		return nil, cli.Invalid(err, "give a trace, a recording, a folder of either, or \"embedded\"")
	}
	if srcs == nil {
		t, err := input.OpenTrace(path)
		if err == nil {
			p.Warn(map[string]bool{}, t.Warnings)
		}
		return t, err
	}
	t, report, err := importer.Import(srcs, importer.Options{})
	if err != nil {
		return nil, cli.Invalid(err, "make a trace of it with `spotter trace import`, which takes more options")
	}
	t.Name = filepath.Base(path)
	warnings := t.Warnings
	if report.Bad > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %d of %d rows could not be used; the first: %s", path, report.Bad,
			report.Rows, report.BadRows[0]))
	}
	p.Warn(map[string]bool{}, warnings)
	return t, nil
}

// recordings returns the files to import for path, nil when it is a trace
// already.
func recordings(path string) ([]string, error) {
	if trace.IsEmbedded(path) {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return importable(path)
	}
	// Parquet files may be in subfolders; files that can be imported are in the folder itself.
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var srcs []string
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		src, err := importable(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		srcs = append(srcs, src...)
	}
	return srcs, nil
}

// importable returns the name of a file if it is no Parquet.
func importable(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err == nil && string(head) == "PAR1" {
		return nil, nil
	}
	return []string{path}, nil
}
