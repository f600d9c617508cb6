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

// A stress formats the result of a stress test in words.
type stress struct{ *eval.Stress }

// StressFormats returns the formats of a [eval.Stress].
func StressFormats() []Format { return []Format{Table, Wide, JSON, YAML, Markdown, CSV, Parquet} }

// WriteStress writes the result of a stress test in format f.
func WriteStress(w io.Writer, of *eval.Stress, f Format, o Options) error {
	s := stress{of}
	switch f {
	case Table, Wide:
		return s.answer().Write(w, o.of(f))
	case JSON:
		return s.writeJSON(w)
	case YAML:
		return asYAML(w, s.writeJSON)
	case Markdown:
		return s.answer().Markdown(w)
	case CSV:
		return writeCSV(w, s.Reports...)
	case Parquet:
		return writeParquet(w, s.Reports...)
	}
	return fmt.Errorf("%w: format %q is not one of %v, which a stress has", eval.ErrConfig, f, StressFormats())
}

// answer returns the answer to the stress test.
func (s stress) answer() *Answer {
	failed, passed := s.gateLines()
	a := &Answer{
		Verdicts: verdicts(s.tone(), s.headline()), About: s.title(), Failed: failed, Warnings: s.missingLines(),
		Legend: []string{firstMark + "saves most where it saves least. Of each policy the first line is what it saves, in " +
			"percent of the on-demand bill, " +
			"outages deducted; the second is the outage minutes of its worst run."},
		Details: []Section{
			{Heading: "Truths", Items: s.truthLines(), rank: rankFound}, {Heading: "Worst runs", Items: s.worstLines()},
			{Heading: "Gates that passed", Items: passed, rank: rankNote},
			{Heading: "Notes", Items: s.notes(), rank: rankNote},
			{Heading: "Configuration", Items: Settings(s.Reports[0]), rank: rankNote},
		},
	}
	for _, scenario := range s.Scenarios() {
		a.Tables = append(a.Tables, s.grid(scenario))
	}
	if again := s.Reports[0].Config.Invocation; again != "" {
		a.Next = Step{"keep the figures of every run", again + " --out results.json"}
	}
	return a
}

// title describes the scope of the comparison in one line.
func (s stress) title() string {
	title := fmt.Sprintf("%s under each of %s: %s in all", compared(s.Reports[0]),
		figures.Count(len(s.Truths), "truth"), figures.Count(s.runs(), "run"))
	if s.Stopped {
		return fmt.Sprintf("INCOMPLETE: stopped after %d of the runs under %s of %d; ", s.done(),
			figures.Count(len(s.Truths), "truth"), len(weather.Truths())) + title
	}
	return title
}

// sum returns the sum of a count over all reports.
func (s stress) sum(count func(*eval.Report) int) (n int) {
	for _, r := range s.Reports {
		n += count(r)
	}
	return n
}

// runs returns the number of runs, done the number of finished runs including failed ones, and
// missing the number of failed runs.
func (s stress) runs() int    { return s.sum(func(r *eval.Report) int { return len(r.Runs) }) }
func (s stress) done() int    { return s.sum((*eval.Report).Done) }
func (s stress) missing() int { return s.sum((*eval.Report).Missing) }

// headline names the best policy of each scenario.
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
		lines = append(lines, fmt.Sprintf("%s: %s saves most where it saves least, %s under %v; %s.",
			scenario, x.Policy, figures.Percent(saved.V, 1), s.Truths[x.Least], out))
	}
	return lines
}

// tone returns the worst tone of all reports.
func (s stress) tone() Tone {
	tone := Plain
	for _, r := range s.Reports {
		if t := toneOf(r); t != Plain && tone != Bad {
			tone = t
		}
	}
	return tone
}

