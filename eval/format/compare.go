package format

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Headline says in one line what c comes to, for one policy in one scenario.
func Headline(c *eval.Comparison) string { return comparison{c}.headline() }

// A comparison is one in words.
type comparison struct{ *eval.Comparison }

// warnings say what could not be compared or decided.
func (c comparison) warnings() []string { return append(slices.Clone(c.Warnings), c.unknowns()...) }

// title says with what c compares, over what.
func (c comparison) title() string {
	return "Compared with " + c.Other + ", seeds " + seedList(c.Seeds)
}

// summary says what the outcome means, in a sentence.
func (c comparison) summary() string {
	limit := figures.Number(eval.LossMax, figures.Few) + " points of the on-demand bill"
	switch c.Outcome {
	case eval.Equal:
		return "No change: both sides did the same in every run."
	case eval.NoWorse:
		return "Pass: in the median neither net savings nor outage cost is worse by more than " + limit + ", and outage cost is not in a quarter of the runs."
	case eval.Worse:
		return "Fail: net savings or outage cost is worse by more than " + limit + ", in the median or so much more often than better that chance does not explain it."
	case eval.Undecided:
		return "Undecided: these seeds do not tell whether net savings or outage cost is worse by more than " + limit + "."
	}
	return "Not comparable: some of what was run has nothing to be compared with."
}

// outcomeMark is the sign before an outcome.
func outcomeMark(v eval.Outcome) string {
	switch v {
	case eval.Worse:
		return "✗"
	case eval.Undecided, eval.NotComparable:
		return "⚠"
	}
	return "✓"
}

// lines are headline and outcome, how often what changed is worse, and what all
// of it holds for.
func (c comparison) lines() []string {
	out := []string{outcomeMark(c.Outcome) + " " + c.headline(), c.summary()}
	over := ""
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Changed > 0 {
			out = append(out, c.name(x)+": "+often(x))
			over = cmp.Or(over, x.Over)
		}
	}
	if over != "" {
		out = append(out, fmt.Sprintf("Points are medians over units, dollars and minutes are means. A fail is wrong with a chance of 5%% at most, and so is a pass, over all policies, scenarios and up to %d looks together (order statistics and sign tests). Where units are seeds it holds for these windows only.", stats.LooksMax))
	}
	if slices.ContainsFunc(c.Changes, func(x eval.Change) bool { return x.Demand > 0 }) {
		out = append(out, "Another demand: each side's net savings and outage cost are shares of its own on-demand bill; dollars are as they are.")
	}
	if n := c.unchanged(); n > 0 && c.several() && c.Outcome != eval.Equal {
		out = append(out, fmt.Sprintf("%d of %d pairs of a policy and a scenario did the same in every run and are left out.", n, len(c.Changes)))
	}
	return out
}

// unchanged counts the changes that are none.
func (c comparison) unchanged() int {
	n := 0
	for i := range c.Changes {
		if c.Changes[i].Outcome == eval.Equal {
			n++
		}
	}
	return n
}

// table returns heading and rows of the changes, of several scenarios those that
// are any.
func (c comparison) table() (heading []string, rows [][]string) {
	heading = []string{"CHANGE", "NET SAVINGS, POINTS", "A MONTH", "OUTAGE COST, POINTS", "MIN/MONTH", "RUNS CHANGED", "VERDICT"}
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Outcome == eval.Equal && c.several() {
			continue
		}
		row := []string{c.name(x)}
		if x.Pairs == 0 {
			row = append(row, figures.Unknown, figures.Unknown, figures.Unknown, figures.Unknown)
		} else {
			savings, outage, _ := x.Month()
			row = append(row, differenceWords(x, x.Savings), figures.DollarChange(savings), differenceWords(x, x.Outage), figures.Signed(outage, 1))
		}
		rows = append(rows, append(row, fmt.Sprintf("%d of %d", x.Changed, x.Pairs), string(x.Outcome)))
	}
	return heading, rows
}

