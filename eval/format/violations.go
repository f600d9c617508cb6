package format

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// violationsShown is the maximum number of violations of a policy in a line.
const violationsShown = 3

// ViolationWords describes how the runs of p violate the manifests, and in how many runs. It is
// empty if there are no violations.
func ViolationWords(p *eval.PolicyReport) string {
	if !p.Marked() {
		return ""
	}
	var parts []string
	for i, v := range p.Violations {
		if i == violationsShown {
			parts = append(parts, fmt.Sprintf("and %d more", len(p.Violations)-i))
			break
		}
		if v.Runs < p.Violating {
			v.Text += fmt.Sprintf(" (%s)", figures.Count(v.Runs, "run"))
		}
		parts = append(parts, v.Text)
	}
	return fmt.Sprintf("manifests not kept in %s of %s: %s", figures.Integer(p.Violating),
		figures.Count(p.Runs-p.Missing, "run"), strings.Join(parts, "; "))
}

// Violations returns a line for each policy and scenario in which the policy violates the
// manifests.
func Violations(r *eval.Report) (lines []string) {
	for i := range r.Groups {
		g := &r.Groups[i]
		for p := range g.Policies {
			if x := &g.Policies[p]; x.Marked() {
				lines = append(lines, x.Policy+inScenario(r, g.Scenario)+": "+ViolationWords(x))
			}
		}
	}
	return lines
}
