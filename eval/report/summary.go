package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A summary is the part of the page that every reader should read.
type summary struct {
	// State is "passed", "failed", "incomplete" or "none". Badge describes it in words.
	State, Badge string

	Sentences []string
	Cards     []card
}

// A card is one number in large type.
type card struct{ Label, Value, Sub string }

func newSummary(r *eval.Report, a *format.Answer, running bool) summary {
	v := summary{State: "passed", Badge: "Gates passed", Cards: cards(r)}
	for _, x := range a.Verdicts {
		v.Sentences = append(v.Sentences, x.Text)
	}
	switch {
	case running:
		v.State, v.Badge = "none", fmt.Sprintf("Running: %d of %s done", r.Done(), figures.Count(len(r.Runs), "run"))
		v.Sentences = append(v.Sentences, "These are the figures so far; load the page again for more.")
	case r.Stopped:
		v.State, v.Badge = "incomplete", "Stopped before its end"
	case r.Missing() > 0:
		v.State, v.Badge = "incomplete", "Runs are missing"
	case r.Failed():
		v.State, v.Badge = "failed", "Gates failed"
	case r.Comparison != nil && r.Comparison.Outcome == eval.Worse:
		v.State, v.Badge = "failed", "Worse than what it was compared with"
	case len(r.Gates) == 0:
		v.State, v.Badge = "none", "No gate was set"
		v.Sentences = append(v.Sentences, "No gate was set, so nothing was demanded of it.")
	}
	return v
}

// cards returns the most important values of the first policy, starting with those relative to the
// baseline.
func cards(r *eval.Report) (out []card) {
	if len(r.Groups) == 1 {
		if p := r.Best(&r.Groups[0]); p >= 0 {
			out = cardsOf(policyRow{&r.Groups[0].Policies[p], r, &r.Groups[0], p})
		}
	} else if first := r.FirstAcross(); first != nil {
		out = cardsAcross(r, first)
	}
	passed := 0
	for i := range r.Gates {
		if r.Gates[i].Pass {
			passed++
		}
	}
	if n := len(r.Gates); n > 0 {
		out = append(out, card{"Gates", fmt.Sprintf("%d of %d", passed, n), "passed"})
	}
	return out
}

func cardsOf(x policyRow) (out []card) {
	base := x.r.Config.Baseline
	mine, theirs := x.Summary("outage_minutes"), x.g.Policies[slices.Index(x.r.Config.Policies,
		base)].Summary("outage_minutes")
	if over := x.r.OverBaseline(x.g, x.p); x.Policy != base && over.N > 0 && x.r.Config.Today == nil {
		out = append(out, card{"Over " + base, figures.DollarChange(over.Median),
			strings.TrimSuffix("a month, "+between(over.MedianInterval, figures.DollarChange), ", ")},
			card{"Outage minutes", figures.Whole(mine.Median) + " against " + figures.Whole(theirs.Median),
				figures.Whole(mine.Max) + " against " + figures.Whole(theirs.Max) + " in the worst run"})
	} else {
		out = append(out, card{"Outage minutes", figures.Whole(mine.Median), figures.Whole(mine.Max) + " in the worst run"})
	}
	metric, of := x.r.Config.Savings()
	saved := x.Summary(metric)
	out = append(out, card{"Saved by " + x.Policy, figures.Dollars(perMonth(x)), "a month, in the median run"},
		card{"Of " + of, percent(saved.Median), between(saved.MedianInterval, percent)},
		card{"Available", availability(x.Summary("availability").Median), "mean over workloads"})
	if a := x.Summary("attainable_share"); a.N > 0 && x.r.Config.Today == nil {
		out = append(out, card{"Of the attainable", share(a.Median), "what a bound over all policies leaves"})
	}
	return out
}

// perMonth returns the savings of x in dollars per month: the median net savings in a window times
// the number of windows per month, or the difference to today's bill if that is known.
func perMonth(x policyRow) float64 {
	if t := x.r.Config.Today; t != nil {
		return t.Month - x.Summary("bill_usd").Median*months(x.r, x.g)
	}
	return x.Summary("net_savings_usd").Median * months(x.r, x.g)
}

// scenariosNamed is the maximum number of scenarios with cards of their own.
const scenariosNamed = 6

// cardsAcross returns cards with the monthly savings of the first policy in each scenario, if there
// are few scenarios. Savings are never summed over scenarios.
func cardsAcross(r *eval.Report, first *eval.Across) (out []card) {
	p := slices.Index(r.Config.Policies, first.Policy)
	for i := range r.Groups {
		over := r.OverBaseline(&r.Groups[i], p)
		if first.Policy != r.Config.Baseline && over.N > 0 && len(r.Groups) <= scenariosNamed {
			out = append(out, card{r.Groups[i].Scenario, figures.DollarChange(over.Median), "a month over " + r.Config.Baseline})
		}
	}
	return append(out, card{"First", fmt.Sprintf("%d of %d", first.First, first.Of), "scenarios"})
}
