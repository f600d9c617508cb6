package report

import (
	"math"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
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
		actual = number(g.Actual.V, apart(g.Actual.V, g.Gate.Value))
	}
	if g.Missing > 0 {
		actual.Sub = plural(g.Missing, "run") + " without a value"
	}
	return []cell{policy, outcome, {Text: g.Gate.Condition(), Class: "words"}, actual, where}
}

// apart writes x with as many decimals as show on which side of limit it lies.
func apart(x, limit float64) string {
	if x == math.Trunc(x) {
		return fixed(x, 0)
	}
	for digits := 2; digits < 9; digits++ {
		scale := 1.0
		for range digits {
			scale *= 10
		}
		shown := math.Round(x*scale) / scale
		if (shown < limit) == (x < limit) && (shown > limit) == (x > limit) {
			return fixed(x, digits)
		}
	}
	return exact(x)
}
