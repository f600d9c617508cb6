package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
)

const samples = `{"metadata":{"gap_seconds":60},"data":[1,0,0,1]}`

// Whatever a recording leaves out is asked for, by the name of the flag.
func TestImportAsks(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	script := file(t, "s.json", `{"default":{"current_price":1}}`)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--from", []string{file(t, "us-east-1a_v100_1.json", samples)}},
		{"--type", []string{file(t, "us-east-1a_h900.json", samples), "--from", "2026-01-01"}},
		{"--region", []string{file(t, "mars_v100_1.json", samples), "--from", "2026-01-01"}},
		{"--zone", []string{file(t, "p3-trace.csv", "0,add,a\n"), "--from", "2026-01-01"}},
		{"--at", []string{file(t, "feed.json", `{"regions":{}}`)}},
		{"--market", []string{script, "--from", "2026-01-01"}},
		{"--from: \"soon\"", []string{script, "--from", "soon"}},
		{"--at: \"soon\"", []string{script, "--at", "soon"}},
		{"--price-ratio: 0", []string{script, "--price-ratio", "0"}},
		{"--tick: 0s", []string{script, "--tick", "0s"}},
		{"--for: -1s", []string{script, "--for", "-1s"}},
		{"no such file", []string{script, "--prices", filepath.Join(t.TempDir(), "none")}},
	} {
		wrongCallIs(t, c.want, append([]string{"trace", "import", "-o", out}, c.args...)...)
	}
	empty(t, filepath.Dir(out))
}

// What is modelled is said when it is imported and whenever the trace is read.
func TestImportSaysWhatIsModelled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	src := file(t, "us-east-1a_m5.large.json", samples)
	code, stdout, stderr := call(t, "trace", "import", src, "--from", "2026-01-01", "--price-ratio", "0.5", "-o", dir)
	if code != cli.ExitOK || !strings.Contains(stderr, "modelled as 0.5 of those on demand: aws/us-east-1/us-east-1a/m5.large") ||
		!strings.Contains(stdout, "JSON of availability\n4 rows read, 0 could not be used\n0 duplicates, 1 repeats of what was in force, 3 changes left\n") {
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, "trace", "info", dir); code != cli.ExitOK || !strings.Contains(stdout+stderr, "modelled as 0.5") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	// With a trace of prices, nothing is.
	prices := file(t, "p.csv", "t,az,instance_type,price\n1767225600,us-east-1a,m5.large,0.07\n")
	first, second := filepath.Join(t.TempDir(), "p"), filepath.Join(t.TempDir(), "t")
	call(t, "trace", "import", prices, "-o", first)
	if code, _, stderr := call(t, "trace", "import", src, "--from", "2026-01-01", "--prices", first, "-o", second); code != cli.ExitOK || stderr != "" {
		t.Fatalf("%d\n%s", code, stderr)
	}
	tr, err := trace.Open(second, trace.ReadOptions{})
	if err != nil || len(tr.Series) != 1 || tr.Series[0].Spot[0] != 70_000 || tr.Series[0].ProbeGap[1] != 60 {
		t.Errorf("%+v, %v", tr, err)
	}
}

// The help names every kind of recording that is understood.
func TestImportHelp(t *testing.T) {
	_, stdout, _ := call(t, "trace", "import", "--help")
	for line := range strings.SplitSeq(importer.Understood, "\n") {
		if !strings.Contains(stdout, strings.TrimSpace(line)) {
			t.Errorf("%q is missing in\n%s", line, stdout)
		}
	}
}

// Prices that somebody wrote down in advance are called scripted wherever it is said
// where prices come from, and not recorded.
func TestScriptedPrices(t *testing.T) {
	script := file(t, "fake.json", `{"default":{"current_price":0.07,"on_demand_price":0.192},"series":{"m5.xlarge:us-east-1a":[{"current_price":0.06},{"current_price":0.08}]}}`)
	dir := filepath.Join(t.TempDir(), "t")
	if code, _, stderr := call(t, "trace", "import", script, "--from", "2026-01-01", "--tick", "1h", "--for", "48h", "-o", dir); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	scenario, page := file(t, "tiny.yaml", tiny), filepath.Join(t.TempDir(), "r.html")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"trace", "info", dir}, "scripted (written down in advance, not recorded)"},
		{[]string{"sim", scenario, "--policy", "spot", "--trace", dir}, "scripted; reclaims are modelled"},
		{[]string{"eval", scenario, "--policies", "spot", "--seeds", "1", "--trace", dir, "--report", page}, "scripted prices, 2026-01-01"},
		{[]string{"eval", scenario, "--policies", "spot", "--seeds", "1", "--trace", dir, "--format", "json"}, `"prices": "scripted"`},
		{[]string{"eval", scenario, "--policies", "spot", "--seeds", "1", "--trace", dir, "--format", "csv"}, ",scripted,modelled,"},
	} {
		code, stdout, stderr := call(t, c.args...)
		if code != cli.ExitOK || !strings.Contains(stdout, c.want) || strings.Contains(stdout, "recorded prices") {
			t.Errorf("spotter %s: exit code %d, %q is missing, or prices are called recorded\n%s%s", cli.Shell(c.args), code, c.want, stdout, stderr)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "The prices are scripted") {
		t.Errorf("the report does not say so: %v", err)
	}
}

// Both embedded traces can be looked at.
func TestEmbeddedTraces(t *testing.T) {
	for name, want := range map[string]string{"embedded": "153 of 51", "embedded:default": "153 of 51", "embedded:rackspace": "36 of 36"} {
		code, out, errs := call(t, "trace", "info", name)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
}
