package eval

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/scenarios/weather"
)

// StressFormats lists the formats that a [Stress] has.
func StressFormats() []Format { return []Format{Table, JSON, Markdown, CSV} }

// Write writes the stress in format f. Width is that of the terminal, in columns, and
// is read by the table only; 0 means 120.
func (s *Stress) Write(w io.Writer, f Format, width int) error {
	switch f {
	case Table:
		return s.writeTable(w, width)
	case JSON:
		return s.writeJSON(w)
	case Markdown:
		return s.writeMarkdown(w)
	case CSV:
		return s.writeCSV(w)
	}
	return fmt.Errorf("%w: format %q is none of %v, which a stress has", ErrConfig, f, StressFormats())
}

// title says what is compared, in one line.
func (s *Stress) title() string {
	title := fmt.Sprintf("%s under each of %s: %s in all", s.Reports[0].compared(), plural(len(s.Truths), "truth"), plural(s.runs(), "run"))
	if s.Stopped {
		title = fmt.Sprintf("INCOMPLETE: stopped after %d of the runs under %s of %d; ", s.done(), plural(len(s.Truths), "truth"), len(weather.Truths())) + title
	}
	return title
}

// runs returns how many there are, and missing how many of them failed.
func (s *Stress) runs() (n int) {
	for _, r := range s.Reports {
		n += len(r.Runs)
	}
	return n
}

// done returns how many were done, those that failed included.
func (s *Stress) done() (n int) {
	for _, r := range s.Reports {
		n += r.Done()
	}
	return n
}

func (s *Stress) missing() (n int) {
	for _, r := range s.Reports {
		n += r.Missing()
	}
	return n
}

// headline says of each scenario which policy comes through best.
func (s *Stress) headline() []string {
	var lines []string
	for _, scenario := range s.Scenarios() {
		x := &s.Rows(scenario)[0]
		saved, outage := x.Worst()
		if !saved.Known || !outage.Known {
			continue
		}
		out := "none of its runs has an outage minute under any truth"
		if outage.V > 0 {
			out = fmt.Sprintf("its worst run has %s outage min, under %v", whole(outage.V), s.Truths[x.Longest])
		}
		lines = append(lines, fmt.Sprintf("%s: %s saves most where it saves least, %s %% under %v; %s.", scenario, x.Policy, percent(saved.V), s.Truths[x.Least], out))
	}
	return lines
}

// legend says how cells are read.
const legend = "Net savings are in percent of the on-demand bill, after what outages cost, the median over runs; outage minutes are those of the worst run. " +
	"Worst is the least saved and the most minutes under any truth, and policies are ranked by it; ! marks a policy that did not keep the manifests, behind those that do."

// textOf formats a value, or what stands for none.
func textOf(v Value, format func(float64) string) string {
	if !v.Known {
		return unknown
	}
	return format(v.V)
}

// grid returns headings and rows for a terminal: two lines of each policy, net
// savings and outage minutes.
func (s *Stress) grid(scenario string) (headings, rows [][]string) {
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
		top, under := split(x.label(), ":")
		saved, outage := []string{top}, []string{under}
		for _, c := range x.Cells {
			saved, outage = append(saved, textOf(c.Saved, percent)), append(outage, textOf(c.Outage, whole))
		}
		worst, longest := x.Worst()
		rows = append(rows, append(saved, textOf(worst, percent)), append(outage, textOf(longest, whole)))
	}
	return headings, rows
}

// truthLines say what each truth is.
func (s *Stress) truthLines() []string {
	lines := []string{s.Truths[0].String() + ": the market as the model has it, with the constants that policies know"}
	for _, t := range s.Truths[1:] {
		lines = append(lines, t.String()+": "+t.About)
	}
	return lines
}

