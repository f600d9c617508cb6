package report

import (
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// gates has the results; nothing where no gate was set.
func gates(r *eval.Report) *table {
	if len(r.Gates) == 0 {
		return nil
	}
	t := &table{
		Caption: "Gates",
		Head: []heading{{Text: "Policy", Words: true}, {Text: "Verdict", Words: true}, {Text: "Must hold", Words: true}, {Text: "Is"},
			{Text: "Where", Words: true}},
	}
	for i := range r.Gates {
		t.Rows = append(t.Rows, gateRow(r, &r.Gates[i]))
	}
	return t
}

func gateRow(r *eval.Report, g *eval.GateResult) []cell {
	outcome := cell{Text: "✗ failed", Class: "bad words"}
	if g.Pass {
		outcome = cell{Text: "✓ passed", Class: "good words"}
	}
	if !g.Estimated() {
		outcome.Text = "✗ no answer"
	}
	policy := cell{Text: g.Policy}
	if g.Gate.Versus != "" {
		policy.Sub = "against " + g.Gate.Versus
	}
	where := cell{Text: g.Scenario, Class: "words"}
	if g.Case >= 0 {
		where.Text += " from " + format.Instant(r.Config.Cases[g.Case].Bound.Start)
	}
	if g.Run >= 0 && !g.Pass {
		where.Command = r.Command(g.Run)
	}
	actual := cell{Text: "no value", Class: "bad"}
	if g.Actual.Known {
		actual = number(g.Actual.V, figures.Number(g.Actual.V, figures.DecimalsApart(g.Actual.V, g.Gate.Value)))
	}
	if g.Missing > 0 {
		actual.Sub = figures.Count(g.Missing, "run") + " without a value"
	}
	return []cell{policy, outcome, {Text: g.Gate.Condition(), Class: "words"}, actual, where}
}
