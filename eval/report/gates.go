package report

import (
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// gates returns the table of the results of gates; nil if there are no gates.
func gates(r *eval.Report) *table {
	if len(r.Gates) == 0 {
		return nil
	}
	t := &table{Caption: "Gates", Head: headings("'Policy", "'Verdict", "'Must hold", "Is", "'Where")}
	for i := range r.Gates {
		g := &r.Gates[i]
		row := texts(g.Policy, "✓ passed", g.Gate.Condition(), "no value", g.Scenario)
		switch {
		case !g.Estimated():
			row[1] = cell{Text: "✗ no answer", Class: "bad"}
		case !g.Pass:
			row[1] = cell{Text: "✗ failed", Class: "bad"}
		default:
			row[1].Class = "good"
		}
		if g.Gate.Versus != "" {
			row[0].Sub = "against " + g.Gate.Versus
		}
		if row[3].Class = "bad"; g.Actual.Known {
			row[3] = cell{Text: figures.Number(g.Actual.V, figures.DecimalsApart(g.Actual.V, g.Gate.Value))}
		}
		if g.Missing > 0 {
			row[3].Sub = figures.Count(g.Missing, "run") + " without a value"
		}
		if g.Case >= 0 {
			row[4].Text += " from " + format.Instant(r.Config.Cases[g.Case].Bound.Start)
		}
		if g.Run >= 0 && !g.Pass {
			row[4].Command = r.Command(g.Run)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