// grid returns the net savings and outage minutes of each policy under each truth.
func (s stress) grid(scenario string) Grid {
	cell := func(saved, outage eval.Value) Cell {
		return Cell{Text: textOf(saved, percent), Under: textOf(outage, figures.Whole)}
	}
	t := Grid{Headings: Headings("POLICY")}
	if len(s.Scenarios()) > 1 {
		t.Headings[0].Top = scenario
	}
	for _, truth := range s.Truths {
		h := Heading{Top: truth.String()}
		if i := strings.Index(h.Top, "-"); i > 0 {
			h.Top, h.Under = h.Top[:i+1], h.Top[i+1:]
		}
		t.Headings = append(t.Headings, h)
	}
	t.Headings = append(t.Headings, Heading{Top: "WORST"})
	for i, x := range s.Rows(scenario) {
		worst, longest := x.Worst()
		row := Cells(x.Policy)
		if x.Violating > 0 {
			row.Cells[0].Text += " !"
		}
		for _, c := range x.Cells {
			row.Cells = append(row.Cells, cell(c.Saved, c.Outage))
		}
		row.Cells, row.First = append(row.Cells, cell(worst, longest)), i == 0 && worst.Known
		t.Rows = append(t.Rows, row)
	}
	return t
}

// truthLines describes each truth.
func (s stress) truthLines() []string {
	lines := []string{s.Truths[0].String() + ": the market as the model has it, with the constants that policies know"}
	for _, t := range s.Truths[1:] {
		lines = append(lines, t.String()+": "+t.About)
	}
	return lines
}

// gateLines returns the results of gates under every truth.
func (s stress) gateLines() (failed, passed []string) {
	for i, r := range s.Reports {
		under := func(lines []string) (out []string) {
			for _, line := range lines {
				out = append(out, s.Truths[i].String()+": "+line)
			}
			return out
		}
		bad, good := gatesByResult(r)
		failed, passed = append(failed, under(bad)...), append(passed, under(good)...)
	}
	return failed, passed
}

// worstLines describes for every policy the run with the lowest savings under the truth that is
// worst for the policy. If a different run has the most outage minutes, it is added.
func (s stress) worstLines() (lines []string) {
	for _, scenario := range s.Scenarios() {
		for _, x := range s.Rows(scenario) {
			line := func(why string, truth, i int) string {
				r := s.Reports[truth]
				return fmt.Sprintf("%s, %s, %s under %v: saved %s, %s outage min\n    %s", scenario, x.Policy, why, s.Truths[truth],
					textOf(r.Runs[i].Value("net_savings_pct"), percents),
					textOf(r.Runs[i].Value("outage_minutes"), figures.Whole), r.Command(i))
			}
			if x.Least >= 0 {
				lines = append(lines, line("the least saved", x.Least, x.Cells[x.Least].LeastRun))
			}
			if x.Longest < 0 || x.Cells[x.Longest].Outage.V == 0 {
				continue
			}
			if run := x.Cells[x.Longest].LongestRun; x.Least != x.Longest || x.Cells[x.Least].LeastRun != run {
				lines = append(lines, line("the most outage", x.Longest, run))
			}
		}
	}
	return lines
}

// missingLines lists the runs that failed, the first of them with their errors.
func (s stress) missingLines() (lines []string) {
	for _, r := range s.Reports {
		lines = append(lines, missingLines(r)...)
	}
	return lines
}

// notes returns the remarks below the tables.
func (s stress) notes() []string {
	r := s.Reports[0]
	notes := append([]string{
		"Net savings are in percent of the on-demand bill, after what outages cost, the median over runs; outage minutes " +
			"are those of the worst run. " +
			"Worst is the least saved and the most minutes under any truth, and policies are ranked by it; " +
			"! marks a policy that did not keep the manifests, behind those that do.",
		"What is published stays as it is under every truth: bands of interruption, placement scores, forecasts that a trace brings. " +
			"Policies and forecasters keep their constants."}, traceNotes(r)...)
	if slices.ContainsFunc(r.Config.Cases, func(k eval.Case) bool { return k.Bound.Available != nil }) {
		notes = append(notes,
			"When a recorded market falls short is recorded and the same under every truth; which nodes that takes, and with which notice, is drawn.")
	}
	auction := func(k eval.Case) bool { return strings.Contains(k.Bound.Reclaims(), "price and bid") }
	if slices.ContainsFunc(r.Config.Cases, auction) {
		notes = append(notes,
			"In auctions price and bid decide what is lost: of the truths those of prices, notices and slots act there.")
	}
	return append(notes, scenarioNotes(&r.Config)...)
}
