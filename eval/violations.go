package eval

import (
	"fmt"
	"slices"
	"strings"
)

// A Violation is something of the manifests that runs did not keep.
type Violation struct {
	// Text says what, in a sentence.
	Text string

	// Runs is the number of runs that say it.
	Runs int
}

// violationsShown is how many violations of one policy a line names.
const violationsShown = 3

// violations collects what the given runs did not keep, and counts the runs
// that did not keep all.
func (r *Report) violations(runs []int) (found []Violation, violating int) {
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

// label is the name of p with the marks of tables: * is the baseline, ! does not
// keep the manifests.
func (r *Report) label(p *PolicyReport) string {
	name := p.Policy
	if name == r.Config.Baseline {
		name += " *"
	}
	if p.Marked() {
		name += " !"
	}
	return name
}

// ViolationWords say what runs of p did not keep and in how many of them; empty
// where all was kept.
func (p *PolicyReport) ViolationWords() string {
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
			v.Text += fmt.Sprintf(" (%s)", plural(v.Runs, "run"))
		}
		parts = append(parts, v.Text)
	}
	return fmt.Sprintf("manifests not kept in %d of %s: %s", p.Violating, plural(p.Runs-p.Missing, "run"), strings.Join(parts, "; "))
}

// A marking is a policy that is marked in a scenario, in words.
type marking struct{ scenario, line string }

// markings has one for each marked policy of each scenario.
func (r *Report) markings() []marking {
	var out []marking
	for i := range r.Groups {
		g := &r.Groups[i]
		for p := range g.Policies {
			if x := &g.Policies[p]; x.Marked() {
				out = append(out, marking{g.Scenario, x.Policy + r.in(g.Scenario) + ": " + x.ViolationWords()})
			}
		}
	}
	return out
}

// Violations say, a line each, which policies did not keep the manifests in which
// scenarios.
func (r *Report) Violations() []string {
	var lines []string
	for _, m := range r.markings() {
		lines = append(lines, m.line)
	}
	return lines
}

// Best returns the place in Config.Policies of the one that saves most in the
// median run of g, the first among equals, of those that keep the manifests. It
// is -1 where there is none.
func (r *Report) Best(g *Group) int {
	best := -1
	for p := range g.Policies {
		x := &g.Policies[p]
		s := x.summary("net_savings_pct")
		if s.N > 0 && !x.Marked() && (best < 0 || s.Median > g.Policies[best].summary("net_savings_pct").Median) {
			best = p
		}
	}
	return best
}
