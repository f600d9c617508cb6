package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy/record"
)

// A recording of a controller that was upgraded and told another policy in between,
// in short segments that continue each other, is taken again step by step with what
// decided then; other policies are each set beside it.
func TestReplayOfController(t *testing.T) {
	scenario, dir := file(t, "tiny.yaml", tiny), t.TempDir()
	merged := filepath.Join(dir, "merged")
	for i, spec := range []string{"static:share=0.5", "spotvortex"} {
		one := filepath.Join(dir, spec)
		if code, _, stderr := call(t, "sim", scenario, "--policy", spec, "--seed", "5", "--record", one); code != exitGood {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		r, err := record.Open(one)
		if err != nil {
			t.Fatal(err)
		}
		meta := record.Meta{Version: []string{"v0", version}[i], Policy: spec, Scenario: "live"}
		w, err := record.Resume(merged, meta, record.Limits{Age: 20 * time.Minute, Whole: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for s, err := range r.Steps() {
			if err = errors.Join(err, w.Record(t.Context(), s.Snapshot, &s.Memory, &s.Plan)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := call(t, "replay", merged)
	if code != exitGood || !strings.Contains(stdout, "recorded under static:share=0.5, then spotvortex") || !strings.Contains(stdout, "bit for bit") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "recorded by version v0") {
		t.Errorf("nothing is said of the other version:\n%s", stderr)
	}
	code, stdout, _ = call(t, "replay", merged, "--policy", "static:share=0.9", "--policy", "on-demand", "--show", "1")
	if code != exitGate || strings.Count(stdout, " differ\n") != 2 || strings.Count(stdout, "recorded   ") != 2 || strings.Count(stdout, "\n- ") != 2 {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	wrongCallIs(t, "unknown policy", "replay", merged, "--policy", "static", "--policy", "chance")
}
