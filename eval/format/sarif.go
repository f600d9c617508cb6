package format

import (
	"io"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/scenarios"
)

// sarifPlace is the file that findings stand at which are about no scenario
// that is a file: code scanning shows nothing without a place.
const sarifPlace = "README.md"

// sarifLevels are the levels of findings as SARIF calls them.
var sarifLevels = map[findingLevel]string{levelError: "error", levelWarning: "warning", levelNote: "note"}

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`

	// Properties say what the runs were on, and what they came to across several
	// scenarios.
	Properties sarifProperties `json:"properties"`
}

type sarifProperties struct {
	Traces []string `json:"traces"`
	Across []string `json:"across,omitempty"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   sarifRegion   `json:"region"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

// writeSARIF writes the findings as SARIF 2.1.0, for code scanning. A finding
// about a scenario that is a file stands at the file's first line.
func writeSARIF(w io.Writer, r *eval.Report) error {
	run := sarifRun{Results: []sarifResult{}, Properties: sarifProperties{traceNotes(r), acrossLines(r)}, Tool: sarifTool{sarifDriver{Name: "spotter", Version: r.Config.Version, Rules: []sarifRule{
		{ruleGate, sarifText{"A gate on savings or outages failed"}},
		{ruleRun, sarifText{"A simulated run broke"}},
		{ruleComparison, sarifText{"Net savings or outages are worse than those of what was compared with"}},
		{ruleEstimate, sarifText{"Something could not be estimated"}},
		{ruleManifest, sarifText{"A policy did not keep the manifests"}},
	}}}}
	for _, f := range findings(r) {
		run.Results = append(run.Results, sarifResult{f.rule, sarifLevels[f.level], sarifText{f.title + ": " + f.detail}, []sarifLocation{{
			sarifPhysical{sarifArtifact{place(r, f.scenario)}, sarifRegion{1}},
		}}})
	}
	return encode(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// place returns the file that a finding about a scenario stands at: the scenario's,
// else the first that is a file and not of the library.
func place(r *eval.Report, scenario string) string {
	for i := range r.Config.Cases {
		name := r.Config.Cases[i].Scenario
		if (scenario == "" || scenario == name) && !scenarios.Embedded(name) {
			return strings.TrimPrefix(strings.ReplaceAll(name, `\`, "/"), "./")
		}
	}
	return sarifPlace
}
