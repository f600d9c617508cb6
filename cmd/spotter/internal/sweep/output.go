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

// write writes all files of r or none, and then the answer to standard output.
func (f *call) write(p *cli.Program, r *sweep.Result) error {
	out := newResult(f, r)
	var drawn [][]string // SVG charts by race
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
		if err := add(f.fileOf(r, "chosen", ".yaml", i), func(w io.Writer) error {
			_, err := w.Write(x.Candidates[x.Chosen].Text)
			return err
		}); err != nil {
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
	if err := add(filepath.Join(f.out, "index.html"), func(w io.Writer) error {
		return writePage(w, out, drawn, p.Version)
	}); err != nil {
		return err
	}
	if err := cli.ReplaceFiles(out.Files, func(w io.Writer, i int) error {
		_, err := w.Write(contents[out.Files[i]])
		return err
	}); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return p.Print(&f.form, out, func(w io.Writer, wide bool) error {
		return answer(out).Write(w, format.Options{Width: p.Width(""), Color: p.Colors(""), Details: f.form.Details(),
			Wide: wide})
	})
}

// title returns the conditions of a race; empty for a race without conditions.
func (x *race) title() string {
	return sweep.Name(x.of.Conditions)
}

// picture returns a chart of the savings of candidates over their price k.
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
		Title: title, Note: fmt.Sprintf("%s, %d candidates, up to %d seeds; candidates that dropped have fewer.",
			r.Scenario, len(all), len(x.Seeds)),
		X: chart.Axis{Label: prices[k].label}, Y: chart.Axis{Label: "net savings, % of the on-demand bill (median)"},
	}}
	for _, c := range []chart.Cloud{front, left, dropped, asItIs, best} {
		if len(c.X) > 0 {
			drawn.Series = append(drawn.Series, c)
		}
	}
	return drawn
}

// sorted returns the candidates of a race in descending order of savings.
func sorted(x *race) []candidate {
	out := slices.Clone(x.Candidates)
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(b.Saved, a.Saved) })
	return out
}

// rowsShown is the maximum number of candidates in a short table.
const rowsShown = 8

// answer returns the output for a sweep.
func answer(r *result) *format.Answer {
	about := fmt.Sprintf("%s · %d runs · written to %s", r.Scenario, r.Runs, filepath.Dir(r.Files[0]))
	a := &format.Answer{About: about, Next: format.Step{Do: "run what was chosen again, on the fresh seeds"}}
	var commands []string
	for i := range r.Races {
		x := &r.Races[i]
		a.Verdicts = append(a.Verdicts, verdicts(x)...)
		a.Tables = append(a.Tables, candidates(x))
		if n := x.of.Need; n > 0 {
			a.Warnings = append(a.Warnings,
				fmt.Sprintf("none could drop out in the last rung: that needs %d seeds, or windows; raise --seeds", n))
		}
		commands = append(commands, x.Chosen.Command)
		a.Details = append(a.Details, frontiers(x)...)
	}
	a.Next.Command = strings.Join(commands, "\n")
	return a
}

// verdicts describe the choice in a race.
func verdicts(x *race) []format.Verdict {
	c := &x.Chosen
	chosen := "Chosen: " + c.Name
	if name := x.title(); name != "" {
		chosen = "With " + name + ", chosen: " + c.Name
	}
	if c.Outcome == outcomeKeep {
		return []format.Verdict{{Text: chosen + ", since " + c.Outcome + "."}}
	}
	interval := "too few for an interval"
	if c.Low != nil {
		interval = "interval " + figures.Signed(*c.Low, 2) + " to " + figures.Signed(*c.High, 2)
	}
	tone := map[string]format.Tone{outcomeBetter: format.Good, outcomeWorse: format.Bad,
		outcomeUndecided: format.Unsure}[c.Outcome]
	return []format.Verdict{
		{Tone: tone, Text: fmt.Sprintf("%s; on %d fresh seeds: %s points, %s: %s.", chosen, len(x.FreshSeeds),
			figures.Signed(c.Fresh, 2), interval, c.Outcome)},
		{Text: fmt.Sprintf("There it saves %s against %s, with %s outage minutes against %s.",
			figures.Percent(c.Saved, 1), figures.Percent(c.AsItIs, 1),
			figures.Number(c.Outage, 1), figures.Number(c.AsItIsOut, 1))},
		{Text: fmt.Sprintf("On the %d seeds that it was chosen by: %s points.", len(x.Seeds),
			figures.Signed(c.Selection, 2))},
	}
}

// candidates returns the table of a race, in descending order of savings.
func candidates(x *race) format.Grid {
	t := format.Grid{Headings: format.Headings("CANDIDATE", "SAVED %", "CHANGE, POINTS", "OUTAGE MIN", "EVICTIONS",
		"RUNGS", "")}
	t.Headings[3].Under, t.Headings[4].Under = "mean / max", "/pod-day"
	for i, c := range sorted(x) {
		mark := i
		if c.Name == sweep.AsItIs {
			mark = -1
		}
		row := format.Cells(format.Mark(mark)+"  "+c.Name, figures.Number(c.Saved, 1), figures.Signed(c.Change, 1),
			figures.Number(c.Outage, 1)+" / "+figures.Number(c.OutageMax, 0),
			figures.Number(c.Evictions, 2), fmt.Sprint(c.Rungs), c.note())
		row.First = c.Name == x.Chosen.Name
		row.Wide = i >= rowsShown && mark >= 0 && !row.First
		t.Rows = append(t.Rows, row)
	}
	return t
}

// note describes the result of a candidate.
func (c *candidate) note() string {
	var parts []string
	if c.Dropped {
		parts = append(parts, "dropped")
	}
	if c.Front {
		parts = append(parts, "front")
	}
	return strings.Join(parts, ", ")
}

// frontiers returns a chart of savings over each price that differs between candidates.
func frontiers(x *race) (out []format.Section) {
	names := sorted(x)
	for k := range prices {
		all := points(x.of, prices[k].of)
		if !slices.ContainsFunc(all, func(t eval.Tradeoff) bool { return t.Price != all[0].Price }) {
			continue
		}
		out = append(out, format.Section{Heading: strings.TrimSpace("Savings over " + prices[k].name + " " + x.title()),
			Picture: format.Frontier(all, func(i int) string {
				if i == 0 {
					return format.Mark(-1)
				}
				return format.Mark(slices.IndexFunc(names, func(c candidate) bool { return c.Name == x.of.Candidates[i].Name }))
			}, "% saved", prices[k].label, func(g float64) string { return figures.Number(g, 1) })})
	}
	return out
}

// writePage writes a sweep as an HTML page. It uses no template of the standard library, since
// html/template would keep every method of every type in the binary and increase its size by half.
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
		for _, v := range verdicts(x) {
			fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(v.String()))
		}
		fmt.Fprintf(&b, "<pre>%s</pre>\n", html.EscapeString(x.Chosen.Command))
		for _, picture := range drawn[i] {
			fmt.Fprintf(&b, "<p>%s</p>\n", picture) // chart escapes its output
		}
		b.WriteString(candidates(x).HTML())
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
<style>body{font-family:system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}svg{max-width:100%%;height:auto}pre{overflow-x:auto;background:#eee;padding:1rem}td,th{padding:.2rem .8rem;text-align:right}th:first-child{text-align:left}tr th[scope=row]{font-weight:normal}table{border-collapse:collapse}tr:nth-child(even){background:#f4f4f4}</style>
</head>
<body>
`
