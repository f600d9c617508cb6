package sim

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// workloadsShown is the number of workloads with incidents that are printed without details.
const workloadsShown = 5

// answer returns the output for a run: its costs and its savings against onDemand, which is nil if
// it was not run.
func answer(w *scenarios.BoundScenario, r, onDemand *sim.Result) *format.Answer {
	about := fmt.Sprintf("%s · %s · seed %d · %s … %s, after %s of warm-up · %s · start: %s", r.Scenario, r.Policy, r.Seed,
		cli.Minute(r.Window.From), cli.Minute(r.Window.To), figures.Duration(w.WarmUp), traceLine(w), w.StartCluster.Describe())
	if t := w.Truth; !t.Modelled() {
		about += fmt.Sprintf(" · truth: %v, which no policy knows: %s", t, t.About)
	}
	hashes := []string{fmt.Sprintf("weather %x", r.Weather), fmt.Sprintf("hash %x", r.Hash)}
	return &format.Answer{
		Verdicts: []format.Verdict{{Text: verdict(r, onDemand)}},
		Tables:   []format.Grid{lines(w, r), workloads(r), gpuBudgets(w, r), queues(r)},
		About:    about,
		Legend:   hashes,
		Details:  []format.Section{{Table: more(r)}, {Items: hashes}},
	}
}

// verdict summarises the cost, savings and outages of a run in a sentence.
func verdict(r, onDemand *sim.Result) string {
	text := r.Policy + " costs " + usd(r.Bill)
	if onDemand != nil && onDemand != r {
		text += " and saves " + saved(r, onDemand)
	}
	if r.Incidents == 0 {
		return text + "; no outage."
	}
	return text + "; " + figures.Count(r.OutageMinutes, "outage minute") + " (" + figures.Integer(r.SpotMinutes()) +
		" from Spot) in " +
		figures.Count(r.Incidents, "incident") + "."
}

// A list is a table of named figures.
type list struct{ format.Grid }

func (l *list) add(name, text string, args ...any) {
	l.Rows = append(l.Rows, format.Cells("  "+name, fmt.Sprintf(text, args...)))
}

// lines returns the main figures.
func lines(w *scenarios.BoundScenario, r *sim.Result) format.Grid {
	var l list
	l.add("bill", "%s (on-demand %s, spot %s)", usd(r.Bill), usd(r.OnDemandBill), usd(r.SpotBill))
	if r.Fees.Total() > 0 {
		l.add("fees", "%s of the bill (node fees %s, volumes %s, CPU credits %s)", usd(r.Fees.Total()), usd(r.Fees.Fee),
			usd(r.Fees.Volumes), usd(r.Fees.Credits))
	}
	if len(w.Commitments) > 0 {
		l.add("commitments", "%s", commitments(r))
	}
	l.add("outage cost", "%s (unserved %s, incidents %s, jobs %s)", usd(r.OutageCost), usd(r.UnservedCost),
		usd(r.IncidentCost), usd(r.JobCost))
	l.add("outages", "%v", &r.Outages)
	if r.Incidents > 0 {
		l.add("longest", "%v", &r.Longest)
	}
	l.add("availability", "%s", figures.Share(r.Availability, 4))
	l.add("evictions", "%s voluntary (%s per pod-day), %s by reclaims (%s per pod-day)",
		figures.Integer(r.VoluntaryEvictions), figures.Number(per(r.VoluntaryEvictions, r.PodDays), 3),
		figures.Integer(r.ReclaimEvictions), figures.Number(per(r.ReclaimEvictions, r.PodDays), 3))
	l.add("nodes", "%s node-hours (%s on Spot), Spot share %s", figures.Number(r.NodeHours, 1),
		figures.Number(r.SpotHours, 1), figures.Share(r.SpotShare, 1))
	return l.Grid
}

// more returns the figures that explain the main ones.
func more(r *sim.Result) format.Grid {
	var l list
	l.add("time to ready", "p50 %s, p95 %s", figures.Duration(r.TimeToReadyP50), figures.Duration(r.TimeToReadyP95))
	outbid := ""
	if r.Outbid > 0 {
		outbid = fmt.Sprintf(" (%d outbid)", r.Outbid)
	}
	l.add("market",
		"%d launches (%d more in the warm-up), %d refused, %d recommendations, %d notices%s, %d reclaims, %d drains",
		r.Launches, r.WarmUpLaunches, r.Refusals, r.Recommendations, r.Notices, outbid, r.Reclaims, r.Drains)
	if r.JobsDone+r.JobsMissed > 0 {
		l.add("jobs", "%d done, %d missed, %s of work done twice", r.JobsDone, r.JobsMissed, figures.Duration(r.WorkLost))
	}
	if g := &r.Gangs; *g != (sim.GangResult{}) {
		l.add("gangs", "%d started, after p50 %s, p95 %s; %d did not; %d restarts, %d requeued, %d failed",
			g.Started, figures.Duration(g.WaitP50), figures.Duration(g.WaitP95), g.NotStarted, g.Restarts, g.Requeues, g.Failed)
	}
	if r.SpotBarred > 0 {
		l.add("loss budget", "used up for %s, summed over pools: they were on demand", figures.Duration(r.SpotBarred))
	}
	if r.KeptOut > 0 {
		l.add("kept out", "%s of the unserved was missing behind closed gates", usd(r.KeptOut))
	}
	l.add("decisions", "%s, over %s", figures.Integer(r.Decisions), figures.Count(r.Events, "event"))
	return l.Grid
}

