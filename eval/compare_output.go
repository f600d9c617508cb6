package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval/stats"
)

// title says with what c compares, over what.
func (c *Comparison) title() string {
	return "Compared with " + c.Other + ", seeds " + seedList(c.Seeds)
}

// summary says what the verdict means, in a sentence.
func (c *Comparison) summary() string {
	limit := exact(lossMax) + " points of the on-demand bill"
	switch c.Verdict {
	case Equal:
		return "No change: both sides did the same in every run."
	case NoWorse:
		return "Pass: in the median neither net savings nor outage cost is worse by more than " + limit + ", and outage cost is not in a quarter of the runs."
	case Worse:
		return "Fail: net savings or outage cost is worse by more than " + limit + ", in the median or so much more often than better that chance does not explain it."
	case Undecided:
		return "Undecided: these seeds do not tell whether net savings or outage cost is worse by more than " + limit + "."
	}
	return "Not comparable: some of what was run has nothing to be compared with."
}

// mark is the sign before a verdict.
func (v Verdict) mark() string {
	switch v {
	case Worse:
		return "✗"
	case Undecided, NotComparable:
		return "⚠"
	}
	return "✓"
}

// lines are headline and verdict, how often what changed is worse, and what all
// of it holds for.
func (c *Comparison) lines() []string {
	out := []string{c.Verdict.mark() + " " + c.Headline(), c.summary()}
	over := ""
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Changed > 0 {
			out = append(out, c.name(x)+": "+x.often())
			over = cmp.Or(over, x.Over)
		}
	}
	if over != "" {
		out = append(out, fmt.Sprintf("Points are medians over units, dollars and minutes are means. A fail is wrong with a chance of 5 %% at most, and so is a pass, over all policies, scenarios and up to %d looks together (order statistics and sign tests). Where units are seeds it holds for these windows only.", stats.LooksMax))
	}
	if slices.ContainsFunc(c.Changes, func(x Change) bool { return x.Demand > 0 }) {
		out = append(out, "Another demand: each side's net savings and outage cost are shares of its own on-demand bill; dollars are as they are.")
	}
	if n := c.unchanged(); n > 0 && c.several() && c.Verdict != Equal {
		out = append(out, fmt.Sprintf("%d of %d pairs of a policy and a scenario did the same in every run and are left out.", n, len(c.Changes)))
	}
	return out
}

// unchanged counts the changes that are none.
func (c *Comparison) unchanged() int {
	n := 0
	for i := range c.Changes {
		if c.Changes[i].Verdict == Equal {
			n++
		}
	}
	return n
}

// table returns heading and rows of the changes, of several scenarios those that
// are any.
func (c *Comparison) table() (heading []string, rows [][]string) {
	heading = []string{"CHANGE", "NET SAVINGS, POINTS", "A WEEK", "OUTAGE COST, POINTS", "MIN/WEEK", "RUNS CHANGED", "VERDICT"}
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Verdict == Equal && c.several() {
			continue
		}
		row := []string{c.name(x)}
		if x.Pairs == 0 {
			row = append(row, unknown, unknown, unknown, unknown)
		} else {
			row = append(row, x.words(x.Savings), dollars(x.SavingsWeek), x.words(x.Outage), signed(x.OutageWeek, 1))
		}
		rows = append(rows, append(row, fmt.Sprintf("%d of %d", x.Changed, x.Pairs), string(x.Verdict)))
	}
	return heading, rows
}

// often says in how many units a change is worse, of which the median may know
// nothing.
func (x *Change) often() string {
	text := fmt.Sprintf("by more than %s points outage cost is worse in %d of %d %s and better in %d, net savings are worse in %d and better in %d",
		exact(lossMax), x.Outage.Worse, x.Units, x.Over, x.Outage.Better, x.Savings.Worse, x.Savings.Better)
	if x.Outage.Worse == 0 {
		text += fmt.Sprintf("; with none of %d seen, outage cost is worse in at most %s %% of them (at 95 %%)", x.Units, plain(stats.ZeroBound(x.Units)*100, 1))
	}
	return text
}

// words writes d as x over units has it.
func (x *Change) words(d Difference) string {
	if d.Interval == nil {
		return signed(d.Median, 2) + " (" + needWords(d.Need, x.Over) + ")"
	}
	return fmt.Sprintf("%s [%s, %s]", signed(d.Median, 2), signed(d.Interval.Low, 2), signed(d.Interval.High, 2))
}

// sentence puts a change into words, for outputs that have no table.
func (c *Comparison) sentence(x *Change) string {
	if x.Pairs == 0 {
		return c.name(x) + ": nothing to compare with"
	}
	return fmt.Sprintf("%s: net savings %s points of the on-demand bill (%s/week), outage cost %s points (%s), in %s of which %d changed: %s; %s",
		c.name(x), x.words(x.Savings), dollars(x.SavingsWeek), x.words(x.Outage), minutes(x.OutageWeek), plural(x.Pairs, "run"), x.Changed, x.Verdict, x.often())
}

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
func (r *Report) findings() []finding {
	var out []finding
	for i := range r.Gates {
		if g := &r.Gates[i]; !g.Pass && g.Estimated() {
			out = append(out, finding{levelError, ruleGate, "gate failed", strings.TrimPrefix(r.gateLine(g), "✗ "), g.Scenario})
		}
	}
	if r.Stopped {
		out = append(out, finding{level: levelError, rule: ruleRun, title: "incomplete", detail: r.Incomplete()})
	}
	for _, line := range r.missingLines() {
		out = append(out, finding{level: levelError, rule: ruleRun, title: "run broke", detail: line})
	}
	if c := r.Comparison; c != nil {
		for i := range c.Changes {
			if x := &c.Changes[i]; x.Verdict == Worse {
				out = append(out, finding{levelError, ruleComparison, "worse than " + c.Other, c.sentence(x), x.Scenario})
			}
		}
	}
	for _, line := range r.Warnings() {
		out = append(out, finding{level: levelWarning, rule: ruleEstimate, title: "could not be estimated", detail: line})
	}
	for _, m := range r.markings() {
		out = append(out, finding{levelNote, ruleManifest, "manifests not kept", m.line, m.scenario})
	}
	return out
}

// verdictLine is what everything comes to, in one line.
func (r *Report) verdictLine() string {
	failed := 0
	for i := range r.Gates {
		if !r.Gates[i].Pass {
			failed++
		}
	}
	var parts []string
	if r.Stopped {
		parts = append(parts, r.Incomplete())
	}
	if n := r.Missing(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s broke", n, plural(len(r.Runs), "run")))
	}
	switch {
	case failed > 0:
		parts = append(parts, fmt.Sprintf("%d of %s failed", failed, plural(len(r.Gates), "gate")))
	case len(r.Gates) > 0:
		parts = append(parts, plural(len(r.Gates), "gate")+" passed")
	}
	if c := r.Comparison; c != nil {
		parts = append(parts, "against "+c.Other+": "+string(c.Verdict))
	}
	warned := len(r.Warnings())
	if warned > 0 {
		parts = append(parts, plural(warned, "warning"))
	}
	mark := "✓"
	switch {
	case r.ExitCode() != 0:
		mark = "✗"
	case warned > 0:
		mark = "⚠"
	}
	if len(parts) == 0 {
		mark, parts = "○", []string{"no gate was asked for"} // nothing was demanded, so nothing was met
	}
	return mark + " " + strings.Join(parts, ", ")
}
