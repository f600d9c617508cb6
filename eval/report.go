package eval

import (
	"slices"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// A Report is what a comparison found. Package eval/format writes it.
type Report struct {
	// Config is complete: defaults filled in, on-demand and baseline added.
	Config Config

	// Traces are those that the cases use, each once.
	Traces []scenarios.TraceInfo

	// Oracles has the bounds of each case that hold whatever the weather. The
	// metric oracle_usd of a run is that of its seed, which may be above.
	Oracles []oracle.Bound

	// Runs are ordered by case, seed and policy.
	Runs []RunRow

	// Stopped says that the comparison was stopped before its end: some runs are
	// unfinished, or some bounds are open. The figures are those of what is done.
	Stopped bool

	// Level is the confidence of every interval, such as 0.99: with p policies
	// 1 − 0.05/p, so that all of them hold together 19 times in 20.
	Level float64

	// Groups has one of each scenario, in the order in which Config.Cases first
	// names them. Scenarios are never summed up together.
	Groups []Group

	// Gates are the results, in the order of Config.Gates, Config.Policies and
	// Groups.
	Gates []GateResult

	// Comparison is the difference to the other side, nil if none was requested. [Report.Compare]
	// sets it.
	Comparison *Comparison
}

// A Group is the summary of one scenario.
type Group struct {
	// Name or path as given.
	Scenario string `json:"scenario"`
	// How many it has.
	Windows int `json:"windows"`
	// The units of intervals: windows where there are several, else seeds.
	IntervalsOver string `json:"intervals_over"`
	// With several static:share=…, the one that saves most of those that keep the manifests.
	BestStatic string `json:"best_static,omitempty"`
	// A summary of each policy.
	Policies []PolicyReport `json:"policies"`

	// Cases are the places in Config.Cases.
	Cases []int `json:"-"`
}

// A PolicyReport is the summary of one policy in one scenario.
type PolicyReport struct {
	// Name as written.
	Policy string `json:"policy"`
	// on-demand, baseline or compared.
	Role string `json:"role"`
	// Runs, missing ones included.
	Runs int `json:"runs"`
	// Runs that failed.
	Missing int `json:"missing"`
	// Runs that were not done.
	Unfinished int `json:"unfinished"`
	// A [Summary](#summary) of each metric, or of those of --metrics.
	Summaries Summaries `json:"metrics"`
	// Medians over the seeds of each window.
	Windows []WindowMedians `json:"windows"`
	// Runs with more outage minutes than the baseline.
	Worse Occurrence `json:"worse_runs"`
	// Runs with an incident, be it of less than half a minute.
	Outages Occurrence `json:"outage_runs"`
	// Its incidents in all runs.
	OutageSum OutageSum `json:"outage"`
	// The run with the greatest outage_delta, then the least net_savings_delta_pct.
	WorstRun *WorstRun `json:"worst_run,omitempty"`
	// The outages and Spot share of each service; empty for jobs.
	Workloads []WorkloadReport `json:"workloads"`
	// What runs did not keep of the manifests, in the order in which runs first say it. A policy with
	// any is marked, and never first, best or best_static.
	Violations []Violation `json:"violations"`
	// Runs that did not keep all.
	Violating int `json:"violating_runs"`

	// Outage is what OutageSum has, and Worst indexes Report.Runs: it is -1 without runs.
	Outage OutageReport `json:"-"`
	Worst  int          `json:"-"`
}

// A Place is which run it is.
type Place struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	Seed     uint64 `json:"seed"`
	// Repeats it.
	Command string `json:"command"`
}

// A WorstRun is the worst run of a policy.
type WorstRun struct {
	Place
	// A value for each metric that is known.
	Metrics Values `json:"metrics"`
}

// An Occurrence is how often something happened.
type Occurrence struct {
	// In how many runs.
	Count int `json:"count"`
	// Of how many.
	Of int `json:"of"`
	// With none of n, the exact 95% upper bound on the rate, 1 − 0.05^(1/n), which takes the runs
	// as independent.
	Bound float64 `json:"bound_95,omitempty"`
}

// A WindowMedians is one window of one scenario.
type WindowMedians struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	// A number for each metric that is known.
	Medians Medians `json:"medians"`
}

