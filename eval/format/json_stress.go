package format

import (
	"io"

	"github.com/spotter-dev/spotter/eval"
)

// A jsonStress is the whole of a comparison with --stress: what every policy comes to under every truth.
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
	// Best first: what saves most under the truth that is worst for it. One that does not keep the manifests is behind those that do.
	Policies []jsonStressPolicy `json:"policies"`
}

// A jsonStressPolicy is one policy in one scenario.
type jsonStressPolicy struct {
	// Name as written.
	Policy string `json:"policy"`
	// on-demand, baseline or compared.
	Role string `json:"role"`
	// What it comes to under each truth.
	Truths []jsonStressCell `json:"truths"`
	// The worst of it under any truth.
	Worst jsonStressWorst `json:"worst"`
	// Runs under all truths that did not keep the manifests.
	ViolatingRuns int `json:"violating_runs"`
}

// A jsonStressCell is one policy under one truth.
type jsonStressCell struct {
	Truth string `json:"truth"`
	// The median over runs.
	Saved *float64 `json:"net_savings_pct,omitempty"`
	// That of the run that has the most.
	Outage  *float64 `json:"outage_minutes,omitempty"`
	Missing int      `json:"missing"`
}

// A jsonStressWorst is the worst of a policy under any truth.
type jsonStressWorst struct {
	// The least of the medians, and the run that saves least under that truth.
	Saved *jsonStressRun `json:"net_savings_pct,omitempty"`
	// The most of a run, and that run.
	Outage *jsonStressRun `json:"outage_minutes,omitempty"`
}

// A jsonStressRun is a figure and the run that shows it.
type jsonStressRun struct {
	Value  float64 `json:"value"`
	Truth  string  `json:"truth"`
	Window int     `json:"window"`
	Seed   uint64  `json:"seed"`
	// Repeats it.
	Command string `json:"command"`
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
