package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
)

func TestParseWindows(t *testing.T) {
	for _, c := range []struct {
		text string
		want windowRange
	}{
		{"1", windowRange{0, 0, false}}, {"8", windowRange{0, 7, false}},
		{"26-45", windowRange{25, 44, true}}, {"3-3", windowRange{2, 2, true}}, {"all", windowRange{0, -1, true}},
	} {
		if got, err := parseWindows(c.text); err != nil || got != c.want {
			t.Errorf("%q is %+v, %v, want %+v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0-3", "5-4", "many", "1-many", "100001", "1-2-3"} {
		if got, err := parseWindows(text); err == nil {
			t.Errorf("%q is taken as %+v", text, got)
		}
	}
}

// Windows of a whole trace begin at the first midnight after its first week,
// those of a number where the scenario or the trace does, and --from comes first.
func TestWindowsBegin(t *testing.T) {
	at := func(day, hour int) policy.Time {
		return policy.TimeOf(time.Date(2023, 1, day, hour, 0, 0, 0, time.UTC))
	}
	for _, c := range []struct {
		whole                 bool
		asked, scenario, from policy.Time
		want                  policy.Time
	}{
		{true, 0, 0, at(1, 0), at(8, 0)},
		{true, 0, 0, at(1, 5), at(9, 0)},
		{true, at(4, 3), 0, at(1, 0), at(4, 3)},
		{true, 0, at(2, 0), at(1, 0), 0},
		{false, 0, 0, at(1, 0), 0},
	} {
		if got := (windowRange{0, -1, c.whole}).begin(c.asked, c.scenario, c.from); got != c.want {
			t.Errorf("%+v: begins %v, want %v", c, got, c.want)
		}
	}
}

func TestParsePolicies(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"static:share=0.7,spot", "static:share=0.7 spot"},
		{"static:share=0..1/0.25", "static:share=0 static:share=0.25 static:share=0.5 static:share=0.75 static:share=1"},
		{"static:share=0.2..0.4/0.1", "static:share=0.2 static:share=0.3 static:share=0.4"},
		{"spotvortex:runtime=../a/b.json", "spotvortex:runtime=../a/b.json"},
	} {
		got, err := parsePolicies(c.list)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s is %v, %v, want %s", c.list, got, err, c.want)
		}
	}
	if got, err := parsePolicies("static:share=0..1/0.1"); err != nil || len(got) != 11 || got[3] != "static:share=0.3" {
		t.Errorf("a range of eleven is %v, %v", got, err)
	}
	all, err := parsePolicies("all,spot,spotvortex:compat=true")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range registry.Names() {
		if slices.Contains(all, name) == (name == registry.Manifest) {
			t.Errorf("%s among all: %v", name, slices.Contains(all, name))
		}
	}
	if !slices.Contains(all, "spotvortex:compat=true") || len(all) != len(registry.Names()) {
		t.Errorf("all and two more are %v", all)
	}
	for _, list := range []string{"static:share=0..1/0", "static:share=1..0/0.1", "static:share=0..1/0.00001", "spot,spot", ""} {
		if got, err := parsePolicies(list); err == nil {
			t.Errorf("%q is taken as %v", list, got)
		}
	}
}

// All stands for every embedded scenario but those for measuring speed.
func TestAllScenarios(t *testing.T) {
	names, all := scenariosOf([]string{"all"})
	if !all {
		t.Error("all is not all")
	}
	for _, name := range scenarios.Names() {
		if slices.Contains(names, name) == strings.HasPrefix(name, "bench-") {
			t.Errorf("%s among all: %v", name, slices.Contains(names, name))
		}
	}
	if names, all := scenariosOf(nil); all || len(names) != 1 || names[0] != defaultScenario {
		t.Errorf("none is %v", names)
	}
}

// Windows of a trace that a scenario fits several times are all there, each at
// its place, and the command that repeats a run names its time.
func TestEvalAllWindows(t *testing.T) {
	code, out, stderr := call(t, "eval", "zone-outage", "--windows", "all", "--every", "72h", "--seeds", "1",
		"--policies", "on-demand", "--baseline", "on-demand", "--format", "csv")
	if code != exitGood {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")[1:]
	// 22 days less the first week hold windows of two days on days 8, 11, 14, 17
	// and 20.
	if len(lines) != 5 || !strings.HasPrefix(lines[1], "zone-outage,1,2026-01-11T00:00:00.000Z,2026-01-13T00:00:00.000Z,") ||
		!strings.Contains(lines[1], "--from 2026-01-11T00:00:00Z") {
		t.Errorf("windows of all:\n%s", strings.Join(lines, "\n"))
	}
	code, out, _ = call(t, "eval", "zone-outage", "--windows", "2-2", "--every", "72h", "--seeds", "1",
		"--policies", "on-demand", "--baseline", "on-demand", "--format", "csv")
	if got := strings.Split(strings.TrimSpace(out), "\n"); code != exitGood || len(got) != 2 ||
		!strings.HasPrefix(got[1], "zone-outage,1,2026-01-11") {
		t.Errorf("window 2 alone, exit %d:\n%s", code, out)
	}
	wrongCallIs(t, "--every", "eval", "--every", "24h")
	wrongCallIs(t, "--every", "eval", "--every", "-1h")
	wrongCallIs(t, "too short", "eval", "zone-outage", "--windows", "5-9")
}

// The page of results names every world and every policy that there is, and the
// command that makes it. Its figures are as old as the page.
func TestResultsPage(t *testing.T) {
	page := document(t, "results.md")
	_, table, _ := strings.Cut(page, "\n| SAVED % ")
	heading, _, _ := strings.Cut(table, "\n")
	for _, name := range registry.Names() {
		if name != registry.Manifest && !strings.Contains(heading, "| "+name+" |") {
			t.Errorf("docs/results.md has no column of %s: make it anew with `make results`", name)
		}
	}
	names, _ := scenariosOf([]string{"all"})
	for _, name := range names {
		if !strings.Contains(page, "\n| "+name+" |") {
			t.Errorf("docs/results.md has no row of what is saved in %s: make it anew with `make results`", name)
		}
	}
	if !strings.Contains(page, "spotter eval all --policies all") {
		t.Error("docs/results.md does not say what makes it")
	}
}
