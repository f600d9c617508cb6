package format

import (
	"strings"

	"github.com/spotter-dev/spotter/eval"
)

// A finding is something that a reader of CI has to see.
type finding struct {
	level         findingLevel
	rule          string
	title, detail string

	// scenario is what it is about, empty for all.
	scenario string
}

// A findingLevel says how bad a finding is.
type findingLevel int

const (
	levelError findingLevel = iota
	levelWarning
	levelNote
)

// The rules of findings.
const (
	ruleGate       = "gate"
	ruleRun        = "missing-run"
	ruleComparison = "comparison"
	ruleEstimate   = "not-estimated"
	ruleManifest   = "manifest"
)

// findings are what went wrong, then what could not be estimated, and then who did
// not keep the manifests.
func findings(r *eval.Report) []finding {
	var out []finding
	for i := range r.Gates {
		if g := &r.Gates[i]; !g.Pass && g.Estimated() {
			out = append(out, finding{levelError, ruleGate, "gate failed", strings.TrimPrefix(gateLine(r, g), "✗ "), g.Scenario})
		}
	}
	if r.Stopped {
		out = append(out, finding{level: levelError, rule: ruleRun, title: "incomplete", detail: Incomplete(r)})
	}
	for _, line := range missingLines(r) {
		out = append(out, finding{level: levelError, rule: ruleRun, title: "run broke", detail: line})
	}
	if c := r.Comparison; c != nil {
		for i := range c.Changes {
			if x := &c.Changes[i]; x.Outcome == eval.Worse {
				out = append(out, finding{levelError, ruleComparison, "worse than " + c.Other, comparison{c}.sentence(x), x.Scenario})
			}
		}
	}
	for _, line := range Warnings(r) {
		out = append(out, finding{level: levelWarning, rule: ruleEstimate, title: "could not be estimated", detail: line})
	}
	for _, m := range markings(r) {
		out = append(out, finding{levelNote, ruleManifest, "manifests not kept", m.line, m.scenario})
	}
	return out
}
