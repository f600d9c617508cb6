package format

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A stress is one in words.
type stress struct{ *eval.Stress }

// StressFormats lists the formats that a [eval.Stress] has.
func StressFormats() []Format { return []Format{Table, Wide, JSON, YAML, Markdown, CSV, Parquet} }

// WriteStress writes a stress in format f. Width is that of the terminal, in columns, and
// is read by the table only; 0 means 120.
func WriteStress(w io.Writer, of *eval.Stress, f Format, width int) error {
	s := stress{of}
	switch f {
	case Table:
		return s.writeTable(w, width)
	case Wide:
		return s.writeTable(w, max(width, allColumns))
	case JSON:
		return s.writeJSON(w)
	case YAML:
		return asYAML(w, s.writeJSON)
	case Markdown:
		return s.writeMarkdown(w)
	case CSV:
		return s.writeCSV(w)
	case Parquet:
		return writeParquet(w, s.Reports...)
	}
	return fmt.Errorf("%w: format %q is none of %v, which a stress has", eval.ErrConfig, f, StressFormats())
}

// title says what is compared, in one line.
func (s stress) title() string {
	title := fmt.Sprintf("%s under each of %s: %s in all", compared(s.Reports[0]), figures.Count(len(s.Truths), "truth"), figures.Count(s.runs(), "run"))
	if s.Stopped {
		title = fmt.Sprintf("INCOMPLETE: stopped after %d of the runs under %s of %d; ", s.done(), figures.Count(len(s.Truths), "truth"), len(weather.Truths())) + title
	}
	return title
}

// sum adds up a count over all reports.
func (s stress) sum(count func(*eval.Report) int) (n int) {
	for _, r := range s.Reports {
		n += count(r)
	}
	return n
}

// runs returns how many there are, done how many were done, those that failed
// included, and missing how many of them failed.
func (s stress) runs() int    { return s.sum(func(r *eval.Report) int { return len(r.Runs) }) }
func (s stress) done() int    { return s.sum((*eval.Report).Done) }
func (s stress) missing() int { return s.sum((*eval.Report).Missing) }

// headline says of each scenario which policy comes through best.
func (s stress) headline() []string {
	var lines []string
	for _, scenario := range s.Scenarios() {
		x := &s.Rows(scenario)[0]
		saved, outage := x.Worst()
		if !saved.Known || !outage.Known {
			continue
		}
		out := "none of its runs has an outage minute under any truth"
		if outage.V > 0 {
			out = fmt.Sprintf("its worst run has %s outage min, under %v", figures.Whole(outage.V), s.Truths[x.Longest])
		}
		lines = append(lines, fmt.Sprintf("%s: %s saves most where it saves least, %s under %v; %s.", scenario, x.Policy, figures.Percent(saved.V, 1), s.Truths[x.Least], out))
	}
	return lines
}

// legend says how cells are read.
const legend = "Net savings are in percent of the on-demand bill, after what outages cost, the median over runs; outage minutes are those of the worst run. " +
	"Worst is the least saved and the most minutes under any truth, and policies are ranked by it; ! marks a policy that did not keep the manifests, behind those that do."

// grid returns headings and rows for a terminal: two lines of each policy, net
// savings and outage minutes.
func (s stress) grid(scenario string) (headings, rows [][]string) {
	// A long name goes on in the second line, where its parameters begin.
	split := func(name, at string) (string, string) {
		if i := strings.Index(name, at); i > 0 {
			return name[:i], name[i:]
		}
		return name, ""
	}
	headings = [][]string{{"POLICY"}, {""}}
	for _, t := range s.Truths {
		top, under := split(t.String(), "-")
		headings[0], headings[1] = append(headings[0], top), append(headings[1], strings.TrimPrefix(under, "-"))
	}
	headings[0], headings[1] = append(headings[0], "WORST"), append(headings[1], "")
	for _, x := range s.Rows(scenario) {
		top, under := split(stressLabel(&x), ":")
		saved, outage := []string{top}, []string{under}
		for _, c := range x.Cells {
			saved, outage = append(saved, textOf(c.Saved, percent)), append(outage, textOf(c.Outage, figures.Whole))
		}
		worst, longest := x.Worst()
		rows = append(rows, append(saved, textOf(worst, percent)), append(outage, textOf(longest, figures.Whole)))
	}
	return headings, rows
}

// truthLines say what each truth is.
func (s stress) truthLines() []string {
	lines := []string{s.Truths[0].String() + ": the market as the model has it, with the constants that policies know"}
	for _, t := range s.Truths[1:] {
		lines = append(lines, t.String()+": "+t.About)
	}
	return lines
}

// gateLines are the results under every truth, those that failed first.
func (s stress) gateLines() (failed, passed []string) {
	for i, r := range s.Reports {
		for k := range r.Gates {
			line := s.Truths[i].String() + ": " + gateLine(r, &r.Gates[k])
			if r.Gates[k].Pass {
				passed = append(passed, line)
			} else {
				failed = append(failed, line)
			}
		}
	}
	return failed, passed
}

