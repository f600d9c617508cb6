package format

import (
	"reflect"

	"github.com/spotter-dev/spotter/eval"
)

// A jsonWhatIf is the whole output of `spotter whatif`.
type jsonWhatIf struct {
	Scenario string `json:"scenario"`
	// How many windows of the trace were run.
	Windows int      `json:"windows"`
	Seeds   []uint64 `json:"seeds"`
	// All runs, those of the scenario as it is included.
	Runs int `json:"runs"`
	// Of each interval: all of them share an error rate of 5%.
	Confidence float64 `json:"confidence"`
	// It was stopped: figures are of what was finished.
	Incomplete bool `json:"incomplete,omitempty"`
	// The outcome in one line.
	Headline string `json:"headline"`
	// No gate failed, and chance explains what every variant changes.
	Quiet bool `json:"within_noise"`
	// The setting that is swept.
	Sweep string `json:"sweep,omitempty"`
	// The variant at the knee of a sweep, left out without a knee.
	Knee string        `json:"knee,omitempty"`
	AsIs jsonWhatIfRow `json:"as_is"`
	// In the order of the call.
	Variants []jsonWhatIfRow `json:"variants"`
	// A result for each gate and variant, which is the policy of the gate.
	Gates []jsonGate `json:"gates,omitempty"`
	// The program that ran it.
	Version string `json:"version,omitempty"`
	// Command that repeats it.
	Invocation string `json:"invocation,omitempty"`
}

// A jsonWhatIfRow is the result of the scenario as it is, or of one variant.
type jsonWhatIfRow struct {
	*eval.WhatIfRow
	// What it does, in a sentence.
	Words string `json:"words,omitempty"`
}

// WhatIfType is the type of [WhatIf], of which JSON Schema can be made.
func WhatIfType() reflect.Type { return reflect.TypeFor[jsonWhatIf]() }

// WhatIf returns r as it is written in JSON and YAML.
func WhatIf(r *eval.WhatIf) any {
	out := jsonWhatIf{
		Scenario: r.Config.Cases[0].Scenario, Windows: len(r.Config.Cases), Seeds: r.Config.Seeds, Runs: len(r.Runs), Confidence: r.Level,
		Incomplete: r.Stopped, Headline: whatIfHeadline(r), Quiet: whatIfQuiet(r), Sweep: r.Sweep,
		AsIs: jsonWhatIfRow{WhatIfRow: &r.AsIs}, Variants: []jsonWhatIfRow{}, Version: r.Config.Version, Invocation: r.Config.Invocation,
	}
	switch knee, ok := r.Knee(); {
	case ok && knee < 0:
		out.Knee = r.AsIs.Name
	case ok:
		out.Knee = r.Variants[knee].Name
	}
	for i := range r.Variants {
		x := &r.Variants[i]
		out.Variants = append(out.Variants, jsonWhatIfRow{x, whatIfSentence(r, x)})
	}
	if r.Judged != nil {
		out.Gates = newGates(r.Judged)
	}
	return out
}
