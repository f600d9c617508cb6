package report

import (
	"fmt"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// changes has the changes of c; nothing without a comparison.
func changes(c *eval.Comparison) *table {
	if c == nil {
		return nil
	}
	t := &table{
		Sortable: true,
		Caption:  "Compared with " + c.Other,
		Note:     "Medians over units of what both sides ran, in points of the other side's on-demand bill, with their intervals and in how many units they are worse and better by more than the tolerance. Dollars and minutes are means. More savings are better, more outage cost is worse.",
		Head: headings("'Policy", "'Scenario", "'Verdict", "Net savings|points", "Outage cost|points", "Net savings|$ a month", "Outage minutes|a month",
			"Cells|that differ"),
	}
	for i := range c.Changes {
		t.Rows = append(t.Rows, changeRow(&c.Changes[i]))
	}
	return t
}

func changeRow(c *eval.Change) []cell {
	row := texts(c.Policy, c.Scenario, string(c.Outcome), figures.Unknown, figures.Unknown, figures.Unknown, figures.Unknown,
		figures.Integer(c.Changed)+" of "+figures.Integer(c.Pairs))
	switch c.Outcome {
	case eval.Worse:
		row[2] = cell{Text: "✗ worse", Class: "bad"}
	case eval.NoWorse, eval.Equal:
		row[2] = cell{Text: "✓ " + string(c.Outcome), Class: "good"}
	}
	if c.Missing > 0 {
		row[7].Sub = figures.Integer(c.Missing) + " missing"
	}
	if c.Pairs > 0 {
		savings, outage, _ := c.Month()
		row[3], row[4], row[5].Text, row[6].Text = difference(c, c.Savings), difference(c, c.Outage), figures.Dollars(savings), figures.Signed(outage, 1)
	}
	return row
}

func difference(c *eval.Change, d eval.Difference) cell {
	points := func(x float64) string { return figures.Signed(x, 2) }
	sub := between(d.Interval, points)
	if sub == "" {
		sub = format.NeedWords(d.Need, c.Over)
	}
	return cell{Text: points(d.Median), Sub: fmt.Sprintf("%s; worse in %d, better in %d of %d %s", sub, d.Worse, d.Better, c.Units, c.Over)}
}

// buildSentence says what the comparison with the other side came to.
func buildSentence(c *eval.Comparison) string {
	outcome := map[eval.Outcome]string{
		eval.Equal: "equal to", eval.NoWorse: "no worse than", eval.Worse: "worse than",
		eval.Undecided: "not distinguishable with certainty from", eval.NotComparable: "not comparable with",
	}[c.Outcome]
	return "This is " + outcome + " " + c.Other + "; " + format.Headline(c) + "."
}