// worstLines name of every policy the run that saves least under the truth that is
// worst for it, and the one with the most outage minutes where it has any and is
// another.
func (s stress) worstLines() []string {
	var lines []string
	for _, scenario := range s.Scenarios() {
		for _, x := range s.Rows(scenario) {
			for _, of := range s.worstRuns(&x) {
				r := s.Reports[of.truth]
				run := &r.Runs[of.run]
				lines = append(lines, fmt.Sprintf("%s, %s, %s under %v: saved %s, %s outage min\n    %s", scenario, x.Policy, of.why, s.Truths[of.truth],
					textOf(run.Value("net_savings_pct"), percents), textOf(run.Value("outage_minutes"), figures.Whole), r.Command(of.run)))
			}
		}
	}
	return lines
}

// A worstRun is a run with why it is named.
type worstRun struct {
	why        string
	truth, run int
}

func (s stress) worstRuns(x *eval.StressRow) []worstRun {
	var out []worstRun
	if x.Least >= 0 {
		out = append(out, worstRun{"the least saved", x.Least, x.Cells[x.Least].LeastRun})
	}
	if x.Longest < 0 || x.Cells[x.Longest].Outage.V == 0 {
		return out
	}
	longest := worstRun{"the most outage", x.Longest, x.Cells[x.Longest].LongestRun}
	if len(out) > 0 && out[0].truth == longest.truth && out[0].run == longest.run {
		return out
	}
	return append(out, longest)
}

// missingLines name the runs that failed, the first ones with their error.
func (s stress) missingLines() []string {
	var lines []string
	for _, r := range s.Reports {
		lines = append(lines, missingLines(r)...)
	}
	return lines
}

// notes are the sentences below the tables.
func (s stress) notes() []string {
	r := s.Reports[0]
	notes := append([]string{legend,
		"What is published stays as it is under every truth: bands of interruption, placement scores, forecasts that a trace brings. Policies and forecasters keep their constants."},
		traceNotes(r)...)
	if slices.ContainsFunc(r.Config.Cases, func(k eval.Case) bool { return k.Bound.Available != nil }) {
		notes = append(notes, "When a recorded market falls short is recorded and the same under every truth; which nodes that takes, and with which notice, is drawn.")
	}
	if slices.ContainsFunc(r.Config.Cases, func(k eval.Case) bool { return strings.Contains(k.Bound.Reclaims(), "price and bid") }) {
		notes = append(notes, "In auctions price and bid decide what is lost: of the truths those of prices, notices and slots act there.")
	}
	return append(notes, scenarioNotes(&r.Config)...)
}

func (s stress) writeTable(w io.Writer, width int) error {
	b := new(bytes.Buffer)
	p := printer{b, cmp.Or(width, defaultWidth)}
	p.text("", s.title())
	scenarios := s.Scenarios()
	for _, scenario := range scenarios {
		p.blank()
		if len(scenarios) > 1 {
			p.text("", scenario)
		}
		p.wide(s.grid(scenario))
	}
	p.blank()
	for _, line := range s.headline() {
		p.text("", line)
	}
	p.text("", "Of each policy the first line is what it saves and the second its outage minutes.")
	failed, passed := s.gateLines()
	p.list("Truths", s.truthLines())
	p.list("Gates", append(failed, passed...))
	p.list("Worst runs", s.worstLines())
	p.list("Missing runs: "+fmt.Sprint(s.missing()), s.missingLines())
	p.list("Notes", s.notes())
	p.list("Configuration", Settings(s.Reports[0]))
	_, err := w.Write(b.Bytes())
	return err
}

// writeMarkdown writes the stress as GitHub's Markdown, at most [MarkdownMax] long.
func (s stress) writeMarkdown(w io.Writer) error {
	head := "# " + escape(s.title()) + "\n"
	for _, line := range s.headline() {
		head += "\n**" + escape(line) + "**\n"
	}
	failed, passed := s.gateLines()
	blocks := []block{listBlock("Gates", failed, rankWhy)}
	heading := []string{"policy"}
	for _, t := range s.Truths {
		heading = append(heading, t.String())
	}
	heading = append(heading, "worst")
	for _, scenario := range s.Scenarios() {
		var rows [][]string
		for _, x := range s.Rows(scenario) {
			row := []string{stressLabel(&x)}
			for _, c := range x.Cells {
				row = append(row, textOf(c.Saved, percent)+" / "+textOf(c.Outage, figures.Whole))
			}
			saved, outage := x.Worst()
			rows = append(rows, append(row, textOf(saved, percent)+" / "+textOf(outage, figures.Whole)))
		}
		about := "\n## " + escape(scenario) + "\n\nNet savings, % / outage minutes.\n"
		blocks = append(blocks, tableBlock(about, heading, rows, rankFound, "policies"))
	}
	blocks = append(blocks, listBlock("Truths", s.truthLines(), rankFound), listBlock("Worst runs", s.worstLines(), rankWhy),
		listBlock("Missing runs", s.missingLines(), rankWhy), listBlock("Gates that passed", passed, rankNote),
		listBlock("Notes", s.notes(), rankNote), listBlock("Configuration", Settings(s.Reports[0]), rankNote))
	_, err := io.WriteString(w, cutToFit(head, blocks, MarkdownMax))
	return err
}

// writeCSV writes the lines of all reports.
func (s stress) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHeading()); err != nil {
		return err
	}
	for _, r := range s.Reports {
		if err := csvLines(r, out); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// stressLabel is the policy with the mark of those that do not keep the manifests.
func stressLabel(x *eval.StressRow) string {
	if x.Violating > 0 {
		return x.Policy + " !"
	}
	return x.Policy
}
