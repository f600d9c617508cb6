package format

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// AnswerOf returns the answer to a comparison of policies.
func AnswerOf(r *eval.Report) *Answer {
	a := &Answer{
		Verdicts: []Verdict{verdictOf(r)}, About: Title(r), Failed: FailedGates(r), Warnings: warningsOf(r), Next: nextStep(r),
		Details: sections(r), Review: reviewOf(r),
	}
	if len(r.Groups) == 1 {
		legend := firstMark + "saves most; * is the baseline."
		if len(Violations(r)) > 0 {
			legend += " ! did not keep the manifests."
		}
		a.Tables, a.Legend = []Grid{policyTable(r, &r.Groups[0])}, legendOf(r, legend)
		return a
	}
	across, first := r.Across(), r.FirstAcross()
	isFirst := func(i int) bool { return first != nil && across[i].Policy == first.Policy }
	a.Tables = []Grid{gridOf(acrossColumns(r), across, isFirst), scenarioTable(r)}
	a.Legend = legendOf(r,
		firstMark+"is first most often; * is the baseline. SAVED is in percent of the on-demand bill, outages deducted; "+
			"AT MOST is what the "+eval.OracleName+" saves.")
	return a
}

// legendOf returns a legend, with a sentence about outages from workloads without a
// PodDisruptionBudget if there are any.
func legendOf(r *eval.Report, legend string) []string {
	if moved := withoutPDB(r); moved != "" {
		return []string{legend, moved}
	}
	return []string{legend}
}

// policyTable returns the table of one scenario. The policies with the highest savings are marked.
func policyTable(r *eval.Report, g *eval.Group) Grid {
	first := r.First(g)
	return gridOf(columns, rowsOf(r, g), func(p int) bool { return slices.Contains(first, p) })
}

// scenarioTable returns the first policy of each scenario with its savings, and the savings of the
// oracle.
func scenarioTable(r *eval.Report) Grid {
	metric, _ := r.Config.Savings()
	t := Grid{Headings: Headings("SCENARIO", "FIRST", "SAVED %", "AT MOST %")}
	for i := range r.Groups {
		g := &r.Groups[i]
		first, saved, most := figures.Unknown, figures.Unknown, figures.Unknown
		if all := r.First(g); len(all) > 0 {
			var names []string
			for _, p := range all {
				names = append(names, r.Config.Policies[p])
			}
			first, saved = strings.Join(names, ", "), percent(g.Policies[all[0]].Summary(metric).Median)
		}
		if _, _, pct, ok := boundOf(r, g); ok {
			most = percent(pct)
		}
		t.Rows = append(t.Rows, Cells(g.Scenario, first, saved, most))
	}
	return t
}

