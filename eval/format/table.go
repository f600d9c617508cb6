package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// answerOf makes an answer of a comparison, whose table has the columns that fit a width, and of
// all columns those of the short table unless all are asked for.
func answerOf(r *eval.Report, width int, all, details bool) *Answer {
	a := &Answer{Verdicts: []Verdict{verdictOf(r)}, About: compared(r), Failed: FailedGates(r), Warnings: warningsOf(r, details), Next: nextStep(r)}
	if len(r.Groups) > 1 {
		a.acrossTables(r)
	} else {
		cols, left := fitting(r, &r.Groups[0], width, all || details)
		a.Tables, a.Legend = []Grid{tableOf(r, &r.Groups[0], cols)}, legendOf(r, cols)
		if left != "" && (all || details) {
			a.About += " · left out for want of width: " + left
		}
	}
	a.Details = sections(r, width, true)
	return a
}

// acrossTables sets the tables of several scenarios: each policy over all of them, and the winner
// of each scenario.
func (a *Answer) acrossTables(r *eval.Report) {
	_, rows := acrossTable(r)
	t := plainTable([]string{"POLICY", "FIRST IN", "WORST SHORTFALL", "WORST OUTAGE"}, rows)
	t.Headings = append(t.Headings, []string{"", "", "points", "min"})
	if w := firstAcross(r); w != nil {
		t.Rows[slices.Index(r.Config.Policies, w.Policy)].First = true
	}
	a.Tables = []Grid{t, plainTable(scenarioTable(r))}
	a.Legend = []string{strings.TrimSpace(firstMark) + " is first most often; * is the baseline. SAVED is in percent of the on-demand bill, outages deducted; " +
		"AT MOST is what the " + eval.OracleName + " saves."}
}

// fitting returns the columns that fit a width, and the names of those that are left out.
func fitting(r *eval.Report, g *eval.Group, width int, all bool) (cols []column, left string) {
	cols = slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return !all && !c.short })
	var names []string
	for {
		t := tableOf(r, g, cols).marked()
		if total(t.widths()) <= width || !slices.ContainsFunc(cols, func(c column) bool { return c.rank > 0 }) {
			return cols, strings.Join(names, ", ")
		}
		drop := 0
		for i, c := range cols {
			if c.rank > cols[drop].rank {
				drop = i
			}
		}
		names = append(names, strings.ToLower(cols[drop].top+" "+cols[drop].under))
		cols = slices.Delete(cols, drop, drop+1)
	}
}

