package eval

import (
	"slices"
	"testing"
)

// savingsOf makes a report of one scenario whose policies save the given percentages by a metric.
func savingsOf(metric string, saved ...float64) *Report {
	r := &Report{Groups: []Group{{Scenario: "a"}}, Config: Config{Baseline: "p0"}}
	for p, x := range saved {
		name := "p" + string(rune('0'+p))
		r.Config.Policies = append(r.Config.Policies, name)
		of := PolicyReport{Policy: name, Summaries: make([]Summary, len(metrics))}
		*of.Summary(metric) = Summary{N: 1, Median: x}
		r.Groups[0].Policies = append(r.Groups[0].Policies, of)
	}
	return r
}

// TestFirst: equals are first together and in the order in which they were given; a policy that
// does not keep the manifests, or has no result, is behind all others however much it saves.
func TestFirst(t *testing.T) {
	const metric = "net_savings_pct"
	r := savingsOf(metric, 40, 10, 40, 90, 95, 30)
	g := &r.Groups[0]
	g.Policies[3].Violating = 1
	g.Policies[4].Summary(metric).N = 0
	if got := r.Order(g); !slices.Equal(got, []int{0, 2, 5, 1, 3, 4}) {
		t.Errorf("the order is %v", got)
	}
	if got := r.First(g); r.Best(g) != 0 || !slices.Equal(got, []int{0, 2}) || r.RunnerUp(g) != 2 {
		t.Errorf("the best is %d, first are %v, the runner-up is %d", r.Best(g), got, r.RunnerUp(g))
	}
	if points, ok := r.Shortfall(g, 1); !ok || points != 30 {
		t.Errorf("p1 is %v points behind, %v", points, ok)
	}
	for p := range g.Policies {
		g.Policies[p].Violating = 1
	}
	if r.Best(g) >= 0 || r.RunnerUp(g) >= 0 || r.First(g) != nil {
		t.Error("a policy is first where none keeps the manifests")
	}
}

// TestFirstByToday: where the bill of today is known, savings on it decide, in every respect.
func TestFirstByToday(t *testing.T) {
	r := savingsOf(MetricSavedToday, 10, 30, 20)
	r.Config.Today = &Today{Name: "today's bill"}
	g := &r.Groups[0]
	for p, saved := range []float64{30, 10, 20} {
		*g.Policies[p].Summary("net_savings_pct") = Summary{N: 1, Median: saved}
	}
	if points, ok := r.Shortfall(g, 0); !slices.Equal(r.Order(g), []int{1, 2, 0}) ||
		!slices.Equal(r.First(g), []int{1}) || !ok || points != 20 {
		t.Errorf("the order is %v, first are %v, and the shortfall is %v", r.Order(g), r.First(g), points)
	}
}

// TestFirstAcross: the policy that is first most often, of equals the one that is less far behind.
func TestFirstAcross(t *testing.T) {
	r := savingsOf("net_savings_pct", 10, 50, 20)
	r.Groups = append(r.Groups, savingsOf("net_savings_pct", 10, 20, 90).Groups[0], savingsOf("net_savings_pct", 99, 5, 4).Groups[0])
	r.Groups[1].Scenario, r.Groups[2].Scenario = "b", "c"
	if x := r.FirstAcross(); x == nil || x.Policy != "p0" && x.Worst.Points > 94 {
		t.Errorf("%+v is first of three that win one scenario each", x)
	}
	r.Groups = append(r.Groups, savingsOf("net_savings_pct", 1, 2, 3).Groups[0])
	if x := r.FirstAcross(); x == nil || x.Policy != "p2" || x.First != 2 {
		t.Errorf("%+v is first, not the one that wins two scenarios", x)
	}
	r.Groups[3].Policies[2].Violating = 1 // and p1 is the best of those that keep the manifests there
	if x := r.FirstAcross(); x == nil || x.Policy != "p1" || x.First != 2 {
		t.Errorf("%+v is first, which does not keep the manifests everywhere", x)
	}
}

// TestWhatIfFirst: the cheapest variant, unless none is cheaper.
func TestWhatIfFirst(t *testing.T) {
	w := &WhatIf{Variants: make([]WhatIfRow, 3)}
	if at, ok := w.First(); ok || at >= 0 {
		t.Errorf("variant %d is first where no cost is known", at)
	}
	for i, change := range []float64{5, 2, 7} {
		w.Variants[i].Change = Figure{Summary{N: 1, Median: change}}
	}
	if _, ok := w.First(); ok || w.Cheapest() != 1 {
		t.Error("a variant is first that costs more than the scenario as it is")
	}
	w.Variants[2].Change.Median = -1
	if at, ok := w.First(); !ok || at != 2 {
		t.Errorf("variant %d is first", at)
	}
}