// A WorkloadReport is the outages and the Spot share of one service. Figures are means over its
// runs where nothing else is said.
type WorkloadReport struct {
	Scenario string `json:"scenario"`
	// Namespace and name.
	Name string `json:"name"`
	// Its Kubernetes kind.
	Kind string `json:"kind"`
	// Runs that the figures are of.
	Runs int `json:"runs"`
	// Value of one pod per hour, in the first run.
	PodValue      float64 `json:"pod_value_usd"`
	OutageMinutes float64 `json:"outage_minutes"`
	// The most of a run.
	OutageMax  int64   `json:"outage_minutes_max"`
	Incidents  float64 `json:"incidents"`
	OutageCost float64 `json:"outage_cost_usd"`
	// Share of the time with all desired pods ready.
	Availability float64 `json:"availability"`
	// Spot part of the ready pod-hours.
	SpotShare float64 `json:"spot_share"`
	// Its incidents in all runs.
	OutageSum OutageSum `json:"outage"`

	// Outage is what OutageSum has.
	Outage OutageReport `json:"-"`
}

// Failed reports whether a gate failed.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Gates, func(g GateResult) bool { return !g.Pass })
}

// Missing returns how many runs failed. Those that were not done are not among them.
func (r *Report) Missing() int {
	n := 0
	for i := range r.Runs {
		if x := &r.Runs[i]; x.Err != nil && !x.Unfinished() {
			n++
		}
	}
	return n
}

// ExitCode returns what a program that made the report should end with: 3 when
// runs are missing or it was stopped, 1 when a gate or the comparison with the other side failed,
// else 0.
func (r *Report) ExitCode() int {
	switch {
	case r.Missing() > 0, r.Stopped:
		return 3
	case r.Failed(), r.Comparison != nil && r.Comparison.Outcome == Worse:
		return 1
	}
	return 0
}

// newReport sums up runs. The runs' values are filled in.
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

// Group returns the group of a scenario, which must be one of those compared.
func (r *Report) Group(scenario string) *Group {
	i := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Scenario == scenario })
	if i < 0 {
		panic("eval: the scenario " + scenario + " was not run")
	}
	return &r.Groups[i]
}

// indices returns the places in Runs of policy p in case k.
func (r *Report) indices(k, p int) []int {
	seeds, policies := len(r.Config.Seeds), len(r.Config.Policies)
	out := make([]int, seeds)
	for s := range out {
		out[s] = (k*seeds+s)*policies + p
	}
	return out
}

// RunsOf returns the places in Runs of policy p over the cases of g, the missing
// ones too.
func (r *Report) RunsOf(g *Group, p int) []int {
	var out []int
	for _, k := range g.Cases {
		out = append(out, r.indices(k, p)...)
	}
	return out
}

// Summary returns the summary of the metric called name, which must be one of
// [Metrics].
func (p *PolicyReport) Summary(name string) *Summary { return &p.Summaries[mustMetric(name)] }

// Median returns that of the metric called name, which must be one of [Metrics].
func (w *WindowMedians) Median(name string) Value { return w.Medians[mustMetric(name)] }

// summarizePolicy sums up policy p over the cases of g.
func (r *Report) summarizePolicy(g *Group, p int) PolicyReport {
	name := r.Config.Policies[p]
	out := PolicyReport{Policy: name, Role: r.Config.Role(name), Worst: -1}
	all := r.RunsOf(g, p)
	good := make([][]int, len(g.Cases)) // by window, the runs that have figures
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

// known returns the values of metric m in those of runs that have one.
func (r *Report) known(runs []int, m int) []float64 {
	var values []float64
	for _, i := range runs {
		if v := r.Runs[i].value(m); v.Known {
			values = append(values, v.V)
		}
	}
	return values
}

// occurrence counts the runs in which metric m is above 0.
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

// worse reports whether run i is worse than run j: more outage than the
// baseline, then less savings, then more outage at all.
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

// workloads sums up the workloads of the given runs, in the order of the
// scenarios and of the results.
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

// End returns when the window of k ends.
func (k *Case) End() policy.Time { return k.Bound.Start.Add(k.Bound.Duration) }

// Place names run i.
func (r *Report) Place(i int) Place {
	run := &r.Runs[i]
	return Place{run.Scenario, run.Window, run.Seed, r.Command(i)}
}

// Command returns the command that repeats run i.
func (r *Report) Command(i int) string { return r.Config.Command(r.Runs[i].Job) }
