package format

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// worstLines describes the worst run of every policy of g.
func worstLines(r *eval.Report, g *eval.Group) []string {
	var lines []string
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.Worst < 0 {
			continue
		}
		run := &r.Runs[p.Worst]
		line := p.Policy + ": " + figures.Whole(run.Value("outage_minutes").V) + " outage min" + fromSpot(r, p.Worst)
		if d := run.Value("outage_delta"); d.Known && p.Policy != r.Config.Baseline {
			line += " (" + figures.Signed(d.V, 0) + ")"
		}
		if d := run.Value("net_savings_pct"); d.Known {
			line += ", saved " + figures.Percent(d.V, 1)
		}
		lines = append(lines, line+"\n    "+r.Command(p.Worst))
	}
	return lines
}

// outageLines describes in how many runs each policy of g had outages. If it had no outage, the
// line has an upper bound of their frequency.
func outageLines(r *eval.Report, g *eval.Group) []string {
	var lines []string
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.Outages.Of == 0 {
			continue
		}
		line := p.Policy + ": any in " + occurrenceWords(p.Outages)
		if r.Config.Trial(p.Policy) && p.Worse.Of > 0 {
			line += "; more than " + r.Config.Baseline + " in " + occurrenceWords(p.Worse)
		}
		if p.Outages.Count > 0 {
			line += "; " + outageWords(r, &p.Outage)
		}
		lines = append(lines, line)
	}
	return lines
}

// occurrenceWords describes how often an event occurred, with an upper bound of its frequency if it
// did not.
func occurrenceWords(o eval.Occurrence) string {
	s := fmt.Sprintf("%s of %s", figures.Integer(o.Count), figures.Count(o.Of, "run"))
	if o.Count == 0 {
		s += fmt.Sprintf(" (at 95%% at most %s)", figures.Share(o.Bound, 1))
	}
	return s
}

// failedShown is the number of missing runs that are listed.
const failedShown = 5

// missingLines lists the runs that failed, the first of them with their errors.
func missingLines(r *eval.Report) []string {
	var lines []string
	for i := range r.Runs {
		if r.Runs[i].Err == nil || r.Runs[i].Unfinished() {
			continue
		}
		if len(lines) == failedShown {
			return append(lines, fmt.Sprintf("… and %d more", r.Missing()-failedShown))
		}
		lines = append(lines, firstLine(r.Runs[i].Err.Error())+"\n    "+r.Command(i))
	}
	return lines
}

// gateReason returns the reason why low or high has no value, empty if it has one.
func gateReason(r *eval.Report, g *eval.GateResult) string {
	if g.Need == 0 {
		return ""
	}
	return NeedWords(g.Need, g.Over) + " for " + levelWords(r.Level)
}

// gateLine describes the result of a gate. For a failed gate, it adds the outages of the worst run
// and the command that repeats it.
func gateLine(r *eval.Report, g *eval.GateResult) string {
	line := gateWords(r, g)
	if g.Pass {
		return line
	}
	if g.Run >= 0 {
		return line + gateOutage(r, g) + "\n    " + r.Command(g.Run)
	}
	if run := furthestRun(r, g); run >= 0 {
		line += fmt.Sprintf("; the worst run has seed %d\n    %s", r.Runs[run].Seed, r.Command(run))
	}
	return line
}

// gateWords describes whether a gate passed, the measured value, and the distance to the required
// one.
func gateWords(r *eval.Report, g *eval.GateResult) string {
	mark, actual := "✗", "no value"
	if g.Pass {
		mark = "✓"
	}
	if reason := gateReason(r, g); reason != "" {
		actual += ": " + reason
	}
	if digits := figures.DecimalsApart(g.Actual.V, g.Gate.Value); g.Actual.Known {
		actual = figures.Number(g.Actual.V, digits)
		if !g.Pass && g.Actual.V != g.Gate.Value {
			actual += ", off by " + figures.Number(math.Abs(g.Actual.V-g.Gate.Value), digits)
		}
	}
	line := fmt.Sprintf("%s %s: %s, is %s", mark, judged(r, g).Who(), g.Gate.Condition(), actual)
	if g.Case >= 0 {
		k := &r.Config.Cases[g.Case]
		line += fmt.Sprintf(" in the window from %s on", Instant(k.Bound.Start))
	}
	if g.Missing > 0 {
		line += fmt.Sprintf("; %s without a value", figures.Count(g.Missing, "run"))
	}
	if g.Stopped {
		line += "; the comparison was stopped"
	}
	return line
}

// gatesByResult returns the lines of the gates that failed and of those that passed.
func gatesByResult(r *eval.Report) (failed, passed []string) {
	for i := range r.Gates {
		if line := gateLine(r, &r.Gates[i]); r.Gates[i].Pass {
			passed = append(passed, line)
		} else {
			failed = append(failed, line)
		}
	}
	return failed, passed
}

// FailedGates describes each failed gate: the policy, by how much the gate failed, and the command
// that repeats the worst run.
func FailedGates(r *eval.Report) []string {
	failed, _ := gatesByResult(r)
	return failed
}

// furthestRun returns the run that misses a gate the most. It is negative if no run has a value.
func furthestRun(r *eval.Report, g *eval.GateResult) int {
	of := g.Gate
	if of.Statistic = eval.Max; strings.HasPrefix(of.Op, ">") {
		of.Statistic = eval.Min
	}
	p := slices.Index(r.Config.Policies, g.Policy)
	for i := range r.Groups {
		if r.Groups[i].Scenario == g.Scenario && p >= 0 {
			return of.Measure(r, &r.Groups[i], p).Run
		}
	}
	return -1
}

// judged returns the gate with the policy of g and, if there are several scenarios, the scenario of
// g.
func judged(r *eval.Report, g *eval.GateResult) eval.Gate {
	of := g.Gate
	of.Policy = g.Policy
	if len(r.Groups) > 1 {
		of.Scenario = g.Scenario
	}
	return of
}

// outageWords summarizes o over all its runs, with the longest incident.
func outageWords(r *eval.Report, o *eval.OutageReport) string {
	text := "in all runs " + o.String()
	if o.LongestRun >= 0 {
		text += fmt.Sprintf("; longest %v, seed %d", &o.Longest, r.Runs[o.LongestRun].Seed)
	}
	return text
}

// gateOutage describes the outages of the run that a gate on outages fails for.
func gateOutage(r *eval.Report, g *eval.GateResult) string {
	res := r.Runs[g.Run].Result
	if !strings.HasPrefix(g.Gate.Metric, "outage_") || res == nil || res.Incidents == 0 {
		return ""
	}
	return fmt.Sprintf("; it has %v; longest %v", &res.Outages, &res.Longest)
}
