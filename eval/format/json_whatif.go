package format

import (
	"reflect"

	"github.com/spotter-dev/spotter/eval"
)

// A jsonWhatIf is the complete output of `spotter whatif`.
type jsonWhatIf struct {
	Scenario string `json:"scenario"`
	// Number of windows of the trace that were run.
	Windows int      `json:"windows"`
	Seeds   []uint64 `json:"seeds"`
	// Number of runs, including those of the unchanged scenario.
	Runs int `json:"runs"`
	// Confidence level of each interval; all intervals share an error rate of 5%.
	Confidence float64 `json:"confidence"`
	// Whether the command was stopped. Results then only cover the finished runs.
	Incomplete bool `json:"incomplete,omitempty"`
	// The result in one line.
	Headline string `json:"headline"`
	// Whether no gate failed, and chance explains the effects of all variants.
	Quiet bool `json:"within_noise"`
	// The setting that is swept.
	Sweep string `json:"sweep,omitempty"`
	// The variant at the knee of a sweep, omitted if there is no knee.
	Knee string        `json:"knee,omitempty"`
	AsIs jsonWhatIfRow `json:"as_is"`
	// The variants in the order of the command.
	Variants []jsonWhatIfRow `json:"variants"`
	// A result for each gate and variant. The variant is the policy of the gate.
	Gates []jsonGate `json:"gates,omitempty"`
	// Version of the program.
	Version string `json:"version,omitempty"`
	// Command that repeats the analysis.
	Invocation string `json:"invocation,omitempty"`
}

// A jsonWhatIfRow is the result of the unchanged scenario, or of one variant.
type jsonWhatIfRow struct {
	*eval.WhatIfRow
	// The effect of the variant, in a sentence.
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
