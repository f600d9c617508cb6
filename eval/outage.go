package eval

import (
	"github.com/spotter-dev/spotter/sim"
)

// An OutageReport summarizes the incidents of several runs.
type OutageReport struct {
	// Outages is the sum over runs, with minutes rounded once. Longest is the longest incident of a
	// single run.
	sim.Outages

	// LongestRun is the index in Report.Runs of the run with the longest incident, -1 if there are
	// no incidents.
	LongestRun int
}

// outages returns the sum of the incidents of the given runs.
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

// An Outage summarizes the incidents of one or more runs.
type Outage struct {
	// Seconds with fewer ready pods than required, to the millisecond.
	Seconds float64 `json:"outage_s"`
	// The same time in minutes, rounded once, half up. The minutes of workloads need not sum to
	// those of their run.
	Minutes int64 `json:"outage_minutes"`
	// The part that would not have occurred without Spot, in minutes.
	SpotMinutes int64 `json:"outage_spot_minutes"`
	// The part that the provisioner caused in workloads without a PodDisruptionBudget, in seconds.
	WithoutPDB float64 `json:"without_pdb_s"`
	// Number of incidents.
	Incidents int64 `json:"incidents"`
	// Maximum number of pods missing at once in an incident, summed over incidents.
	Pods int64 `json:"pods"`
	// Causes of the outage. Their seconds sum to outage_s.
	Causes []OutageCause `json:"causes"`
	// The longest incident.
	Longest *Incident `json:"longest,omitempty"`
}

// An OutageSum is the sum of the incidents of several runs.
type OutageSum struct {
	Outage
	// The run with the longest incident.
	Run *Place `json:"longest_run,omitempty"`
}

// A RunOutage summarizes the incidents of one run over its workloads.
type RunOutage struct {
	Outage
	// The workloads with incidents.
	Workloads []WorkloadOutage `json:"workloads"`
}

// A WorkloadOutage summarizes the incidents of one workload in one run.
type WorkloadOutage struct {
	// Namespace and name of the workload.
	Name string `json:"name"`
	Outage
}

// An OutageCause is the part of an outage with one cause.
type OutageCause struct {
	// See [What outages come of](#what-outages-come-of).
	Cause string `json:"cause"`
	// Whether this part would not have occurred without Spot.
	Spot bool `json:"spot"`
	// Duration of this part in seconds.
	Seconds float64 `json:"outage_s"`
	// Number of incidents of which this is the main cause, by time.
	Incidents int64 `json:"incidents"`
}

// An Incident is an interval in which a workload had fewer ready pods than required.
type Incident struct {
	// Namespace and name of the workload.
	Workload string `json:"workload"`
	// Start of the incident.
	Began Instant `json:"began"`
	// Seconds with fewer ready pods than required, without gaps.
	Seconds float64 `json:"outage_s"`
	// Maximum number of pods missing at once.
	Pods int32 `json:"pods"`
	// The main cause, by time.
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

// outageOfRun returns the incidents of a run, nil if there are no incidents.
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
