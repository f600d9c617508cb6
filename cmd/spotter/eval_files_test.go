package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// twoSides writes a scenario into a folder and, with the edits from → to, into
// a second one, makes the second the working folder, and returns the first.
func twoSides(t *testing.T, edits ...string) (base string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "scenarios", "library", "tiny.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	named := strings.Replace(string(text), "  mode: active", "  policy: {name: static, parameters: {share: \"0.6\"}}\n  mode: active", 1)
	changed := named
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(changed, edits[i]) {
			t.Fatalf("the scenario has no %q to change", edits[i])
		}
		changed = strings.ReplaceAll(changed, edits[i], edits[i+1])
	}
	base, head := t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{base: named, head: changed} {
		if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(head)
	return base
}

// compared is what a report says of its comparison.
type compared struct {
	Verdict, Headline, Files string
	Changes                  []struct {
		Policy  string
		Changed int
		Demand  int                    `json:"other_demand"`
		Week    *float64               `json:"net_savings_usd_per_week"`
		Bill    *float64               `json:"on_demand_usd_per_week"`
		Savings struct{ Mean float64 } `json:"net_savings_points"`
	}
	Warnings []string
}

// TestCompareScenarios changes a manifest as a pull request does, and holds what
// is said of it.
func TestCompareScenarios(t *testing.T) {
	for _, c := range []struct {
		name  string
		edits []string
		code  int
		want  string
	}{
		{"nothing", nil, cli.ExitOK, "no change"},
		{"a comment", []string{"# Guardrails made", "# Rules made"}, cli.ExitOK, "no change"},
		{"less spot by a parameter", []string{`share: "0.6"`, `share: "0.1"`}, cli.ExitFailed, "fail"},
		{"less spot by the capacity", []string{"max: 1}", "max: 0.1}"}, cli.ExitFailed, "fail"},
		{"other markets", []string{"maxVCPU: 4", "maxVCPU: 8"}, cli.ExitFailed, "fail"},
		{"other reclaims", []string{"intensity: 3", "intensity: 4"}, cli.ExitOK, "not comparable"},
		{"another week", []string{"  duration: 168h", "  duration: 168h\n  start: \"2026-01-09T00:00:00Z\""}, cli.ExitOK, "not comparable"},
		{"a fault",
			[]string{"  duration: 168h",
				"  duration: 168h\n  faults: [{kind: controller-down, at: 24h, duration: 10m}]"}, cli.ExitOK, "not comparable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := twoSides(t, c.edits...)
			got, code, stderr := comparedWith(t, base)
			if code != c.code || got.Verdict != c.want || len(got.Changes) != 1 || got.Changes[0].Policy != "manifest" || got.Files != base {
				t.Fatalf("exit %d, want %d and %s: %+v\n%s", code, c.code, c.want, got, stderr)
			}
			if warned := len(got.Warnings) > 0; warned != (c.want == "not comparable") {
				t.Errorf("warnings %q", got.Warnings)
			}
			if got.Changes[0].Demand > 0 || strings.Contains(got.Headline, "demand") {
				t.Errorf("it speaks of another demand: %s", got.Headline)
			}
		})
	}
}

// TestCompareDemand: twice the pods cost more, which is not reported as a loss. The savings in
// dollars rise with the on-demand bill, and the headline says why.
func TestCompareDemand(t *testing.T) {
	base := twoSides(t, "replicas: 3", "replicas: 9")
	got, code, stderr := comparedWith(t, base)
	if len(got.Changes) != 1 || got.Changes[0].Demand == 0 || got.Changes[0].Demand != got.Changes[0].Changed ||
		got.Changes[0].Week == nil || got.Changes[0].Bill == nil {
		t.Fatalf("exit %d: %+v\n%s", code, got, stderr)
	}
	x := got.Changes[0]
	if *x.Bill < 50 || *x.Week <= 0 || *x.Week >= *x.Bill || x.Savings.Mean < -100 || x.Savings.Mean > 100 {
		t.Errorf("net savings %+.2f dollars, %+.2f points, on-demand bill %+.2f", *x.Week, x.Savings.Mean, *x.Bill)
	}
	if !strings.Contains(got.Headline, "(manifest), at another demand: on-demand bill +$") {
		t.Error(got.Headline)
	}
}

// comparedWith compares shop.yaml of the working folder with that of base.
func comparedWith(t *testing.T, base string) (compared, int, string) {
	t.Helper()
	otherSpotter(t, "v1") // the test program is what runs the other side
	out := filepath.Join(t.TempDir(), "r.json")
	code, _, stderr := call(t, "eval", "shop.yaml", "--compare-scenarios", base, "--trace", "synthetic", "--start",
		"on-demand", "--seeds", "1-8", "--baseline", "on-demand", "--out", out)
	var report struct{ Comparison compared }
	data, err := os.ReadFile(out)
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return report.Comparison, code, stderr
}

// TestCompareScenariosWrong: a folder that is not there, and scenarios that
// cannot be in it, are wrong calls; a scenario that is new is a warning.
func TestCompareScenariosWrong(t *testing.T) {
	base := twoSides(t)
	wrongCallIs(t, "names no folder", "eval", "shop.yaml", "--compare-scenarios", "")
	wrongCallIs(t, "no such file", "eval", "shop.yaml", "--compare-scenarios", filepath.Join(base, "gone"))
	wrongCallIs(t, "is not a folder", "eval", "shop.yaml", "--compare-scenarios", filepath.Join(base, "shop.yaml"))
	wrongCallIs(t, "is not below", "eval", "../shop.yaml", "--compare-scenarios", base)
	wrongCallIs(t, "is not below", "eval", filepath.Join(base, "shop.yaml"), "--compare-scenarios", base)
	if err := os.Remove(filepath.Join(base, "shop.yaml")); err != nil {
		t.Fatal(err)
	}
	got, code, stderr := comparedWith(t, base)
	if code != cli.ExitOK || got.Verdict != "not comparable" || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0], "the other side cannot run shop.yaml") {
		t.Errorf("exit %d: %+v\n%s", code, got, stderr)
	}
}
