package format

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A fixed runner has a bill in dollars, outage minutes and violations for each
// scenario and policy; what it does not name costs $100 and has none.
type fixed struct {
	bill       map[[2]string]float64
	outage     map[[2]string]int64
	violations map[[2]string][]string

	// seed is the only one in which outages and violations are; 0 means all.
	seed uint64
}

func (f fixed) run(ctx context.Context, j eval.Job) (*sim.Result, error) {
	r, err := fake{}.run(ctx, j)
	key := [2]string{j.Scenario, j.Policy}
	r.Bill, r.OutageCost, r.Outages = policy.Dollars(100), 0, sim.Outages{}
	if b, ok := f.bill[key]; ok {
		r.Bill = policy.Dollars(b)
	}
	if f.seed == 0 || f.seed == j.Seed {
		r.OutageMinutes, r.Outage = f.outage[key], time.Duration(f.outage[key])*time.Minute
		r.Violations = f.violations[key]
	}
	return r, err
}

// tooMuchSpot is what a run says that holds more on Spot than its pool allows.
const tooMuchSpot = "pool web held 100% on Spot where capacity.spotShare.max is 80%"

// Three scenarios: in calm spot and portfolio save 60, in rough static saves 20 and
// spot loses 30, in mixed spot saves 80 and breaks the manifest in one run of
// five.
func acrossReport(t *testing.T) *eval.Report {
	t.Helper()
	c := shown()
	c.Policies = []string{eval.OnDemand, "spotvortex", "spot", "static", "portfolio"}
	c.Cases, c.Gates = cases(2, "calm", "rough", "mixed"), nil
	f := fixed{
		bill: map[[2]string]float64{
			{"calm", "spot"}: 40, {"calm", "portfolio"}: 40, {"calm", "static"}: 70,
			{"rough", "spot"}: 130, {"rough", "portfolio"}: 85, {"rough", "static"}: 80,
			{"mixed", "spot"}: 20, {"mixed", "portfolio"}: 50, {"mixed", "static"}: 60,
		},
		outage:     map[[2]string]int64{{"calm", "spot"}: 3, {"rough", "spot"}: 44, {"rough", "portfolio"}: 7},
		violations: map[[2]string][]string{{"mixed", "spot"}: {tooMuchSpot}},
		seed:       4,
	}
	r, err := eval.Run(t.Context(), c, f.run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAcross: who is first where, how far behind at worst, and the worst outage,
// by hand. What does not keep the manifests is neither first nor what others are
// measured to.
func TestAcross(t *testing.T) {
	r := acrossReport(t)
	var got []string
	for _, x := range r.Across() {
		run := &r.Runs[x.WorstOutage]
		got = append(got, fmt.Sprintf("%s: first %d of %d, marked %d, %.0f behind %s in %s, %d min in %s seed %d window %d",
			x.Policy, x.First, x.Of, x.Marked,
			x.Worst.Points, x.Worst.Best, x.Worst.Scenario, run.Result.OutageMinutes, run.Scenario, run.Seed, run.Window))
	}
	want := []string{
		"on-demand: first 0 of 3, marked 0, 60 behind spot in calm, 0 min in calm seed 1 window 0",
		"spotvortex: first 0 of 3, marked 0, 60 behind spot in calm, 0 min in calm seed 1 window 0",
		"spot: first 1 of 3, marked 1, 50 behind static in rough, 44 min in rough seed 4 window 0",
		"static: first 1 of 3, marked 0, 30 behind spot in calm, 0 min in calm seed 1 window 0",
		"portfolio: first 2 of 3, marked 0, 5 behind static in rough, 7 min in rough seed 4 window 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	rows := savedTable(r).Rows
	if row := texts(rows[1]); row != "rough|0.0 (−20.0)|0.0 (−20.0)|−30.0 (−50.0), 44 min (0)|20.0 (best)|15.0 (−5.0), 7 min (0)" {
		t.Errorf("row %s", row)
	}
	if row := texts(rows[2]); row != "mixed|0.0 (−50.0)|0.0 (−50.0)|80.0 ! (+30.0)|40.0 (−10.0)|50.0 (best)" {
		t.Errorf("row %s", row)
	}
	for i := range r.Groups { // one that saves as much as the first is first too, unless it is marked
		r.Groups[i].Policies[4].Summaries = r.Groups[i].Policies[r.Best(&r.Groups[i])].Summaries
	}
	r.Groups[1].Policies[4].Violating = 1
	if x := r.Across()[4]; x.First != 2 || savedCell(r, &r.Groups[1], 4) != "20.0 ! (−0.0)" {
		t.Errorf("equal to the best everywhere and marked in one scenario: %+v, %s", x, savedCell(r, &r.Groups[1], 4))
	}
	one := shown()
	if r, err := eval.Run(t.Context(), one, fake{}.run); err != nil || r.Across() != nil {
		t.Errorf("one scenario has %v across scenarios, %v", r.Across(), err)
	}
}

// texts joins the cells of a row.
func texts(row Row) string {
	var all []string
	for _, c := range row.Cells {
		all = append(all, c.Text)
	}
	return strings.Join(all, "|")
}

// TestAcrossOutputs: every output but the lines of single runs says what can be
// said across scenarios, with the command that repeats the worst outage.
func TestAcrossOutputs(t *testing.T) {
	r := acrossReport(t)
	const command = "spotter sim rough --policy spot --seed 4 --from 2026-01-05T00:00:00Z --trace synthetic"
	for f, want := range map[Format][]string{
		Table: {"WORST SHORTFALL", "2 of 3     5.0 in rough   7 in rough, window 1, seed 4",
			"spot: 44 outage min (0 from Spot) in rough, window 1, seed 4\n    " + command},
		Markdown: {"| WORST SHORTFALL points |", "| ▸ portfolio | 2 of 3 | 5.0 in rough | 7 in rough, window 1, seed 4 |", "`" + command + "`"},
		JUnit: {`classname="spotter.across" name="portfolio"`,
			"portfolio is first in 2 of 3 scenarios, at worst 5.0 points behind in rough, worst outage 7 min", command},
		JSON: {`"across": {`, `"first": 2`, command},
	} {
		var out bytes.Buffer
		if err := Write(&out, r, f, Options{Width: 200, Details: true}); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s does not say %q:\n%s", f, text, out.String())
			}
		}
		if strings.Contains(out.String(), "all scenarios") {
			t.Errorf("%s has figures of all scenarios together", f)
		}
	}
	var out bytes.Buffer
	if err := writeJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	var report struct {
		Groups []struct{ Scenario string }
		Across struct {
			Scenarios int
			Policies  []struct {
				Policy         string
				WorstShortfall struct {
					Points         float64
					Scenario, Best string
				} `json:"worst_shortfall"`
				WorstOutage struct {
					Minutes  float64
					Scenario string
					Seed     uint64
					Command  string
				} `json:"worst_outage"`
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	spot := report.Across.Policies[2]
	if len(report.Groups) != 3 || report.Groups[0].Scenario != "calm" || report.Across.Scenarios != 3 ||
		spot.WorstOutage.Minutes != 44 || spot.WorstOutage.Seed != 4 ||
		spot.WorstOutage.Command != command || spot.WorstShortfall.Best != "static" ||
		spot.WorstShortfall.Scenario != "rough" || spot.WorstShortfall.Points != 50 {
		t.Errorf("%+v", report)
	}
}

// TestMarked: a policy that does not keep the manifests is marked in every
// output, which names what and how often.
func TestMarked(t *testing.T) {
	r := acrossReport(t)
	const says = "spot in mixed: manifests not kept in 2 of 10 runs: " + tooMuchSpot
	for f, want := range map[Format][]string{
		Table:    {"\nspot !  ", "⚠ " + says, "! marks a policy"},
		Markdown: {"| spot ! |", says, "| spot ! | 20.00 | 80.00 | 80.0 | +80.0"},
		JSON:     {`"text": "` + tooMuchSpot + `"`, `"violating_runs": 2`, `"violating_scenarios": 1`},
		CSV:      {"," + tooMuchSpot + ","},
		JUnit:    {says[len("spot in mixed: "):]},
	} {
		var out bytes.Buffer
		if err := Write(&out, r, f, Options{Width: 300, Details: true}); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s does not say %q:\n%s", f, text, out.String())
			}
		}
		if f == CSV && strings.Count(out.String(), tooMuchSpot) != 2 {
			t.Errorf("%d lines of CSV say it, want those of 2 runs", strings.Count(out.String(), tooMuchSpot))
		}
	}
	if got := Violations(r); len(got) != 1 {
		t.Errorf("%d policies are marked: %q", len(got), got)
	}
}

// TestMarkedIsNeverBest: neither in a scenario that it wins, nor among the fixed
// mixes. Many sentences are counted.
func TestMarkedIsNeverBest(t *testing.T) {
	c := shown()
	c.Policies = []string{eval.OnDemand, "spotvortex", "static:share=0.5", "static:share=0.9", "static:share=1"}
	c.Cases, c.Gates = cases(1, "web-week"), nil
	f := fixed{
		bill: map[[2]string]float64{{"web-week", "static:share=0.5"}: 70, {"web-week", "static:share=0.9"}: 50,
			{"web-week", "static:share=1"}: 40},
		violations: map[[2]string][]string{{"web-week", "static:share=1"}: {"a", "b", "c", "d", "e"}},
		seed:       2,
	}
	r, err := eval.Run(t.Context(), c, f.run)
	if err != nil {
		t.Fatal(err)
	}
	g := &r.Groups[0]
	if best := c.Policies[r.Best(g)]; best != "static:share=0.9" {
		t.Errorf("the best is %s", best)
	}
	if mixes, best, ok := r.Frontier(g); !ok || c.Policies[best] != "static:share=0.9" || len(mixes) != 3 {
		t.Errorf("the best of the mixes %v is %d, %v", mixes, best, ok)
	}
	if got, want := Violations(r), "static:share=1: manifests not kept in 1 of 5 runs: a; b; c; and 2 more"; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.violations = map[[2]string][]string{}
	for _, p := range c.Policies {
		f.violations[[2]string{"web-week", p}] = []string{tooMuchSpot}
	}
	if r, err = eval.Run(t.Context(), c, f.run); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := r.Frontier(&r.Groups[0]); ok || r.Best(&r.Groups[0]) >= 0 {
		t.Error("something is best where nothing keeps the manifests")
	}
}

// TestWideTable: a table of more policies than fit continues below.
func TestWideTable(t *testing.T) {
	r := acrossReport(t)
	var out bytes.Buffer
	if err := Write(&out, r, Table, Options{Width: 90, Details: true}); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "\nSAVED %")
	table, _, _ = strings.Cut(table, "\nWorst")
	if n := strings.Count(table, "\nrough "); n != 2 || !strings.Contains(table, "15.0 (−5.0), 7 min") {
		t.Errorf("the table has %d parts, want 2:\n%s", n, table)
	}
	for _, line := range strings.Split(table, "\n") {
		if len([]rune(line)) > 90 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
}
