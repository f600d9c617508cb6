package report

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/sim"
)

func gate(text string) []eval.Gate {
	g, err := eval.ParseGate(text)
	if err != nil {
		panic(err)
	}
	return []eval.Gate{g}
}

// summaryCases are comparisons with what their summary says, and what it does not.
var summaryCases = map[string]struct {
	set   func(*eval.Config)
	fail  func(eval.Job) bool
	state string
	says  []string
	hides []string
}{
	"the best that fails no gate": {
		set:   func(*eval.Config) {},
		state: "failed", says: []string{"The policy static:share=0.3 saves", "saves $26.28 a month in the median run, 17.7%", "points of the on-demand bill more than the baseline spotvortex", "3 of 8 gates failed."},
	},
	"the best of all": {
		set:   func(c *eval.Config) { c.Gates = gate("spot:net_savings_pct.median > 0") },
		state: "passed", says: []string{"The policy spot saves", "in 8 of 10 runs more than the baseline, by up to 1 minute.", "The one gate passed."},
	},
	"no gate": {
		set:   func(c *eval.Config) { c.Gates = nil },
		state: "none", says: []string{"No gate was set, so nothing was demanded of it."}, hides: []string{"passed"},
	},
	"a run is missing": {
		set: func(c *eval.Config) { c.Gates = nil }, fail: func(j eval.Job) bool { return j.Seed == 1 && j.Policy == "spot" && j.Window == 0 },
		state: "incomplete", says: []string{"1 of 60 runs broke, so these figures are incomplete."},
	},
	"nothing ran": {
		set: func(c *eval.Config) { c.Gates = nil }, fail: func(eval.Job) bool { return true },
		state: "incomplete", says: []string{"No run has a result that could be compared."}, hides: []string{"saves"},
	},
	"one seed": {
		set:   func(c *eval.Config) { c.Seeds, c.Gates = eval.DefaultSeeds(1), nil },
		state: "none", says: []string{"(no interval: need ≥ "},
	},
	"worse than on-demand": {
		set:   func(c *eval.Config) { c.Policies, c.Gates = []string{"worse"}, nil },
		state: "none", says: []string{"The policy worse costs $26.28 a month more than on-demand", "17.7% of its bill", "points of the on-demand bill less than the baseline"},
	},
	"only the baseline": {
		set:   func(c *eval.Config) { c.Policies, c.Gates = []string{"spotvortex"}, nil },
		state: "none", says: []string{"The policy spotvortex saves"}, hides: []string{"baseline spotvortex", "Against"},
	},
	"only on-demand": {
		set:   func(c *eval.Config) { c.Policies, c.Baseline, c.Gates = []string{eval.OnDemand}, eval.OnDemand, nil },
		state: "none", says: []string{"Nothing but on-demand was run"},
	},
}

// The summary says in words what was found, and never more than that.
func TestSummary(t *testing.T) {
	for name, c := range summaryCases {
		cfg := shown("web-week")
		c.set(&cfg)
		r := compared(t, cfg, fake{fail: c.fail})
		v := newSummary(r, false)
		text := strings.Join(v.Sentences, " ")
		if v.State != c.state {
			t.Errorf("%s: the state is %q, want %q", name, v.State, c.state)
		}
		for _, want := range c.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q lacks %q", name, text, want)
			}
		}
		for _, never := range c.hides {
			if strings.Contains(text, never) {
				t.Errorf("%s: %q says %q", name, text, never)
			}
		}
		written(t, r) // whatever was found, there is a page of it
	}
}

// What may be chance is said to be.
func TestChance(t *testing.T) {
	cfg := shown("web-week")
	cfg.Policies, cfg.Gates = []string{"static:share=0.3", "twin"}, nil
	cfg.Baseline, cfg.Cases, cfg.Seeds = "static:share=0.3", cfg.Cases[:1], eval.DefaultSeeds(8)
	spotOf["twin"] = 0.3
	if text := strings.Join(newSummary(compared(t, cfg, fake{}), false).Sentences, " "); !strings.Contains(text, "That is as much as the baseline") || !strings.Contains(text, "for this window only), which may be chance") {
		t.Errorf("two equal policies: %q", text)
	}
}

