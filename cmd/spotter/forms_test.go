package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/internal/cli"
)

// Every command that prints a table or an object prints it as JSON, as the same YAML, and
// with all columns, and with -q nothing else.
func TestForms(t *testing.T) {
	scenario, recording := file(t, "tiny.yaml", tiny), recordedRun(t, "static")
	for _, c := range []struct {
		want string // a key of what is printed
		args []string
	}{
		{"net_savings_usd", []string{"sim", scenario}},
		{"groups", []string{"eval", scenario, "--policies", "static", "--seeds", "2"}},
		{"truths", []string{"eval", scenario, "--policies", "static", "--seeds", "1", "--stress"}},
		{"warm_up_hours", []string{"scenario", "list"}},
		{"parameters", []string{"policies"}},
		{"interval", []string{"metrics"}},
		{"digest", []string{"trace", "info"}},
		{"usd_per_hour_before", []string{"explain", "--run", recording, "--step", "1"}},
		{"types", []string{"catalog", "--families", "m5"}},
		{"platform", []string{"version"}},
		{"steps_differing", []string{"replay", recording}},
		{"commitments", []string{"scenario", "validate", scenario, "web-week"}},
	} {
		formsOf(t, c.want, c.args...)
	}
	wrongCallIs(t, "give one of table, wide, json, yaml", "scenario", "list", "-o", "xml")
	wrongCallIs(t, "a file is named by --out", "eval", scenario, "-o", "report.json")
	if code, stdout, _ := call(t, "metrics", "--output", "json"); code != cli.ExitOK || !strings.HasPrefix(stdout, "[") {
		t.Errorf("--output ends with %d and prints %.20s", code, stdout)
	}
}

// formsOf holds that a call prints the same as JSON, with the key want, and as YAML, and with
// -q nothing else.
func formsOf(t *testing.T, want string, words ...string) {
	t.Helper()
	outputs := map[string]string{}
	for _, form := range []string{"table", "wide", "json", "yaml"} {
		args := append(slices.Clone(words), "-o", form, "-q")
		code, stdout, stderr := call(t, args...)
		if code != cli.ExitOK || stdout == "" || stderr != "" {
			t.Errorf("%v: exit code %d, %d bytes\n%s", args, code, len(stdout), stderr)
		}
		outputs[form] = strings.ReplaceAll(stdout, "-o "+form, "-o F") // reports say how they were called
	}
	var fromJSON, fromYAML any
	if err := json.Unmarshal([]byte(outputs["json"]), &fromJSON); err != nil {
		t.Errorf("%v: %v", words, err)
	}
	if err := yaml.Unmarshal([]byte(outputs["yaml"]), &fromYAML); err != nil || !reflect.DeepEqual(fromJSON, fromYAML) {
		t.Errorf("%v: the YAML differs from the JSON, %v", words, err)
	}
	if !strings.Contains(outputs["json"], `"`+want+`"`) {
		t.Errorf("%v: the JSON has no %s", words, want)
	}
	if width(outputs["wide"]) < width(outputs["table"]) {
		t.Errorf("%v: the wide table is the narrower one", words)
	}
}

// With -q a command says nothing but what is wrong.
func TestQuiet(t *testing.T) {
	args := []string{"eval", file(t, "tiny.yaml", tiny), "--policies", "static", "--seeds", "1", "--out", filepath.Join(t.TempDir(), "r.json")}
	if _, _, stderr := call(t, args...); !strings.Contains(stderr, "report written to") {
		t.Errorf("it says %q", stderr)
	}
	if code, _, stderr := call(t, append(args, "-q")...); code != cli.ExitOK || stderr != "" {
		t.Errorf("with -q it ends with %d and says %q", code, stderr)
	}
	code, _, stderr := call(t, append(args, "-q", "--gate", "net_savings_pct.median >= 200")...)
	if code != cli.ExitFailed || !strings.HasPrefix(stderr, "spotter: a gate failed") {
		t.Errorf("a failed gate ends with %d and says %q", code, stderr)
	}
}

// width returns the letters of the longest line.
func width(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(line))
	}
	return n
}

// The parameters of a policy are those that the program takes.
func TestPoliciesList(t *testing.T) {
	if code, stdout, _ := call(t, "policies", "karpetrack"); code != cli.ExitOK ||
		!strings.Contains(stdout, ":percentile=") || strings.Contains(stdout, "static") {
		t.Errorf("exit code %d:\n%s", code, stdout)
	}
	wrongCallIs(t, `did you mean "portfolio"?`, "policies", "portfoli")
}