// tableOf returns the comparison of g with the policies that save most marked.
func tableOf(r *eval.Report, g *eval.Group, cols []column) Grid {
	t := Grid{Headings: make([][]string, 2)}
	for _, c := range cols {
		t.Headings[0], t.Headings[1] = append(t.Headings[0], c.top), append(t.Headings[1], c.under)
	}
	first := firstIn(r, g)
	for i := range g.Policies {
		p := &g.Policies[i]
		row := Row{First: slices.Contains(first, p.Policy)}
		for _, c := range cols {
			tone := Plain
			if c.worse != nil && c.worse(r, p) {
				tone = Bad
			}
			row.Cells, row.Tones = append(row.Cells, c.cell(r, p)), append(row.Tones, tone)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// legendOf explains the columns of a table.
func legendOf(r *eval.Report, cols []column) []string {
	lines := []string{strings.TrimSpace(firstMark) + " saves most; * is the baseline"}
	if len(Violations(r)) > 0 {
		lines = append(lines, "! did not keep the manifests")
	}
	for _, c := range cols {
		if c.about != "" {
			lines = append(lines, c.about)
		}
	}
	return []string{strings.Join(lines, ". ") + "."}
}

// warningsOf are what to know before relying on a verdict, the gravest first. Without details those
// are left out that the verdict counts and of which the gates that failed are.
func warningsOf(r *eval.Report, details bool) []string {
	lines := estimateWarnings(r)
	if details {
		lines = Warnings(r)
	}
	if c := r.Comparison; c != nil {
		for _, line := range (comparison{c}).losses() {
			lines = slices.Insert(lines, 0, "worse than "+c.Other+": "+line)
		}
	}
	return append(lines, Violations(r)...)
}

// sections are the parts of a report below its answer, in the order of reading. Long ones are for a
// reader with room: they have every table of several scenarios, of a table that fits a width.
func sections(r *eval.Report, width int, long bool) []Section {
	_, passed := gatesByResult(r)
	out := append(comparisonSections(r.Comparison), Section{Heading: "Gates that passed", Items: passed, rank: rankNote}, Section{Heading: "Manifests not kept", Items: Violations(r), rank: rankNote})
	for i := range r.Groups {
		out = append(out, groupSections(r, &r.Groups[i], width, long)...)
	}
	if long {
		heading, rows := savedTable(r)
		out = append(out, Section{Table: plainTable(heading, rows)}, Section{Heading: "Worst outages", Items: worstOutageLines(r)})
	}
	for i := range r.Groups {
		if g := &r.Groups[i]; long || len(r.Groups) == 1 {
			in := inScenario(r, g.Scenario)
			out = append(out, Section{Heading: "Runs with outages" + in, Items: outageLines(r, g), rank: rankFound},
				Section{Heading: "Worst runs" + in, Items: worstLines(r, g), rank: rankWhy})
		}
	}
	notes := Notes(r)
	if len(r.Groups) > 1 && !long {
		notes = slices.DeleteFunc(notes, func(note string) bool { return note == movedNote || note == commitmentNote(&r.Config) })
	}
	return append(out, Section{Heading: "Missing runs: " + fmt.Sprint(r.Missing()), Items: missingLines(r), rank: rankWhy},
		Section{Heading: "Notes", Items: notes, rank: rankNote}, Section{Heading: "Configuration", Items: Settings(r), rank: rankNote})
}

// groupSections are the tables of one scenario. Of the only one the answer has the first.
func groupSections(r *eval.Report, g *eval.Group, width int, long bool) []Section {
	rank, only := rankDetail, len(r.Groups) == 1
	var out []Section
	switch {
	case only && long:
		rank = rankFound
	case only:
		rank = rankFound
		out = append(out, Section{Table: tableOf(r, g, columns), What: "policies", rank: rank})
	case long:
		cols, _ := fitting(r, g, width, true)
		out = append(out, Section{Heading: g.Scenario, Table: tableOf(r, g, cols)})
	default:
		heading, rows := rankedTable(r, g)
		out = append(out, Section{Heading: g.Scenario, Table: plainTable(heading, rows), What: "policies", rank: rank})
	}
	for _, table := range groupTables {
		heading, rows := table(r, g)
		out = append(out, Section{Table: plainTable(heading, rows), What: "rows", rank: rank})
	}
	if only || long {
		if line := OracleLine(r, g); line != "" {
			out = append(out, Section{About: line, rank: rank, What: "sentences"})
		}
	}
	return out
}

// comparisonSections are the difference to the other side, none without one.
func comparisonSections(x *eval.Comparison) []Section {
	if x == nil {
		return nil
	}
	c := comparison{x}
	heading, rows := c.table()
	return []Section{{Heading: c.title(), Items: c.lines(), rank: rankWhy}, {Table: plainTable(heading, rows), What: "changes", rank: rankWhy}}
}

// nextStep is the one thing to do with the result of a report.
func nextStep(r *eval.Report) Step {
	again := r.Config.Invocation
	if again == "" {
		return Step{}
	}
	if r.Stopped {
		return Step{"do the rest", again}
	}
	if n := r.Missing(); n > 0 {
		first := slices.IndexFunc(r.Runs, func(x eval.RunRow) bool { return x.Err != nil })
		return Step{"repeat the first run that broke", r.Command(first)}
	}
	g := &r.Groups[0]
	if need := r.Lacks(g); need > 0 && len(r.Groups) == 1 && g.IntervalsOver == eval.OverSeeds {
		return Step{"run as many seeds as intervals need", withFlag(again, "seeds", fmt.Sprint(need))}
	}
	if best := r.Best(g); best >= 0 && len(r.Groups) == 1 {
		if worst := g.Policies[best].Worst; outageOf(r, worst) > 0 {
			return Step{fmt.Sprintf("see how the worst run of %s, %s outage minutes, came about", g.Policies[best].Policy, figures.Whole(outageOf(r, worst))), r.Command(worst)}
		}
	}
	return Step{"read the result as a page with charts", again + " --report report.html"}
}
