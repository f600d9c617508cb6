package report

import (
	"fmt"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// builds has what distinguishes this side of a comparison from the other one;
// nothing without a comparison.
func builds(r *eval.Report) *table {
	if r.Comparison == nil {
		return nil
	}
	return changes(r.Comparison)
}

// changes has the changes of c.
func changes(c *eval.Comparison) *table {
	t := &table{
		Sortable: true,
		Caption:  "Compared with " + c.Other,
		Note:     "Medians over units of what both sides ran, in points of the other side's on-demand bill, with their intervals and in how many units they are worse and better by more than the tolerance. Dollars and minutes are means. More savings are better, more outage cost is worse.",
		Head: []heading{{Text: "Policy", Words: true}, {Text: "Scenario", Words: true}, {Text: "Verdict", Words: true}, {Text: "Net savings", Unit: "points"}, {Text: "Outage cost", Unit: "points"},
			{Text: "Net savings", Unit: "$ a month"}, {Text: "Outage minutes", Unit: "a month"}, {Text: "Cells", Unit: "that differ"}},
	}
	for i := range c.Changes {
		t.Rows = append(t.Rows, buildRow(&c.Changes[i]))
	}
	return t
}

func buildRow(c *eval.Change) []cell {
	outcome := cell{Text: string(c.Outcome), Class: "words"}
	switch c.Outcome {
	case eval.Worse:
		outcome = cell{Text: "✗ worse", Class: "bad words"}
	case eval.NoWorse, eval.Equal:
		outcome = cell{Text: "✓ " + string(c.Outcome), Class: "good words"}
	}
	differ := number(float64(c.Changed), figures.Number(float64(c.Changed), 0)+" of "+figures.Number(float64(c.Pairs), 0))
	if c.Missing > 0 {
		differ.Sub = figures.Number(float64(c.Missing), 0) + " missing"
	}
	if c.Pairs == 0 {
		return []cell{{Text: c.Policy}, {Text: c.Scenario, Class: "words"}, outcome, unknown(), unknown(), unknown(), unknown(), differ}
	}
	savings, outage, _ := c.Month()
	return []cell{{Text: c.Policy}, {Text: c.Scenario, Class: "words"}, outcome, difference(c, c.Savings), difference(c, c.Outage),
		number(savings, figures.Dollars(savings)), number(outage, figures.Signed(outage, 1)), differ}
}

func difference(c *eval.Change, d eval.Difference) cell {
	points := func(x float64) string { return figures.Signed(x, 2) }
	out := number(d.Median, points(d.Median))
	if d.Interval == nil {
		out.Sub = fmt.Sprintf("need ≥ %d %s", d.Need, c.Over)
	} else {
		out.Sub = between(d.Interval, points)
	}
	out.Sub += fmt.Sprintf("; worse in %d, better in %d of %d %s", d.Worse, d.Better, c.Units, c.Over)
	return out
}

// buildSentence says what the comparison with the other side came to.
func buildSentence(c *eval.Comparison) string {
	outcome := map[eval.Outcome]string{
		eval.Equal: "equal to", eval.NoWorse: "no worse than", eval.Worse: "worse than",
		eval.Undecided: "not distinguishable with certainty from", eval.NotComparable: "not comparable with",
	}[c.Outcome]
	return "This is " + outcome + " " + c.Other + "; " + format.Headline(c) + "."
}
