package format

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// shortColumns are what Markdown says of each of several scenarios. The other formats
// have the rest.
var shortColumns = []column{
	{top: "SAVED", under: "% [interval]", cell: figureOf("net_savings_pct", savedWithInterval)},
	{top: "OUTAGE MIN", under: "med / max", cell: medianAndMax("outage_minutes")},
	{top: "INCIDENTS", under: "med / max", cell: medianAndMax("outage_incidents")},
}

func savedWithInterval(s *eval.Summary) string {
	if i := s.MedianInterval; i != nil {
		return figures.Interval(s.Median, i.Low, i.High, percent)
	}
	return percent(s.Median)
}

// scenarioTable returns for each of several scenarios which policy is first, what it
// saves and what the oracle does; none with one scenario.
func scenarioTable(r *eval.Report) (heading []string, rows [][]string) {
	if len(r.Groups) < 2 {
		return nil, nil
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		row := []string{g.Scenario, figures.Unknown, figures.Unknown, figures.Unknown}
		if best := r.Best(g); best >= 0 {
			var names []string
			for _, p := range r.First(g) {
				names = append(names, r.Config.Policies[p])
			}
			row[1] = strings.Join(names, ", ")
			row[2] = percent(g.Policies[best].Summary("net_savings_pct").Median)
		}
		if _, _, saved, ok := boundOf(r, g); ok {
			row[3] = percent(saved)
		}
		rows = append(rows, row)
	}
	return []string{"SCENARIO", "FIRST", "SAVED %", "AT MOST %"}, rows
}

// worstOutageCommands are what repeats the worst outage of each policy, which the table
// across scenarios has.
func worstOutageCommands(r *eval.Report) (lines []string) {
	for _, x := range r.Across() {
		if x.WorstOutage >= 0 && outageOf(r, x.WorstOutage) > 0 {
			lines = append(lines, x.Policy+"\n"+r.Command(x.WorstOutage))
		}
	}
	return lines
}

// rankedTable returns the short table of g: what saves most first, what does not keep
// the manifests last. Policies with equal figures share a row.
func rankedTable(r *eval.Report, g *eval.Group) (heading []string, rows [][]string) {
	heading = []string{"POLICY"}
	for _, c := range shortColumns {
		heading = append(heading, c.top+" "+c.under)
	}
	for _, at := range r.Order(g) {
		p := &g.Policies[at]
		row := []string{label(r, p)}
		for _, c := range shortColumns {
			row = append(row, c.cell(r, p))
		}
		if last := len(rows) - 1; last >= 0 && slices.Equal(rows[last][1:], row[1:]) {
			rows[last][0] += ", " + row[0]
		} else {
			rows = append(rows, row)
		}
	}
	return heading, rows
}
