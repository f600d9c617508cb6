package format

import (
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
)

// The types of the JSON output. docs/reference-eval.md is made of them and of their
// comments: go test ./cmd/spotter -run TestReference -rewrite.

// A jsonReport is the whole of a comparison.
type jsonReport struct {
	// Version of this schema.
	SchemaVersion int `json:"schema_version"`
	// The program that made the report.
	Version string `json:"version"`
	// Command that repeats the whole comparison.
	Invocation string `json:"invocation"`
	// What was asked for, defaults filled in.
	Config jsonConfig `json:"config"`
	// What the cluster costs as it is, where that is known: saved_today_pct is measured against it.
	Today *jsonToday `json:"today,omitempty"`
	// Traces used.
	Traces []jsonTrace `json:"traces"`
	// Scenarios and their windows.
	Cases []jsonCase `json:"cases"`
	// Runs, missing ones included.
	RunCount int `json:"run_count"`
	// Runs that failed.
	MissingCount int `json:"missing_count"`
	// Runs that ended, failed ones included: fewer than run_count where the comparison was stopped.
	RunsDone int `json:"runs_done"`
	// The comparison was stopped: figures are of what was finished, and no gate passes.
	Incomplete bool `json:"incomplete"`
	// No run is missing, no gate failed, the comparison with another build did not fail, and nothing was stopped.
	Passed bool `json:"passed"`
	// A result for each gate, policy and scenario.
	Gates []jsonGate `json:"gates"`
	// Difference to another side, with --compare or --compare-scenarios.
	Comparison *jsonComparison `json:"comparison,omitempty"`
	// What could not be estimated. None of it counts as good.
	Warnings []string `json:"warnings"`
	// A summary of each scenario.
	Groups []jsonGroup `json:"groups"`
	// With several scenarios, what can be said over them. Nothing in it is summed.
	Across *jsonAcross `json:"across,omitempty"`
	// Every run that ended, by case, seed and policy.
	Runs []jsonRun `json:"runs"`
	// What a reader must know, in sentences.
	Notes []string `json:"notes"`
}

// A jsonConfig is what was asked for.
type jsonConfig struct {
	// In the order of the report, on-demand and the baseline among them.
	Policies []string `json:"policies"`
	// The policy that others are compared with.
	Baseline string `json:"baseline"`
	// Seeds of the weather.
	Seeds []uint64 `json:"seeds"`
	// Gates as written.
	Gates []string `json:"gates"`
	// Part of the on-demand price that a one-year commitment saves (modelled).
	Discount1y float64 `json:"discount_1y"`
	// The same for three years.
	Discount3y float64 `json:"discount_3y"`
	// Confidence of each interval: 1 − 0.05 ÷ number of policies.
	Confidence float64 `json:"confidence"`
}

// A jsonToday is what the nodes of a cluster cost as they are. It is not simulated.
type jsonToday struct {
	// What it is called.
	Name string `json:"name"`
	// Nodes whose price is known.
	Nodes int `json:"nodes"`
	// Spot part of their vCPUs.
	SpotShare float64 `json:"spot_share"`
	// Dollars a month of 730 hours.
	MonthUSD float64 `json:"usd_month"`
	// How many times a bill of a run this is in a month: 730 hours ÷ those of the window, times the nodes that one simulated node stands for.
	BillsPerMonth float64 `json:"bills_per_month"`
}

// A jsonTrace is where prices and reclaims come from.
type jsonTrace struct {
	// File, folder, or name of an embedded trace.
	Name string `json:"name"`
	// First instant of the whole trace.
	From string `json:"from"`
	// Last instant of the whole trace.
	To string `json:"to"`
	// recorded, synthetic, scripted by hand, or modelled where only availability was recorded.
	Prices string `json:"prices"`
	// recorded, recorded in part and modelled elsewhere, generated, decided by price and bid in auctions, or modelled.
	Reclaims string `json:"reclaims"`
	// How it was made, or where it was recorded.
	About string `json:"about"`
	// What was read of its files for all windows; 0 of an embedded one.
	BytesRead int64 `json:"bytes_read"`
	// What its files have.
	BytesStored int64 `json:"bytes_stored"`
}

