package eval

import (
	"encoding/hex"

	"github.com/spotter-dev/spotter/policy"
)

// A RunReport describes one run.
type RunReport struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	Seed     uint64 `json:"seed"`
	Policy   string `json:"policy"`
	// Reason why the run is missing.
	Error string `json:"error,omitempty"`
	// A value for each known metric: a number or a boolean. Empty if the run is missing.
	Metrics Values `json:"metrics"`
	// SHA-256 of everything that policies do not choose. It is equal for all policies of a case and
	// seed.
	Weather string `json:"weather,omitempty"`
	// SHA-256 of all events.
	Hash string `json:"hash,omitempty"`
	// Faults that did not stop the run.
	Warnings []string `json:"warnings,omitempty"`
	// Command that repeats the run.
	Command string `json:"command"`
	// Violations of the manifests.
	Violations []string `json:"violations,omitempty"`
	// Incidents of the run.
	Outage *RunOutage `json:"outage,omitempty"`
	// Results of each GPU budget.
	Budgets []BudgetReport `json:"budgets,omitempty"`
	// The figures of each of Kueue's queues.
	Queues []QueueReport `json:"queues,omitempty"`
}

// A QueueReport is one ClusterQueue of Kueue in one run.
type QueueReport struct {
	// Name.
	Name string `json:"name"`
	// How often a workload was admitted.
	Admitted int64 `json:"admitted"`
	// How often one lost its quota to another.
	Preempted int64 `json:"preempted"`
	// Workloads that waited at the end.
	Pending int64 `json:"pending"`
	// Median time from the release of a workload, or from its preemption, until it was admitted.
	WaitP50 float64 `json:"wait_p50_s"`
	// 95th percentile of the same.
	WaitP95 float64 `json:"wait_p95_s"`
}

// A BudgetReport contains the results of one GPU budget in one run.
type BudgetReport struct {
	// Namespace and name of the budget.
	Name string `json:"name"`
	// AlertOnly, Pause or Evict.
	Action string `json:"action"`
	// Device-hours that pods of the budget used within the metered time.
	DeviceHours float64 `json:"device_hours"`
	// Device-hours in the ledger within the budget's window at the last decision.
	WindowHours float64 `json:"window_device_hours"`
	// Dollars in the ledger at the same time.
	WindowUSD float64 `json:"window_usd"`
	// Maximum fraction of a quota that was used within the window. Above 1, the quota was exceeded.
	Peak float64 `json:"peak"`
	// Minutes in which the budget was spent.
	SpentMinutes int64 `json:"spent_min"`
	// Minutes in which the gate of the budget was closed.
	ClosedMinutes int64 `json:"gate_closed_min"`
	// Pods evicted because of the budget.
	Evictions int64 `json:"evictions"`
	// Jobs suspended because of the budget.
	Pauses int64 `json:"pauses"`
}

// Report returns r in the form of the JSON output, with the command that repeats it.
func (r *RunRow) Report(command string) RunReport {
	out := RunReport{Scenario: r.Scenario, Window: r.Window, Seed: r.Seed, Policy: r.Policy, Command: command}
	if r.Err != nil {
		out.Error = r.Err.Error()
		return out
	}
	x := r.Result
	out.Metrics, out.Weather, out.Hash = r.Values, hex.EncodeToString(x.Weather[:]), hex.EncodeToString(x.Hash[:])
	out.Warnings, out.Violations, out.Outage = x.Warnings, x.Violations, outageOfRun(x)
	for i := range x.Budgets {
		b := &x.Budgets[i]
		out.Budgets = append(out.Budgets, BudgetReport{b.Name, b.Action.String(), b.GPUHours, b.WindowHours,
			b.WindowCost.Float(),
			b.Peak, b.OverMinutes, b.ClosedMinutes, b.Evictions, b.Pauses})
	}
	for i := range x.Queues {
		q := &x.Queues[i]
		out.Queues = append(out.Queues, QueueReport{q.Name, q.Admitted, q.Preempted, q.Pending, q.WaitP50.Seconds(),
			q.WaitP95.Seconds()})
	}
	return out
}

// RunReports returns the finished runs of r.
func (r *Report) RunReports() (out []RunReport) {
	for i := range r.Runs {
		if run := &r.Runs[i]; !run.Unfinished() {
			out = append(out, run.Report(r.Command(i)))
		}
	}
	return out
}

// other converts the run for a comparison. It returns false if metrics or digests are missing.
func (r *RunReport) other(e Evidence) (OtherRun, bool) {
	o := OtherRun{Scenario: r.Scenario, Window: r.Window, Seed: r.Seed, Policy: r.Policy, Weather: r.Weather, Hash: r.Hash,
		Evidence: e, Err: r.Error}
	if r.Error != "" {
		return o, true
	}
	m := r.Metrics
	bill, outage, minutes := m.Of("bill_usd"), m.Of("outage_cost_usd"), m.Of("outage_minutes")
	o.Bill, o.OutageCost, o.OutageMinutes = policy.Dollars(bill.V), policy.Dollars(outage.V), int64(minutes.V)
	spot, jobs, capacity, share := m.Of("spot_bill_usd"), m.Of("job_cost_usd"), m.Of("capacity_hours"), m.Of("spot_share")
	if o.Rough = !(spot.Known && jobs.Known && capacity.Known && share.Known); !o.Rough {
		o.SpotBill, o.JobCost, o.CapacityHours, o.SpotShare = policy.Dollars(spot.V), policy.Dollars(jobs.V), capacity.V, share.V
	}
	return o, bill.Known && outage.Known && minutes.Known && r.Weather != "" && r.Hash != ""
}
