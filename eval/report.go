package eval

import (
	"slices"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// A Report is the result of a comparison. Package eval/format writes it.
type Report struct {
	// Config is complete: defaults are set, and on-demand and the baseline are added.
	Config Config

	// Traces are the distinct traces of the cases.
	Traces []scenarios.TraceInfo

	// Oracles contains the bounds of each case, which apply in every weather. The metric oracle_usd
	// of a run is the bound of its seed, which may be higher.
	Oracles []oracle.Bound

	// Runs are ordered by case, seed and policy.
	Runs []RunRow

	// Stopped reports whether the comparison was stopped early: some runs are unfinished or some
	// bounds are open. Results only cover what is finished.
	Stopped bool

	// Level is the confidence level of every interval: 1 − 0.05/p for p policies, so that all
	// intervals together are valid with a probability of at least 95%.
	Level float64

	// Groups contains a summary of each scenario, in the order of their first cases in
	// Config.Cases. Scenarios are never aggregated.
	Groups []Group

	// Gates are the results of gates, in the order of Config.Gates, Config.Policies and Groups.
	Gates []GateResult

	// Comparison is the difference to the other side, nil if no comparison was requested.
	// [Report.Compare] sets it.
	Comparison *Comparison
}

// A Group is the summary of one scenario.
type Group struct {
	// Name or path of the scenario, as passed.
	Scenario string `json:"scenario"`
	// Number of windows.
	Windows int `json:"windows"`
	// Units of intervals: windows if there are several, else seeds.
	IntervalsOver string `json:"intervals_over"`
	// With several policies static:share=…, the one with the highest savings that complies with the
	// manifests.
	BestStatic string `json:"best_static,omitempty"`
	// A summary of each policy.
	Policies []PolicyReport `json:"policies"`

	// Cases are indexes of Config.Cases.
	Cases []int `json:"-"`
}

// A PolicyReport is the summary of one policy in one scenario.
type PolicyReport struct {
	// Name of the policy, as written in the configuration.
	Policy string `json:"policy"`
	// on-demand, baseline or compared.
	Role string `json:"role"`
	// Number of runs, including missing ones.
	Runs int `json:"runs"`
	// Number of runs that failed.
	Missing int `json:"missing"`
	// Number of runs that were not finished.
	Unfinished int `json:"unfinished"`
	// A [Summary](#summary) of each metric, or of those of --metrics.
	Summaries Summaries `json:"metrics"`
	// Medians over the seeds of each window.
	Windows []WindowMedians `json:"windows"`
	// Number of runs with more outage minutes than the baseline.
	Worse Occurrence `json:"worse_runs"`
	// Number of runs with an incident, including incidents of less than half a minute.
	Outages Occurrence `json:"outage_runs"`
	// Incidents in all runs of the policy.
	OutageSum OutageSum `json:"outage"`
	// The run with the highest outage_delta, then the lowest net_savings_delta_pct.
	WorstRun *WorstRun `json:"worst_run,omitempty"`
	// The outages and Spot share of each service; empty for jobs.
	Workloads []WorkloadReport `json:"workloads"`
	// Violations of the manifests, in the order in which runs first report them. A policy with
	// violations is marked, and never first, best or best_static.
	Violations []Violation `json:"violations"`
	// Number of runs with violations.
	Violating int `json:"violating_runs"`

	// Outage is the source of OutageSum. Worst is the index of WorstRun in Report.Runs, -1 if there
	// are no runs.
	Outage OutageReport `json:"-"`
	Worst  int          `json:"-"`
}

// A Place identifies a run.
type Place struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	Seed     uint64 `json:"seed"`
	// Command that repeats the run.
	Command string `json:"command"`
}

// A WorstRun is the worst run of a policy.
type WorstRun struct {
	Place
	// A value for each known metric.
	Metrics Values `json:"metrics"`
}

// An Occurrence is the frequency of an event.
type Occurrence struct {
	// Number of runs with the event.
	Count int `json:"count"`
	// Number of all runs.
	Of int `json:"of"`
	// If no run of n has the event, the exact 95% upper bound of its rate, 1 − 0.05^(1/n), assuming
	// independent runs.
	Bound float64 `json:"bound_95,omitempty"`
}

// A WindowMedians contains the medians in one window of one scenario.
type WindowMedians struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	// A number for each known metric.
	Medians Medians `json:"medians"`
}

