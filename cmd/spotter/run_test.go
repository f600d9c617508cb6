package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
)

func TestSimRepeats(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	args := []string{"sim", scenario, "--policy", "static:share=0.5", "--intensity", "20", "--seed", "3"}
	code, first, stderr := call(t, args...)
	if code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	lines := regexp.MustCompile(`(?m)^(weather|hash) [0-9a-f]{64}$`).FindAllString(first, -1)
	if len(lines) != 2 || !strings.HasSuffix(first, "\n"+lines[0]+"\n"+lines[1]+"\n") {
		t.Errorf("the output does not end with the two hashes:\n%s", first)
	}
	if _, again, _ := call(t, args...); again != first {
		t.Errorf("two runs differ:\n%s\n%s", first, again)
	}
	args[len(args)-1] = "4"
	if _, o, _ := call(t, args...); strings.Contains(o, lines[0]) {
		t.Error("another seed has the same weather")
	}
}

// A run that is logged and recorded is the same run, and every decision in the
// recording is taken again, bit for bit.
func TestSimLogAndRecord(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	dir := t.TempDir()
	log, rec := filepath.Join(dir, "events.txt"), filepath.Join(dir, "steps")
	for _, spec := range []string{"static:share=0.5", "spotvortex"} {
		args := []string{"sim", scenario, "--policy", spec, "--seed", "5", "--intensity", "20"}
		_, plain, _ := call(t, args...)
		code, kept, stderr := call(t, append(args, "--log", log, "--record", rec)...)
		if code != cli.ExitOK || kept != plain {
			t.Fatalf("exit code %d; recorded and unrecorded runs print\n%s\n%s%s", code, plain, kept, stderr)
		}
		if info, err := os.Stat(log); err != nil || info.Size() == 0 {
			t.Errorf("log: %v", err)
		}
		r, err := record.Open(rec)
		if err != nil {
			t.Fatal(err)
		}
		if r.Meta.Policy != spec || r.Meta.Seed != 5 || len(r.Warnings) != 0 {
			t.Errorf("meta %+v, warnings %q", r.Meta, r.Warnings)
		}
		if code, again, stderr := call(t, strings.Fields(r.Meta.Note)[1:]...); code != cli.ExitOK || again != plain {
			t.Errorf("the command in the note, %s, is another run: exit code %d\n%s%s", r.Meta.Note, code, again, stderr)
		}
		p, err := registry.New(spec, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, differences, err := replayed(r, p)
		if err != nil || n < 100 {
			t.Errorf("%d steps replayed: %v", n, err)
		}
		for _, d := range differences {
			t.Errorf("%s: %s", spec, d)
		}
		wrongCallIs(t, "is not empty", append(args, "--record", rec)...)
		if err := os.RemoveAll(rec); err != nil {
			t.Fatal(err)
		}
	}
}

// The scenario to compare policies on, decided again with what the registry and
// the forecasts of the recording give; two days of it.
func TestWebWeekReplays(t *testing.T) {
	text, err := scenarios.Source("web-week")
	if err != nil {
		t.Fatal(err)
	}
	scenario := file(t, "two-days.yaml", strings.Replace(string(text), "duration: 168h", "duration: 48h", 1))
	for _, spec := range []string{"portfolio", "spotvortex", "static"} {
		rec := filepath.Join(t.TempDir(), "steps")
		if code, _, stderr := call(t, "sim", scenario, "--policy", spec, "--seed", "7", "--record", rec); code != cli.ExitOK {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		r, err := record.Open(rec)
		if err != nil {
			t.Fatal(err)
		}
		p, err := registry.New(spec, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, differences, err := replayed(r, p)
		// A step every ten minutes or sooner, over a day of warm-up and two more.
		if err != nil || n < 3*24*6 || n > 8*24*6 || len(differences) > 0 {
			t.Errorf("%s: %d steps, %d differences, %v", spec, n, len(differences), err)
		}
	}
}

// replayed takes every decision of r again with p.
func replayed(r *record.Recording, p policy.Policy) (steps int, differences []record.Difference, err error) {
	c, err := record.Compare(r, func(*record.Step) (policy.Policy, error) { return p, nil }, record.Comparing{Memory: true})
	return c.Steps, c.Differences, err
}

func TestEvalFormats(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	args := []string{"eval", scenario, "--trace", "synthetic", "--policies", "static", "--seeds", "2", "--windows", "2"}
	code, table, stderr := call(t, args...)
	if code != cli.ExitOK || !strings.Contains(table, "static") || !strings.Contains(table, "synthetic") {
		t.Errorf("exit code %d\n%s%s", code, table, stderr)
	}
	_, text, _ := call(t, append(args, "--format", "json")...)
	var report map[string]any
	if err := json.Unmarshal([]byte(text), &report); err != nil || report["schema_version"] == nil {
		t.Errorf("JSON: %v\n%s", err, text)
	}
	_, text, _ = call(t, append(args, "--format", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if want := 1 + 2*2*3; err != nil || len(rows) != want { // on-demand, spotvortex, static
		t.Errorf("CSV has %d lines, want %d: %v", len(rows), want, err)
	}
	out := filepath.Join(t.TempDir(), "report.md")
	code, stdout, stderr := call(t, append(args, "--format", "markdown", "--out", out)...)
	data, err := os.ReadFile(out)
	if code != cli.ExitOK || stdout != "" || err != nil || !strings.Contains(string(data), "| static") {
		t.Errorf("exit code %d, %v\n%s%s%s", code, err, stdout, data, stderr)
	}
}

// The command that a report names repeats the run.
func TestEvalNamesTheRun(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	_, text, _ := call(t, "eval", scenario, "--policies", "spot", "--seeds", "2", "--windows", "2", "--intensity", "30", "--details")
	command := regexp.MustCompile(`spotter sim [^\n]*`).FindString(text)
	if command == "" {
		t.Fatalf("no run is named:\n%s", text)
	}
	if code, _, stderr := call(t, strings.Fields(command)[1:]...); code != cli.ExitOK {
		t.Errorf("%s: exit code %d\n%s", command, code, stderr)
	}
}

func TestEvalGate(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	args := []string{"eval", scenario, "--trace", "synthetic", "--policies", "static", "--seeds", "2"}
	code, _, problem := call(t, append(args, "--gate", "bill_usd.max > 0", "--gate", "static:bill_usd.max>0")...)
	if code != cli.ExitOK {
		t.Errorf("a gate that holds: exit code %d\n%s", code, problem)
	}
	code, stdout, stderr := call(t, append(args, "--gate", "bill_usd.max < 0")...)
	if code != cli.ExitFailed || !strings.Contains(stderr, "1 of 1 failed") || !strings.Contains(stdout, "bill_usd.max") {
		t.Errorf("a gate that fails: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// A policy that a manifest names is compared with the default set, and an unknown policy is an
// error in the file.
func TestManifestPolicies(t *testing.T) {
	named := func(policy string) string {
		return file(t, "tiny.yaml", strings.Replace(tiny, "  markets: {families", "  policy: "+policy+"\n  markets: {families", 1))
	}
	code, stdout, stderr := call(t, "eval", named("{name: static, parameters: {share: \"0.25\"}}"), "--seeds", "1", "--format", "csv")
	if code != cli.ExitOK || !strings.Contains(stdout, ",manifest,") {
		t.Errorf("exit code %d, the manifests' policies are not compared\n%s%s", code, stdout, stderr)
	}
	wrongCallIs(t, "unknown policy", "sim", named("{name: chance}"))
	wrongCallIs(t, "CapacityPool general", "scenario", "validate", named("{name: chance}"))
	wrongCallIs(t, "share 2 is not in", "scenario", "validate", named("{name: static, parameters: {share: \"2\"}}"))
	wrongCallIs(t, "unknown policy", "eval", named("{name: chance}"))
}

func TestInterrupted(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := spotter.Run(ctx, []string{"eval", scenario, "--seeds", "2", "--out", filepath.Join(dir, "report")}, &stdout, &stderr)
	if code != cli.ExitError || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	log, steps := filepath.Join(dir, "events.txt"), t.TempDir()
	code = spotter.Run(ctx, []string{"sim", scenario, "--log", log, "--record", steps}, &stdout, &stderr)
	if code != cli.ExitError {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	empty(t, dir)
	empty(t, steps)
}

// A folder that vanishes while the runs are made is no fault of the call.
func TestBrokeWhileRunning(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	blocked := file(t, "file", "")
	code, _, stderr := call(t, "sim", scenario, "--record", filepath.Join(blocked, "steps"))
	if code != cli.ExitInvalid || !strings.Contains(stderr, "--record") {
		t.Errorf("a recording below a file: exit code %d\n%s", code, stderr)
	}
	code, _, stderr = call(t, "eval", scenario, "--seeds", "1", "--out", filepath.Join(blocked, "report"))
	if code != cli.ExitInvalid || !strings.Contains(stderr, "--out") {
		t.Errorf("a report below a file: exit code %d\n%s", code, stderr)
	}
}

// Recorded prices go from the collection to a comparison by flags alone.
func TestRecordedPrices(t *testing.T) {
	src := policytest.Recording(t, "prices/aws_api_sa-east-1_2019-12-31_2020-03-30.csv.gz")
	dir := filepath.Join(t.TempDir(), "prices")
	code, stdout, stderr := call(t, "trace", "import", src, "--out", dir)
	if code != cli.ExitOK || !strings.Contains(stdout, "54046 rows read, 0 could not be used") || !strings.Contains(stdout, "407 markets") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, "eval", file(t, "tiny.yaml", tiny), "--trace", dir, "--from", "2020-02-03",
		"--windows", "3", "--seeds", "1", "--policies", "spot")
	text := strings.Join(strings.Fields(stdout), " ") // lines break where the paths' lengths say
	for _, want := range []string{"3 windows, 2020-02-03 to 2020-02-06", "recorded prices", "modelled reclaims"} {
		if code != cli.ExitOK || !strings.Contains(text, want) {
			t.Errorf("exit code %d, %q is missing\n%s%s", code, want, stdout, stderr)
		}
	}
}
