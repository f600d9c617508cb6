package format

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Headline summarizes c in one line, for the most important policy and scenario.
func Headline(c *eval.Comparison) string { return comparison{c}.headline() }

// ComparisonTitle returns a title with the other side and the seeds of c.
func ComparisonTitle(c *eval.Comparison) string {
	return "Compared with " + c.Other + ", seeds " + seedList(c.Seeds)
}

// WriteComparison writes c as text.
func WriteComparison(w io.Writer, c *eval.Comparison, o Options) error {
	return AnswerOfComparison(c).Write(w, o)
}

// AnswerOfComparison returns the answer to a comparison with another side.
func AnswerOfComparison(of *eval.Comparison) *Answer {
	c := comparison{of}
	return &Answer{
		Verdicts: verdicts(toneOfOutcome(c.Outcome), []string{c.headline() + ".", c.summary()}),
		Tables:   []Grid{c.table()}, About: ComparisonTitle(of), Legend: c.lines(), Warnings: c.warnings(),
	}
}

// comparisonSections returns the sections about the other side; nil if of is nil.
func comparisonSections(of *eval.Comparison) []Section {
	if of == nil {
		return nil
	}
	c := comparison{of}
	first := []string{Verdict{toneOfOutcome(c.Outcome), c.headline()}.String(), c.summary()}
	return []Section{{Heading: ComparisonTitle(of), Items: append(first, c.lines()...)},
		{Table: c.table(), What: "changes"}}
}

// toneOfOutcome returns the tone of an outcome.
func toneOfOutcome(o eval.Outcome) Tone {
	switch o {
	case eval.Worse:
		return Bad
	case eval.Undecided, eval.NotComparable:
		return Unsure
	}
	return Good
}

// A comparison formats a comparison in words.
type comparison struct{ *eval.Comparison }

// warnings describes what could not be compared, and names the undecided policies.
func (c comparison) warnings() []string {
	var names []string
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Outcome == eval.Undecided {
			names = append(names, c.name(x))
		}
	}
	if names == nil {
		return c.Warnings
	}
	return append(slices.Clone(c.Warnings),
		fmt.Sprintf("undecided after %s: whether %s lost more than %s points is unknown",
			figures.Count(len(c.Seeds), "seed"), strings.Join(names, ", "), figures.Number(eval.LossMax, figures.Few)))
}

// summary explains the outcome in a sentence.
func (c comparison) summary() string {
	limit := figures.Number(eval.LossMax, figures.Few) + " points of the on-demand bill"
	switch c.Outcome {
	case eval.Equal:
		return "No change: both sides did the same in every run."
	case eval.NoWorse:
		return "Pass: in the median neither net savings nor outage cost is worse by more than " + limit +
			", and outage cost is not in a quarter of the runs."
	case eval.Worse:
		return "Fail: net savings or outage cost is worse by more than " + limit +
			", in the median or so much more often than better that chance does not explain it."
	case eval.Undecided:
		return "Undecided: these seeds do not show whether net savings or outage cost is worse by more than " + limit + "."
	}
	return "Not comparable: some of what was run has nothing to be compared with."
}

// lines describes how often each change is worse, and the scope of the statistics.
func (c comparison) lines() (out []string) {
	over, equal, demand := "", 0, false
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Changed > 0 {
			out = append(out, c.name(x)+": "+often(x))
			over = cmp.Or(over, x.Over)
		}
		if x.Outcome == eval.Equal {
			equal++
		}
		demand = demand || x.Demand > 0
	}
	if over != "" {
		out = append(out, fmt.Sprintf("Points are medians over units, dollars and minutes are means. A fail is wrong with a "+
			"chance of 5%% at most, "+
			"and so is a pass, over all policies, scenarios and up to %d looks together (order statistics and sign tests). "+
			"Where units are seeds it holds for these windows only.", stats.LooksMax))
	}
	if demand {
		out = append(out,
			"Another demand: each side's net savings and outage cost are shares of its own on-demand bill; dollars are as they are.")
	}
	if equal > 0 && c.several() && c.Outcome != eval.Equal {
		out = append(out, fmt.Sprintf("%d of %d pairs of a policy and a scenario did the same in every run and are left out.",
			equal, len(c.Changes)))
	}
	return out
}