// A WorkloadReport contains the outages and the Spot share of one service. Values are means over
// runs, unless stated otherwise.
type WorkloadReport struct {
	Scenario string `json:"scenario"`
	// Namespace and name of the service.
	Name string `json:"name"`
	// Kubernetes kind of the service.
	Kind string `json:"kind"`
	// Number of runs that the values are based on.
	Runs int `json:"runs"`
	// Value of one pod per hour in dollars, in the first run.
	PodValue      float64 `json:"pod_value_usd"`
	OutageMinutes float64 `json:"outage_minutes"`
	// Maximum of a run.
	OutageMax  int64   `json:"outage_minutes_max"`
	Incidents  float64 `json:"incidents"`
	OutageCost float64 `json:"outage_cost_usd"`
	// Fraction of time with all desired pods ready, in [0, 1].
	Availability float64 `json:"availability"`
	// Fraction of ready pod-hours on Spot, in [0, 1].
	SpotShare float64 `json:"spot_share"`
	// Incidents in all runs of the service.
	OutageSum OutageSum `json:"outage"`

	// Outage is the source of OutageSum.
	Outage OutageReport `json:"-"`
}

// Failed reports whether a gate failed.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Gates, func(g GateResult) bool { return !g.Pass })
}

// Missing returns the number of runs that failed. It does not include unfinished runs.
func (r *Report) Missing() int {
	n := 0
	for i := range r.Runs {
		if x := &r.Runs[i]; x.Err != nil && !x.Unfinished() {
			n++
		}
	}
	return n
}

// ExitCode returns the exit code of a program that made the report: 3 if runs are missing or the
// comparison was stopped, 1 if a gate or the comparison with the other side failed, else 0.
func (r *Report) ExitCode() int {
	switch {
	case r.Missing() > 0, r.Stopped:
		return 3
	case r.Failed(), r.Comparison != nil && r.Comparison.Outcome == Worse:
		return 1
	}
	return 0
}

// newReport returns the report of runs, and sets their values.
func newReport(c *Config, runs []RunRow, oracles, seeded []oracle.Bound) *Report {
	measure(c, runs, seeded)
	r := &Report{Config: *c, Oracles: oracles, Runs: runs, Level: 1 - c.errorRate()}
	for _, k := range c.Cases {
		if !slices.Contains(r.Traces, k.Bound.Trace) {
			r.Traces = append(r.Traces, k.Bound.Trace)
		}
	}
	r.Groups = groupsOf(c.Cases)
	for i := range r.Groups {
		g := &r.Groups[i]
		for p := range c.Policies {
			g.Policies = append(g.Policies, r.summarizePolicy(g, p))
		}
		if _, best, ok := r.Frontier(g); ok {
			g.BestStatic = c.Policies[best]
		}
	}
	for _, gate := range c.Gates {
		for _, p := range gate.holdsFor(c) {
			for i := range r.Groups {
				if g := &r.Groups[i]; gate.Scenario == "" || gate.Scenario == g.Scenario {
					r.Gates = append(r.Gates, gate.judge(r, g, p))
				}
			}
		}
	}
	return r
}

// groupsOf returns the groups of cases, without their policies.
func groupsOf(cases []Case) []Group {
	var groups []Group
	for i, k := range cases {
		at := slices.IndexFunc(groups, func(g Group) bool { return g.Scenario == k.Scenario })
		if at < 0 {
			at = len(groups)
			groups = append(groups, Group{Scenario: k.Scenario, IntervalsOver: OverSeeds})
		} else {
			groups[at].IntervalsOver = OverWindows
		}
		groups[at].Cases = append(groups[at].Cases, i)
		groups[at].Windows++
	}
	return groups
}

// Group returns the group of a scenario. It panics if the scenario was not compared.
func (r *Report) Group(scenario string) *Group {
	i := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Scenario == scenario })
	if i < 0 {
		panic("eval: the scenario " + scenario + " was not run")
	}
	return &r.Groups[i]
}

// indices returns the indexes in Runs of policy p in case k.
func (r *Report) indices(k, p int) []int {
	seeds, policies := len(r.Config.Seeds), len(r.Config.Policies)
	out := make([]int, seeds)
	for s := range out {
		out[s] = (k*seeds+s)*policies + p
	}
	return out
}

// RunsOf returns the indexes in Runs of policy p in the cases of g, including missing runs.
func (r *Report) RunsOf(g *Group, p int) []int {
	var out []int
	for _, k := range g.Cases {
		out = append(out, r.indices(k, p)...)
	}
	return out
}

// Summary returns the summary of the metric called name, which must be one of [Metrics].
func (p *PolicyReport) Summary(name string) *Summary { return &p.Summaries[mustMetric(name)] }

// Median returns the median of the metric called name, which must be one of [Metrics].
func (w *WindowMedians) Median(name string) Value { return w.Medians[mustMetric(name)] }