// gateLines are the verdicts under every truth, those that failed first.
func (s *Stress) gateLines() (failed, passed []string) {
	for i, r := range s.Reports {
		for k := range r.Gates {
			line := s.Truths[i].String() + ": " + r.gateLine(&r.Gates[k])
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
func (s *Stress) worstLines() []string {
	var lines []string
	for _, scenario := range s.Scenarios() {
		for _, x := range s.Rows(scenario) {
			for _, of := range s.worstRuns(&x) {
				r := s.Reports[of.truth]
				run := &r.Runs[of.run]
				lines = append(lines, fmt.Sprintf("%s, %s, %s under %v: saved %s %%, %s outage min\n    %s", scenario, x.Policy, of.why, s.Truths[of.truth],
					textOf(run.value(mustMetric("net_savings_pct")), percent), textOf(run.value(mustMetric("outage_minutes")), whole), r.command(of.run)))
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

func (s *Stress) worstRuns(x *StressRow) []worstRun {
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
func (s *Stress) missingLines() []string {
	var lines []string
	for _, r := range s.Reports {
		lines = append(lines, r.missingLines()...)
	}
	return lines
}

// Notes are the sentences below the tables.
func (s *Stress) Notes() []string {
	r := s.Reports[0]
	notes := append([]string{legend,
		"What is published stays as it is under every truth: bands of interruption, placement scores, forecasts that a trace brings. Policies and forecasters keep their constants."},
		r.traceNotes()...)
	if slices.ContainsFunc(r.Config.Cases, func(k Case) bool { return k.World.Available != nil }) {
		notes = append(notes, "When a recorded market falls short is recorded and the same under every truth; which nodes that takes, and with which notice, is drawn.")
	}
	if slices.ContainsFunc(r.Config.Cases, func(k Case) bool { return strings.Contains(k.World.Reclaims(), "price and bid") }) {
		notes = append(notes, "In auctions price and bid decide what is lost: of the truths those of prices, notices and slots act there.")
	}
	return append(notes, worldNotes(&r.Config)...)
}

func (s *Stress) writeTable(w io.Writer, width int) error {
	b := new(bytes.Buffer)
	p := printer{b, cmp.Or(width, defaultWidth)}
	p.text("", s.title())
	scenarios := s.Scenarios()
	for _, scenario := range scenarios {
		p.blank()
		if len(scenarios) > 1 {
			p.text("", scenario)
		}
		p.split(s.grid(scenario))
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
	p.list("Notes", s.Notes())
	p.list("Configuration", s.Reports[0].settings())
	_, err := w.Write(b.Bytes())
	return err
}

// split writes a grid, in parts one below the other where it is wider than the
// terminal, each with the first column.
func (p *printer) split(headings, rows [][]string) {
	w := widths(append(slices.Clone(headings), rows...))
	for from := 1; from < len(w); {
		to, used := from+1, w[0]+2+w[from]
		for to < len(w) && used+2+w[to] <= p.width {
			used += 2 + w[to]
			to++
		}
		part := func(lines [][]string) (out [][]string) {
			for _, line := range lines {
				out = append(out, append([]string{line[0]}, line[from:to]...))
			}
			return out
		}
		if from > 1 {
			p.blank()
		}
		p.grid(part(headings), part(rows))
		from = to
	}
}

// writeMarkdown writes the stress as GitHub's Markdown, at most [MarkdownMax] long.
func (s *Stress) writeMarkdown(w io.Writer) error {
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
			row := []string{x.label()}
			for _, c := range x.Cells {
				row = append(row, textOf(c.Saved, percent)+" / "+textOf(c.Outage, whole))
			}
			saved, outage := x.Worst()
			rows = append(rows, append(row, textOf(saved, percent)+" / "+textOf(outage, whole)))
		}
		about := "\n## " + escape(scenario) + "\n\nNet savings, % / outage minutes.\n"
		blocks = append(blocks, tableBlock(about, heading, rows, rankFound, "policies"))
	}
	blocks = append(blocks, listBlock("Truths", s.truthLines(), rankFound), listBlock("Worst runs", s.worstLines(), rankWhy),
		listBlock("Missing runs", s.missingLines(), rankWhy), listBlock("Gates that passed", passed, rankNote),
		listBlock("Notes", s.Notes(), rankNote), listBlock("Configuration", s.Reports[0].settings(), rankNote))
	_, err := io.WriteString(w, cutToFit(head, blocks, MarkdownMax))
	return err
}

// writeCSV writes the lines of all reports.
func (s *Stress) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHeading()); err != nil {
		return err
	}
	for _, r := range s.Reports {
		if err := r.csvLines(out); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

type jsonStress struct {
	SchemaVersion int                  `json:"schema_version"`
	Version       string               `json:"version"`
	Invocation    string               `json:"invocation"`
	Policies      []string             `json:"policies"`
	Baseline      string               `json:"baseline"`
	Seeds         []uint64             `json:"seeds"`
	Traces        []jsonTrace          `json:"traces"`
	RunCount      int                  `json:"run_count"`
	MissingCount  int                  `json:"missing_count"`
	RunsDone      int                  `json:"runs_done"`
	Incomplete    bool                 `json:"incomplete"`
	Passed        bool                 `json:"passed"`
	Truths        []jsonTruth          `json:"truths"`
	Gates         []jsonStressGate     `json:"gates"`
	Scenarios     []jsonStressScenario `json:"scenarios"`
	Notes         []string             `json:"notes"`
}

type jsonTruth struct {
	Truth string `json:"truth"`
	About string `json:"about"`
}

type jsonStressGate struct {
	Truth string `json:"truth"`
	jsonGate
}

type jsonStressScenario struct {
	Scenario string             `json:"scenario"`
	Policies []jsonStressPolicy `json:"policies"`
}

type jsonStressPolicy struct {
	Policy string           `json:"policy"`
	Role   string           `json:"role"`
	Truths []jsonStressCell `json:"truths"`
	Worst  jsonStressWorst  `json:"worst"`

	ViolatingRuns int `json:"violating_runs"`
}

type jsonStressCell struct {
	Truth   string   `json:"truth"`
	Saved   *float64 `json:"net_savings_pct,omitempty"`
	Outage  *float64 `json:"outage_minutes,omitempty"`
	Missing int      `json:"missing"`
}

type jsonStressWorst struct {
	Saved  *jsonStressRun `json:"net_savings_pct,omitempty"`
	Outage *jsonStressRun `json:"outage_minutes,omitempty"`
}

type jsonStressRun struct {
	Value   float64 `json:"value"`
	Truth   string  `json:"truth"`
	Window  int     `json:"window"`
	Seed    uint64  `json:"seed"`
	Command string  `json:"command"`
}

// writeJSON writes the stress as docs/eval-schema.md describes it.
func (s *Stress) writeJSON(w io.Writer) error {
	r := s.Reports[0]
	c := &r.Config
	out := jsonStress{
		SchemaVersion: SchemaVersion, Version: c.Version, Invocation: c.Invocation, Policies: c.Policies, Baseline: c.Baseline, Seeds: c.Seeds,
		Traces: r.jsonTraces(), RunCount: s.runs(), MissingCount: s.missing(), RunsDone: s.done(), Incomplete: s.Stopped, Passed: s.ExitCode() == 0, Gates: []jsonStressGate{}, Notes: s.Notes(),
	}
	for i, t := range s.Truths {
		out.Truths = append(out.Truths, jsonTruth{t.String(), t.About})
		for _, g := range s.Reports[i].jsonGates() {
			out.Gates = append(out.Gates, jsonStressGate{t.String(), g})
		}
	}
	for _, scenario := range s.Scenarios() {
		of := jsonStressScenario{Scenario: scenario}
		for _, x := range s.Rows(scenario) {
			of.Policies = append(of.Policies, s.jsonPolicy(&x))
		}
		out.Scenarios = append(out.Scenarios, of)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func (s *Stress) jsonPolicy(x *StressRow) jsonStressPolicy {
	out := jsonStressPolicy{Policy: x.Policy, Role: s.Reports[0].Config.role(x.Policy), ViolatingRuns: x.Violating}
	for i := range x.Cells {
		c := &x.Cells[i]
		cell := jsonStressCell{Truth: s.Truths[i].String(), Missing: c.Missing}
		if c.Saved.Known {
			cell.Saved = &c.Saved.V
		}
		if c.Outage.Known {
			cell.Outage = &c.Outage.V
		}
		out.Truths = append(out.Truths, cell)
	}
	run := func(truth, i int, v Value) *jsonStressRun {
		r := s.Reports[truth]
		return &jsonStressRun{v.V, s.Truths[truth].String(), r.Runs[i].Window, r.Runs[i].Seed, r.command(i)}
	}
	saved, outage := x.Worst()
	if x.Least >= 0 {
		out.Worst.Saved = run(x.Least, x.Cells[x.Least].LeastRun, saved)
	}
	if x.Longest >= 0 {
		out.Worst.Outage = run(x.Longest, x.Cells[x.Longest].LongestRun, outage)
	}
	return out
}

// worldNotes are what was left out of the worlds of c, each once.
func worldNotes(c *Config) (notes []string) {
	for i := range c.Cases {
		for _, w := range c.Cases[i].World.Warnings {
			note := c.Cases[i].Scenario + ": " + w
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// truthNotes say under which truths the worlds of c are, nothing for the model as it
// is.
func truthNotes(c *Config) (notes []string) {
	for i := range c.Cases {
		t := c.Cases[i].World.Truth
		note := fmt.Sprintf("Truth %v: %s. No policy knows it.", t, t.About)
		if !t.Modelled() && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}
