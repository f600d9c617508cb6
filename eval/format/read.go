package format

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spotter-dev/spotter/eval"
)

// ErrSchema is wrapped by the error of [ReadRuns] for a report with a different schema version.
var ErrSchema = errors.New("another schema_version")

// A readReport contains the keys of a report that are read.
type readReport struct {
	SchemaVersion *int   `json:"schema_version"`
	Version       string `json:"version"`
	Config        struct {
		Policies []string `json:"policies"`
		Baseline string   `json:"baseline"`
		Seeds    []uint64 `json:"seeds"`
	} `json:"config"`
	Cases []eval.CaseReport `json:"cases"`
	Runs  []eval.RunReport  `json:"runs"`

	// CaseOf maps each run to an index of Cases, if a file contains several cases of the same
	// window under different truths; else nil.
	CaseOf []int `json:"case_of"`
}

// caseOf returns the case of run i, nil if it is missing.
func (in *readReport) caseOf(i int) *eval.CaseReport {
	if i < len(in.CaseOf) && in.CaseOf[i] >= 0 && in.CaseOf[i] < len(in.Cases) {
		return &in.Cases[in.CaseOf[i]]
	}
	return eval.CaseOf(in.Cases, in.Runs[i].Scenario, in.Runs[i].Window)
}

// decode reads a JSON or Parquet report.
func decode(r io.Reader) (*readReport, error) {
	r, err := jsonOf(r)
	if err != nil {
		return nil, err
	}
	in := &readReport{}
	err = json.NewDecoder(r).Decode(in)
	switch v := in.SchemaVersion; {
	case v != nil && *v != SchemaVersion: // it may be the cause of any other error
		return nil, fmt.Errorf("reading a report: %w: that of spotter %s is %d, and this one reads %d", ErrSchema,
			cmp.Or(in.Version, "unknown"), *v, SchemaVersion)
	case err != nil:
		return nil, fmt.Errorf("reading a report: %w", err)
	case v == nil:
		return nil, errors.New("reading a report: it has no schema_version")
	}
	return in, nil
}

// ReadRuns reads the runs of a JSON or Parquet report, which may be from another version.
func ReadRuns(r io.Reader) ([]eval.OtherRun, error) {
	in, err := ReadReport(r)
	if err != nil {
		return nil, err
	}
	return in.Runs, nil
}

// ReadReport reads a JSON or Parquet report, which may be from another version.
func ReadReport(r io.Reader) (*eval.Recorded, error) {
	in, err := decode(r)
	if err != nil {
		return nil, err
	}
	for i := range in.Cases {
		if k := &in.Cases[i]; eval.CaseOf(in.Cases, k.Scenario, k.Window) != k {
			return nil, fmt.Errorf("reading a report: it has window %d of %s under several truths, and reports of one truth "+
				"can be compared", k.Window, k.Scenario)
		}
	}
	out, err := eval.Record(in.Version, in.Config.Policies, in.Config.Seeds, in.Cases, in.Runs)
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	return out, nil
}

// A ResultRun is one run of a report, with its case.
type ResultRun struct {
	eval.RunReport
	Case *eval.CaseReport
}

// Results are the runs of a report, in order, and its baseline.
type Results struct {
	Baseline string
	Runs     []ResultRun
}

// ReadResults reads a JSON or Parquet report, which may be from another version.
func ReadResults(r io.Reader) (*Results, error) {
	in, err := decode(r)
	if err != nil {
		return nil, err
	}
	if len(in.Runs) == 0 {
		return nil, errors.New("reading a report: it has no runs")
	}
	out := &Results{Baseline: in.Config.Baseline}
	for i := range in.Runs {
		x := &in.Runs[i]
		k := in.caseOf(i)
		if k == nil {
			return nil, fmt.Errorf("reading a report: runs[%d]: cases has no window %d of %s", i, x.Window, x.Scenario)
		}
		out.Runs = append(out.Runs, ResultRun{*x, k})
	}
	return out, nil
}
