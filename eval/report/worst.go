package report

import (
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// worstTable returns a table of runs, one for each policy, with the commands that repeat them.
func worstTable(r *eval.Report, l *weekList, caption, note string, runs []int) *table {
	t := &table{Caption: caption, Note: note,
		Head: headings("'Policy", "'Scenario", "'Window from", "Seed", "Saved|%", "Outage minutes",
			"Against baseline|minutes", "'Repeat it with")}
	for _, i := range runs {
		if i < 0 {
			continue
		}
		run, saved, delta := &r.Runs[i], unknown, unknown
		if _, v := r.Config.Saved(run); v.Known {
			saved.Text = oneDecimal(v.V)
		}
		if v := run.Value("outage_delta"); run.Policy == r.Config.Baseline {
			delta.Text = "baseline"
		} else if v.Known {
			delta = badIf(v.V > 0, figures.Signed(v.V, 0))
		}
		t.Rows = append(t.Rows, []cell{
			{Text: run.Policy, Week: l.of(i)}, {Text: run.Scenario}, {Text: format.Instant(run.Bound.Start)},
			{Text: strconv.FormatUint(run.Seed, 10)},
			saved, {Text: figures.Whole(run.Value("outage_minutes").V), Sub: spotPart(run)}, delta, {Command: r.Command(i)},
		})
	}
	return t
}

// spotPart returns the outage minutes of a run that would not have occurred without Spot, in words.
func spotPart(run *eval.RunRow) string {
	spot := run.Value("outage_spot_minutes")
	if !spot.Known || run.Value("outage_minutes").V == 0 {
		return ""
	}
	return figures.Whole(spot.V) + " from Spot"
}

// worst returns the table of the worst run of each policy of g.
func worst(r *eval.Report, g *eval.Group, l *weekList) *table {
	var runs []int
	for p := range g.Policies {
		runs = append(runs, g.Policies[p].Worst)
	}
	return worstTable(r, l, "Worst run of each policy over "+g.Scenario,
		"The run with the most outage minutes above the baseline's; among equals the one that saves least.", runs)
}

// worstOutages returns the table of the worst outage of each policy over several scenarios.
func worstOutages(r *eval.Report, l *weekList) *table {
	var runs []int
	for _, x := range r.Across() {
		runs = append(runs, x.WorstOutage)
	}
	return worstTable(r, l, "Worst outage of each policy over "+figures.Count(len(r.Groups), "scenario"),
		"The run with the most outage minutes. The worst runs of each scenario against the baseline are listed there.", runs)
}

// outages returns the table of the number of runs with outages for each policy. For policies
// without an outage, it contains an upper bound of their frequency.
func outages(r *eval.Report, g *eval.Group) *table {
	t := &table{
		Caption: "Runs with outages",
		Note:    "Where there was none, the exact 95% bound says how often there may be one all the same, if runs are independent. Incidents, pods and what the outage comes of are sums over all runs; pods are the most missing at once in each incident. From Spot is what would not be without it.",
		Head: headings("'Policy", "Runs with an outage", "More minutes than the baseline", "From Spot|minutes, median / most",
			"Incidents|median / most", "Incidents|all runs",
			"Pods|all runs", "Longest incident", "'It started", "'Causes of outage|all runs"),
	}
	rows := policyRows(r, g)
	barred := slices.ContainsFunc(rows, func(x policyRow) bool { return x.Summary("spot_barred_min").Max > 0 })
	if barred {
		t.Head = append(t.Head, headings("Barred from Spot|minutes, median / most")...)
		t.Note += " A pool is barred from Spot while its loss budget is used up."
	}
	for _, x := range rows {
		more, o, started := unknown, &x.Outage, unknown
		if r.Config.Trial(x.Policy) {
			more = occurrence(x.Worse)
		}
		if o.LongestRun >= 0 {
			run := &r.Runs[o.LongestRun]
			started = cell{Text: o.Longest.Began.Std().Format(time.DateTime), Sub: run.Scenario + ", seed " +
				strconv.FormatUint(run.Seed, 10)}
		}
		row := []cell{
			{Text: x.Policy, Sub: role(r, x.Policy)}, occurrence(x.Outages), more, medianAndMost("outage_spot_minutes")(x),
			medianAndMost("outage_incidents")(x),
			{Text: figures.Integer(o.Incidents)}, {Text: figures.Integer(o.PodsAffected)},
			longest(o, o.Longest.Workload+", "+o.Longest.Cause.String()), started, sources(o),
		}
		if barred {
			row = append(row, medianAndMost("spot_barred_min")(x))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func occurrence(o eval.Occurrence) cell {
	if o.Of == 0 {
		return unknown
	}
	c := cell{Text: figures.Integer(o.Count) + " of " + figures.Integer(o.Of)}
	if o.Count == 0 {
		c.Sub = "at most " + figures.Share(o.Bound, 1)
	}
	return c
}
