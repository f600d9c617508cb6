package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
)

// stopped starts a comparison that would take hours, sends it a signal once, and returns how it
// ended. It writes its outputs to dir.
func stopped(t *testing.T, sent os.Signal, dir string, after time.Duration) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), otherSpotter(t, "v1"), "eval", file(t, "tiny.yaml", tiny), "--trace",
		"synthetic", "--policies", "spot,static", "--seeds", "5000", "--yes",
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
	noCell := regexp.MustCompile("^✗ INCOMPLETE: stopped after [123] of ") // of four policies
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		dir := t.TempDir()
		code, stdout, stderr := 0, "", ""
		for after := time.Second; after < time.Minute; after *= 3 { // a slow machine has nothing by then
			code, stdout, stderr = stopped(t, sent, dir, after)
			if noCell.MatchString(stdout) {
				continue
			}
			if stdout != "" {
				break
			}
			killed := code < 0 // before the program handled signals
			if !killed && (code != cli.ExitError || !strings.Contains(stderr, "wrote nothing")) {
				t.Fatalf("%v before anything is done: exit code %d\n%s", sent, code, stderr)
			}
		}
		title, _, _ := strings.Cut(stdout, "\n")
		if code != cli.ExitError || !strings.HasPrefix(title, "✗ INCOMPLETE: stopped after ") ||
			!strings.Contains(stderr, "spotter: INCOMPLETE: stopped after ") {
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
		if err != nil || !report.Incomplete || report.RunsDone < 4 || report.RunsDone%4 != 0 || report.RunCount != 20_000 ||
			len(report.Runs) != report.RunsDone || report.Passed {
			t.Errorf("%v, %v: the JSON has %d of %d runs, %d in the list, incomplete %t, passed %t", sent, err,
				report.RunsDone, report.RunCount, len(report.Runs), report.Incomplete, report.Passed)
		}
		for _, g := range report.Gates {
			if g.Pass {
				t.Errorf("%v: a gate passes in the JSON", sent)
			}
		}
		for name, want := range map[string]string{"r.csv": ",20000," + "", "r.md": "# INCOMPLETE: stopped after ",
			"r.xml": "INCOMPLETE: stopped after ", "r.html": "INCOMPLETE: stopped after "} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%v: %s has no %q, %v", sent, name, want, err)
			}
		}
	}
}
