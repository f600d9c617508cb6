package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/eval"
)

// The screen says what is done, how much of it, how long the rest takes, and what is
// finished comes to, within the room that it has.
func TestProgressView(t *testing.T) {
	var m tea.Model = &progressView{step: "loading scenarios and traces", begun: day, now: day}
	send := func(msgs ...tea.Msg) string {
		for _, msg := range msgs {
			m, _ = m.Update(msg)
		}
		return m.View()
	}
	row := func(scenario, policy string, saved, outage float64) eval.SoFar {
		return eval.SoFar{Scenario: scenario, Policy: policy, Saved: eval.Value{V: saved, Known: true}, Outage: eval.Value{V: outage, Known: true}}
	}
	runs := eval.Progress{Step: eval.StepRuns, Done: 30, Total: 120, Cells: 40}
	one, two := runs, runs
	one.Finished, one.SoFar = 10, []eval.SoFar{row("web-week", "on-demand", 0, 4.5), row("web-week", "static:share=0.7", 42.13, 0)}
	two.Finished, two.SoFar = 1, []eval.SoFar{row("web-week", "on-demand", 0, 4.5), row("web-week", "spot", -3.14, 120),
		{Scenario: "batch-night", Policy: "on-demand"}, {Scenario: "batch-night", Policy: "spot"}}
	at := func(seconds int) ticked { return ticked(day.Add(time.Duration(seconds) * time.Second)) }
	for _, c := range []struct {
		msgs []tea.Msg
		want string
	}{
		{nil, "loading scenarios and traces · 0s"},
		{[]tea.Msg{at(3)}, "loading scenarios and traces · 3s"},
		{[]tea.Msg{enterStep{"preparing", day.Add(3 * time.Second)}, at(5)}, "preparing · 2s"},
		{[]tea.Msg{runs}, "runs · 30 of 120 · 0s"},
		{[]tea.Msg{at(45), one}, "runs · 30 of 120 · 40s · about 2m0s left\n\n" +
			"web-week          SAVED %  OUTAGE MIN\n" +
			"on-demand             0.0         4.5\n" +
			"static:share=0.7     42.1         0.0\n" +
			"medians of 10 of 40 cells (a scenario, window and seed each)"},
		{[]tea.Msg{two}, "runs · 30 of 120 · 40s · about 2m0s left\n\n" +
			"SAVED % / OUTAGE MIN  on-demand          spot\n" +
			"web-week              0.0 / 4.5  -3.1 / 120.0\n" +
			"batch-night               – / –         – / –\n" +
			"medians of 1 of 40 cells (a scenario, window and seed each)"},
		{[]tea.Msg{tea.WindowSizeMsg{Width: 30, Height: 5}}, "runs · 30 of 120 · 40s · abo…\n\n" +
			"SAVED % / OUTAGE MIN  on-dem…\n… and 3 lines more"},
		{[]tea.Msg{eval.Progress{Step: eval.StepBounds, Done: 1, Total: 4}, tea.WindowSizeMsg{Width: 30, Height: 3}}, "bounds · 1 of 4 · 0s\n… and 5 lines more"},
		{[]tea.Msg{counted{3, 7}}, "bounds · 3 of 7 · 0s\n… and 5 lines more"},
		{[]tea.Msg{leave{}}, ""},
	} {
		if got := send(c.msgs...); got != c.want {
			t.Errorf("after %v:\n%s\nwant\n%s", c.msgs, got, c.want)
		}
	}
}

// stopped starts a comparison that would take hours, sends it a signal once, and
// returns how it ended. Outputs lie in dir.
func stopped(t *testing.T, sent os.Signal, dir string, after time.Duration) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), otherSpotter(t, "v1"), "eval", file(t, "tiny.yaml", tiny), "--policies", "spot,static", "--seeds", "5000",
		"--gate", "outage_delta.max <= 100000", "--gate", "net_savings_pct.median >= -1000",
		"--out", "-", "--out", filepath.Join(dir, "r.json"), "--out", filepath.Join(dir, "r.csv"), "--out", filepath.Join(dir, "r.md"),
		"--out", filepath.Join(dir, "r.xml"), "--report", filepath.Join(dir, "r.html"))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	if err := c.Process.Signal(sent); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	err := c.Wait()
	t.Logf("it ended %v after the signal", time.Since(begun))
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return exit.ExitCode(), out.String(), errs.String()
}

// A comparison that is stopped prints and keeps what is finished, marked as
// incomplete, passes no gate, and ends with 3.
func TestEvalStopped(t *testing.T) {
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		dir := t.TempDir()
		code, stdout, stderr := 0, "", ""
		for after := time.Second; after < time.Minute; after *= 3 { // a slow machine has nothing by then
			if code, stdout, stderr = stopped(t, sent, dir, after); stdout != "" {
				break
			}
			if code != exitBroke || !strings.Contains(stderr, "wrote nothing") {
				t.Fatalf("%v before anything is done: exit code %d\n%s", sent, code, stderr)
			}
		}
		title, _, _ := strings.Cut(stdout, "\n")
		if code != exitBroke || !strings.HasPrefix(title, "INCOMPLETE: stopped after ") || !strings.Contains(stderr, "spotter: INCOMPLETE: stopped after ") {
			t.Fatalf("%v: exit code %d, title %q\n%s", sent, code, title, stderr)
		}
		if strings.Contains(stdout, "✓ ") || strings.Count(stdout, "; the comparison was stopped\n") < 2 {
			t.Errorf("%v: a gate passes:\n%s", sent, stdout)
		}
		text, err := os.ReadFile(filepath.Join(dir, "r.json"))
		var report struct {
			Incomplete bool  `json:"incomplete"`
			RunsDone   int   `json:"runs_done"`
			RunCount   int   `json:"run_count"`
			Passed     bool  `json:"passed"`
			Runs       []any `json:"runs"`
			Gates      []struct{ Pass bool }
		}
		if err == nil {
			err = json.Unmarshal(text, &report)
		}
		if err != nil || !report.Incomplete || report.RunsDone < 4 || report.RunsDone%4 != 0 || report.RunCount != 20_000 || len(report.Runs) != report.RunsDone || report.Passed {
			t.Errorf("%v, %v: the JSON has %d of %d runs, %d in the list, incomplete %t, passed %t", sent, err, report.RunsDone, report.RunCount, len(report.Runs), report.Incomplete, report.Passed)
		}
		for _, g := range report.Gates {
			if g.Pass {
				t.Errorf("%v: a gate passes in the JSON", sent)
			}
		}
		for name, want := range map[string]string{"r.csv": ",20000," + "", "r.md": "# INCOMPLETE: stopped after ", "r.xml": "INCOMPLETE: stopped after ", "r.html": "INCOMPLETE: stopped after "} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%v: %s has no %q, %v", sent, name, want, err)
			}
		}
	}
}
