package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// outageOf returns the outage minutes of run i, which must not be missing.
func outageOf(r *eval.Report, i int) float64 { return r.Runs[i].Value("outage_minutes").V }

// AcrossTitle heads what is said over several scenarios.
func AcrossTitle(r *eval.Report) string { return "Across " + figures.Count(len(r.Groups), "scenario") }

// AcrossNote says what the figures of [eval.Report.Across] are.
const AcrossNote = "Nothing is summed over scenarios. First is the policy with the greatest median net savings of those that keep the manifests. " +
	"The shortfall is how many points of the on-demand bill a policy saves less than that one, in the scenario where it is most."

// acrossTable returns heading and rows of what is said over several scenarios,
// none with one.
func acrossTable(r *eval.Report) (heading []string, rows [][]string) {
	for _, x := range r.Across() {
		name := x.Policy
		if name == r.Config.Baseline {
			name += " *"
		}
		if x.Marked > 0 {
			name += " !"
		}
		shortfall, outage := figures.Unknown, figures.Unknown
		if x.Behind >= 0 {
			shortfall = percent(x.Shortfall)
			if x.Shortfall != 0 {
				shortfall += " in " + r.Groups[x.Behind].Scenario
			}
		}
		if x.WorstOutage >= 0 {
			outage = figures.Whole(outageOf(r, x.WorstOutage))
			if outageOf(r, x.WorstOutage) > 0 {
				outage += " in " + runPlace(r, x.WorstOutage)
			}
		}
		rows = append(rows, []string{name, fmt.Sprintf("%d of %d", x.First, x.Of), shortfall, outage})
	}
	if rows == nil {
		return nil, nil
	}
	return []string{strings.ToUpper(AcrossTitle(r)), "FIRST IN", "WORST SHORTFALL, POINTS", "WORST OUTAGE, MIN"}, rows
}

// runPlace names scenario, seed and, among several, the window of run i by the
// number that --windows takes.
func runPlace(r *eval.Report, i int) string {
	run := &r.Runs[i]
	text := run.Scenario
	if len(r.Group(run.Scenario).Cases) > 1 {
		text += ", window " + strconv.Itoa(run.Window+1)
	}
	return text + ", seed " + strconv.FormatUint(run.Seed, 10)
}

// acrossLines are the rows of the table in words, for outputs without tables.
func acrossLines(r *eval.Report) []string {
	var lines []string
	for _, x := range r.Across() {
		line := fmt.Sprintf("%s is first in %d of %s", x.Policy, x.First, figures.Count(x.Of, "scenario"))
		if x.Marked > 0 {
			line += fmt.Sprintf(", does not keep the manifests in %d", x.Marked)
		}
		if x.Behind >= 0 && x.Shortfall != 0 {
			line += ", at worst " + percent(x.Shortfall) + " points behind in " + r.Groups[x.Behind].Scenario
		}
		if x.WorstOutage >= 0 {
			line += ", worst outage " + figures.Whole(outageOf(r, x.WorstOutage)) + " min"
			if outageOf(r, x.WorstOutage) > 0 {
				line += " in " + runPlace(r, x.WorstOutage) + "\n    " + r.Command(x.WorstOutage)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// worstOutageLines name the worst outage of each policy over several scenarios
// with the command that repeats it.
func worstOutageLines(r *eval.Report) []string {
	var lines []string
	for _, x := range r.Across() {
		if x.WorstOutage >= 0 && outageOf(r, x.WorstOutage) > 0 {
			lines = append(lines, x.Policy+": "+figures.Whole(outageOf(r, x.WorstOutage))+" outage min in "+runPlace(r, x.WorstOutage)+"\n    "+r.Command(x.WorstOutage))
		}
	}
	return lines
}

// savedTable returns what every policy saves in every scenario, with the
// distance to the best of the row in brackets and the most outage minutes of a
// run; none with one scenario.
func savedTable(r *eval.Report) (heading []string, rows [][]string) {
	if len(r.Groups) < 2 {
		return nil, nil
	}
	heading = append([]string{"SAVED % (BEHIND BEST), OUTAGE MIN"}, r.Config.Policies...)
	for i := range r.Groups {
		g := &r.Groups[i]
		row := []string{g.Scenario}
		for p := range g.Policies {
			row = append(row, savedCell(r, g, p))
		}
		rows = append(rows, row)
	}
	return heading, rows
}

// savedCell is the cell of policy p.
func savedCell(r *eval.Report, g *eval.Group, p int) string {
	x := &g.Policies[p]
	s := x.Summary("net_savings_pct")
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
		text += ", " + figures.Whole(most) + " min"
	}
	return text
}
