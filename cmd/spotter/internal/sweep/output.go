package sweep

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/sweep"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
)

// write writes the files of r, all or none, and then the terminal.
func (f *call) write(p *cli.Program, r *sweep.Result) error {
	out := newResult(f, r)
	var drawn [][]string // pictures by race
	contents := map[string][]byte{}
	add := func(path string, write func(io.Writer) error) error {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		contents[path] = b.Bytes()
		out.Files = append(out.Files, path)
		return nil
	}
	if err := add(filepath.Join(f.out, "runs.parquet"), r.WriteParquet); err != nil {
		return err
	}
	for i := range r.Races {
		x := &r.Races[i]
		if err := add(f.fileOf(r, "chosen", ".yaml", i), func(w io.Writer) error { _, err := w.Write(x.Candidates[x.Chosen].Text); return err }); err != nil {
			return err
		}
		var pictures []string
		for k := range prices {
			path := f.fileOf(r, prices[k].name, ".svg", i)
			if err := add(path, func(w io.Writer) error { return chart.Write(w, chart.SVG, picture(r, x, k)) }); err != nil {
				return err
			}
			pictures = append(pictures, string(contents[path]))
		}
		drawn = append(drawn, pictures)
	}
	if err := add(filepath.Join(f.out, "index.html"), func(w io.Writer) error { return writePage(w, out, drawn, p.Version) }); err != nil {
		return err
	}
	if err := cli.ReplaceFiles(out.Files, func(w io.Writer, i int) error { _, err := w.Write(contents[out.Files[i]]); return err }); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return p.Print(&f.form, out, func(w io.Writer, wide bool) error { return writeTable(w, out, wide, f.form.Details()) })
}

// title says under which conditions a race was.
func (x *race) title() string {
	return sweep.Name(x.of.Conditions)
}

// picture draws what candidates save over a price.
func picture(r *sweep.Result, x *sweep.Race, k int) *chart.Points {
	all := points(x, prices[k].of)
	left, dropped, asItIs, best := chart.Cloud{Name: "left at the end"}, chart.Cloud{Name: "dropped"}, chart.Cloud{Name: sweep.AsItIs}, chart.Cloud{Name: "chosen: " + x.Candidates[x.Chosen].Name}
	front := chart.Cloud{Name: "front", Joined: true}
	for i, at := range all {
		of := &left
		switch {
		case i == x.Chosen:
			of = &best
		case i == 0:
			of = &asItIs
		case x.Candidates[i].Dropped:
			of = &dropped
		}
		of.X, of.Y = append(of.X, at.Price), append(of.Y, at.Gain)
	}
	for _, i := range eval.Front(all) {
		front.X, front.Y = append(front.X, all[i].Price), append(front.Y, all[i].Gain)
	}
	title := "Savings over " + prices[k].name + ": " + r.Plan.Name
	if name := sweep.Name(x.Conditions); name != "" {
		title += ", " + name
	}
	drawn := &chart.Points{Frame: chart.Frame{
		Title: title, Note: fmt.Sprintf("%s, %d candidates, up to %d seeds; candidates that dropped have fewer.", r.Scenario, len(all), len(x.Seeds)),
		X: chart.Axis{Label: prices[k].label}, Y: chart.Axis{Label: "net savings, % of the on-demand bill (median)"},
	}}
	for _, c := range []chart.Cloud{front, left, dropped, asItIs, best} {
		if len(c.X) > 0 {
			drawn.Series = append(drawn.Series, c)
		}
	}
	return drawn
}

// sorted returns the candidates of a race, those that save most first.
func sorted(x *race) []candidate {
	out := slices.Clone(x.Candidates)
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(b.Saved, a.Saved) })
	return out
}

// rowsShown is how many candidates a table has that is not to have all.
const rowsShown = 8

// writeTable writes the result of a sweep for a terminal, with details also what candidates save over
// what it costs.
func writeTable(w io.Writer, r *result, wide, details bool) error {
	var b bytes.Buffer
	for i := range r.Races {
		x := &r.Races[i]
		b.WriteString(strings.Join(words(x), "\n") + "\n\n")
		fmt.Fprintf(&b, "%s: %d candidates, %d seeds", r.Scenario, len(x.Candidates), len(x.Seeds))
		if len(x.of.Cases) > 1 {
			fmt.Fprintf(&b, ", %d windows", len(x.of.Cases))
		}
		if name := x.title(); name != "" {
			fmt.Fprintf(&b, ", with %s", name)
		}
		b.WriteString("\n\n")
		if err := writeCandidates(&b, x, wide || details); err != nil {
			return err
		}
		names := sorted(x)
		for k := range prices {
			if !details {
				break
			}
			all := points(x.of, prices[k].of)
			if !slices.ContainsFunc(all, func(t eval.Tradeoff) bool { return t.Price != all[0].Price }) {
				continue // there is nothing to weigh
			}
			b.WriteString("\n" + format.Frontier(all, func(i int) string {
				return markOf(slices.IndexFunc(names, func(c candidate) bool { return c.Name == x.of.Candidates[i].Name }), i == 0)
			}, "% saved", prices[k].label, func(g float64) string { return figures.Number(g, 1) }))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "written to %s\n", filepath.Dir(r.Files[0]))
	_, err := w.Write(b.Bytes())
	return err
}

// markOf is the mark of the candidate in a row of the table.
func markOf(row int, asItIs bool) string {
	const marks = "123456789abcdefghijklmnopqrstuvwxyz"
	switch {
	case asItIs:
		return "○"
	case row < len(marks):
		return marks[row : row+1]
	}
	return "•"
}

func writeCandidates(b *bytes.Buffer, x *race, wide bool) error {
	var rows [][]string
	more := 0
	for i, c := range sorted(x) {
		best := c.Name == x.Chosen.Name
		if !wide && i >= rowsShown && !best && c.Name != sweep.AsItIs {
			more++
			continue
		}
		rows = append(rows, []string{
			markOf(i, c.Name == sweep.AsItIs) + "  " + c.Name, figures.Number(c.Saved, 1), figures.Signed(c.Change, 1), figures.Number(c.Outage, 1) + " / " + figures.Number(c.OutageMax, 0),
			figures.Number(c.Evictions, 2), c.note(best),
		})
	}
	if err := cli.Columns(b, []string{"CANDIDATE", "SAVED %", "CHANGE, POINTS", "OUTAGE MIN (MEAN / MAX)", "EVICTIONS/POD-DAY", ""}, rows); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(b, "and %d more: --details shows them\n", more)
	}
	return nil
}