// summarizePolicy summarizes policy p over the cases of g.
func (r *Report) summarizePolicy(g *Group, p int) PolicyReport {
	name := r.Config.Policies[p]
	out := PolicyReport{Policy: name, Role: r.Config.Role(name), Worst: -1}
	all := r.RunsOf(g, p)
	good := make([][]int, len(g.Cases)) // by window: the runs with results
	for i, k := range g.Cases {
		good[i] = slices.DeleteFunc(r.indices(k, p), func(run int) bool { return r.Runs[run].Err != nil })
		window := WindowMedians{r.Config.Cases[k].Scenario, r.Config.Cases[k].Window, make(Medians, len(metrics))}
		for m := range metrics {
			if values := r.known(good[i], m); len(values) > 0 {
				window.Medians[m] = Value{stats.Median(values), true}
			}
		}
		out.Windows = append(out.Windows, window)
	}
	out.Runs = len(all)
	for _, i := range all {
		if r.Runs[i].Unfinished() {
			out.Unfinished++
		} else if r.Runs[i].Err != nil {
			out.Missing++
		} else if out.Worst < 0 || r.worse(i, out.Worst) {
			out.Worst = i
		}
	}
	for m := range metrics {
		windows := make([][]float64, len(g.Cases))
		for i := range good {
			windows[i] = r.known(good[i], m)
		}
		rate := 0.0
		if metrics[m].Interval {
			rate = r.Config.errorRate()
		}
		out.Summaries = append(out.Summaries, Summarize(windows, rate))
	}
	out.Worse = r.occurrence(all, mustMetric("outage_delta"))
	out.Outages = r.occurrence(all, mustMetric("outage_incidents"))
	out.Outage = r.outages(all)
	out.OutageSum = r.sumOf(&out.Outage)
	if out.Worst >= 0 {
		out.WorstRun = &WorstRun{r.Place(out.Worst), r.Runs[out.Worst].Values}
	}
	out.Workloads = r.workloads(all)
	out.Violations, out.Violating = r.violations(all)
	return out
}

// known returns the known values of metric m in runs.
func (r *Report) known(runs []int, m int) []float64 {
	var values []float64
	for _, i := range runs {
		if v := r.Runs[i].value(m); v.Known {
			values = append(values, v.V)
		}
	}
	return values
}

// occurrence counts the runs in which metric m is positive.
func (r *Report) occurrence(runs []int, m int) Occurrence {
	values := r.known(runs, m)
	o := Occurrence{Of: len(values)}
	for _, v := range values {
		if v > 0 {
			o.Count++
		}
	}
	if o.Count == 0 && o.Of > 0 {
		o.Bound = stats.ZeroBound(o.Of)
	}
	return o
}

// worse reports whether run i is worse than run j: by more outage minutes than the baseline, then
// by lower savings relative to the baseline, then by more outage minutes, then by lower savings.
func (r *Report) worse(i, j int) bool {
	for _, by := range []struct {
		metric string
		sign   float64
	}{{"outage_delta", 1}, {"net_savings_delta_pct", -1}, {"outage_minutes", 1}, {"net_savings_usd", -1}} {
		m := mustMetric(by.metric)
		a, b := r.Runs[i].value(m), r.Runs[j].value(m)
		if a.Known && b.Known && a.V != b.V {
			return by.sign*a.V > by.sign*b.V
		}
	}
	return false
}

// workloads summarizes the workloads of the given runs, in the order of scenarios and results.
func (r *Report) workloads(runs []int) []WorkloadReport {
	out := []WorkloadReport{}
	place := make(map[[2]string]int)
	for _, i := range runs {
		run := &r.Runs[i]
		if run.Err != nil {
			continue
		}
		for k := range run.Result.Workloads {
			w := &run.Result.Workloads[k]
			key := [2]string{run.Scenario, w.Name}
			at, ok := place[key]
			if !ok {
				at = len(out)
				place[key] = at
				out = append(out, WorkloadReport{Scenario: run.Scenario, Name: w.Name, Kind: w.Kind.String(),
					PodValue: w.PodValue.Float()})
			}
			x := &out[at]
			x.Runs++
			x.OutageMinutes += float64(w.OutageMinutes)
			x.OutageMax = max(x.OutageMax, w.OutageMinutes)
			x.Incidents += float64(w.Incidents)
			x.Outage.add(i, &w.Outages)
			x.OutageCost += w.OutageCost.Float()
			x.Availability += w.Availability
			x.SpotShare += w.SpotShare
		}
	}
	for i := range out {
		x, n := &out[i], float64(out[i].Runs)
		x.OutageMinutes /= n
		x.Incidents /= n
		x.OutageCost /= n
		x.Availability /= n
		x.SpotShare /= n
		x.OutageSum = r.sumOf(&x.Outage)
	}
	return out
}

// End returns the end of the window of k.
func (k *Case) End() policy.Time { return k.Bound.Start.Add(k.Bound.Duration) }

// Place identifies run i.
func (r *Report) Place(i int) Place {
	run := &r.Runs[i]
	return Place{run.Scenario, run.Window, run.Seed, r.Command(i)}
}

// Command returns the command that repeats run i.
func (r *Report) Command(i int) string { return r.Config.Command(r.Runs[i].Job) }
