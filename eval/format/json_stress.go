package format

import (
	"io"

	"github.com/spotter-dev/spotter/eval"
)

type jsonStress struct {
	SchemaVersion int                  `json:"schema_version"`
	Version       string               `json:"version"`
	Invocation    string               `json:"invocation"`
	Policies      []string             `json:"policies"`
	Baseline      string               `json:"baseline"`
	Seeds         []uint64             `json:"seeds"`
	Traces        []jsonTrace          `json:"traces"`
	RunCount      int                  `json:"run_count"`
	MissingCount  int                  `json:"missing_count"`
	RunsDone      int                  `json:"runs_done"`
	Incomplete    bool                 `json:"incomplete"`
	Passed        bool                 `json:"passed"`
	Truths        []jsonTruth          `json:"truths"`
	Gates         []jsonStressGate     `json:"gates"`
	Scenarios     []jsonStressScenario `json:"scenarios"`
	Notes         []string             `json:"notes"`
}

type jsonTruth struct {
	Truth string `json:"truth"`
	About string `json:"about"`
}

type jsonStressGate struct {
	Truth string `json:"truth"`
	jsonGate
}

type jsonStressScenario struct {
	Scenario string             `json:"scenario"`
	Policies []jsonStressPolicy `json:"policies"`
}

type jsonStressPolicy struct {
	Policy string           `json:"policy"`
	Role   string           `json:"role"`
	Truths []jsonStressCell `json:"truths"`
	Worst  jsonStressWorst  `json:"worst"`

	ViolatingRuns int `json:"violating_runs"`
}

type jsonStressCell struct {
	Truth   string   `json:"truth"`
	Saved   *float64 `json:"net_savings_pct,omitempty"`
	Outage  *float64 `json:"outage_minutes,omitempty"`
	Missing int      `json:"missing"`
}

type jsonStressWorst struct {
	Saved  *jsonStressRun `json:"net_savings_pct,omitempty"`
	Outage *jsonStressRun `json:"outage_minutes,omitempty"`
}

type jsonStressRun struct {
	Value   float64 `json:"value"`
	Truth   string  `json:"truth"`
	Window  int     `json:"window"`
	Seed    uint64  `json:"seed"`
	Command string  `json:"command"`
}

// writeJSON writes the stress as docs/eval-schema.md describes it.
func (s stress) writeJSON(w io.Writer) error {
	r := s.Reports[0]
	c := &r.Config
	out := jsonStress{
		SchemaVersion: SchemaVersion, Version: c.Version, Invocation: c.Invocation, Policies: c.Policies, Baseline: c.Baseline, Seeds: c.Seeds,
		Traces: newTraces(r), RunCount: s.runs(), MissingCount: s.missing(), RunsDone: s.done(), Incomplete: s.Stopped, Passed: s.ExitCode() == 0, Gates: []jsonStressGate{}, Notes: s.notes(),
	}
	for i, t := range s.Truths {
		out.Truths = append(out.Truths, jsonTruth{t.String(), t.About})
		for _, g := range newGates(s.Reports[i]) {
			out.Gates = append(out.Gates, jsonStressGate{t.String(), g})
		}
	}
	for _, scenario := range s.Scenarios() {
		of := jsonStressScenario{Scenario: scenario}
		for _, x := range s.Rows(scenario) {
			of.Policies = append(of.Policies, s.jsonPolicy(&x))
		}
		out.Scenarios = append(out.Scenarios, of)
	}
	return encode(w, out)
}

func (s stress) jsonPolicy(x *eval.StressRow) jsonStressPolicy {
	out := jsonStressPolicy{Policy: x.Policy, Role: role(&s.Reports[0].Config, x.Policy), ViolatingRuns: x.Violating}
	for i := range x.Cells {
		c := &x.Cells[i]
		cell := jsonStressCell{Truth: s.Truths[i].String(), Missing: c.Missing}
		if c.Saved.Known {
			cell.Saved = &c.Saved.V
		}
		if c.Outage.Known {
			cell.Outage = &c.Outage.V
		}
		out.Truths = append(out.Truths, cell)
	}
	run := func(truth, i int, v eval.Value) *jsonStressRun {
		r := s.Reports[truth]
		return &jsonStressRun{v.V, s.Truths[truth].String(), r.Runs[i].Window, r.Runs[i].Seed, r.Command(i)}
	}
	saved, outage := x.Worst()
	if x.Least >= 0 {
		out.Worst.Saved = run(x.Least, x.Cells[x.Least].LeastRun, saved)
	}
	if x.Longest >= 0 {
		out.Worst.Outage = run(x.Longest, x.Cells[x.Longest].LongestRun, outage)
	}
	return out
}
