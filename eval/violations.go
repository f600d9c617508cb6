package eval

import (
	"slices"
)

// A Violation is a violation of a manifest.
type Violation struct {
	// Description of the violation in a sentence.
	Text string `json:"text"`
	// Number of runs that report it.
	Runs int `json:"runs"`
}

// violations returns the distinct violations in the given runs, and the number of runs with
// violations.
func (r *Report) violations(runs []int) (found []Violation, violating int) {
	found = []Violation{}
	for _, i := range runs {
		if r.Runs[i].Err != nil {
			continue
		}
		texts := r.Runs[i].Result.Violations
		if len(texts) > 0 {
			violating++
		}
		for k, text := range texts {
			if slices.Contains(texts[:k], text) {
				continue
			}
			at := slices.IndexFunc(found, func(v Violation) bool { return v.Text == text })
			if at < 0 {
				at = len(found)
				found = append(found, Violation{Text: text})
			}
			found[at].Runs++
		}
	}
	return found, violating
}

// Marked reports whether a run of p violates the manifests.
func (p *PolicyReport) Marked() bool { return p.Violating > 0 }
