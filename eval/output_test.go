package eval

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/sim"
)

var rewrite = flag.Bool("rewrite-golden", false, "write the outputs that are there instead of comparing them")

func TestOutputs(t *testing.T) {
	two := shown()
	two.Cases = cases(1, "batch-night", "web-week")
	r, err := Run(context.Background(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	several, err := Run(context.Background(), two, fake{fail: func(j Job) bool { return j.Policy == "spot" && j.Seed == 3 }}.run)
	if err != nil {
		t.Fatal(err)
	}
	weeks := shown()
	weeks.Policies = append(weeks.Policies, "static:share=0.2", "static:share=0.4")
	weeks.Cases, weeks.Gates = cases(windowsMany, "batch-night", "web-week"), []Gate{
		mustGate(t, "spot vs static:share=0.4 in web-week:net_savings_delta_pct.windows_positive >= 0.9"),
		mustGate(t, "spot:net_savings_delta_pct.window_min >= 20"), mustGate(t, "spot in web-week:net_savings_delta_pct.low > 2"),
	}
	long, err := Run(context.Background(), weeks, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		file   string
		report *Report
		format Format
		width  int
	}{
		{"report.txt", r, Table, 120},
		{"report-80.txt", r, Table, 80},
		{"report.md", r, Markdown, 0},
		{"report.csv", r, CSV, 0},
		{"several.txt", several, Table, 120},
		{"weeks.txt", long, Table, 120},
		{"weeks.md", long, Markdown, 0},
	} {
		var out bytes.Buffer
		if err := x.report.Write(&out, x.format, x.width); err != nil {
			t.Fatalf("%s: %v", x.file, err)
		}
		golden(t, x.file, out.Bytes())
	}
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; write it anew with -rewrite-golden and read the difference. Got:\n%s", path, got)
	}
}

// TestCSVHeading: a column that has the name of another cannot be asked for.
func TestCSVHeading(t *testing.T) {
	r, err := Run(context.Background(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.WriteCSV(&out); err != nil {
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
	r, err := Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	marked := 0
	for i := range r.Runs {
		if !r.isWorst(i) {
			continue
		}
		marked++
		for j := range r.Runs {
			if r.Runs[j].Policy == r.Runs[i].Policy && r.Runs[j].Scenario == r.Runs[i].Scenario && r.worse(j, i) {
				t.Errorf("run %d is worse than run %d, which is marked as the worst", j, i)
			}
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
	r, err := Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	g := &r.Groups[0]
	f, ok := r.frontierOf(g)
	if !ok || len(f.mixes) != 2 {
		t.Fatalf("frontier %+v, %v", f, ok)
	}
	for _, p := range f.mixes {
		if a, b := g.Policies[p].summary("net_savings_pct").Median, g.Policies[f.best].summary("net_savings_pct").Median; a > b {
			t.Errorf("%s saves %v, the best %v", g.Policies[p].Policy, a, b)
		}
	}
	spot := slices.Index(c.Policies, "spot")
	var over []float64
	n := len(r.Config.Policies)
	for i := 0; i < len(r.Runs); i += n {
		m := mustMetric("net_savings_pct")
		over = append(over, r.Runs[i+spot].value(m).V-r.Runs[i+f.best].value(m).V)
	}
	if got, want := r.frontierRow(g, spot, f.best)[4], signed(summarize(over).Median, 1); got != want {
		t.Errorf("spot stands %s over the best, want %s", got, want)
	}
	c.Policies = c.Policies[:5]
	if r, err = Run(context.Background(), c, fake{}.run); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.frontierOf(&r.Groups[0]); ok {
		t.Error("one mix is a frontier")
	}
}

// TestNothingBilled: a world without a bill has no percentages, and no output
// prints what dividing by it would give.
func TestNothingBilled(t *testing.T) {
	runner := func(ctx context.Context, j Job) (*sim.Result, error) {
		r, err := fake{}.run(ctx, j)
		r.Bill, r.PodDays, r.Workloads = 0, 0, nil
		return r, err
	}
	for _, baseline := range []string{"spotvortex", OnDemand} {
		c := shown()
		c.Baseline = baseline
		r, err := Run(context.Background(), c, runner)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Formats() {
			var out bytes.Buffer
			if err := r.Write(&out, f, 0); err != nil {
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