// often says in how many units a change is worse, of which the median may know
// nothing.
func often(x *eval.Change) string {
	text := fmt.Sprintf("by more than %s points outage cost is worse in %d of %d %s and better in %d, net savings are worse in %d and better in %d",
		figures.Number(eval.LossMax, figures.Few), x.Outage.Worse, x.Units, x.Over, x.Outage.Better, x.Savings.Worse, x.Savings.Better)
	if x.Outage.Worse == 0 {
		text += fmt.Sprintf("; with none of %d seen, outage cost is worse in at most %s of them (at 95%%)", x.Units, figures.Share(stats.ZeroBound(x.Units), 1))
	}
	return text
}

// differenceWords write d as x over units has it.
func differenceWords(x *eval.Change, d eval.Difference) string {
	if d.Interval == nil {
		return figures.Signed(d.Median, 2) + " (" + NeedWords(d.Need, x.Over) + ")"
	}
	return figures.Interval(d.Median, d.Interval.Low, d.Interval.High, func(x float64) string { return figures.Signed(x, 2) })
}

// sentence puts a change into words, for outputs that have no table.
func (c comparison) sentence(x *eval.Change) string {
	if x.Pairs == 0 {
		return c.name(x) + ": nothing to compare with"
	}
	savings, outage, _ := x.Month()
	return fmt.Sprintf("%s: net savings %s points of the on-demand bill (%s/month), outage cost %s points (%s), in %s of which %d changed: %s; %s",
		c.name(x), differenceWords(x, x.Savings), figures.DollarChange(savings), differenceWords(x, x.Outage), figures.WholeChange(outage)+" min/month", figures.Count(x.Pairs, "run"), x.Changed, x.Outcome, often(x))
}

// losses are the changes for the worse, in a sentence each.
func (c comparison) losses() (lines []string) {
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Outcome == eval.Worse {
			lines = append(lines, c.sentence(x))
		}
	}
	return lines
}

// unknowns name the undecided policies.
func (c comparison) unknowns() []string {
	var names []string
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Outcome == eval.Undecided {
			names = append(names, c.name(x))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("undecided after %s: whether %s lost more than %s points cannot be told", figures.Count(len(c.Seeds), "seed"), strings.Join(names, ", "), figures.Number(eval.LossMax, figures.Few))}
}

// headline says in one line what the change does to one policy in one scenario.
// Of several it is the one that loses most among those with the worst outcome,
// and the one that changes most where none fails.
func (c comparison) headline() string {
	x := c.main()
	switch {
	case x == nil:
		return "this change: nothing could be compared"
	case c.Outcome == eval.Equal:
		return "this change: none, every run is equal"
	}
	savings, outage, onDemand := x.Month()
	line := "this change: net savings " + figures.DollarChange(savings) + "/month, outages " + figures.WholeChange(outage) + " min/month"
	changed := 0
	for i := range c.Changes {
		if c.Changes[i].Changed > 0 {
			changed++
		}
	}
	line += " (" + c.name(x)
	switch {
	case changed > 1 && c.several():
		line += fmt.Sprintf(", of %d pairs of a policy and a scenario that changed", changed)
	case changed > 1:
		line += fmt.Sprintf(", of %s that changed", figures.Count(changed, "policy"))
	}
	line += ")"
	if x.Demand > 0 {
		line += ", at another demand: on-demand bill " + figures.DollarChange(onDemand) + "/month"
	}
	return line
}

// main returns the change that the headline is about, nil without any.
func (c comparison) main() *eval.Change {
	var best *eval.Change
	rank := func(x *eval.Change) float64 {
		switch {
		case x.Outcome == eval.Worse:
			return 1e12 + max(-x.Savings.Mean, x.Outage.Mean)
		case x.Pairs == 0:
			return -1
		}
		return max(math.Abs(x.Savings.Mean), math.Abs(x.Outage.Mean))
	}
	for i := range c.Changes {
		if x := &c.Changes[i]; rank(x) >= 0 && (best == nil || rank(x) > rank(best)) {
			best = x
		}
	}
	return best
}

// several reports whether there are changes in more than one scenario.
func (c comparison) several() bool {
	return slices.ContainsFunc(c.Changes, func(x eval.Change) bool { return x.Scenario != c.Changes[0].Scenario })
}

// name is the policy of x and, among several, its scenario.
func (c comparison) name(x *eval.Change) string {
	if c.several() {
		return x.Policy + " in " + x.Scenario
	}
	return x.Policy
}
