package format

import (
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/sim"
)

// A jsonOutage is a sum over runs.
type jsonOutage struct {
	Seconds   float64       `json:"outage_s"`
	Incidents int64         `json:"incidents"`
	Pods      int64         `json:"pods"`
	Causes    []jsonCause   `json:"causes"`
	Longest   *jsonIncident `json:"longest,omitempty"`
	Run       *jsonWhere    `json:"longest_run,omitempty"`
}

// A jsonWhere names a run.
type jsonWhere struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	Seed     uint64 `json:"seed"`
	Command  string `json:"command"`
}

type jsonCause struct {
	Cause     string  `json:"cause"`
	Spot      bool    `json:"spot"`
	Seconds   float64 `json:"outage_s"`
	Incidents int64   `json:"incidents"`
}

type jsonIncident struct {
	Workload string  `json:"workload"`
	Began    string  `json:"began"`
	Seconds  float64 `json:"outage_s"`
	Pods     int32   `json:"pods"`
	Cause    string  `json:"cause"`
}

// A jsonRunOutage is that of one run.
type jsonRunOutage struct {
	Seconds   float64              `json:"outage_s"`
	Causes    []jsonCause          `json:"causes"`
	Longest   *jsonIncident        `json:"longest,omitempty"`
	Workloads []jsonWorkloadOutage `json:"workloads"`
}

type jsonWorkloadOutage struct {
	Name      string        `json:"name"`
	Seconds   float64       `json:"outage_s"`
	Minutes   int64         `json:"outage_minutes"`
	Incidents int64         `json:"incidents"`
	Pods      int64         `json:"pods"`
	Causes    []jsonCause   `json:"causes"`
	Longest   *jsonIncident `json:"longest,omitempty"`
}

func newOutage(r *eval.Report, o *eval.OutageReport) jsonOutage {
	out := jsonOutage{Seconds: o.Outage.Seconds(), Incidents: o.Incidents, Pods: o.PodsAffected, Causes: causes(&o.Outages), Longest: longest(&o.Outages)}
	if o.Incidents > 0 {
		run := &r.Runs[o.LongestRun]
		out.Run = &jsonWhere{run.Scenario, run.Window, run.Seed, r.Command(o.LongestRun)}
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
