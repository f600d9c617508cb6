package eval

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"os"
	"path/filepath"
	"regexp"
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
