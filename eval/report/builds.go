package report

import "github.com/spotter-dev/spotter/eval"

// builds has what distinguishes this side of a comparison from the other one;
// nothing without a comparison.
func builds(r *eval.Report) *table {
	c := r.Comparison
	if c == nil {
		return nil
	}
	t := &table{
		Caption: "Compared with " + c.Other,
		Note:    "Means over cells that both sides ran, in points of the other side's on-demand bill, with their intervals. More savings are better, more outage cost is worse.",
		Head: []heading{{Text: "Policy", Words: true}, {Text: "World", Words: true}, {Text: "Verdict", Words: true}, {Text: "Net savings", Unit: "points"}, {Text: "Outage cost", Unit: "points"},
			{Text: "Net savings", Unit: "$ a week"}, {Text: "Outage minutes", Unit: "a week"}, {Text: "Cells", Unit: "that differ"}},
	}
	for i := range c.Changes {
		t.Rows = append(t.Rows, buildRow(&c.Changes[i]))
	}
	return t
}

func buildRow(c *eval.Change) []cell {
	verdict := cell{Text: string(c.Verdict), Class: "words"}
	switch c.Verdict {
	case eval.Worse:
		verdict = cell{Text: "✗ worse", Class: "bad words"}
	case eval.NoWorse, eval.Equal:
		verdict = cell{Text: "✓ " + string(c.Verdict), Class: "good words"}
	}
	differ := number(float64(c.Changed), fixed(float64(c.Changed), 0)+" of "+fixed(float64(c.Pairs), 0))
	if c.Missing > 0 {
		differ.Sub = fixed(float64(c.Missing), 0) + " missing"
	}
	return []cell{{Text: c.Policy}, {Text: c.Scenario, Class: "words"}, verdict, difference(c.Savings), difference(c.Outage),
		number(c.SavingsWeek, dollars(c.SavingsWeek)), number(c.OutageWeek, signed(c.OutageWeek, 1)), differ}
}

func difference(d eval.Difference) cell {
	points := func(x float64) string { return signed(x, 2) }
	c := number(d.Mean, points(d.Mean))
	c.Sub = between(d.Interval, points)
	return c
}

// buildSentence says what the comparison with the other side came to.
func buildSentence(c *eval.Comparison) string {
	verdict := map[eval.Verdict]string{
		eval.Equal: "equal to", eval.NoWorse: "no worse than", eval.Worse: "worse than",
		eval.Undecided: "not told apart with certainty from", eval.NotComparable: "not comparable with",
	}[c.Verdict]
	return "This is " + verdict + " " + c.Other + "; " + c.Headline() + "."
}