// A jsonCase is one window of one scenario. Reports with equal digests can be compared.
type jsonCase struct {
	// Name or path as given.
	Scenario string `json:"scenario"`
	// Windows of a scenario count from 0.
	Window int `json:"window"`
	// Begin of the metered window.
	From string `json:"from"`
	// Its end.
	To string `json:"to"`
	// Seconds simulated before it and not metered.
	WarmUpS float64 `json:"warm_up_s"`
	// Seconds after which growth of a workload counts.
	ReadyGraceS float64 `json:"ready_grace_s"`
	// Multiplies reclaim rates and how often capacity runs short.
	Intensity float64 `json:"intensity"`
	// Nodes that a market can give; 0 is drawn for each market.
	Slots int `json:"slots"`
	// Version of Karpenter whose rules were followed, where one was named.
	Karpenter string `json:"karpenter_version,omitempty"`
	// The cluster in which the warm-up starts: empty, on-demand, or nodes for those of spec.nodes.
	Start string `json:"start"`
	// What every node costs per hour on top of its price, in dollars, where that is stated.
	NodeFee string `json:"node_fee,omitempty"`
	// What the weather was drawn under, as --truth names it.
	Truth string `json:"truth"`
	// SHA-256 of the scenario.
	ScenarioDigest string `json:"scenario_digest"`
	// SHA-256 of what no policy chooses: prices, span, settings of the market, and faults.
	Conditions string `json:"conditions_digest"`
	// SHA-256 of the workloads: how many pods of which size when, and what their outages cost.
	Demand string `json:"demand_digest"`
	// Name of its trace.
	Trace string `json:"trace"`
	// SHA-256 of the trace's content in the window.
	TraceDigest string `json:"trace_digest"`
	// Lower bound on bill and outage cost over every policy and every weather.
	OracleUSD *float64 `json:"oracle_usd,omitempty"`
	// The same over policies that buy on demand only.
	OracleODUSD *float64 `json:"oracle_on_demand_usd,omitempty"`
	// The least bound of a seed where a market has no more nodes at once than its slots and shortages allow.
	OracleSlotsUSD *float64 `json:"oracle_slots_usd,omitempty"`
	// One of the bounds reached its limit of work: it holds, and is lower than it could be.
	OracleCutShort bool `json:"oracle_cut_short"`
	// What was left out, and why.
	Warnings []string `json:"warnings"`
}

// A jsonGate is the result of one gate for one policy in one scenario.
type jsonGate struct {
	// The gate as written.
	Gate string `json:"gate"`
	// The policy judged.
	Policy string `json:"policy"`
	// The policy that takes the place of the baseline.
	Versus string `json:"versus,omitempty"`
	// The scenario judged.
	Scenario  string `json:"scenario"`
	Metric    string `json:"metric"`
	Statistic string `json:"statistic"`
	Op        string `json:"op"`
	// What the figure is held against.
	Value float64 `json:"value"`
	// What was found, null where no run has a value.
	Actual *float64 `json:"actual"`
	// Runs without a value; one is enough to fail.
	Missing int `json:"missing"`
	// Why low or high has no value.
	Reason string `json:"reason,omitempty"`
	// Whether it holds.
	Pass bool `json:"pass"`
	// Repeats the run that has the value, for min and max.
	Command string `json:"command,omitempty"`
}

// A jsonGroup is the summary of one scenario.
type jsonGroup struct {
	// Name or path as given.
	Scenario string `json:"scenario"`
	// How many it has.
	Windows int `json:"windows"`
	// The units of intervals: windows where there are several, else seeds.
	IntervalsOver string `json:"intervals_over"`
	// With several static:share=…, the one that saves most of those that keep the manifests.
	BestStatic string `json:"best_static,omitempty"`
	// A summary of each policy.
	Policies []jsonPolicy `json:"policies"`
}

// A jsonPolicy is the summary of one policy in one scenario.
type jsonPolicy struct {
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
	// A [Summary](#summary) of each metric.
	Metrics ordered `json:"metrics"`
	// Medians over the seeds of each window.
	Windows []jsonWindow `json:"windows"`
	// Runs with more outage minutes than the baseline.
	WorseRuns eval.Occurrence `json:"worse_runs"`
	// Runs with an incident, be it of less than half a minute.
	OutageRuns eval.Occurrence `json:"outage_runs"`
	// Its incidents in all runs.
	Outage jsonOutage `json:"outage"`
	// The run with the greatest outage_delta, then the least net_savings_delta_pct.
	WorstRun *jsonWorst `json:"worst_run,omitempty"`
	// What became of each service; empty for jobs.
	Workloads []jsonWorkload `json:"workloads"`
	// What runs did not keep of the manifests. A policy with any is never first, best or best_static.
	Violations []eval.Violation `json:"violations"`
	// Runs that did not keep all.
	ViolatingRuns int `json:"violating_runs"`
}

// A jsonAcross is what can be said over several scenarios.
type jsonAcross struct {
	// How many there are.
	Scenarios int `json:"scenarios"`
	// One of each policy.
	Policies []jsonAcrossPolicy `json:"policies"`
}

// A jsonAcrossPolicy is one policy over several scenarios.
type jsonAcrossPolicy struct {
	// Name as written.
	Policy string `json:"policy"`
	// Scenarios in which its median net_savings_pct is the greatest of all policies that keep the manifests, equals included.
	First int `json:"first"`
	// Scenarios in which it has a median.
	Of int `json:"of"`
	// Scenarios in which it does not keep the manifests.
	Marked int `json:"violating_scenarios"`
	// The scenario in which it is furthest below the first.
	Shortfall *jsonShortfall `json:"worst_shortfall,omitempty"`
	// The run with the most outage minutes.
	WorstOutage *jsonWorstOutage `json:"worst_outage,omitempty"`
}

