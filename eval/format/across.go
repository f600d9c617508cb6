package format

import (
	"fmt"
	"strconv"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// outageOf returns the outage minutes of run i, which must not be missing.
func outageOf(r *eval.Report, i int) float64 { return r.Runs[i].Value("outage_minutes").V }

// fromSpot returns the outage minutes of run i that would not have occurred without Spot, in words.
// It is empty for a run without an outage.
func fromSpot(r *eval.Report, i int) string {
	spot := r.Runs[i].Value("outage_spot_minutes")
	if outageOf(r, i) == 0 || !spot.Known {
		return ""
	}
	return " (" + figures.Whole(spot.V) + " from Spot)"
}

// withoutPDB returns a sentence about the outage minutes of all runs that are caused by moving
// workloads without a PodDisruptionBudget, empty if there are no such minutes.
func withoutPDB(r *eval.Report) string {
	var all sim.Outages
	for i := range r.Groups {
		for p := range r.Groups[i].Policies {
			all.Add(&r.Groups[i].Policies[p].Outage.Outages)
		}
	}
	moved := sim.OutageMinutes(all.WithoutPDB)
	if moved == 0 {
		return ""
	}
	return fmt.Sprintf("Of %s outage minutes, %s come of moving workloads without a PodDisruptionBudget.",
		figures.Integer(all.OutageMinutes), figures.Integer(moved))
}

// AcrossTitle returns the title of the results over several scenarios.
func AcrossTitle(r *eval.Report) string { return "Across " + figures.Count(len(r.Groups), "scenario") }

// AcrossNote explains the results of [eval.Report.Across].
const AcrossNote = "Nothing is summed over scenarios. First is the policy with the greatest median net savings of those that keep the manifests. " +
	"The shortfall is how many points of the on-demand bill a policy saves less than that one, in the scenario where it is most."

// acrossColumns returns the columns of the table over several scenarios.
func acrossColumns(r *eval.Report) []column[eval.Across] {
	of := func(top, under string, cell func(eval.Across) string) column[eval.Across] {
		return column[eval.Across]{Heading: Heading{Top: top, Under: under}, cell: cell}
	}
	return []column[eval.Across]{
		of("POLICY", "", func(x eval.Across) string { return labelOf(r, x.Policy, x.Marked > 0) }),
		of("FIRST IN", "", func(x eval.Across) string { return fmt.Sprintf("%d of %d", x.First, x.Of) }),
		of("WORST SHORTFALL", "points", func(x eval.Across) string {
			switch {
			case x.Worst == nil:
				return figures.Unknown
			case x.Worst.Points == 0:
				return percent(0)
			}
			return percent(x.Worst.Points) + " in " + x.Worst.Scenario
		}),
		of("WORST OUTAGE", "min", func(x eval.Across) string {
			if x.WorstOutage < 0 {
				return figures.Unknown
			}
			return figures.Whole(outageOf(r, x.WorstOutage)) + outagePlace(r, x.WorstOutage)
		}),
		{Heading: Heading{Top: "FROM SPOT", Under: "min", Rank: 1}, cell: func(x eval.Across) string {
			if x.WorstOutage < 0 {
				return figures.Unknown
			}
			return textOf(r.Runs[x.WorstOutage].Value("outage_spot_minutes"), figures.Whole)
		}},
	}
}

// outagePlace returns the scenario, the seed and, if there are several, the window of run i in
// words. Windows count from 1, as for --windows. It is empty for a run without an outage.
func outagePlace(r *eval.Report, i int) string {
	if outageOf(r, i) == 0 {
		return ""
	}
	run := &r.Runs[i]
	text := " in " + run.Scenario
	if len(r.Group(run.Scenario).Cases) > 1 {
		text += ", window " + strconv.Itoa(run.Window+1)
	}
	return text + ", seed " + strconv.FormatUint(run.Seed, 10)
}

// acrossLines returns the rows of the table as sentences, for formats without tables.
func acrossLines(r *eval.Report) []string {
	var lines []string
	for _, x := range r.Across() {
		line := fmt.Sprintf("%s is first in %d of %s", x.Policy, x.First, figures.Count(x.Of, "scenario"))
		if x.Marked > 0 {
			line += fmt.Sprintf(", does not keep the manifests in %d", x.Marked)
		}
		if x.Worst != nil && x.Worst.Points != 0 {
			line += ", at worst " + percent(x.Worst.Points) + " points behind in " + x.Worst.Scenario
		}
		if x.WorstOutage >= 0 {
			line += ", worst outage " + figures.Whole(outageOf(r, x.WorstOutage)) + " min" + fromSpot(r, x.WorstOutage)
			if place := outagePlace(r, x.WorstOutage); place != "" {
				line += place + "\n    " + r.Command(x.WorstOutage)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// worstOutageLines returns the worst outage of each policy over several scenarios, with the command
// that repeats it.
func worstOutageLines(r *eval.Report) []string {
	var lines []string
	for _, x := range r.Across() {
		if x.WorstOutage >= 0 && outageOf(r, x.WorstOutage) > 0 {
			lines = append(lines, x.Policy+": "+figures.Whole(outageOf(r, x.WorstOutage))+" outage min"+
				fromSpot(r, x.WorstOutage)+outagePlace(r, x.WorstOutage)+"\n    "+r.Command(x.WorstOutage))
		}
	}
	return lines
}
