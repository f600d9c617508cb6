package format

import (
	"io"

	"github.com/spotter-dev/spotter/eval"
)

// A jsonStress is the whole of a comparison with --stress: the result of every policy under every truth.
type jsonStress struct {
	// Version of this schema.
	SchemaVersion int `json:"schema_version"`
	// The program that made it.
	Version string `json:"version"`
	// Command that repeats the whole.
	Invocation string `json:"invocation"`
	// In the order of the comparison, on-demand and the baseline among them.
	Policies []string `json:"policies"`
	// The policy that gates compare with.
	Baseline string `json:"baseline"`
	// Seeds of the weather, the same under every truth.
	Seeds []uint64 `json:"seeds"`
	// Traces used.
	Traces []jsonTrace `json:"traces"`
	// Runs under all truths, missing ones included.
	RunCount int `json:"run_count"`
	// Runs that failed.
	MissingCount int `json:"missing_count"`
	// Runs that ended, failed ones included.
	RunsDone int `json:"runs_done"`
	// It was stopped: truths are those that it came to, and the last may lack runs.
	Incomplete bool `json:"incomplete"`
	// No run is missing, no gate failed under any truth, and it was not stopped.
	Passed bool `json:"passed"`
	// The truths, the model as it is first.
	Truths []jsonTruth `json:"truths"`
	// A result for each truth, gate and policy.
	Gates []jsonStressGate `json:"gates"`
	// A table of each scenario.
	Scenarios []jsonStressScenario `json:"scenarios"`
	// What a reader must know, in sentences.
	Notes []string `json:"notes"`
}

// A jsonTruth is what the weather is drawn under.
type jsonTruth struct {
	// Its name, as --truth takes it.
	Truth string `json:"truth"`
	// What it changes; empty for the model as it is.
	About string `json:"about"`
}

// A jsonStressGate is the result of one gate under one truth.
type jsonStressGate struct {
	Truth string `json:"truth"`
	jsonGate
}

// A jsonStressScenario is the table of one scenario.
type jsonStressScenario struct {
	// Name or path as given.
	Scenario string `json:"scenario"`
	// Best first: what saves most under the truth that is worst for it. One that does not keep the
	// manifests is behind those that do.
	Policies []eval.StressRow `json:"policies"`
}

// writeJSON writes the stress as docs/reference-eval.md describes it.
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
		out.Scenarios = append(out.Scenarios, jsonStressScenario{scenario, s.Rows(scenario)})
	}
	return encode(w, out)
}
