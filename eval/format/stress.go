package format

import (
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

// WriteStress writes a stress in format f.
func WriteStress(w io.Writer, of *eval.Stress, f Format, o Options) error {
	s := stress{of}
	switch f {
	case Table, Wide:
		return s.answer().Write(w, o.columns(f))
	case JSON:
		return s.writeJSON(w)
	case YAML:
		return asYAML(w, s.writeJSON)
	case Markdown:
		return s.writeMarkdown(w)
	case CSV:
		return writeCSV(w, s.Reports...)
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
func (s stress) headline() (lines []string) {
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

// grid returns the table for a terminal: two lines of each policy, net savings and outage minutes.
func (s stress) grid(scenario string) Grid {
	// A long name goes on in the second line, where its parameters begin.
	split := func(name, at string) (string, string) {
		if i := strings.Index(name, at); i > 0 {
			return name[:i], name[i:]
		}
		return name, ""
	}
	top, under := []string{"POLICY"}, []string{""}
	if len(s.Scenarios()) > 1 {
		top[0] = scenario
	}
	for _, t := range s.Truths {
		first, second := split(t.String(), "-")
		top, under = append(top, first), append(under, strings.TrimPrefix(second, "-"))
	}
	t := Grid{Headings: [][]string{append(top, "WORST"), append(under, "")}}
	for i, x := range s.Rows(scenario) {
		first, second := split(stressLabel(&x), ":")
		saved, outage := []string{first}, []string{second}
		for _, c := range x.Cells {
			saved, outage = append(saved, textOf(c.Saved, percent)), append(outage, textOf(c.Outage, figures.Whole))
		}
		worst, longest := x.Worst()
		t.Rows = append(t.Rows, Row{Cells: append(saved, textOf(worst, percent)), First: i == 0 && worst.Known}, Row{Cells: append(outage, textOf(longest, figures.Whole))})
	}
	return t
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

// answer makes an answer of the stress.
func (s stress) answer() *Answer {
	failed, passed := s.gateLines()
	a := &Answer{About: s.title(), Failed: failed, Warnings: s.missingLines(), Details: s.sections(passed), Legend: []string{
		strings.TrimSpace(firstMark) + " saves most where it saves least. Of each policy the first line is what it saves, in percent of the on-demand bill, outages deducted; the second is the outage minutes of its worst run.",
	}}
	for i, line := range s.headline() {
		v := Verdict{Text: line}
		if i == 0 {
			v.Tone = s.tone()
		}
		a.Verdicts = append(a.Verdicts, v)
	}
	for _, scenario := range s.Scenarios() {
		a.Tables = append(a.Tables, s.grid(scenario))
	}
	if again := s.Reports[0].Config.Invocation; again != "" {
		a.Next = Step{"keep the figures of every run", again + " --out results.json"}
	}
	return a
}

// tone says whether every run was done and every gate holds.
func (s stress) tone() Tone {
	tone := Plain
	for _, r := range s.Reports {
		switch {
		case r.ExitCode() != 0:
			return Bad
		case len(r.Gates) > 0:
			tone = Good
		}
	}
	return tone
}

// sections are what an answer has on request.
func (s stress) sections(passed []string) []Section {
	return []Section{
		{Heading: "Truths", Items: s.truthLines(), rank: rankFound}, {Heading: "Worst runs", Items: s.worstLines(), rank: rankWhy},
		{Heading: "Missing runs", Items: s.missingLines(), rank: rankWhy}, {Heading: "Gates that passed", Items: passed, rank: rankNote},
		{Heading: "Notes", Items: s.notes(), rank: rankNote}, {Heading: "Configuration", Items: Settings(s.Reports[0]), rank: rankNote},
	}
}

// writeMarkdown writes the stress as GitHub's Markdown, at most [MarkdownMax] long.
func (s stress) writeMarkdown(w io.Writer) error {
	head := "# " + escape(s.title()) + "\n"
	for _, line := range s.headline() {
		head += "\n**" + escape(line) + "**\n"
	}
	failed, passed := s.gateLines()
	parts := []Section{{Heading: "Gates", Items: failed, rank: rankWhy}}
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
		parts = append(parts, Section{Heading: scenario, About: "Net savings, % / outage minutes.", Table: plainTable(heading, rows), rank: rankFound, What: "policies"})
	}
	_, err := io.WriteString(w, cutToFit(head, sectionBlocks(append(parts, s.sections(passed)...)), MarkdownMax))
	return err
}

// stressLabel is the policy with the mark of those that do not keep the manifests.
func stressLabel(x *eval.StressRow) string {
	if x.Violating > 0 {
		return x.Policy + " !"
	}
	return x.Policy
}
