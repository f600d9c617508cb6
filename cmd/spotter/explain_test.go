package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/record"
)

// recordedRun runs the tiny scenario and returns the folder of its recording.
func recordedRun(t *testing.T, policy string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "steps")
	code, _, stderr := call(t, "sim", file(t, "tiny.yaml", tiny), "--trace", "synthetic", "--start", "on-demand",
		"--policy", policy, "--seed", "5", "--intensity", "20", "--record", dir)
	if code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	return dir
}

func TestReplayCommand(t *testing.T) {
	dir := recordedRun(t, "spotvortex")
	code, stdout, stderr := call(t, "replay", dir)
	if code != cli.ExitOK || !strings.Contains(stdout, "every plan is the same, bit for bit") || stderr != "" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, "replay", dir, "--policy", "static:share=0.9", "--show", "2")
	if code != cli.ExitFailed || !strings.Contains(stdout, "taken again by static:share=0.9") || !strings.Contains(stderr, "a check failed") ||
		strings.Count(stdout, "\nstep ") != 2 || !strings.Contains(stdout, "differences more") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, all, _ := call(t, "replay", dir, "--policy", "static:share=0.9", "--show", "0"); code != cli.ExitFailed ||
		len(all) <= len(stdout) {
		t.Errorf("exit code %d, %d bytes after %d", code, len(all), len(stdout))
	}
	wrongCallIs(t, "unknown policy", "replay", dir, "--policy", "chance")
	wrongCallIs(t, "--show", "replay", dir, "--show", "-1")
	wrongCallIs(t, "no such file", "replay", filepath.Join(dir, "none"))
	wrongCallIs(t, "no recording", "replay", t.TempDir())
	if err := os.Truncate(filepath.Join(dir, "segment=00001", "plan.parquet"), 100); err != nil {
		t.Fatal(err)
	}
	wrongCallIs(t, "plan.parquet", "replay", dir)
	wrongCallIs(t, "plan.parquet", "explain", "--run", dir, "--step", "3")
}

// A recording of the manifests' own policies is taken again by those.
func TestReplayManifest(t *testing.T) {
	scenario := file(t, "tiny.yaml", strings.Replace(tiny, "  markets: {families",
		"  policy: {name: static, parameters: {share: \"0.25\"}}\n  markets: {families", 1))
	dir := filepath.Join(t.TempDir(), "steps")
	if code, _, stderr := call(t, "sim", scenario, "--record", dir); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if code, stdout, stderr := call(t, "replay", dir); code != cli.ExitOK || !strings.Contains(stdout, "recorded under manifest") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestExplainCommand(t *testing.T) {
	dir := recordedRun(t, "spotvortex")
	_, whole, _ := call(t, "explain", "--run", dir, "--step", "1")
	if !strings.HasPrefix(whole, "step 1 at 20") || !strings.Contains(whole, "pool general: ") || !strings.Contains(whole, "/h → ") {
		t.Errorf("the first plan reads\n%s", whole)
	}
	at := strings.TrimSuffix(strings.Fields(whole)[3], ",")
	if code, again, stderr := call(t, "explain", "--run", dir, "--at", at); code != cli.ExitOK || again != whole {
		t.Errorf("--at %s: exit code %d\n%s%s", at, code, again, stderr)
	}
	if _, pool, _ := call(t, "explain", "--run", dir, "--step", "1", "--pool", "general"); !strings.Contains(pool, "share allowed") {
		t.Errorf("the pool reads\n%s", pool)
	}
	if _, list, _ := call(t, "explain", "--run", dir); !strings.HasPrefix(list, "STEP") || !strings.Contains(list, "steer general to ") ||
		strings.Contains(list, "hold: ") || !strings.Contains(list, "--step 1\n") {
		t.Errorf("what was done reads\n%s", list)
	}
	listed := func(flags ...string) (entries []record.PastEntry, stderr string) {
		code, stdout, stderr := call(t, append([]string{"explain", "--run", dir, "-o", "json"}, flags...)...)
		if err := json.Unmarshal([]byte(stdout), &entries); err != nil || code != cli.ExitOK {
			t.Fatalf("exit code %d, %v\n%s", code, err, stderr)
		}
		return entries, stderr
	}
	all, _ := listed()
	changes, _ := listed("--no-minor")
	minor := slices.DeleteFunc(slices.Clone(all), func(x record.PastEntry) bool { return x.Minor })
	if len(changes) < 4 || len(all) == len(changes) || !slices.Equal(changes, minor) {
		t.Errorf("--no-minor lists %d of %d entries, want %d", len(changes), len(all), len(minor))
	}
	next := fmt.Sprintf("The first 3 of %d entries are listed; --from %s lists the next.\n", len(changes), changes[3].At)
	if some, stderr := listed("--no-minor", "--limit", "3"); !slices.Equal(some, changes[:3]) || stderr != next {
		t.Errorf("--limit 3 lists %v and says %q, want %q", some, stderr, next)
	}
	if some, stderr := listed("--limit", strconv.Itoa(len(all))); len(some) != len(all) || stderr != "" {
		t.Errorf("a limit of all lists %d of %d and says %q", len(some), len(all), stderr)
	}
	if _, list, _ := call(t, "explain", "--run", dir, "--to", at); list != "nothing was done\n" {
		t.Errorf("what was done before the first step reads\n%s", list)
	}
	wrongCallIs(t, "there are general", "explain", "--run", dir, "--step", "1", "--node", "z")
	wrongCallIs(t, "there are general", "explain", "--run", dir, "--step", "1", "--pool", "z")
	wrongCallIs(t, "no such step", "explain", "--run", dir, "--step", "100000")
	wrongCallIs(t, "starts at", "explain", "--run", dir, "--at", "2020-01-01")
	wrongCallIs(t, "--run is missing", "explain", "--step", "1")
	wrongCallIs(t, "--at and --step exclude", "explain", "--run", dir, "--step", "1", "--at", "2026-01-01")
	wrongCallIs(t, "--from and --to", "explain", "--run", dir, "--step", "1", "--from", "2026-01-01")
	wrongCallIs(t, "--to", "explain", "--run", dir, "--to", "noon")
	wrongCallIs(t, "the last step has general", "explain", "--run", dir, "--node", "z")
	wrongCallIs(t, "exclude each other", "explain", "--run", dir, "--step", "1", "--node", "a", "--pool", "b")
	wrongCallIs(t, "--at", "explain", "--run", dir, "--at", "noon")
	wrongCallIs(t, "--step", "explain", "--run", dir, "--step", "0")
	wrongCallIs(t, "--limit: -1 is below 0", "explain", "--run", dir, "--limit", "-1")
}
