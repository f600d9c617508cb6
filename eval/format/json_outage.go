package format

import (
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/sim"
)

// A jsonOutage is the sum of incidents over runs.
type jsonOutage struct {
	// Seconds with fewer ready pods than required, to the millisecond.
	Seconds float64 `json:"outage_s"`
	// How many incidents.
	Incidents int64 `json:"incidents"`
	// The most pods missing at once in each incident, summed.
	Pods int64 `json:"pods"`
	// What the outage comes of; their seconds add up to outage_s.
	Causes []jsonCause `json:"causes"`
	// The incident with most of it.
	Longest *jsonIncident `json:"longest,omitempty"`
	// The run that this one is in.
	Run *jsonPlace `json:"longest_run,omitempty"`
}

// A jsonPlace is which run it is.
type jsonPlace struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	Seed     uint64 `json:"seed"`
	// Repeats it.
	Command string `json:"command"`
}

// A jsonCause is what a part of an outage comes of.
type jsonCause struct {
	// See [What outages come of](#what-outages-come-of).
	Cause string `json:"cause"`
	// Whether this part would not be without Spot.
	Spot bool `json:"spot"`
	// Its seconds.
	Seconds float64 `json:"outage_s"`
	// Incidents most of whose time it is.
	Incidents int64 `json:"incidents"`
}

// A jsonIncident is one incident.
type jsonIncident struct {
	// Namespace and name.
	Workload string `json:"workload"`
	// When it began.
	Began string `json:"began"`
	// Its seconds below required, gaps left out.
	Seconds float64 `json:"outage_s"`
	// The most pods missing at once.
	Pods int32 `json:"pods"`
	// The cause of most of its time.
	Cause string `json:"cause"`
}

// A jsonRunOutage is the incidents of one run.
type jsonRunOutage struct {
	// Seconds with fewer ready pods than required, summed over workloads.
	Seconds float64 `json:"outage_s"`
	// What they come of.
	Causes []jsonCause `json:"causes"`
	// The incident with most of them.
	Longest *jsonIncident `json:"longest,omitempty"`
	// The workloads that have one.
	Workloads []jsonWorkloadOutage `json:"workloads"`
}

// A jsonWorkloadOutage is the incidents of one workload in one run.
type jsonWorkloadOutage struct {
	// Namespace and name.
	Name string `json:"name"`
	// Its seconds.
	Seconds float64 `json:"outage_s"`
	// These in minutes, rounded half up: they need not add up to those of the run.
	Minutes   int64 `json:"outage_minutes"`
	Incidents int64 `json:"incidents"`
	// The most pods missing at once in each, summed.
	Pods int64 `json:"pods"`
	// What they come of.
	Causes []jsonCause `json:"causes"`
	// The one with most of it.
	Longest *jsonIncident `json:"longest,omitempty"`
}

func newOutage(r *eval.Report, o *eval.OutageReport) jsonOutage {
	out := jsonOutage{Seconds: o.Outage.Seconds(), Incidents: o.Incidents, Pods: o.PodsAffected, Causes: causes(&o.Outages), Longest: longest(&o.Outages)}
	if o.Incidents > 0 {
		where := placeOf(r, o.LongestRun)
		out.Run = &where
	}
	return out
}

// newRunOutage returns the incidents of a run, nil where there are none.
func newRunOutage(res *sim.Result) *jsonRunOutage {
	if res.Incidents == 0 {
		return nil
	}
	out := &jsonRunOutage{Seconds: res.Outage.Seconds(), Causes: causes(&res.Outages), Longest: longest(&res.Outages), Workloads: []jsonWorkloadOutage{}}
	for i := range res.Workloads {
		if w := &res.Workloads[i]; w.Incidents > 0 {
			out.Workloads = append(out.Workloads, jsonWorkloadOutage{w.Name, w.Outage.Seconds(), w.OutageMinutes, w.Incidents, w.PodsAffected,
				causes(&w.Outages), longest(&w.Outages)})
		}
	}
	return out
}

// causes lists those that some outage comes of.
func causes(o *sim.Outages) []jsonCause {
	out := []jsonCause{}
	for c := range o.Causes {
		if x := &o.Causes[c]; x.Outage > 0 {
			out = append(out, jsonCause{sim.OutageCause(c).String(), sim.OutageCause(c).Spot(), x.Outage.Seconds(), x.Incidents})
		}
	}
	return out
}

func longest(o *sim.Outages) *jsonIncident {
	if o.Incidents == 0 {
		return nil
	}
	x := &o.Longest
	return &jsonIncident{x.Workload, x.Began.String(), x.Outage.Seconds(), x.Pods, x.Cause.String()}
}
