package sim

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// A sheet prints figures as aligned lines.
type sheet struct{ w *bufio.Writer }

func (s sheet) line(name, format string, args ...any) {
	fmt.Fprintf(s.w, "  %-16s %s\n", name, fmt.Sprintf(format, args...))
}

// workloadsShown is how many workloads with incidents are printed without details.
const workloadsShown = 5

// printRun prints what a run costs and what it saves against onDemand, nil where that was not run;
// then its main figures or, with details, all of them. Of the workloads it has those with incidents,
// and wide all.
func printRun(out io.Writer, w *scenarios.BoundScenario, r, onDemand *sim.Result, wide, details bool) error {
	s := sheet{bufio.NewWriter(out)}
	fmt.Fprintf(s.w, "%s\n\n", verdict(r, onDemand))
	s.line("bill", "%s (on-demand %s, spot %s)", usd(r.Bill), usd(r.OnDemandBill), usd(r.SpotBill))
	if r.Fees.Total() > 0 {
		s.line("fees", "%s of the bill (node fees %s, volumes %s)", usd(r.Fees.Total()), usd(r.Fees.Fee), usd(r.Fees.Volumes))
	}
	if len(w.Commitments) > 0 {
		s.line("commitments", "%s", commitments(r))
	}
	s.line("outage cost", "%s (unserved %s, incidents %s, jobs %s)", usd(r.OutageCost), usd(r.UnservedCost), usd(r.IncidentCost), usd(r.JobCost))
	s.line("outages", "%v", &r.Outages)
	if r.Incidents > 0 {
		s.line("longest", "%v", &r.Longest)
	}
	s.line("availability", "%s", figures.Share(r.Availability, 4))
	s.line("evictions", "%s by us (%s per pod-day), %s by reclaims (%s per pod-day)",
		figures.Integer(r.VoluntaryEvictions), figures.Number(per(r.VoluntaryEvictions, r.PodDays), 3), figures.Integer(r.ReclaimEvictions), figures.Number(per(r.ReclaimEvictions, r.PodDays), 3))
	s.line("nodes", "%s node-hours (%s spot), spot share %s", figures.Number(r.NodeHours, 1), figures.Number(r.SpotHours, 1), figures.Share(r.SpotShare, 1))
	if details {
		s.more(r)
	}
	left := workloads(s.w, r, wide, details)
	budgets(s.w, w, r)
	fmt.Fprintf(s.w, "\n%s · %s · seed %d · %s … %s, after %s of warm-up\n", r.Scenario, r.Policy, r.Seed, cli.Minute(r.Window.From), cli.Minute(r.Window.To), figures.Duration(w.WarmUp))
	fmt.Fprintf(s.w, "%s\nstart: %s\n", traceLine(w), w.StartCluster.Describe())
	if t := w.Truth; !t.Modelled() {
		fmt.Fprintf(s.w, "truth: %v, which no policy knows: %s\n", t, t.About)
	}
	fmt.Fprintf(s.w, "weather %x\nhash %x\n", r.Weather, r.Hash)
	if !details {
		fmt.Fprintf(s.w, "--details prints every figure%s\n", left)
	}
	return s.w.Flush()
}

// verdict says in a sentence what a run costs, saves and how long it is out.
func verdict(r, onDemand *sim.Result) string {
	text := r.Policy + " costs " + usd(r.Bill)
	if onDemand != nil && onDemand != r {
		text += " and saves " + saved(r, onDemand)
	}
	if r.Incidents == 0 {
		return text + "; no outage."
	}
	return text + "; " + figures.Count(r.OutageMinutes, "outage minute") + " in " + figures.Count(r.Incidents, "incident") + "."
}

// more prints the figures that explain the others.
func (s sheet) more(r *sim.Result) {
	s.line("time to ready", "p50 %s, p95 %s", figures.Duration(r.TimeToReadyP50), figures.Duration(r.TimeToReadyP95))
	outbid := ""
	if r.Outbid > 0 {
		outbid = fmt.Sprintf(" (%d outbid)", r.Outbid)
	}
	s.line("market", "%d launches (%d more in the warm-up), %d refused, %d recommendations, %d notices%s, %d reclaims, %d drains",
		r.Launches, r.WarmUpLaunches, r.Refusals, r.Recommendations, r.Notices, outbid, r.Reclaims, r.Drains)
	if r.JobsDone+r.JobsMissed > 0 {
		s.line("jobs", "%d done, %d missed, %s of work done twice", r.JobsDone, r.JobsMissed, figures.Duration(r.WorkLost))
	}
	if g := &r.Gangs; *g != (sim.GangResult{}) {
		s.line("gangs", "%d started, after p50 %s, p95 %s; %d did not; %d restarts, %d requeued, %d failed",
			g.Started, figures.Duration(g.WaitP50), figures.Duration(g.WaitP95), g.NotStarted, g.Restarts, g.Requeues, g.Failed)
	}
	if r.KeptOut > 0 {
		s.line("kept out", "%s of the unserved was missing behind closed gates", usd(r.KeptOut))
	}
	s.line("decisions", "%s, over %s", figures.Integer(r.Decisions), figures.Count(r.Events, "event"))
}

