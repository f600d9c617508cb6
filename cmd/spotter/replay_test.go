package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/record"
)

// A recording of a controller that was upgraded and given another policy in between,
// in short segments that continue each other, is taken again step by step with what
// decided then; other policies are each compared with it.
func TestReplayOfController(t *testing.T) {
	scenario, dir := file(t, "tiny.yaml", tiny), t.TempDir()
	merged := filepath.Join(dir, "merged")
	for i, spec := range []string{"static:share=0.5", "spotvortex"} {
		one := filepath.Join(dir, spec)
		if code, _, stderr := call(t, "sim", scenario, "--policy", spec, "--seed", "5", "--record", one); code != cli.ExitOK {
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
	if code != cli.ExitOK || !strings.Contains(stdout, "recorded under static:share=0.5, then spotvortex") ||
		!strings.Contains(stdout, "bit for bit") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "recorded by version v0") {
		t.Errorf("nothing is said of the other version:\n%s", stderr)
	}
	code, stdout, _ = call(t, "replay", merged, "--policy", "static:share=0.9", "--policy", "on-demand", "--show", "1")
	if code != cli.ExitFailed || strings.Count(stdout, " differ\n") != 2 || strings.Count(stdout, "recorded   ") != 2 ||
		strings.Count(stdout, "\n- ") != 2 {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	wrongCallIs(t, "unknown policy", "replay", merged, "--policy", "static", "--policy", "chance")
}

// A recording without some of its segments is not taken for one that is whole: what
// is there is compared, what is not is named, and the call ends as a wrong input does.
func TestReplayOfIncomplete(t *testing.T) {
	whole := recordedRun(t, "spotvortex")
	dir := filepath.Join(t.TempDir(), "short")
	r, err := record.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	meta := r.Meta
	w, err := record.Resume(dir, meta, record.Limits{Steps: 20})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for s, err := range r.Steps() {
		if steps++; steps > 180 {
			break
		}
		if err = errors.Join(err, w.Record(t.Context(), s.Snapshot, &s.Memory, &s.Plan)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := call(t, "replay", dir); code != cli.ExitOK || !strings.HasPrefix(stdout, "180 steps") || stderr != "" {
		t.Fatalf("the whole: exit code %d\n%s%s", code, stdout, stderr)
	}
	remove := func(number int) {
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("segment=%05d", number))); err != nil {
			t.Fatal(err)
		}
	}
	remove(4)
	remove(5)
	code, stdout, stderr := call(t, "replay", dir)
	if code != cli.ExitInvalid || strings.Contains(stdout, "every plan is the same") || !strings.Contains(stdout, "140 steps") ||
		!strings.Contains(stdout, "steps 61 to 100 are not in the recording") || !strings.Contains(stderr, "segments 4 to 5 are missing") {
		t.Errorf("without two in the middle: exit code %d\n%s%s", code, stdout, stderr)
	}
	// Even where plans differ it is the input that is not good.
	if code, stdout, _ := call(t, "replay", dir, "--policy", "static:share=0.9"); code != cli.ExitInvalid ||
		!strings.Contains(stdout, " differ\n") {
		t.Errorf("under another policy: exit code %d\n%s", code, stdout)
	}
	code, _, stderr = call(t, "explain", "--run", dir, "--step", "120", "--pool", "general")
	if code != cli.ExitOK || !strings.Contains(stderr, "segments 4 to 5 are missing") {
		t.Errorf("explain: exit code %d\n%s", code, stderr)
	}
	wrongCallIs(t, "step 60 is followed by step 101", "explain", "--run", dir, "--step", "80")
	remove(1)
	if code, _, stderr := call(t, "replay", dir); code != cli.ExitInvalid || !strings.Contains(stderr, "segment 1 is missing") {
		t.Errorf("without the first: exit code %d\n%s", code, stderr)
	}
}
