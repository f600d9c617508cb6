package eval

import (
	"fmt"
	"strconv"
	"strings"
)

// An Across is what can be said of one policy over several scenarios. Nothing
// in it is summed or averaged: such a figure would be true for none of them.
type Across struct {
	Policy string

	// First is in how many scenarios it saves the most in the median run of all
	// policies that keep the manifests, equals included; Of is in how many its
	// savings are known, and Marked in how many it does not keep the manifests
	// and so is not first.
	First, Of, Marked int

	// Shortfall is how many points of the on-demand bill its median net savings
	// lie below those of the first of a scenario, in the scenario where that is
	// most: Behind indexes Report.Groups. It is below 0 where the policy is marked
	// and saves more everywhere. Behind is -1 where no shortfall is known.
	Shortfall float64
	Behind    int

	// WorstOutage indexes Report.Runs: the run with the most outage minutes, the
	// first among equals. It is -1 without runs.
	WorstOutage int
}

// Across returns one of each policy in the order of Config.Policies, none with
// a single scenario.
func (r *Report) Across() []Across {
	if len(r.Groups) < 2 {
		return nil
	}
	out := make([]Across, len(r.Config.Policies))
	for p, name := range r.Config.Policies {
		x := &out[p]
		*x = Across{Policy: name, Behind: -1, WorstOutage: -1}
		for i := range r.Groups {
			g := &r.Groups[i]
			if g.Policies[p].Marked() {
				x.Marked++
			}
			if g.Policies[p].summary("net_savings_pct").N > 0 {
				x.Of++
			}
			if points, ok := r.shortfall(g, p); ok {
				if points == 0 && !g.Policies[p].Marked() {
					x.First++
				}
				if x.Behind < 0 || points > x.Shortfall {
					x.Shortfall, x.Behind = points, i
				}
			}
			if run := r.worstOutage(g, p); run >= 0 && (x.WorstOutage < 0 || r.Runs[run].Result.Outage > r.Runs[x.WorstOutage].Result.Outage) {
				x.WorstOutage = run
			}
		}
	}
	return out
}

// shortfall returns how many points of the on-demand bill policy p saves less
// than the best of g; false where one of them is not known.
func (r *Report) shortfall(g *Group, p int) (float64, bool) {
	best, own := r.Best(g), g.Policies[p].summary("net_savings_pct")
	if best < 0 || own.N == 0 {
		return 0, false
	}
	return g.Policies[best].summary("net_savings_pct").Median - own.Median, true
}

// worstOutage returns the run of policy p in g with the longest outages in sum, -1
// without runs.
func (r *Report) worstOutage(g *Group, p int) int {
	worst := -1
	for _, k := range g.Cases {
		for _, i := range r.indices(k, p) {
			if r.Runs[i].Err == nil && (worst < 0 || r.Runs[i].Result.Outage > r.Runs[worst].Result.Outage) {
				worst = i
			}
		}
	}
	return worst
}

// outageOf returns the outage minutes of run i, which must not be missing.
func (r *Report) outageOf(i int) float64 { return r.Runs[i].value(mustMetric("outage_minutes")).V }

// AcrossTitle heads what is said over several scenarios.
func (r *Report) AcrossTitle() string { return "Across " + plural(len(r.Groups), "scenario") }

// AcrossNote says what the figures of [Report.Across] are.
const AcrossNote = "Nothing is summed over scenarios. First is the policy with the greatest median net savings of those that keep the manifests. " +
	"The shortfall is how many points of the on-demand bill a policy saves less than that one, in the scenario where it is most."

