package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
)

// formMarkdown is the format of a comment on a pull request.
const formMarkdown = "markdown"

// forms maps a file extension to a format. Pictures require a sweep.
var forms = map[string]string{".md": formMarkdown, ".json": cli.FormJSON, ".yaml": cli.FormYAML, ".yml": cli.FormYAML,
	".txt": cli.FormTable, ".svg": "svg", ".png": "png"}

// checkOut returns an error for files that cannot be written, before anything is run.
func (c *call) checkOut(groups [][]change) error {
	sweep := slices.ContainsFunc(groups[0], func(x change) bool { return x.flag == flagSweep })
	for _, file := range c.out {
		form := forms[strings.ToLower(filepath.Ext(file))]
		switch _, err := chart.ParseFormat(form); {
		case form == "":
			return cli.Invalid(fmt.Errorf("--out: the extension of %q is not that of a format", file),
				"give one that ends with .svg, .png, .md, .json, .yaml or .txt")
		case err == nil && !sweep:
			return cli.Invalid(fmt.Errorf("--out: %s: a picture is drawn of a sweep", file),
				"give --sweep, or a file that ends with .md, .json, .yaml or .txt")
		}
		if err := cli.CheckOut("--out", file); err != nil {
			return err
		}
	}
	return nil
}

// write writes w to standard output and the files.
func (c *call) write(p *cli.Program, w *eval.WhatIf) error {
	for _, file := range append([]string{""}, c.out...) {
		form := c.form.String()
		if file != "" {
			form = forms[strings.ToLower(filepath.Ext(file))]
		}
		options := format.Options{Width: p.Width(file), Details: c.form.Details() || file != "", Color: p.Colors(file)}
		if err := p.Output(file, func(out io.Writer) error { return writeAs(out, w, form, options) }); err != nil {
			return err
		}
		if file != "" {
			fmt.Fprintf(p.Stderr, "written to %s\n", file)
		}
	}
	return nil
}

func writeAs(out io.Writer, w *eval.WhatIf, form string, o format.Options) error {
	switch form {
	case cli.FormJSON:
		return cli.WriteJSON(out, format.WhatIf(w))
	case cli.FormYAML:
		return cli.WriteYAML(out, format.WhatIf(w))
	case formMarkdown:
		return format.WriteWhatIfComment(out, w)
	}
	if kind, err := chart.ParseFormat(form); err == nil {
		return drawSweep(out, kind, w)
	}
	return format.WriteWhatIf(out, w, form == cli.FormWide, o)
}

// drawSweep draws the savings of the values of a sweep over their evictions.
func drawSweep(out io.Writer, kind chart.Format, w *eval.WhatIf) error {
	points, places := w.Tradeoffs()
	knee, bends := w.Knee()
	asIs, all, best := chart.Cloud{Name: w.AsIs.Name}, chart.Cloud{Name: w.Sweep, Joined: true}, chart.Cloud{}
	var detail []string
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(points[a].Price, points[b].Price) })
	for _, i := range order {
		of, name := &all, w.AsIs.Name
		switch place := places[i]; {
		case place < 0:
			of = &asIs
		case bends && place == knee:
			best = chart.Cloud{Name: "the knee: " + w.Variants[place].Name, X: []float64{points[i].Price},
				Y: []float64{points[i].Gain}}
			fallthrough
		default:
			name = w.Variants[place].Name
		}
		of.X, of.Y = append(of.X, points[i].Price), append(of.Y, points[i].Gain)
		detail = append(detail, fmt.Sprintf("%s saves %s at %s evictions.", name, figures.Dollars(points[i].Gain),
			figures.Number(points[i].Price, 2)))
	}
	if len(all.X) == 0 {
		return errors.New("no value of the sweep has results to draw")
	}
	picture := &chart.Points{Frame: chart.Frame{
		Title: "Savings and evictions by " + w.Sweep,
		Note: fmt.Sprintf("%s, %d seeds; medians against %s on the same weather.", w.Config.Cases[0].Scenario,
			len(w.Config.Seeds), w.AsIs.Name),
		X: chart.Axis{Label: "evictions per pod-day"}, Y: chart.Axis{Label: "$ saved a month"},
		Detail: strings.Join(detail, " "),
	}, Series: []chart.Cloud{all, asIs}}
	if best.Name != "" {
		picture.Series = append(picture.Series, best)
	}
	return chart.Write(out, kind, picture)
}
