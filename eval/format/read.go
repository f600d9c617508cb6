package format

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
)

// ErrSchema is wrapped by the error of [ReadRuns] for a report whose keys mean
// something else than those that this build reads.
var ErrSchema = errors.New("another schema_version")

// A readReport is the part of a report in JSON that is read.
type readReport struct {
	SchemaVersion *int   `json:"schema_version"`
	Version       string `json:"version"`
	Config        struct {
		Policies []string `json:"policies"`
		Baseline string   `json:"baseline"`
		Seeds    []uint64 `json:"seeds"`
	} `json:"config"`
	Cases []readCase `json:"cases"`
	Runs  []readRun  `json:"runs"`
}

type readCase struct {
	Scenario   string    `json:"scenario"`
	Window     int       `json:"window"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Trace      string    `json:"trace"`
	Truth      string    `json:"truth"`
	Intensity  float64   `json:"intensity"`
	Karpenter  string    `json:"karpenter_version"`
	NodeFee    string    `json:"node_fee"`
	Start      string    `json:"start"`
	File       string    `json:"scenario_digest"`
	Conditions string    `json:"conditions_digest"`
	Demand     string    `json:"demand_digest"`
}

type readRun struct {
	Scenario string `json:"scenario"`
	Window   int    `json:"window"`
	Seed     uint64 `json:"seed"`
	Policy   string `json:"policy"`
	Error    string `json:"error"`
	Weather  string `json:"weather"`
	Hash     string `json:"hash"`
	Metrics  struct {
		Bill    *float64 `json:"bill_usd"`
		Outage  *float64 `json:"outage_cost_usd"`
		Minutes *float64 `json:"outage_minutes"`

		// An older program may lack these.
		SpotBill *float64 `json:"spot_bill_usd"`
		JobCost  *float64 `json:"job_cost_usd"`
		Capacity *float64 `json:"capacity_hours"`
		Share    *float64 `json:"spot_share"`

		Savings   float64 `json:"net_savings_usd"`
		Percent   float64 `json:"net_savings_pct"`
		Incidents float64 `json:"outage_incidents"`
		Longest   float64 `json:"outage_longest_s"`
	} `json:"metrics"`
}

// decode reads a report that was written as JSON or Parquet.
func decode(r io.Reader) (*readReport, error) {
	r, err := jsonOf(r)
	if err != nil {
		return nil, err
	}
	in := &readReport{}
	err = json.NewDecoder(r).Decode(in)
	switch v := in.SchemaVersion; {
	case v != nil && *v != SchemaVersion: // the cause of every other fault
		return nil, fmt.Errorf("reading a report: %w: that of spotter %s is %d, and this one reads %d", ErrSchema, cmp.Or(in.Version, "unknown"), *v, SchemaVersion)
	case err != nil:
		return nil, fmt.Errorf("reading a report: %w", err)
	case v == nil:
		return nil, errors.New("reading a report: it has no schema_version")
	}
	return in, nil
}

// ReadRuns reads the runs of a report that was written as JSON, by this build or
// another one.
func ReadRuns(r io.Reader) ([]eval.OtherRun, error) {
	in, err := ReadReport(r)
	if err != nil {
		return nil, err
	}
	return in.Runs, nil
}

// ReadReport reads a report that was written as JSON or Parquet, by this build or another one.
func ReadReport(r io.Reader) (*eval.Recorded, error) {
	in, err := decode(r)
	if err != nil {
		return nil, err
	}
	out := &eval.Recorded{Version: in.Version, Policies: in.Config.Policies, Seeds: in.Config.Seeds}
	type window struct {
		scenario string
		number   int
	}
	of := map[window]eval.Evidence{}
	for i := range in.Cases {
		k := &in.Cases[i]
		e := eval.Evidence{File: k.File, Conditions: k.Conditions, Demand: k.Demand}
		of[window{k.Scenario, k.Window}] = e
		out.Cases = append(out.Cases, eval.RecordedCase{Scenario: k.Scenario, Window: k.Window, Start: policy.TimeOf(k.From), Duration: k.To.Sub(k.From), Evidence: e})
	}
	for i := range in.Runs {
		o, err := in.Runs[i].run(i)
		if err != nil {
			return nil, err
		}
		o.Evidence = of[window{o.Scenario, o.Window}]
		out.Runs = append(out.Runs, o)
	}
	return out, nil
}

// run returns the i-th run of a report.
func (x *readRun) run(i int) (eval.OtherRun, error) {
	o := eval.OtherRun{Scenario: x.Scenario, Window: x.Window, Seed: x.Seed, Policy: x.Policy, Weather: x.Weather, Hash: x.Hash, Err: x.Error}
	if m := &x.Metrics; x.Error == "" {
		if m.Bill == nil || m.Outage == nil || m.Minutes == nil || x.Weather == "" || x.Hash == "" {
			return o, fmt.Errorf("reading a report: runs[%d] lacks one of bill_usd, outage_cost_usd, outage_minutes, weather and hash", i)
		}
		o.Bill, o.OutageCost, o.OutageMinutes = policy.Dollars(*m.Bill), policy.Dollars(*m.Outage), int64(*m.Minutes)
		if o.Rough = m.SpotBill == nil || m.JobCost == nil || m.Capacity == nil || m.Share == nil; !o.Rough {
			o.SpotBill, o.JobCost, o.CapacityHours, o.SpotShare = policy.Dollars(*m.SpotBill), policy.Dollars(*m.JobCost), *m.Capacity, *m.Share
		}
	}
	return o, nil
}