// savedTable returns for each scenario and policy the savings, the distance to the best policy of
// the row in brackets, and the maximum outage minutes of a run, in total and from Spot.
func savedTable(r *eval.Report) Grid {
	t := Grid{Headings: Headings(append([]string{"SAVED % (BEHIND), OUTAGE MIN (SPOT)"}, r.Config.Policies...)...)}
	for i := range r.Groups {
		row := Cells(r.Groups[i].Scenario)
		for p := range r.Config.Policies {
			row.Cells = append(row.Cells, Cell{Text: savedCell(r, &r.Groups[i], p)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func savedCell(r *eval.Report, g *eval.Group, p int) string {
	x := &g.Policies[p]
	metric, _ := r.Config.Savings()
	s := x.Summary(metric)
	if s.N == 0 {
		return figures.Unknown
	}
	text := percent(s.Median)
	if x.Marked() {
		text += " !"
	}
	switch distance, ok := r.Shortfall(g, p); {
	case !ok:
	case distance == 0 && !x.Marked():
		text += " (best)"
	case distance < 0:
		text += " (+" + percent(-distance) + ")"
	default:
		text += " (−" + percent(distance) + ")"
	}
	if most := x.Summary("outage_minutes").Max; most > 0 {
		text += ", " + figures.Whole(most) + " min (" + figures.Whole(x.Summary("outage_spot_minutes").Max) + ")"
	}
	return text
}

// sections returns the parts of a report below its answer, in reading order.
func sections(r *eval.Report) []Section {
	_, passed := gatesByResult(r)
	out := append(comparisonSections(r.Comparison), Section{Heading: "Counted as failed", Items: failureWarnings(r)},
		Section{Heading: "Gates that passed", Items: passed, rank: rankNote})
	for i := range r.Groups {
		out = append(out, groupSections(r, &r.Groups[i])...)
	}
	why, found := rankWhy, rankFound
	if len(r.Groups) > 1 {
		why, found = rankMore, rankMore
		out = append(out, Section{Table: savedTable(r), What: "scenarios", rank: rankFound},
			Section{Heading: "Worst outages", Items: worstOutageLines(r)})
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		in := inScenario(r, g.Scenario)
		out = append(out, Section{Heading: "Runs with outages" + in, Items: outageLines(r, g), rank: found},
			Section{Heading: "Worst runs" + in, Items: worstLines(r, g), rank: why})
	}
	return append(out, Section{Heading: "Missing runs: " + fmt.Sprint(r.Missing()), Items: missingLines(r)},
		Section{Heading: "Notes", Items: Notes(r), rank: rankNote},
		Section{Heading: "Configuration", Items: Settings(r), rank: rankNote})
}

// groupSections returns the tables of one scenario. If it is the only scenario, its policy table is
// part of the answer and omitted here.
func groupSections(r *eval.Report, g *eval.Group) (out []Section) {
	rank := rankFound
	if len(r.Groups) > 1 {
		rank = rankMore
		out = append(out, Section{Heading: g.Scenario, Table: policyTable(r, g), What: "policies", rank: rankDetail})
	}
	for _, t := range []Grid{windowTable(r, g), weeksTable(r, g), frontierTable(r, g)} {
		out = append(out, Section{Table: t, What: "rows", rank: rank})
	}
	return append(out, Section{About: OracleLine(r, g), What: "sentences", rank: rank})
}

// warningsOf returns the caveats of the verdict, the most serious first. It omits what the verdict
// and the failed gates report.
func warningsOf(r *eval.Report) (lines []string) {
	if c := r.Comparison; c != nil {
		for _, line := range (comparison{c}).losses() {
			lines = append(lines, "worse than "+c.Other+": "+line)
		}
	}
	return slices.Concat(lines, estimateWarnings(r), Violations(r))
}

// verdictOf summarizes the findings and the results of the gates in one sentence.
func verdictOf(r *eval.Report) Verdict {
	v := Verdict{toneOf(r), found(r) + "."}
	demands := demandsOf(r)
	if c := r.Comparison; c != nil {
		demands = append(demands, "against "+c.Other+": "+string(c.Outcome)+", "+Headline(c))
	}
	if text := strings.Join(demands, "; "); text != "" {
		v.Text += " " + strings.ToUpper(text[:1]) + text[1:] + "."
	}
	if r.Stopped {
		v.Text = Incomplete(r) + ". " + v.Text
	}
	return v
}

// toneOf reports whether all demands are met; Plain if there are no demands.
func toneOf(r *eval.Report) Tone {
	switch c := r.Comparison; {
	case r.ExitCode() != 0:
		return Bad
	case c != nil:
		return toneOfOutcome(c.Outcome)
	case len(r.Gates) > 0:
		return Good
	}
	return Plain
}

// demandsOf describes how many runs failed, and how many gates passed.
func demandsOf(r *eval.Report) (parts []string) {
	parts = brokenRuns(r)
	switch failed, _ := gatesByResult(r); {
	case len(failed) > 0:
		parts = append(parts, fmt.Sprintf("%s of %s failed", figures.Integer(len(failed)),
			figures.Count(len(r.Gates), "gate")))
	case len(r.Gates) > 0:
		parts = append(parts, figures.Count(len(r.Gates), "gate")+" passed")
	}
	return parts
}

// found describes the policy with the highest savings, in dollars per month relative to the
// baseline, and its worst outage compared with that of the baseline.
func found(r *eval.Report) string {
	if len(r.Groups) > 1 {
		return foundAcross(r)
	}
	g := &r.Groups[0]
	best, base := r.Best(g), slices.Index(r.Config.Policies, r.Config.Baseline)
	if best < 0 {
		return "No run has a result that can be compared"
	}
	x := &g.Policies[best]
	metric, of := r.Config.Savings()
	saves := fmt.Sprintf("%s saves %s of %s", x.Policy, figures.Percent(x.Summary(metric).Median, 1), of)
	if best != base {
		if over := r.OverBaseline(g, best); over.N > 0 && r.Config.Today == nil {
			saves += ", " + monthly(&over, false) + " than " + r.Config.Baseline + between(&over, false)
		}
		return saves + worstWords(x, &g.Policies[base])
	}
	next := r.RunnerUp(g)
	if next < 0 && x.Policy == eval.OnDemand {
		return "Nothing but " + x.Policy + " was run" + worstWords(x, nil)
	}
	if next < 0 {
		return saves + worstWords(x, nil)
	}
	text := "No policy saves more than " + x.Policy + ", the baseline"
	switch over := r.OverBaseline(g, next); {
	case over.N == 0:
	case figures.Dollars(over.Median) == figures.Dollars(0):
		text += ": the next, " + g.Policies[next].Policy + ", saves as much" + between(&over, true)
	default:
		text += ": the next, " + g.Policies[next].Policy + ", saves " + monthly(&over, true) + between(&over, true)
	}
	return text + worstWords(&g.Policies[next], x)
}

// monthly formats the additional savings per month. If less is true, it negates them.
func monthly(s *eval.Summary, less bool) string {
	if less {
		return figures.Dollars(-s.Median) + " a month less"
	}
	return figures.Dollars(s.Median) + " a month more"
}

// between formats the interval of [monthly], empty if there is no interval.
func between(s *eval.Summary, less bool) string {
	i := s.MedianInterval
	if i == nil {
		return ""
	}
	low, high := i.Low, i.High
	if less {
		low, high = -high, -low
	}
	text := " (" + figures.Dollars(low) + " to " + figures.Dollars(high)
	if low <= 0 && high >= 0 {
		text += ", which chance explains"
	}
	return text + ")"
}

// worstWords describes the outage minutes of the worst runs of x and of base, which may be nil.
func worstWords(x, base *eval.PolicyReport) string {
	s := x.Summary("outage_minutes")
	if s.N == 0 {
		return ""
	}
	text := "; its worst run has " + minutesOf(s.Max)
	if base == nil || base.Summary("outage_minutes").N == 0 {
		return text
	}
	return text + ", " + base.Policy + "'s " + figures.Whole(base.Summary("outage_minutes").Max)
}

// minutesOf formats outage minutes with their noun.
func minutesOf(minutes float64) string {
	return figures.Count(int64(math.Round(minutes)), "outage minute")
}

// foundAcross describes the findings over several scenarios.
func foundAcross(r *eval.Report) string {
	x := r.FirstAcross()
	if x == nil {
		return "No scenario has policies that can be compared"
	}
	text := fmt.Sprintf("%s saves most in %d of %s", x.Policy, x.First, figures.Count(len(r.Groups), "scenario"))
	if x.Worst != nil && x.Worst.Points > 0 {
		text += ", at worst " + percent(x.Worst.Points) + " points less than the first in " + x.Worst.Scenario
	}
	if x.WorstOutage < 0 {
		return text
	}
	text += "; its worst run has " + minutesOf(outageOf(r, x.WorstOutage))
	base := r.Across()[slices.Index(r.Config.Policies, r.Config.Baseline)]
	if base.WorstOutage >= 0 && base.Policy != x.Policy {
		text += ", " + base.Policy + "'s " + figures.Whole(outageOf(r, base.WorstOutage))
	}
	return text
}

// nextStep returns the suggested next action after a report.
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
		return seedsStep(again, need)
	}
	if best := r.Best(g); best >= 0 && len(r.Groups) == 1 {
		if worst := g.Policies[best].Worst; outageOf(r, worst) > 0 {
			return Step{fmt.Sprintf("see how the worst run of %s, %s, came about",
				g.Policies[best].Policy, minutesOf(outageOf(r, worst))), r.Command(worst)}
		}
	}
	return Step{"read the result as a page with charts", again + " --report report.html"}
}

// seedsStep suggests to repeat a command with more seeds, which replace its --seeds flag.
func seedsStep(command string, seeds int) Step {
	own := regexp.MustCompile(` --seeds(=| +)\S+`)
	return Step{"run as many seeds as intervals need", own.ReplaceAllString(command, "") +
		fmt.Sprintf(" --seeds %d", seeds)}
}