// acrossTable returns heading and rows of what is said over several scenarios,
// none with one.
func (r *Report) acrossTable() (heading []string, rows [][]string) {
	for _, x := range r.Across() {
		name := x.Policy
		if name == r.Config.Baseline {
			name += " *"
		}
		if x.Marked > 0 {
			name += " !"
		}
		shortfall, outage := unknown, unknown
		if x.Behind >= 0 {
			shortfall = percent(x.Shortfall)
			if x.Shortfall != 0 {
				shortfall += " in " + r.Groups[x.Behind].Scenario
			}
		}
		if x.WorstOutage >= 0 {
			outage = whole(r.outageOf(x.WorstOutage))
			if r.outageOf(x.WorstOutage) > 0 {
				outage += " in " + r.runPlace(x.WorstOutage)
			}
		}
		rows = append(rows, []string{name, fmt.Sprintf("%d of %d", x.First, x.Of), shortfall, outage})
	}
	if rows == nil {
		return nil, nil
	}
	return []string{strings.ToUpper(r.AcrossTitle()), "FIRST IN", "WORST SHORTFALL, POINTS", "WORST OUTAGE, MIN"}, rows
}

// runPlace names scenario, seed and, among several, the window of run i by the
// number that --windows takes.
func (r *Report) runPlace(i int) string {
	run := &r.Runs[i]
	text := run.Scenario
	if len(r.group(run.Scenario).Cases) > 1 {
		text += ", window " + strconv.Itoa(run.Window+1)
	}
	return text + ", seed " + strconv.FormatUint(run.Seed, 10)
}

// acrossLines are the rows of the table in words, for outputs without tables.
func (r *Report) acrossLines() []string {
	var lines []string
	for _, x := range r.Across() {
		line := fmt.Sprintf("%s is first in %d of %s", x.Policy, x.First, plural(x.Of, "scenario"))
		if x.Marked > 0 {
			line += fmt.Sprintf(", does not keep the manifests in %d", x.Marked)
		}
		if x.Behind >= 0 && x.Shortfall != 0 {
			line += ", at worst " + percent(x.Shortfall) + " points behind in " + r.Groups[x.Behind].Scenario
		}
		if x.WorstOutage >= 0 {
			line += ", worst outage " + whole(r.outageOf(x.WorstOutage)) + " min"
			if r.outageOf(x.WorstOutage) > 0 {
				line += " in " + r.runPlace(x.WorstOutage) + "\n    " + r.command(x.WorstOutage)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// worstOutageLines name the worst outage of each policy over several scenarios
// with the command that repeats it.
func (r *Report) worstOutageLines() []string {
	var lines []string
	for _, x := range r.Across() {
		if x.WorstOutage >= 0 && r.outageOf(x.WorstOutage) > 0 {
			lines = append(lines, x.Policy+": "+whole(r.outageOf(x.WorstOutage))+" outage min in "+r.runPlace(x.WorstOutage)+"\n    "+r.command(x.WorstOutage))
		}
	}
	return lines
}

// savedTable returns what every policy saves in every scenario, with the
// distance to the best of the row in brackets and the most outage minutes of a
// run; none with one scenario.
func (r *Report) savedTable() (heading []string, rows [][]string) {
	if len(r.Groups) < 2 {
		return nil, nil
	}
	heading = append([]string{"SAVED % (BEHIND BEST), OUTAGE MIN"}, r.Config.Policies...)
	for i := range r.Groups {
		g := &r.Groups[i]
		row := []string{g.Scenario}
		for p := range g.Policies {
			row = append(row, r.savedCell(g, p))
		}
		rows = append(rows, row)
	}
	return heading, rows
}

// savedCell is the cell of policy p.
func (r *Report) savedCell(g *Group, p int) string {
	x := &g.Policies[p]
	s := x.summary("net_savings_pct")
	if s.N == 0 {
		return unknown
	}
	text := percent(s.Median)
	if x.Marked() {
		text += " !"
	}
	switch distance, ok := r.shortfall(g, p); {
	case !ok:
	case distance == 0 && !x.Marked():
		text += " (best)"
	case distance < 0:
		text += " (+" + percent(-distance) + ")"
	default:
		text += " (−" + percent(distance) + ")"
	}
	if most := x.summary("outage_minutes").Max; most > 0 {
		text += ", " + whole(most) + " min"
	}
	return text
}
