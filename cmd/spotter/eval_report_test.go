package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// quick are the arguments of a comparison that takes moments.
func quick(more ...string) []string {
	return append([]string{"eval", "zone-outage", "--trace", "synthetic", "--seeds", "2", "--policies", "static"}, more...)
}

// The HTML report is written with the table, says where prices come from, and is
// the same to the byte when it is made again.
func TestEvalReport(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	code, table, stderr := call(t, quick("--report", "out.html")...)
	if code != cli.ExitOK || !strings.Contains(table, "POLICY") || !strings.Contains(stderr, "out.html") {
		t.Fatalf("exit %d\n%s%s", code, table, stderr)
	}
	first, err := os.ReadFile("out.html")
	if err != nil {
		t.Fatal(err)
	}
	verdict, _, _ := strings.Cut(strings.Join(strings.Fields(table), " "), ";")
	for _, want := range []string{"<!DOCTYPE html>", "The prices are synthetic", "Bill and outage cost so far",
		"Spot share", `<p class="lead">` + verdict, "spotter sim zone-outage --policy static --seed", "</html>"} {
		if !strings.Contains(string(first), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if code, _, stderr := call(t, quick("--report", "out.html")...); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	if second, err := os.ReadFile("out.html"); err != nil || string(second) != string(first) {
		t.Errorf("made again the report is another, %v", err)
	}
	// A run that is sampled is the run that is not.
	_, plain, _ := call(t, quick()...)
	if cut := func(s string) string { s, _, _ = strings.Cut(s, "repeat with"); return s }; cut(plain) != cut(table) {
		t.Errorf("with --report the table is\n%s\nwithout\n%s", table, plain)
	}
}

// The report is written when a gate fails: that is when it is read.
func TestEvalReportOfFailedGate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.html")
	code, _, stderr := call(t, quick("--report", path, "--gate", "static:net_savings_pct.median >= 99")...)
	if code != cli.ExitFailed {
		t.Errorf("exit %d, want %d\n%s", code, cli.ExitFailed, stderr)
	}
	if page, err := os.ReadFile(path); err != nil || !strings.Contains(string(page), "✗ failed") {
		t.Errorf("the page does not show what failed, %v", err)
	}
}

// A path that cannot be written is refused before anything runs, and what was
// there stays.
func TestEvalReportRefused(t *testing.T) {
	folder := t.TempDir()
	kept := filepath.Join(folder, "kept.html")
	if err := os.WriteFile(kept, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	wrongCallIs(t, "--report: "+folder+" is a folder", quick("--report", folder)...)
	wrongCallIs(t, "--report: ", quick("--report", filepath.Join(folder, "none", "out.html"))...)
	wrongCallIs(t, `--report: "" names no file`, quick("--report", "")...)
	wrongCallIs(t, "cannot be written to the terminal", quick("--report", "-")...)
	wrongCallIs(t, "is also the file of --out", quick("--report", kept, "--out", "table="+kept)...)
	wrongCallIs(t, "--policies", "eval", "--policies", "nosuch", "--report", kept)
	if now, err := os.ReadFile(kept); err != nil || string(now) != "kept" {
		t.Errorf("the file that was there is %q, %v", now, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Two reports in JSON are compared without a run, and a file that is not a report is refused.
func TestEvalCompareFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, quick("--out", "old.json")...); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	code, table, stderr := call(t, "eval", "compare", "old.json", "old.json", "--out", "compared.html")
	if code != cli.ExitOK || !strings.HasPrefix(table, "✓ this change: none, every run is equal") ||
		!strings.Contains(table, "Compared with old.json, seeds 1-2") || !strings.Contains(stderr, "compared.html") {
		t.Errorf("exit %d\n%s%s", code, table, stderr)
	}
	if page, err := os.ReadFile("compared.html"); err != nil || !strings.Contains(string(page), "Before and after in zone-outage") {
		t.Errorf("the page lacks its scenario, %v", err)
	}
	if err := os.WriteFile("none.json", []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"old.json", "none.json"}, {"old.json", "missing.json"}, {"old.json"},
		{"old.json", "old.json", "--out", "no/folder.html"}} {
		if code, _, stderr := call(t, append([]string{"eval", "compare"}, args...)...); code != cli.ExitInvalid {
			t.Errorf("%v: exit %d\n%s", args, code, stderr)
		}
	}
}