// note says what became of a candidate.
func (c *candidate) note(chosen bool) string {
	var parts []string
	if chosen {
		parts = append(parts, "chosen")
	}
	if c.Dropped {
		parts = append(parts, fmt.Sprintf("dropped after rung %d", c.Rungs))
	}
	if c.Front {
		parts = append(parts, "front")
	}
	return strings.Join(parts, ", ")
}

// words say what was chosen.
func words(x *race) []string {
	c := &x.Chosen
	lines := []string{"Chosen: " + c.Name}
	if c.Outcome == outcomeKeep {
		lines[0] = "Chosen: " + c.Name + ", since " + c.Outcome
	} else {
		interval := "too few for an interval"
		if c.Low != nil {
			interval = "interval " + figures.Signed(*c.Low, 2) + " to " + figures.Signed(*c.High, 2)
		}
		lines = append(lines,
			fmt.Sprintf("  on the %d seeds it was chosen by: %s points against as it is, which it was chosen for", len(x.Seeds), figures.Signed(c.Selection, 2)),
			fmt.Sprintf("  on %d fresh seeds: %s points, %s: %s", len(x.FreshSeeds), figures.Signed(c.Fresh, 2), interval, c.Outcome),
			fmt.Sprintf("  there it saves %s against %s, with %s outage minutes against %s", figures.Percent(c.Saved, 1), figures.Percent(c.AsItIs, 1), figures.Number(c.Outage, 1), figures.Number(c.AsItIsOut, 1)))
	}
	if n := x.of.Need; n > 0 {
		lines = append(lines, fmt.Sprintf("  none could drop out in the last rung: that needs %d seeds, or windows; raise --seeds", n))
	}
	return append(lines, "  again: "+c.Command)
}

// writePage writes a sweep for a browser. A template of the standard library would keep
// every method of every type in the program, and make it half as large again.
func writePage(w io.Writer, r *result, drawn [][]string, version string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, pageHead, html.EscapeString(r.Sweep))
	fmt.Fprintf(&b, "<h1>Sweep %s</h1>\n<p>%s, %s, seed %d, %d runs. Made by Spotter %s.</p>\n",
		html.EscapeString(r.Sweep), html.EscapeString(r.Scenario), html.EscapeString(r.Method), r.Seed, r.Runs, html.EscapeString(version))
	for i := range r.Races {
		x := &r.Races[i]
		if name := x.title(); name != "" {
			fmt.Fprintf(&b, "<h2>%s</h2>\n", html.EscapeString(name))
		}
		fmt.Fprintf(&b, "<pre>%s</pre>\n", html.EscapeString(strings.Join(words(x), "\n")))
		for _, picture := range drawn[i] {
			fmt.Fprintf(&b, "<p>%s</p>\n", picture) // chart escapes what it writes
		}
		b.WriteString("<table>\n<tr>")
		for _, name := range []string{"Candidate", "Saved %", "Change, points", "Outage min, mean", "max", "Evictions/pod-day", "Rungs"} {
			fmt.Fprintf(&b, "<th scope=\"col\">%s</th>", name)
		}
		b.WriteString("</tr>\n")
		for _, c := range sorted(x) {
			front, dropped := "", ""
			if c.Front {
				front = " (front)"
			}
			if c.Dropped {
				dropped = ", dropped"
			}
			fmt.Fprintf(&b, "<tr><td>%s%s</td><td>%.1f</td><td>%+.1f</td><td>%.1f</td><td>%.0f</td><td>%.2f</td><td>%d%s</td></tr>\n",
				html.EscapeString(c.Name), front, c.Saved, c.Change, c.Outage, c.OutageMax, c.Evictions, c.Rungs, dropped)
		}
		b.WriteString("</table>\n")
	}
	b.WriteString("</body>\n</html>\n")
	_, err := w.Write(b.Bytes())
	return err
}

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>Sweep %s</title>
<style>body{font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}svg{max-width:100%%;height:auto}pre{overflow-x:auto;background:#eee;padding:1rem}td,th{padding:.2rem .8rem;text-align:right}td:first-child,th:first-child{text-align:left}table{border-collapse:collapse}tr:nth-child(even){background:#f4f4f4}</style>
</head>
<body>
`
