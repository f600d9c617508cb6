package format

import (
	"fmt"
	"io"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// A ResultRun is one run of a report, with what it takes to do it again.
type ResultRun struct {
	Scenario, Policy string
	Seed             uint64

	// From is the begin of its window in RFC 3339, Trace the path or the name of its
	// prices; Truth and Intensity are those of its weather.
	From, Trace, Truth string
	Intensity          float64
	Karpenter          string // the version that was asked for, empty for none
	Start              string // empty or on-demand as --start takes it, or nothing for nodes that the scenario lists
	NodeFee            string // what every node costs per hour on top of its price, empty for nothing

	// Hash is that of all that happened, in hexadecimal; Err why the run failed.
	Hash, Err string

	// Savings are net and against on-demand, and Share is their part of its bill, 0
	// where that is not known. The rest is what its outages come to.
	Savings                  policy.Money
	Share                    float64
	OutageMinutes, Incidents int64
	Longest                  time.Duration
}

// Results are the runs of a report, in its order, and the policy that the others are
// compared with.
type Results struct {
	Baseline string
	Runs     []ResultRun
}

// ReadResults reads a report that was written as JSON or Parquet, by this build or another one.
func ReadResults(r io.Reader) (*Results, error) {
	in, err := decode(r)
	if err != nil {
		return nil, err
	}
	if len(in.Runs) == 0 {
		return nil, fmt.Errorf("reading a report: it has no runs")
	}
	out := &Results{Baseline: in.Config.Baseline}
	for i := range in.Runs {
		x := &in.Runs[i]
		c := caseOf(in.Cases, x.Scenario, x.Window)
		if c == nil {
			return nil, fmt.Errorf("reading a report: runs[%d]: cases has no window %d of %s", i, x.Window, x.Scenario)
		}
		if c.Start == scenarios.StartNodes.String() {
			c.Start = "" // which the scenario states
		}
		m := &x.Metrics
		run := ResultRun{
			Scenario: x.Scenario, Policy: x.Policy, Seed: x.Seed, Hash: x.Hash, Err: x.Error,
			From: policy.TimeOf(c.From).String(), Trace: c.Trace, Truth: c.Truth, Intensity: c.Intensity,
			Karpenter: c.Karpenter, NodeFee: c.NodeFee, Start: c.Start,
			Savings: policy.Dollars(m.Savings), Share: m.Percent / 100, Incidents: int64(m.Incidents),
			Longest: time.Duration(m.Longest * float64(time.Second)),
		}
		if m.Minutes != nil {
			run.OutageMinutes = int64(*m.Minutes)
		}
		out.Runs = append(out.Runs, run)
	}
	return out, nil
}

// caseOf returns the case of a window, nil without it.
func caseOf(cases []readCase, scenario string, window int) *readCase {
	for i := range cases {
		if c := &cases[i]; c.Scenario == scenario && c.Window == window {
			return c
		}
	}
	return nil
}