// A jsonShortfall is how far a policy is below the first of a scenario.
type jsonShortfall struct {
	// Points of the on-demand bill; below 0 for one that saves more everywhere and does not keep the manifests.
	Points   float64 `json:"points"`
	Scenario string  `json:"scenario"`
	// The policy that is first there.
	Best string `json:"best"`
}

// A jsonWorstOutage is the run of a policy with the most outage.
type jsonWorstOutage struct {
	Minutes float64 `json:"minutes"`
	jsonPlace
}

// A jsonSummary is what one metric comes to. Percentiles are of type 7. Without a value in any run it has n alone.
type jsonSummary struct {
	// Runs that have a value.
	N int `json:"n"`
	// Over all runs.
	Mean   *float64 `json:"mean,omitempty"`
	Median *float64 `json:"median,omitempty"`
	P5     *float64 `json:"p5,omitempty"`
	P25    *float64 `json:"p25,omitempty"`
	P75    *float64 `json:"p75,omitempty"`
	P95    *float64 `json:"p95,omitempty"`
	Min    *float64 `json:"min,omitempty"`
	Max    *float64 `json:"max,omitempty"`
	// Both ends of the exact interval of the median over units.
	MedianInterval *stats.Interval `json:"median_interval,omitempty"`
	// How many units an interval needs, where there are fewer.
	Need int `json:"need,omitempty"`
	// The least of the windows' values, each the median over its seeds.
	WindowMin *float64 `json:"window_min,omitempty"`
	// Their median.
	WindowMedian *float64 `json:"window_median,omitempty"`
	// The greatest of them.
	WindowMax *float64 `json:"window_max,omitempty"`
	// The share of them above 0.
	WindowsPositive *float64 `json:"windows_positive,omitempty"`
}

// A jsonWindow is one window of one scenario.
type jsonWindow struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	// A number for each metric that is known.
	Medians ordered `json:"medians"`
}

// A jsonWorst is the worst run of a policy.
type jsonWorst struct {
	jsonPlace
	// A value for each metric that is known.
	Metrics ordered `json:"metrics"`
}

// A jsonWorkload is what became of one service. Figures are means over its runs where nothing else is said.
type jsonWorkload struct {
	Scenario string `json:"scenario"`
	// Namespace and name.
	Name string `json:"name"`
	// Its Kubernetes kind.
	Kind string `json:"kind"`
	// Runs that the figures are of.
	Runs int `json:"runs"`
	// Value of one pod per hour, in the first run.
	PodValueUSD   float64 `json:"pod_value_usd"`
	OutageMinutes float64 `json:"outage_minutes"`
	// The most of a run.
	OutageMax     int64   `json:"outage_minutes_max"`
	Incidents     float64 `json:"incidents"`
	OutageCostUSD float64 `json:"outage_cost_usd"`
	// Share of the time with all desired pods ready.
	Availability float64 `json:"availability"`
	// Spot part of the ready pod-hours.
	SpotShare float64 `json:"spot_share"`
	// Its incidents in all runs.
	Outage jsonOutage `json:"outage"`
}

// A jsonRun is one run.
type jsonRun struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	Seed     uint64 `json:"seed"`
	Policy   string `json:"policy"`
	// Why the run is missing.
	Error string `json:"error,omitempty"`
	// A value for each metric that is known: a number, or true or false. Empty where the run is missing.
	Metrics ordered `json:"metrics"`
	// SHA-256 of everything that no policy chooses; equal for all policies of one case and seed.
	Weather string `json:"weather,omitempty"`
	// SHA-256 of everything that happened.
	Hash string `json:"hash,omitempty"`
	// Faults that did not stop the run.
	Warnings []string `json:"warnings,omitempty"`
	// Repeats it.
	Command string `json:"command"`
	// What of the manifests it did not keep.
	Violations []string `json:"violations,omitempty"`
	// Its incidents.
	Outage *jsonRunOutage `json:"outage,omitempty"`
	// What became of each budget.
	Budgets []jsonBudget `json:"budgets,omitempty"`
}

// A jsonBudget is what became of one budget in one run.
type jsonBudget struct {
	// Namespace and name.
	Name string `json:"name"`
	// AlertOnly, Pause or Evict.
	Action string `json:"action"`
	// Device-hours that its pods held within the metered time.
	DeviceHours float64 `json:"device_hours"`
	// Device-hours that the ledger has within the budget's window at the last decision.
	WindowHours float64 `json:"window_device_hours"`
	// Dollars that the ledger has then.
	WindowUSD float64 `json:"window_usd"`
	// The largest part of a quota that was used within the window: above 1 it was exceeded.
	Peak float64 `json:"peak"`
	// Minutes for which it was spent.
	SpentMinutes int64 `json:"spent_min"`
	// Minutes for which its gate was closed.
	GateMinutes int64 `json:"gate_closed_min"`
	// Pods evicted for it.
	Evictions int64 `json:"evictions"`
	// Jobs suspended for it.
	Pauses int64 `json:"pauses"`
}
