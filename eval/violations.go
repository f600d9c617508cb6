package eval

import (
	"slices"
)

// A Violation is what runs did not keep of a manifest.
type Violation struct {
	// What, in a sentence.
	Text string `json:"text"`
	// Runs that say it.
	Runs int `json:"runs"`
}

// violations collects what the given runs did not keep, and counts the runs
// that did not keep all.
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

// Marked reports whether a run of p did not keep the manifests.
func (p *PolicyReport) Marked() bool { return p.Violating > 0 }
