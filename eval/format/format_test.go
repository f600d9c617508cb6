package format

import (
	"bytes"
	"context"
	"encoding/csv"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
	"github.com/spotter-dev/spotter/test/golden"
)

func TestOutputs(t *testing.T) {
	two := shown()
	two.Cases = cases(1, "batch-night", "web-week")
	r, err := eval.Run(context.Background(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	several, err := eval.Run(context.Background(), two, fake{fail: func(j eval.Job) bool { return j.Policy == "spot" && j.Seed == 3 }}.run)
	if err != nil {
		t.Fatal(err)
	}
	weeks := shown()
	weeks.Policies = append(weeks.Policies, "static:share=0.2", "static:share=0.4")
	weeks.Cases, weeks.Gates = cases(8, "batch-night", "web-week"), []eval.Gate{
		mustGate(t, "spot vs static:share=0.4 in web-week:net_savings_delta_pct.windows_positive >= 0.9"),
		mustGate(t, "spot:net_savings_delta_pct.window_min >= 20"), mustGate(t, "spot in web-week:net_savings_delta_pct.low > 2"),
	}
	long, err := eval.Run(context.Background(), weeks, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		file   string
		report *eval.Report
		format Format
		o      Options
	}{
		{"report.txt", r, Table, Options{Details: true}},
		{"report-80.txt", r, Table, Options{Width: 80}},
		{"report-colors.txt", r, Table, Options{Width: 80, Color: true}},
		{"report.md", r, Markdown, Options{}},
		{"report.csv", r, CSV, Options{}},
		{"several.txt", several, Table, Options{Details: true}},
		{"several-80.txt", several, Table, Options{Width: 80}},
		{"weeks.txt", long, Table, Options{Details: true}},
		{"weeks.md", long, Markdown, Options{}},
	} {
		var out bytes.Buffer
		if err := Write(&out, x.report, x.format, x.o); err != nil {
			t.Fatalf("%s: %v", x.file, err)
		}
		golden.Hold(t, "testdata/golden/"+x.file, out.String())
	}
}

// TestCSVHeading: no two columns have the same name.
func TestCSVHeading(t *testing.T) {
	r, err := eval.Run(context.Background(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeCSV(&out, r); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range lines[0] {
		if seen[name] {
			t.Errorf("two columns are called %s", name)
		}
		seen[name] = true
	}
}

// TestWorstInCSV: the lines marked as worst are one per policy and scenario, the
// same that JSON names.
func TestWorstInCSV(t *testing.T) {
	c := shown()
	c.Cases = cases(3, "batch-night", "web-week")
	r, err := eval.Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeCSV(&out, r); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(lines) != 1+len(r.Runs) {
		t.Fatalf("%d lines for %d runs, %v", len(lines), len(r.Runs), err)
	}
	at, marked := slices.Index(lines[0], "worst"), 0
	for i, line := range lines[1:] {
		run, group := &r.Runs[i], r.Group(r.Runs[i].Scenario)
		worst := group.Policies[slices.Index(r.Config.Policies, run.Policy)].WorstRun.Place == r.Place(i)
		if line[at] != strconv.FormatBool(worst) {
			t.Errorf("line %d, of %+v, has %s", i+1, r.Place(i), line[at])
		}
		if worst {
			marked++
		}
	}
	if want := 2 * len(r.Config.Policies); marked != want {
		t.Errorf("%d runs are marked, want %d", marked, want)
	}
}

// TestFrontier: the best mix is the one that saves most, and others are compared
// with it run by run.
func TestFrontier(t *testing.T) {
	c := shown()
	c.Policies = append(c.Policies, "static:share=0.2", "static:share=0.4")
	r, err := eval.Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	g := &r.Groups[0]
	mixes, best, ok := r.Frontier(g)
	if !ok || len(mixes) != 2 {
		t.Fatalf("frontier %v, %v", mixes, ok)
	}
	for _, p := range mixes {
		if a, b := g.Policies[p].Summary("net_savings_pct").Median, g.Policies[best].Summary("net_savings_pct").Median; a > b {
			t.Errorf("%s saves %v, the best %v", g.Policies[p].Policy, a, b)
		}
	}
	spot := slices.Index(c.Policies, "spot")
	var over []float64
	n := len(r.Config.Policies)
	for i := 0; i < len(r.Runs); i += n {
		over = append(over, r.Runs[i+spot].Value("net_savings_pct").V-r.Runs[i+best].Value("net_savings_pct").V)
	}
	if got, want := frontierRow(r, g, spot, best)[5], figures.Signed(stats.Median(over), 1); got != want {
		t.Errorf("spot stands %s over the best, want %s", got, want)
	}
	c.Policies = c.Policies[:5]
	if r, err = eval.Run(context.Background(), c, fake{}.run); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := r.Frontier(&r.Groups[0]); ok {
		t.Error("one mix is a frontier")
	}
}

// TestNothingBilled: a scenario without a bill has no percentages, and no output
// prints what dividing by it would give.
func TestNothingBilled(t *testing.T) {
	runner := func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		r, err := fake{}.run(ctx, j)
		r.Bill, r.PodDays, r.Workloads = 0, 0, nil
		return r, err
	}
	for _, baseline := range []string{"spotvortex", eval.OnDemand} {
		c := shown()
		c.Baseline = baseline
		r, err := eval.Run(context.Background(), c, runner)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Formats() {
			var out bytes.Buffer
			if err := Write(&out, r, f, Options{Width: 0, Details: true}); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			if bad := regexp.MustCompile(`\bNaN\b|[+-]?\bInf\b`).FindString(out.String()); bad != "" {
				t.Errorf("%s prints %s", f, bad)
			}
		}
		if r.ExitCode() != 1 || r.Gates[0].Actual.Known || r.Gates[0].Missing != 10 {
			t.Errorf("a gate on an improvement that no run has gives %+v, exit code %d", r.Gates[0], r.ExitCode())
		}
	}
}

// TestParallelChangesNothing: no output depends on the number of workers.
// TestParallelChangesNothing compares every output of one worker with that of
// many which finish in another order.
func TestParallelChangesNothing(t *testing.T) {
	outputs := func(parallel int) string {
		c := shown()
		c.Parallel = parallel
		var started atomic.Int64
		r, err := eval.Run(context.Background(), c,
			fake{slow: func(eval.Job) { time.Sleep(time.Duration(started.Add(1)*7%5) * time.Millisecond) }}.run)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for _, f := range Formats() {
			if err := Write(&out, r, f, Options{Width: 100, Details: true}); err != nil {
				t.Fatal(err)
			}
		}
		return out.String()
	}
	if outputs(1) != outputs(7) {
		t.Error("the report depends on the number of workers")
	}
}
