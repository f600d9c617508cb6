package eval

import (
	"fmt"
	"slices"
	"strings"
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
		return "Pass: neither net savings nor outage cost is worse by more than " + limit + "."
	case Worse:
		return "Fail: net savings or outage cost is worse by more than " + limit + "."
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

// lines are headline and verdict.
func (c *Comparison) lines() []string {
	out := []string{c.Verdict.mark() + " " + c.Headline(), c.summary()}
	if slices.ContainsFunc(c.Changes, func(x Change) bool { return x.Demand > 0 }) {
		out = append(out, "Another demand: each side's net savings and outage cost are shares of its own on-demand bill; dollars are as they are.")
	}
	return out
}

// table returns heading and rows of the changes. Of single scenarios it has
// those in which something changed.
func (c *Comparison) table() (heading []string, rows [][]string) {
	heading = []string{"CHANGE", "NET SAVINGS, POINTS", "A WEEK", "OUTAGE COST, POINTS", "MIN/WEEK", "RUNS CHANGED", "VERDICT"}
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Scenario != "" && x.Changed == 0 {
			continue
		}
		row := []string{x.name()}
		if x.Pairs == 0 {
			row = append(row, unknown, unknown, unknown, unknown)
		} else {
			row = append(row, x.Savings.words(), dollars(x.SavingsWeek), x.Outage.words(), signed(x.OutageWeek, 1))
		}
		rows = append(rows, append(row, fmt.Sprintf("%d of %d", x.Changed, x.Pairs), string(x.Verdict)))
	}
	return heading, rows
}

// name is the policy and where it was run.
func (x *Change) name() string {
	if x.Scenario != "" {
		return x.Policy + " in " + x.Scenario
	}
	return x.Policy
}

func (d Difference) words() string {
	if d.Interval == nil {
		return signed(d.Mean, 2)
	}
	return fmt.Sprintf("%s [%s, %s]", signed(d.Mean, 2), signed(d.Interval.Low, 2), signed(d.Interval.High, 2))
}

// sentence puts a change into words, for outputs that have no table.
func (x *Change) sentence() string {
	if x.Pairs == 0 {
		return x.name() + ": nothing to compare with"
	}
	return fmt.Sprintf("%s: net savings %s points of the on-demand bill (%s/week), outage cost %s points (%s), in %s of which %d changed: %s",
		x.name(), x.Savings.words(), dollars(x.SavingsWeek), x.Outage.words(), minutes(x.OutageWeek), plural(x.Pairs, "run"), x.Changed, x.Verdict)
}

// A finding is something that a reader of CI has to see.
type finding struct {
	bad           bool // else it is a warning
	rule          string
	title, detail string

	// scenario is what it is about, empty for all.
	scenario string
}

// The rules of findings.
const (
	ruleGate       = "gate"
	ruleRun        = "missing-run"
	ruleComparison = "comparison"
	ruleEstimate   = "not-estimated"
)

// findings are what went wrong and then what could not be estimated.
func (r *Report) findings() []finding {
	var out []finding
	for i := range r.Gates {
		if g := &r.Gates[i]; !g.Pass && g.Estimated() {
			out = append(out, finding{true, ruleGate, "gate failed", strings.TrimPrefix(r.gateLine(g), "✗ "), g.Gate.Scenario})
		}
	}
	if r.Stopped {
		out = append(out, finding{bad: true, rule: ruleRun, title: "incomplete", detail: r.Incomplete()})
	}
	for _, line := range r.missingLines() {
		out = append(out, finding{bad: true, rule: ruleRun, title: "run broke", detail: line})
	}
	if c := r.Comparison; c != nil {
		for i := range c.Changes {
			if x := &c.Changes[i]; x.Verdict == Worse {
				out = append(out, finding{true, ruleComparison, "worse than " + c.Other, x.sentence(), x.Scenario})
			}
		}
	}
	for _, line := range r.Warnings() {
		out = append(out, finding{rule: ruleEstimate, title: "could not be estimated", detail: line})
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