// table returns the table of changes. With several scenarios, it omits those without a difference.
func (c comparison) table() Grid {
	t := Grid{Headings: Headings("CHANGE", "NET SAVINGS, POINTS", "A MONTH", "OUTAGE COST, POINTS", "MIN/MONTH",
		"RUNS CHANGED", "VERDICT")}
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Outcome == eval.Equal && c.several() {
			continue
		}
		row := []string{c.name(x), figures.Unknown, figures.Unknown, figures.Unknown, figures.Unknown}
		if x.Pairs > 0 {
			savings, outage, _ := x.Month()
			copy(row[1:], []string{differenceWords(x, x.Savings), figures.DollarChange(savings),
				differenceWords(x, x.Outage), figures.Signed(outage, 1)})
		}
		cells := Cells(append(row, fmt.Sprintf("%d of %d", x.Changed, x.Pairs), string(x.Outcome))...)
		cells.Cells[len(row)+1].Tone = toneOfOutcome(x.Outcome)
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// often describes in how many units a change is worse, which the median may not show.
func often(x *eval.Change) string {
	text := fmt.Sprintf("by more than %s points outage cost is worse in %d of %d %s and better in %d, net savings are worse in %d and better in %d",
		figures.Number(eval.LossMax,
			figures.Few), x.Outage.Worse, x.Units, x.Over, x.Outage.Better, x.Savings.Worse, x.Savings.Better)
	if x.Outage.Worse == 0 {
		text += fmt.Sprintf("; with none of %d seen, outage cost is worse in at most %s of them (at 95%%)", x.Units,
			figures.Share(stats.ZeroBound(x.Units), 1))
	}
	return text
}

// differenceWords formats d, a difference over the units of x.
func differenceWords(x *eval.Change, d eval.Difference) string {
	s := eval.Summary{Median: d.Median, MedianInterval: d.Interval, Need: d.Need, Over: x.Over}
	return withInterval(&s, func(x float64) string { return figures.Signed(x, 2) })
}

// sentence describes a change in a sentence, for formats without tables.
func (c comparison) sentence(x *eval.Change) string {
	if x.Pairs == 0 {
		return c.name(x) + ": nothing to compare with"
	}
	savings, outage, _ := x.Month()
	return fmt.Sprintf("%s: net savings %s points of the on-demand bill (%s/month), outage cost %s points (%s "+
		"min/month), in %s of which %d changed: %s; %s",
		c.name(x), differenceWords(x, x.Savings), figures.DollarChange(savings),
		differenceWords(x, x.Outage), figures.WholeChange(outage),
		figures.Count(x.Pairs, "run"), x.Changed, x.Outcome, often(x))
}

// losses returns a sentence for each change that is worse.
func (c comparison) losses() (lines []string) {
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Outcome == eval.Worse {
			lines = append(lines, c.sentence(x))
		}
	}
	return lines
}

// headline describes the effect of the change on its most important policy and scenario in one
// line.
func (c comparison) headline() string {
	x := c.Main()
	switch {
	case x == nil:
		return "this change: nothing could be compared"
	case c.Outcome == eval.Equal:
		return "this change: none, every run is equal"
	}
	changed := 0
	for i := range c.Changes {
		if c.Changes[i].Changed > 0 {
			changed++
		}
	}
	about := c.name(x)
	switch {
	case changed > 1 && c.several():
		about += fmt.Sprintf(", of %d pairs of a policy and a scenario that changed", changed)
	case changed > 1:
		about += fmt.Sprintf(", of %s that changed", figures.Count(changed, "policy"))
	}
	savings, outage, onDemand := x.Month()
	line := fmt.Sprintf("this change: net savings %s/month, outages %s min/month (%s)", figures.DollarChange(savings),
		figures.WholeChange(outage), about)
	if x.Demand > 0 {
		line += ", at another demand: on-demand bill " + figures.DollarChange(onDemand) + "/month"
	}
	return line
}

// several reports whether there are changes in more than one scenario.
func (c comparison) several() bool {
	return slices.ContainsFunc(c.Changes, func(x eval.Change) bool { return x.Scenario != c.Changes[0].Scenario })
}

// name returns the policy of x and, if there are several scenarios, its scenario.
func (c comparison) name(x *eval.Change) string {
	if c.several() {
		return x.Policy + " in " + x.Scenario
	}
	return x.Policy
}
