package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// sweepPlan chooses a share for a day of a small cluster.
func sweepPlan(t *testing.T) string {
	t.Helper()
	scenario := aDay(t)
	plan := filepath.Join(filepath.Dir(scenario), "plan.yaml")
	text := `apiVersion: spotter.dev/v1alpha1
kind: Sweep
metadata: {name: small}
spec:
  scenario: cluster.yaml
  policy: static
  parameters:
    - {parameter: share, values: [0, 1]}
    - {set: "capacitypool/general.metadata.annotations[spotter.dev/capacity-types]", values: ["on-demand", "spot,on-demand"]}
  rungs: 1
  fresh: 7
`
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestSweep: the chosen candidate saves money, its result on fresh seeds is shown next to the one
// that it was chosen by, and a sweep that was stopped and resumed writes the same files as one
// that was not.
func TestSweep(t *testing.T) {
	plan := sweepPlan(t)
	whole, again := filepath.Join(t.TempDir(), "sweep"), filepath.Join(t.TempDir(), "sweep")
	code, stdout, stderr := call(t, "sweep", plan, "--seeds", "7", "--out", whole)
	if code != cli.ExitOK {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	for _, want := range []string{"Chosen: share=1, capacitypool/general spotter.dev/capacity-types=on-demand",
		"on 7 fresh seeds: +", ": better", "Next: run what was chosen again, on the fresh seeds\n  spotter eval ", "--seeds 29-35"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	read := func(dir, name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if !strings.Contains(read(whole, "chosen.yaml"), `spotter.dev/capacity-types: "on-demand"`) ||
		!strings.Contains(read(whole, "index.html"), "</svg>") {
		t.Error("chosen.yaml has not what was chosen, or the page no picture")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if code := spotter.Run(ctx, []string{"sweep", plan, "--seeds", "7", "--out", again}, io.Discard, io.Discard); code != cli.ExitError {
		t.Errorf("stopped: exit %d", code)
	}
	if _, err := os.Stat(filepath.Join(again, "runs.parquet")); err == nil {
		t.Error("a sweep that was stopped wrote a result")
	}
	keptSome(t, filepath.Join(whole, "runs"), filepath.Join(again, "runs"))
	if code, _, stderr := call(t, "sweep", plan, "--seeds", "7", "--out", again); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	for _, name := range []string{"runs.parquet", "chosen.yaml", "outage.svg", "evictions.svg"} {
		if read(again, name) != read(whole, name) {
			t.Errorf("%s of a sweep that went on is another", name)
		}
	}
}

// keptSome copies half of the runs that are kept in a folder.
func keptSome(t *testing.T, from, to string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(from, "*", "*.json"))
	if err != nil || len(all) < 40 {
		t.Fatalf("%d runs are kept, %v", len(all), err)
	}
	for _, path := range all[:len(all)/2] {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(to, filepath.Base(filepath.Dir(path)))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(path)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSweepWrong: a plan that cannot be run is refused by file, field and value, before any run.
func TestSweepWrong(t *testing.T) {
	text, err := os.ReadFile(sweepPlan(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"parameters:", "parametrs:", `plan.yaml:7: field "spec.parametrs": unknown key; did you mean "parameters"?`},
		{"rungs: 1", "rungs: 9", `field "spec.rungs": 9 is not from 0 to 3`},
		{"parameter: share", "parameter: shar",
			`spec.parameters: shar=0, capacitypool/general spotter.dev/capacity-types=on-demand: policy "static:shar=0"`},
		{"policy: static", "policy: statik", `spec.policy: `},
		{"cluster.yaml", "none.yaml", `spec.scenario: no such scenario`},
		{"\"capacitypool/general.metadata.annotations[spotter.dev/capacity-types]\", values: [\"on-demand\", \"spot,on-demand\"]", "scenario/tiny.spec.market.intensity, values: [5]", "put it among spec.conditions"},
	} {
		changed := strings.Replace(string(text), c.old, c.new, 1)
		if changed == string(text) {
			t.Errorf("%q is not in the plan", c.old)
		}
		scenario := aDay(t)
		plan := filepath.Join(filepath.Dir(scenario), "plan.yaml")
		if err := os.WriteFile(plan, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		wrongCallIs(t, c.want, "sweep", plan, "--out", filepath.Join(t.TempDir(), "out"))
	}
	wrongCallIs(t, "no such file", "sweep", "none.yaml")
}
