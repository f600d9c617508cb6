package report

import (
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// worst has the worst run of each policy of g with the command that repeats it.
func worst(r *eval.Report, g *eval.Group, l *weekList) *table {
	t := &table{
		Caption: "Worst run of each policy over " + g.Scenario,
		Note:    "The run with the most outage minutes above the baseline's; among equals the one that saves least.",
		Head:    worstHead(),
	}
	for p := range g.Policies {
		if i := g.Policies[p].Worst; i >= 0 {
			t.Rows = append(t.Rows, worstRow(r, i, l))
		}
	}
	return t
}

// worstHead heads the columns of worstRow.
func worstHead() []heading {
	return []heading{{Text: "Policy", Words: true}, {Text: "Scenario", Words: true}, {Text: "Window from", Words: true}, {Text: "Seed"}, {Text: "Saved", Unit: "%"},
		{Text: "Outage minutes"}, {Text: "Against baseline", Unit: "minutes"}, {Text: "Repeat it with", Words: true}}
}

func worstRow(r *eval.Report, i int, l *weekList) []cell {
	run := &r.Runs[i]
	saved, delta := unknown(), unknown()
	if _, v := r.Config.Saved(run); v.Known {
		saved = number(v.V, figures.Number(v.V, 1))
	}
	if v := run.Value("outage_delta"); v.Known {
		if delta = number(v.V, figures.Signed(v.V, 0)); v.V > 0 {
			delta.Class = "bad"
		}
	}
	if run.Policy == r.Config.Baseline {
		delta = cell{Text: "baseline", Sort: "0"}
	}
	out := run.Value("outage_minutes").V
	return []cell{
		{Text: run.Policy, Week: l.of(i)}, {Text: run.Scenario, Class: "words"}, {Text: format.Instant(run.Bound.Start), Class: "words"},
		{Text: strconv.FormatUint(run.Seed, 10)}, saved, number(out, figures.Whole(out)), delta,
		{Class: "words", Command: r.Command(i)},
	}
}

// outages says in how many runs each policy had any, and where there was none
// how rare they may still be.
func outages(r *eval.Report, g *eval.Group) *table {
	t := &table{
		Caption: "Runs with outages",
		Note:    "Where there was none, the exact 95% bound says how often there may be one all the same, if runs are independent. Incidents, pods and what the outage comes of are sums over all runs; pods are the most missing at once in each incident. From Spot is what would not be without it.",
		Head: []heading{{Text: "Policy", Words: true}, {Text: "Runs with an outage"}, {Text: "More minutes than the baseline"}, {Text: "From Spot", Unit: "minutes, median / most"},
			{Text: "Incidents", Unit: "median / most"}, {Text: "Incidents", Unit: "all runs"}, {Text: "Pods", Unit: "all runs"}, {Text: "Longest incident"}, {Text: "It began", Words: true}, {Text: "Outage comes of", Unit: "all runs", Words: true}},
	}
	order, _ := ranked(r, g)
	for _, i := range order {
		p := &g.Policies[i]
		more := cell{Text: figures.Unknown, Sort: "-1"}
		if r.Config.Trial(p.Policy) {
			more = occurrence(p.Worse)
		}
		t.Rows = append(t.Rows, []cell{{Text: p.Policy, Sub: role(r, p.Policy)}, occurrence(p.Outages), more,
			medianAndMost("outage_spot_minutes")(r, g, i), medianAndMost("outage_incidents")(r, g, i),
			number(float64(p.Outage.Incidents), figures.Number(float64(p.Outage.Incidents), 0)), number(float64(p.Outage.PodsAffected), figures.Number(float64(p.Outage.PodsAffected), 0)),
			longestOf(&p.Outage), began(r, &p.Outage), sources(&p.Outage)})
	}
	return t
}

// began says when the longest incident began, and in which run.
func began(r *eval.Report, o *eval.OutageReport) cell {
	if o.LongestRun < 0 {
		return cell{Text: figures.Unknown}
	}
	run := &r.Runs[o.LongestRun]
	return cell{Text: o.Longest.Began.Std().Format(time.DateTime), Sub: run.Scenario + ", seed " + strconv.FormatUint(run.Seed, 10), Class: "words"}
}

func occurrence(o eval.Occurrence) cell {
	if o.Of == 0 {
		return unknown()
	}
	c := number(float64(o.Count), figures.Number(float64(o.Count), 0)+" of "+figures.Number(float64(o.Of), 0))
	if o.Count == 0 {
		c.Sub = "at most " + figures.Share(o.Bound, 1)
	}
	return c
}
