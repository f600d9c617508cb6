package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
)

// Windows of a trace that a scenario fits several times are all there, each at
// its place, and the command that repeats a run names its time.
func TestEvalAllWindows(t *testing.T) {
	code, out, stderr := call(t, "eval", "zone-outage", "--trace", "synthetic", "--windows", "all", "--every", "72h", "--seeds", "1",
		"--policies", "on-demand", "--baseline", "on-demand", "--format", "csv")
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")[1:]
	// 22 days less the first week hold windows of two days on days 8, 11, 14, 17
	// and 20.
	if len(lines) != 5 || !strings.HasPrefix(lines[1], "zone-outage,1,2026-01-11T00:00:00Z,2026-01-13T00:00:00Z,") ||
		!strings.Contains(lines[1], "--from 2026-01-11T00:00:00Z") {
		t.Errorf("windows of all:\n%s", strings.Join(lines, "\n"))
	}
	code, out, _ = call(t, "eval", "zone-outage", "--trace", "synthetic", "--windows", "2-2", "--every", "72h", "--seeds", "1",
		"--policies", "on-demand", "--baseline", "on-demand", "--format", "csv")
	if got := strings.Split(strings.TrimSpace(out), "\n"); code != cli.ExitOK || len(got) != 2 ||
		!strings.HasPrefix(got[1], "zone-outage,1,2026-01-11") {
		t.Errorf("window 2 alone, exit %d:\n%s", code, out)
	}
	wrongCallIs(t, "--every", "eval", "--every", "24h")
	wrongCallIs(t, "--every", "eval", "--every", "-1h")
	wrongCallIs(t, "too short", "eval", "zone-outage", "--trace", "synthetic", "--windows", "5-9")
}

// The page of results has a row of every policy, a row and a table of every scenario, and
// the command that makes it. Its figures are as old as the page.
func TestResultsPage(t *testing.T) {
	page := document(t, "results.md")
	_, table, _ := strings.Cut(page, "\n| POLICY | FIRST IN |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, name := range registry.Names() {
		if name != registry.Manifest && !strings.Contains(strings.ReplaceAll(table, "▸ ", ""), "\n| "+name+" ") {
			t.Errorf("docs/results.md has no row of %s: make it anew with `make results`", name)
		}
	}
	for _, name := range scenarios.Names() {
		if !strings.HasPrefix(name, "bench-") && (!strings.Contains(page, "\n| "+name+" |") ||
			!strings.Contains(page, "\n## "+name+"\n\n| POLICY | BILL $ |")) {
			t.Errorf("docs/results.md does not say what is saved in %s: make it anew with `make results`", name)
		}
	}
	if !strings.HasPrefix(page, "# Results\n") || !regexp.MustCompile("repeat with `spotter eval all .*--policies all,").MatchString(page) {
		t.Error("docs/results.md has no title, or does not say what makes it")
	}
}