// A comparison with another side stands in the summary, which it can fail.
func TestBuilds(t *testing.T) {
	cfg := shown("web-week")
	cfg.Gates = nil
	r := compared(t, cfg, fake{})
	if page := written(t, r); strings.Contains(page, "Compared with ") {
		t.Error("a page without a comparison speaks of one")
	}
	r.Comparison = &eval.Comparison{Other: "v0.9<b> (./base)", Outcome: eval.Worse, Changes: []eval.Change{{
		Scenario: "web-week", Policy: "portfolio", Over: "seeds", Units: 10, Pairs: 10, Changed: 4, Savings: eval.Difference{Median: -1.25, Interval: &stats.Interval{Low: -1.5, High: -1}},
		SavingsWeek: -412, OutageWeek: 3, Outcome: eval.Worse,
	}}}
	if v := newSummary(r, false); v.State != "failed" || !strings.Contains(strings.Join(v.Sentences, " "), "This is worse than v0.9<b> (./base)") {
		t.Errorf("the summary is %q, %q", v.State, v.Sentences)
	}
	page := written(t, r)
	for _, want := range []string{"Compared with v0.9&lt;b&gt; (./base)", "✗ worse", "−1.25", "−1.50 to −1.00", "−$1,790", "$ a month", "4 of 10"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// Missing runs, figures without a value, scenarios' warnings and synthetic prices
// stand among the warnings, with the command that repeats what broke.
func TestWarnings(t *testing.T) {
	cfg := shown("web-week", "batch-night")
	cfg.Cases[0].Bound.Warnings = []string{"3 markets were left out"}
	cfg.Cases[2].Bound.Trace.Synthetic = false
	cfg.Cases[3].Bound.Trace.Synthetic = false
	r := compared(t, cfg, fake{fail: func(j eval.Job) bool { return j.Policy == eval.OnDemand && j.Seed < 3 }})
	var all []string
	for _, w := range warnings(r, false) {
		all = append(all, w.Text+" "+w.Command)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{
		"The prices are synthetic: the trace synthetic was generated",
		"Reclaims and refused launches are modelled.",
		`The run of on-demand in web-week with seed 1 is missing: the cloud fell down spotter sim web-week --policy on-demand --seed 1`,
		"And 3 more runs are missing.", "8 of 120 runs broke.",
		"net_savings_pct of spot has no value in 4 of 10 runs in web-week.", "net_savings_pct of spot has no value in 4 of 10 runs in batch-night.",
		"There are no intervals: need ≥ ",
		"web-week: 3 markets were left out",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "The prices are synthetic"); n != 1 {
		t.Errorf("said %d times that prices are synthetic", n)
	}
	page := written(t, r)
	if !regexp.MustCompile(`(?s)id="warnings".*The prices are synthetic.*id="gates"`).MatchString(page) {
		t.Error("the page does not warn before its figures")
	}
}

// Over several scenarios nothing is said of all of them together: the summary counts
// the scenarios in which a policy is first and names where it is worst, and a policy
// that does not keep the manifests is marked wherever it stands.
func TestSummaryAcross(t *testing.T) {
	cfg := shown("web-week", "batch-night")
	cfg.Gates = nil
	marked := func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		r, err := fake{}.run(ctx, j)
		if j.Policy == "spot" && j.Scenario == "web-week" && j.Seed == 2 {
			r.Violations = []string{"pool general held 100% on Spot where capacity.spotShare.max is 80%"}
		}
		return r, err
	}
	r, err := eval.Run(t.Context(), cfg, marked)
	if err != nil {
		t.Fatal(err)
	}
	v := newSummary(r, false)
	text := strings.Join(v.Sentences, " ")
	for _, want := range []string{
		"The policy portfolio saves the most of all that keep the manifests in 1 of 2 scenarios, +$60.71 a month over spotvortex in web-week and +$60.71 in batch-night; its worst run has 2 outage minutes (batch-night, seed 1).",
		"At worst it saves 5.9 points of the on-demand bill less than spot in batch-night.", "It saves more than the baseline spotvortex in the median run of 2 of 2 scenarios.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	page := written(t, r)
	for _, want := range []string{
		"<caption>Across 2 scenarios ", "<th scope=\"row\">spot !<td data-sort=\"1\">1 of 2<", "<th scope=\"row\">spot ! <small>manifests not kept</small><",
		"<li>spot in web-week: manifests not kept in 2 of 10 runs: pool general held", "58.7 !", "★ 52.8", "spotter sim batch-night --policy portfolio --seed 1",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "★ 58.7") {
		t.Error("what does not keep the manifests is the best of a scenario")
	}
	cfg.Cases = cases(2, "web-week")
	if r, err = eval.Run(t.Context(), cfg, marked); err != nil {
		t.Fatal(err)
	}
	if text := newSummary(r, false).Sentences[0]; !strings.HasPrefix(text, "portfolio: +$60.71 a month over spotvortex, ") {
		t.Errorf("the summary of one scenario is about what does not keep the manifests: %s", text)
	}
}
