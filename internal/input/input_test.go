package input

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

func TestParseWindows(t *testing.T) {
	for text, want := range map[string]WindowRange{
		"1": {numbers: []int{0}}, "3": {numbers: []int{0, 1, 2}}, "3-3": {numbers: []int{2}, whole: true},
		"26-28,40": {numbers: []int{25, 26, 27, 39}, whole: true}, "all": {all: true, whole: true},
	} {
		if got, err := ParseWindows(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0-3", "5-4", "many", "1-many", "100001", "1-2-3", "100001-100001"} {
		if got, err := ParseWindows(text); err == nil {
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
		whole                     bool
		asked, scenario, from, to policy.Time
		want                      policy.Time
	}{
		{true, 0, 0, at(1, 0), at(99, 0), at(8, 0)},
		{true, 0, 0, at(1, 5), at(99, 0), at(9, 0)},
		{true, at(4, 3), 0, at(1, 0), at(99, 0), at(4, 3)},
		{true, 0, at(2, 0), at(1, 0), at(99, 0), at(2, 0)},
		{false, at(4, 3), at(2, 0), at(1, 0), at(99, 0), at(4, 3)},
		{false, 0, at(2, 0), at(1, 0), at(99, 0), at(2, 0)},

		// Twelve weeks, and a day of warm-up before them, from midnight on.
		{false, 0, 0, at(1, 0), at(2+84, 0), at(2, 0)},
		{false, 0, 0, at(1, 0), at(2+83, 0), at(1, 0)},
		{false, 0, 0, at(1, 5), at(3+84, 0), at(3, 0)},
		{false, 0, 0, at(1, 5), at(3+83, 0), at(1, 5)},
	} {
		on := &opened{whole: &trace.Trace{From: c.from, To: c.to}}
		sc := &scenarios.Scenario{Settings: scenarios.Settings{Start: c.scenario, Duration: 7 * 24 * time.Hour, WarmUp: 24 * time.Hour}}
		if got := (WindowRange{all: true, whole: c.whole}).begin(c.asked, sc, on); got != c.want {
			t.Errorf("%+v: begins %v, want %v", c, got, c.want)
		}
	}
}

func TestParsePolicies(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"static:share=0.7,spot", "static:share=0.7 spot"},
		{"static:share=0..1/0.25", "static:share=0 static:share=0.25 static:share=0.5 static:share=0.75 static:share=1"},
		{"static:share=0.2..0.4/0.1", "static:share=0.2 static:share=0.3 static:share=0.4"},
		{"static:share=0.2..0.4@2", "static:share=0.2 static:share=0.4"},
		{"spotvortex:runtime=../a/b.json", "spotvortex:runtime=../a/b.json"},
	} {
		got, err := ParsePolicies(c.list)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s is %v, %v, want %s", c.list, got, err, c.want)
		}
	}
	if got, err := ParsePolicies("static:share=0..1/0.1"); err != nil || len(got) != 11 || got[3] != "static:share=0.3" {
		t.Errorf("a range of eleven is %v, %v", got, err)
	}
	all, err := ParsePolicies("all,spot,spotvortex:compat=true")
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
	for _, list := range []string{"static:share=0..1/0", "static:share=1..0/0.1", "static:share=0..1/0.00001",
		"static:share=0..1/0.01:x=0..1/0.01", "spot,spot", ""} {
		if got, err := ParsePolicies(list); err == nil {
			t.Errorf("%q is taken as %v", list, got)
		}
	}
}

// TestCommand: the command that repeats a run reads the same manifests.
func TestCommand(t *testing.T) {
	m := &MarketFlags{Flags: pflag.NewFlagSet("eval", pflag.ContinueOnError)}
	m.Recursive = true
	got := m.Command(eval.Job{Policy: "spot", Seed: 7, Case: eval.Case{Scenario: "shop",
		Bound: &scenarios.BoundScenario{}}})
	if want := "spotter sim shop --policy spot --seed 7 --from 1970-01-01T00:00:00Z --recursive"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
