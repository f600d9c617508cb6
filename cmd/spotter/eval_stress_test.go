package main

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// TestStressIsRepeated: the command that a line names gives the very run, under its
// truth, and every truth is met by runs of its own.
func TestStressIsRepeated(t *testing.T) {
	code, out, stderr := call(t, "eval", "tiny", "--trace", "synthetic", "--stress", "--policies", "spot", "--baseline",
		"spot", "--seeds", "4-4", "--intensity", "30", "--format", "csv")
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	lines, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) int { return slices.Index(lines[0], name) }
	weathers := map[string]string{}
	for _, line := range lines[1:] {
		truth := line[column("truth")]
		if line[column("policy")] != "spot" {
			continue
		}
		weathers[line[column("weather")]] = truth
		words := strings.Fields(line[column("command")])
		if at := slices.Index(words, "--truth"); (at < 0) != (truth == "modelled") || at >= 0 && words[at+1] != truth {
			t.Errorf("a run under %s is repeated by %s", truth, line[column("command")])
		}
		if !slices.Contains([]string{"modelled", "hazard-10", "prices-2"}, truth) {
			continue
		}
		code, said, stderr := call(t, words[1:]...)
		if want := "hash " + line[column("hash")]; code != cli.ExitOK || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d, want %s in\n%s%s", line[column("command")], code, want, said, stderr)
		}
		if stated := strings.Contains(said, truth+", which no policy knows"); stated != (truth != "modelled") {
			t.Errorf("a run under %s says:\n%s", truth, said)
		}
	}
	if n := len(weather.Truths()); len(weathers) != n {
		t.Errorf("%d truths have the weathers %v", n, weathers)
	}
}

// TestStressGate: gates are judged under every truth, and one that fails is a failed
// gate of the call.
func TestStressGate(t *testing.T) {
	args := []string{"eval", "tiny", "--trace", "synthetic", "--stress", "--policies", "spot", "--seeds", "1", "--gate",
		"spot:bill_usd.min > 0"}
	if code, _, stderr := call(t, args...); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	code, out, stderr := call(t, append(args, "--details", "--gate", "spot:bill_usd.max <= 0")...)
	if code != cli.ExitFailed || !strings.Contains(stderr, "under truth modelled") ||
		!strings.Contains(out, "slots-0.2: ✗ spot: bill_usd.max <= 0") ||
		!strings.Contains(out, "slots-0.2: ✓ spot: bill_usd.min > 0") {
		t.Errorf("exit %d: %s\n%s", code, stderr, out)
	}
}

// TestOneTruth: eval under one truth is the ordinary comparison, and says so.
func TestOneTruth(t *testing.T) {
	code, out, stderr := call(t, "eval", "tiny", "--trace", "synthetic", "--policies", "spot", "--baseline", "spot",
		"--seeds", "1", "--truth", "alone", "--format", "json")
	var r struct {
		Cases []struct{ Truth string }
		Notes []string
	}
	if err := json.Unmarshal([]byte(out), &r); code != cli.ExitOK || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	if r.Cases[0].Truth != "alone" || !strings.Contains(strings.Join(r.Notes, "\n"), "Truth alone: ") {
		t.Errorf("the case has truth %q, the notes are %q", r.Cases[0].Truth, r.Notes)
	}
}

// TestStressRefuses: what a stress has not is said before anything runs, and a truth
// that there is not is no truth.
func TestStressRefuses(t *testing.T) {
	wrongCallIs(t, "hazard-7", "sim", "tiny", "--truth", "hazard-7")
	wrongCallIs(t, "prices-flat", "eval", "tiny", "--truth", "hazard-7")
	for _, args := range [][]string{{"--truth", "alone"}, {"--report", "r.html"}, {"--compare", "spotter"}, {"--compare-scenarios", "."}} {
		wrongCallIs(t, "--stress: it does not go with "+args[0], append([]string{"eval", "tiny", "--stress"}, args...)...)
	}
	for _, f := range format.Formats() {
		if !slices.Contains(format.StressFormats(), f) {
			wrongCallIs(t, "table, wide, json, yaml, markdown, csv, parquet", "eval", "tiny", "--stress", "--out", string(f)+"=x")
		}
	}
}