// saved describes the savings of r.
func saved(r, onDemand *sim.Result) string {
	amount := eval.Savings(r, onDemand)
	share := ""
	if onDemand.Bill > 0 {
		share = " (" + figures.Share(float64(amount)/float64(onDemand.Bill), 1) + ")"
	}
	return fmt.Sprintf("%s%s against a bill of %s on demand, outages deducted", usd(amount), share, usd(onDemand.Bill))
}

// commitments describes the savings by commitments. Their fee is in no bill, since it does not
// depend on the policy.
func commitments(r *sim.Result) string {
	text := fmt.Sprintf("%s saved by what was paid in advance", usd(r.Spared))
	if r.CommitmentFee != policy.NoPrice {
		text += fmt.Sprintf(" (for %s, which is in no bill)", usd(r.CommitmentFee))
	}
	return text
}

// workloads returns a table of the first workloads with incidents, and of all workloads among the
// details.
func workloads(r *sim.Result) format.Grid {
	t := format.Grid{Headings: format.Headings("WORKLOAD", "KIND", "MIN OUT", "FROM SPOT", "INCIDENTS", "PODS", "LONGEST",
		"OUTAGE COST", "AVAILABILITY", "SPOT")}
	shown := 0
	for i := range r.Workloads {
		x := &r.Workloads[i]
		row := format.Cells(x.Name, x.Kind.String(), figures.Integer(x.OutageMinutes), figures.Integer(x.SpotMinutes()),
			figures.Integer(x.Incidents),
			figures.Integer(x.PodsAffected),
			figures.Duration(x.Longest.Outage), usd(x.OutageCost), figures.Share(x.Availability,
				4), figures.Share(x.SpotShare, 1))
		if row.Wide = x.Incidents == 0 || shown == workloadsShown; !row.Wide {
			shown++
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// gpuBudgets returns a table of the usage of the scenario's GPU budgets.
func gpuBudgets(bound *scenarios.BoundScenario, r *sim.Result) format.Grid {
	t := format.Grid{Headings: format.Headings("BUDGET", "ACTION", "QUOTA", "GPU-HOURS", "PEAK", "MIN SPENT",
		"MIN CLOSED", "EVICTED", "PAUSED")}
	for i := range r.Budgets {
		x := &r.Budgets[i]
		t.Rows = append(t.Rows, format.Cells(x.Name, fmt.Sprint(x.Action), quota(&bound.GPUBudgets[i]),
			figures.Number(x.GPUHours, 1), figures.Share(x.Peak, 0),
			figures.Integer(x.OverMinutes), figures.Integer(x.ClosedMinutes), figures.Integer(x.Evictions), figures.Integer(x.Pauses)))
	}
	return t
}

// queues returns a table of Kueue's queues.
func queues(r *sim.Result) format.Grid {
	t := format.Grid{Headings: format.Headings("QUEUE", "ADMITTED", "PREEMPTED", "PENDING", "WAIT P50", "WAIT P95")}
	for i := range r.Queues {
		x := &r.Queues[i]
		t.Rows = append(t.Rows, format.Cells(x.Name, figures.Integer(x.Admitted), figures.Integer(x.Preempted),
			figures.Integer(x.Pending), figures.Duration(x.WaitP50), figures.Duration(x.WaitP95)))
	}
	return t
}

// quota formats the quota of a budget in its window.
func quota(b *policy.Budget) string {
	var grants []string
	if b.HasGPUHours {
		grants = append(grants, figures.Number(b.GPUHours, figures.Few)+" GPU-h")
	}
	if b.HasDollars {
		grants = append(grants, b.Dollars.Short())
	}
	return strings.Join(grants, ", ") + " in " + figures.Duration(b.Window)
}

// traceLine describes the source of prices and reclaims.
func traceLine(w *scenarios.BoundScenario) string {
	t := &w.Trace
	return fmt.Sprintf("prices: %s, %s … %s, %s; reclaims are %s", t.Name, cli.Minute(t.From), cli.Minute(t.To),
		t.Prices(), w.Reclaims())
}

// usd formats an amount in dollars.
func usd(m policy.Money) string { return figures.Dollars(m.Float()) }

func per(n int64, days float64) float64 {
	if days <= 0 {
		return 0
	}
	return float64(n) / days
}
