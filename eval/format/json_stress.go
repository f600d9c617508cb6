package format

import (
	"io"

	"github.com/spotter-dev/spotter/eval"
)

// A jsonStress is a complete comparison with --stress: the result of every policy under every
// truth.
type jsonStress struct {
	// Version of this schema.
	SchemaVersion int `json:"schema_version"`
	// Version of the program that made it.
	Version string `json:"version"`
	// Command that repeats the whole comparison.
	Invocation string `json:"invocation"`
	// The policies in the order of the comparison, including on-demand and the baseline.
	Policies []string `json:"policies"`
	// The policy that gates compare with.
	Baseline string `json:"baseline"`
	// Seeds of the weather, the same under every truth.
	Seeds []uint64 `json:"seeds"`
	// Traces that were used.
	Traces []jsonTrace `json:"traces"`
	// Number of runs under all truths, including missing ones.
	RunCount int `json:"run_count"`
	// Number of runs that failed.
	MissingCount int `json:"missing_count"`
	// Number of finished runs, including failed ones.
	RunsDone int `json:"runs_done"`
	// Whether the comparison was stopped. truths then contains those that were started, and the
	// last one may lack runs.
	Incomplete bool `json:"incomplete"`
	// Whether no run is missing, no gate failed under any truth, and the comparison was not
	// stopped.
	Passed bool `json:"passed"`
	// The truths; the first is the unchanged market model.
	Truths []jsonTruth `json:"truths"`
	// A result for each truth, gate and policy.
	Gates []jsonStressGate `json:"gates"`
	// A result for each scenario.
	Scenarios []jsonStressScenario `json:"scenarios"`
	// Remarks that readers must know, in sentences.
	Notes []string `json:"notes"`
}

// A jsonTruth is a market model that the weather is drawn from.
type jsonTruth struct {
	// Its name, as passed to --truth.
	Truth string `json:"truth"`
	// What it changes; empty for the unchanged market model.
	About string `json:"about"`
}

// A jsonStressGate is the result of one gate under one truth.
type jsonStressGate struct {
	Truth string `json:"truth"`
	jsonGate
}

// A jsonStressScenario is the result of one scenario.
type jsonStressScenario struct {
	// Name or path of the scenario, as passed.
	Scenario string `json:"scenario"`
	// Best first: the policy with the highest savings under the truth that is worst for it.
	// Policies that violate the manifests come after those that comply.
	Policies []eval.StressRow `json:"policies"`
}

// writeJSON writes the comparison in the format of docs/reference-eval.md.
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
