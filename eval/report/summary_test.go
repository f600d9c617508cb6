package report

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
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
	"gates fail": {
		set:   func(*eval.Config) {},
		state: "failed", says: []string{"spot saves 58.7%", "3 of 8 gates failed.", "Over spotvortex: +$69.47",
			"1 against 0", "Gates: 5 of 8"}, hides: []string{"No gate"},
	},
	"a gate passes": {
		set:   func(c *eval.Config) { c.Gates = gate("spot:net_savings_pct.median > 0") },
		state: "passed", says: []string{"1 gate passed.", "Gates: 1 of 1"},
	},
	"no gate": {
		set:   func(c *eval.Config) { c.Gates = nil },
		state: "none", says: []string{"No gate was set, so nothing was demanded of it."}, hides: []string{"passed"},
	},
	"a run is missing": {
		set: func(c *eval.Config) { c.Gates = nil }, fail: func(j eval.Job) bool { return j.Seed == 1 && j.Policy == "spot" && j.Window == 0 },
		state: "incomplete", says: []string{"1 of 60 runs broke"},
	},
	"nothing ran": {
		set: func(c *eval.Config) { c.Gates = nil }, fail: func(eval.Job) bool { return true },
		state: "incomplete", says: []string{"No run has a result that can be compared."}, hides: []string{"saves", "Saved"},
	},
	"worse than on-demand": {
		set:   func(c *eval.Config) { c.Policies, c.Gates = []string{"worse"}, nil },
		state: "none", says: []string{"No policy saves more than spotvortex, the baseline", "Saved by spotvortex: $17.52"},
	},
	"only on-demand": {
		set:   func(c *eval.Config) { c.Policies, c.Baseline, c.Gates = []string{eval.OnDemand}, eval.OnDemand, nil },
		state: "none", says: []string{"Nothing but on-demand was run"}, hides: []string{"Over on-demand"},
	},
}

// said is everything that a summary says.
func said(v summary) string {
	text := strings.Join(v.Sentences, " ")
	for _, c := range v.Cards {
		text += "\n" + c.Label + ": " + c.Value + " " + c.Sub
	}
	return text
}

// The summary says in words what was found, as the other outputs do, and never more than that.
func TestSummary(t *testing.T) {
	for name, c := range summaryCases {
		cfg := shown("web-week")
		c.set(&cfg)
		r := compared(t, cfg, fake{fail: c.fail})
		v := newSummary(r, format.AnswerOf(r), false)
		text := said(v)
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

// The summary includes a comparison with another side, which can fail it.
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
	if v := newSummary(r, format.AnswerOf(r), false); v.State != "failed" ||
		!strings.Contains(strings.Join(v.Sentences, " "), "Against v0.9<b> (./base): fail, this change: ") {
		t.Errorf("the summary is %q, %q", v.State, v.Sentences)
	}
	page := written(t, r)
	for _, want := range []string{"Compared with v0.9&lt;b&gt; (./base)", `class="bad">fail`, "−1.25 [−1.50, −1.00]",
		"−$1,790", "$ a month", "4 of 10"} {
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
	text := said(newSummary(r, format.AnswerOf(r), false))
	for _, want := range []string{"portfolio saves most in 1 of 2 scenarios, at worst 5.9 points less than the first in batch-night", "web-week: +$60.71 a month over spotvortex", "First: 1 of 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	page := written(t, r)
	for _, want := range []string{
		"<caption>Across 2 scenarios ", "<th scope=\"row\">spot !<td>1 of 2<", "<th scope=\"row\">spot ! <small>manifests not kept</small><",
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
	if text := newSummary(r, format.AnswerOf(r), false).Sentences[0]; !strings.HasPrefix(text,
		"portfolio saves 52.8% of the on-demand bill, $60.71 a month more than spotvortex") {
		t.Errorf("the summary of one scenario is about what does not keep the manifests: %s", text)
	}
}

// TestBarredFromSpot: how long pools were on demand because their loss budgets were used up stands with
// the outages, where any was.
func TestBarredFromSpot(t *testing.T) {
	cfg := shown("web-week")
	page := string(written(t, compared(t, cfg, fake{})))
	if strings.Contains(page, "Barred from Spot") {
		t.Error("the page speaks of loss budgets where none was used up")
	}
	r := compared(t, cfg, fake{barred: 90 * time.Minute})
	x := outages(r, &r.Groups[0])
	for i, row := range x.Rows {
		want := "0 / 0"
		if row[0].Text == "portfolio" {
			want = "90 / 90"
		}
		if got := row[len(row)-1].Text; len(row) != len(x.Head) || got != want {
			t.Errorf("row %d of %s has %q, want %q", i, row[0].Text, got, want)
		}
	}
	if page = string(written(t, r)); !strings.Contains(page, "Barred from Spot") {
		t.Error("the page lacks the column")
	}
}
