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

	// Comparison is the difference to the other side, nil where none was asked
	// for. [Report.Compare] sets it.
	Comparison *Comparison
}

// A Group is the cases of one scenario, which are summed up together.
type Group struct {
	Scenario string

	// Cases are the places in Config.Cases.
	Cases []int

	// Windows is the number of cases.
	Windows int

	// Policies are in the order of Config.Policies.
	Policies []PolicyReport
}

// A PolicyReport sums up the runs of one policy.
type PolicyReport struct {
	Policy string

	// Runs is how many there should be, Missing how many of them failed and
	// Unfinished how many were not done.
	Runs, Missing, Unfinished int

	// Summaries has one per metric, in the order of [Metrics].
	Summaries []Summary

	// Windows has the medians of each case.
	Windows []WindowMedians

	// Worse counts runs with more outage minutes than the baseline, Outages
	// runs with an incident.
	Worse, Outages Occurrence

	// Outage sums up the incidents of all runs.
	Outage OutageReport

	// Worst indexes Report.Runs: the run with the greatest outage_delta, among
	// equals that with the least net_savings_delta_pct. It is -1 without runs.
	Worst int

	// Violations are what of the manifests runs did not keep, in the order in
	// which runs first say it, and Violating the number of such runs. A policy
	// with any is marked, and never the best of its scenario.
	Violations []Violation
	Violating  int

	Workloads []WorkloadReport
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

// WindowMedians are the medians over the seeds of one case, per metric.
type WindowMedians struct {
	Case    int
	Medians []Value
}

// A WorkloadReport is what became of one workload, over all runs of a policy.
type WorkloadReport struct {
	Scenario, Name string
	Kind           policy.WorkloadKind
	Runs           int

	// OutageMinutes is the mean and OutageMax the greatest of a run. The
	// others are means.
	OutageMinutes           float64
	OutageMax               int64
	Incidents, OutageCost   float64
	Availability, SpotShare float64

	// Outage sums up its incidents over the runs.
	Outage OutageReport

	// PodValue is per hour, of the first run.
	PodValue policy.Money
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
			groups = append(groups, Group{Scenario: k.Scenario})
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
	out := PolicyReport{Policy: r.Config.Policies[p], Worst: -1}
	all := r.RunsOf(g, p)
	good := make([][]int, len(g.Cases)) // by window, the runs that have figures
	for i, k := range g.Cases {
		good[i] = slices.DeleteFunc(r.indices(k, p), func(run int) bool { return r.Runs[run].Err != nil })
		window := WindowMedians{Case: k, Medians: make([]Value, len(metrics))}
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
	var out []WorkloadReport
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
				out = append(out, WorkloadReport{Scenario: run.Scenario, Name: w.Name, Kind: w.Kind, PodValue: w.PodValue})
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
	}
	return out
}

// End returns when the window of k ends.
func (k *Case) End() policy.Time { return k.Bound.Start.Add(k.Bound.Duration) }

// Command returns the command that repeats run i.
func (r *Report) Command(i int) string { return r.Config.Command(r.Runs[i].Job) }
