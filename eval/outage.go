package eval

import (
	"github.com/spotter-dev/spotter/sim"
)

// An OutageReport summarises the incidents of several runs.
type OutageReport struct {
	// Outages are their sum, of which the minutes are rounded once. The longest
	// incident is one of a run.
	sim.Outages

	// LongestRun indexes Report.Runs: it has the longest incident. -1 without one.
	LongestRun int
}

// outages sums up the incidents of the given runs.
func (r *Report) outages(runs []int) OutageReport {
	out := OutageReport{LongestRun: -1}
	for _, i := range runs {
		if r.Runs[i].Err == nil {
			out.add(i, &r.Runs[i].Result.Outages)
		}
	}
	return out
}

// add adds the incidents of run i.
func (o *OutageReport) add(i int, more *sim.Outages) {
	before := o.Longest
	o.Add(more)
	if o.Longest != before {
		o.LongestRun = i
	}
}

// An Outage is the incidents of one run or more.
type Outage struct {
	// Seconds with fewer ready pods than required, to the millisecond.
	Seconds float64 `json:"outage_s"`
	// These in minutes, rounded once, half up: those of workloads need not add up to those of their run.
	Minutes int64 `json:"outage_minutes"`
	// The part that would not be without Spot, in minutes.
	SpotMinutes int64 `json:"outage_spot_minutes"`
	// The part due to the provisioner in workloads without a PodDisruptionBudget, in seconds.
	WithoutPDB float64 `json:"without_pdb_s"`
	// How many incidents.
	Incidents int64 `json:"incidents"`
	// The most pods missing at once in each incident, summed.
	Pods int64 `json:"pods"`
	// Causes of the outage; their seconds add up to outage_s.
	Causes []OutageCause `json:"causes"`
	// The incident with most of it.
	Longest *Incident `json:"longest,omitempty"`
}

// An OutageSum is the sum of incidents over runs.
type OutageSum struct {
	Outage
	// The run that the longest is in.
	Run *Place `json:"longest_run,omitempty"`
}

// A RunOutage is the incidents of one run, summed over workloads.
type RunOutage struct {
	Outage
	// The workloads that have one.
	Workloads []WorkloadOutage `json:"workloads"`
}

// A WorkloadOutage is the incidents of one workload in one run.
type WorkloadOutage struct {
	// Namespace and name.
	Name string `json:"name"`
	Outage
}

// An OutageCause is a part of an outage by its cause.
type OutageCause struct {
	// See [What outages come of](#what-outages-come-of).
	Cause string `json:"cause"`
	// Whether this part would not be without Spot.
	Spot bool `json:"spot"`
	// Its seconds.
	Seconds float64 `json:"outage_s"`
	// Incidents most of whose time it is.
	Incidents int64 `json:"incidents"`
}

// An Incident is one incident.
type Incident struct {
	// Namespace and name.
	Workload string `json:"workload"`
	// When it started.
	Began Instant `json:"began"`
	// Its seconds below required, gaps left out.
	Seconds float64 `json:"outage_s"`
	// The most pods missing at once.
	Pods int32 `json:"pods"`
	// The cause of most of its time.
	Cause string `json:"cause"`
}

// sumOf returns o with the run of its longest incident.
func (r *Report) sumOf(o *OutageReport) OutageSum {
	out := OutageSum{Outage: outageOf(&o.Outages)}
	if o.Incidents > 0 {
		place := r.Place(o.LongestRun)
		out.Run = &place
	}
	return out
}

// outageOfRun returns the incidents of a run, nil without incidents.
func outageOfRun(res *sim.Result) *RunOutage {
	if res.Incidents == 0 {
		return nil
	}
	out := &RunOutage{outageOf(&res.Outages), []WorkloadOutage{}}
	for i := range res.Workloads {
		if w := &res.Workloads[i]; w.Incidents > 0 {
			out.Workloads = append(out.Workloads, WorkloadOutage{w.Name, outageOf(&w.Outages)})
		}
	}
	return out
}

func outageOf(o *sim.Outages) Outage {
	out := Outage{Seconds: o.Outage.Seconds(), Minutes: o.OutageMinutes, SpotMinutes: o.SpotMinutes(),
		WithoutPDB: o.WithoutPDB.Seconds(),
		Incidents:  o.Incidents, Pods: o.PodsAffected, Causes: []OutageCause{}}
	for c := range o.Causes {
		if x := &o.Causes[c]; x.Outage > 0 {
			cause := sim.OutageCause(c)
			out.Causes = append(out.Causes, OutageCause{cause.String(), cause.Spot(), x.Outage.Seconds(), x.Incidents})
		}
	}
	if x := &o.Longest; o.Incidents > 0 {
		out.Longest = &Incident{x.Workload, Instant(x.Began), x.Outage.Seconds(), x.Pods, x.Cause.String()}
	}
	return out
}