// saved says what r saves.
func saved(r, onDemand *sim.Result) string {
	amount := eval.Savings(r, onDemand)
	share := ""
	if onDemand.Bill > 0 {
		share = " (" + figures.Share(float64(amount)/float64(onDemand.Bill), 1) + ")"
	}
	return fmt.Sprintf("%s%s against a bill of %s on demand, outages deducted", usd(amount), share, usd(onDemand.Bill))
}

// commitments says what was paid for in advance did. Its fee is in no bill, since
// it is the same whatever a policy does.
func commitments(r *sim.Result) string {
	text := fmt.Sprintf("%s spared by what was paid for in advance", usd(r.Spared))
	if r.CommitmentFee != policy.NoPrice {
		text += fmt.Sprintf(" (for %s, which is in no bill)", usd(r.CommitmentFee))
	}
	return text
}

// workloads prints the workloads that had incidents, or all. It returns how many it left out, in words.
func workloads(w *bufio.Writer, r *sim.Result, all, details bool) string {
	heading, printed, left := false, 0, 0
	for i := range r.Workloads {
		x := &r.Workloads[i]
		if x.Incidents == 0 && !all {
			continue
		}
		if printed++; printed > workloadsShown && !all && !details {
			left++
			continue
		}
		if !heading {
			fmt.Fprintf(w, "\n  %-28s %-12s %8s %10s %6s %9s %14s %14s %7s\n", "workload", "kind", "min out", "incidents", "pods", "longest", "outage cost", "availability", "spot")
			heading = true
		}
		fmt.Fprintf(w, "  %-28s %-12s %8d %10d %6d %9s %14s %14s %7s\n",
			x.Name, x.Kind, x.OutageMinutes, x.Incidents, x.PodsAffected, figures.Duration(x.Longest.Outage), usd(x.OutageCost), figures.Share(x.Availability, 4), figures.Share(x.SpotShare, 1))
	}
	if left == 0 {
		return ""
	}
	return " and " + figures.Count(left, "more workload") + " with incidents"
}

// budgets prints what the budgets of the scenario came to.
func budgets(w *bufio.Writer, bound *scenarios.BoundScenario, r *sim.Result) {
	if len(r.Budgets) == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %-24s %-9s %26s %9s %6s %9s %10s %8s %7s\n", "budget", "action", "quota", "gpu-hours", "peak", "min spent", "min closed", "evicted", "paused")
	for i := range r.Budgets {
		x := &r.Budgets[i]
		fmt.Fprintf(w, "  %-24s %-9s %26s %9s %6s %9d %10d %8d %7d\n", x.Name, x.Action, quota(&bound.Budgets[i]), figures.Number(x.GPUHours, 1), figures.Share(x.Peak, 0),
			x.OverMinutes, x.ClosedMinutes, x.Evictions, x.Pauses)
	}
}

// quota writes what a budget grants within its window.
func quota(b *policy.Budget) string {
	text := ""
	if b.HasGPUHours {
		text = figures.Number(b.GPUHours, figures.Few) + " GPU-h"
	}
	if b.HasGPUHours && b.HasDollars {
		text += ", "
	}
	if b.HasDollars {
		text += b.Dollars.Short()
	}
	return fmt.Sprintf("%s in %s", text, figures.Duration(b.Window))
}

// traceLine says where prices and reclaims come from.
func traceLine(w *scenarios.BoundScenario) string {
	t := &w.Trace
	return fmt.Sprintf("prices: %s, %s … %s, %s; reclaims are %s", t.Name, cli.Minute(t.From), cli.Minute(t.To), t.Prices(), w.Reclaims())
}

// usd writes an amount.
func usd(m policy.Money) string { return figures.Dollars(m.Float()) }

func per(n int64, days float64) float64 {
	if days <= 0 {
		return 0
	}
	return float64(n) / days
}
