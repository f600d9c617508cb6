package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	evalcmd "github.com/spotter-dev/spotter/cmd/spotter/internal/eval"
	"github.com/spotter-dev/spotter/internal/cli"
)

// asSpotter is the variable that turns the test program into spotter itself, so
// that another build can be run without building one.
const asSpotter = "SPOTTER_TEST_RUNS"

func TestMain(m *testing.M) {
	if os.Getenv(asSpotter) == "" {
		os.Exit(m.Run())
	}
	version = os.Getenv(asSpotter)
	main()
}

// otherSpotter returns the path of a spotter that says it is of a version.
func otherSpotter(t *testing.T, named string) string {
	t.Helper()
	t.Setenv(asSpotter, named)
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// script writes a shell script that can be run.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil { //nolint:gosec // it has to be run
		t.Fatal(err)
	}
	return path
}

// small are the arguments of a comparison that takes a second.
func small(more ...string) []string {
	return append([]string{"eval", "tiny", "--policies", "on-demand", "--baseline", "on-demand", "--trace", "synthetic",
		"--seeds", "2"}, more...)
}

// TestCompareWithItself: a build does not differ from itself, and the seeds come
// of the version that the other one says it has.
func TestCompareWithItself(t *testing.T) {
	dir := t.TempDir()
	out := func(name string) string { return filepath.Join(dir, name) }
	code, stdout, stderr := call(t, small("--compare", otherSpotter(t, "v9.8.7-3-gabcdef"), "--out", "-",
		"--details", "--out", out("r.json"), "--out", out("r.xml"), "--out", out("r.md"), "--out", "comment="+out("r.txt"))...)
	if code != cli.ExitOK || !strings.Contains(stdout, "this change: none, every run is equal") ||
		!strings.Contains(stdout, "Compared with v9.8.7-3-gabcdef (") {
		t.Fatalf("exit %d: %s\n%s", code, stderr, stdout)
	}
	var report struct {
		Config     struct{ Seeds []uint64 }
		Comparison struct {
			Verdict, Version string
			BeyondNoise      bool `json:"beyond_noise"`
		}
	}
	data, err := os.ReadFile(out("r.json"))
	if err == nil {
		err = json.Unmarshal(data, &report)
	}
	first := evalcmd.FirstSeed("v9.8.7-3-gabcdef")
	if err != nil || report.Comparison.Verdict != "no change" || report.Comparison.BeyondNoise ||
		len(report.Config.Seeds) != 2 || report.Config.Seeds[0] != first || report.Config.Seeds[1] != first+1 {
		t.Errorf("%v: %+v, want seeds from %d on", err, report, first)
	}
	for name, begin := range map[string]string{"r.xml": "<?xml", "r.md": "# tiny", "r.txt": "<!-- spotter: nothing new -->\n### ✓ Spotter: "} {
		if text, err := os.ReadFile(out(name)); err != nil || !strings.HasPrefix(string(text), begin) {
			t.Errorf("%s begins %.40q, want %q: %v", name, text, begin, err)
		}
	}
}

// TestSeedsFrom: equal commits give equal seeds and others give others, and
// whoever names the seeds is not overruled.
func TestSeedsFrom(t *testing.T) {
	if a, b := evalcmd.FirstSeed("41405d6"), evalcmd.FirstSeed("41405d6\n"); a != b || a == evalcmd.FirstSeed("41405d7") || a == 0 {
		t.Errorf("seeds of 41405d6 begin at %d and at %d", a, b)
	}
	_, out, _ := call(t, small("--seeds-from", "41405d6", "--format", "csv")...)
	if want := "tiny,0,2026-01-01T00:00:00Z,2026-01-08T00:00:00Z,217693666,"; evalcmd.FirstSeed("41405d6") != 217693666 || !strings.Contains(out, want) {
		t.Errorf("the first seed is %d:\n%.3000s", evalcmd.FirstSeed("41405d6"), out)
	}
	wrongCallIs(t, "--seeds-from", "eval", "--seeds", "3-4", "--seeds-from", "41405d6")
	wrongCallIs(t, "--seeds-from", "eval", "--seeds-from", "")
	code, _, stderr := call(t, small("--compare", otherSpotter(t, "v1"), "--seeds", "7-8")...)
	if code != cli.ExitOK || !strings.Contains(stderr, "tiny, seeds 7-8") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestCompareWrong: what cannot be compared with is a wrong call, said before
// anything is run, and what breaks on the way is named with what it said.
func TestCompareWrong(t *testing.T) {
	for _, c := range []struct{ name, path, want string }{
		{"nothing", "", "--compare: it names no program"},
		{"no file", filepath.Join(t.TempDir(), "gone"), "no such file"},
		{"a folder", t.TempDir(), "--compare"},
		{"no program", file(t, "text", "hello"), "permission denied"},
		{"another program", script(t, "echo hello"), `is not a spotter binary: `},
		{"one that says nothing", script(t, "exit 0"), "is not a spotter binary"},
		{"one that fails", script(t, "echo 'no such thing' >&2; exit 7"), "no such thing"},
		{"one that never ends", script(t, "exec yes spotter"), "is not a spotter binary"},
	} {
		code, out, stderr := call(t, small("--compare", c.path)...)
		if code != cli.ExitInvalid || out != "" || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "give --compare the path") {
			t.Errorf("%s: exit %d, %q, want %q", c.name, code, stderr, c.want)
		}
	}
	const version = "if [ $1 = version ]; then echo 'spotter v1 (go)'; exit 0; fi\n"
	for _, c := range []struct{ name, text, want string }{
		{"a crash", "echo 'panic: gone' >&2; exit 3", "panic: gone"},
		{"a signal", "kill -9 $$", "killed"},
		{"no report", "echo usage", "invalid character"},
		{"half a report", `printf '{"schema_version": 1, "runs": ['`, "unexpected EOF"},
		{"an empty one", "exit 0", "EOF"},
	} {
		dir := t.TempDir()
		out := filepath.Join(dir, "r.json")
		code, _, stderr := call(t, small("--compare", script(t, version+c.text), "--out", out)...)
		if code != cli.ExitError || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "comparing with") {
			t.Errorf("%s: exit %d, %q, want %q", c.name, code, stderr, c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", c.name, left, err)
		}
	}
}

// TestCompareOtherSchema: a build whose reports mean something else is refused
// before anything is run, and both are named.
func TestCompareOtherSchema(t *testing.T) {
	other := script(t, "if [ $1 = version ]; then echo 'spotter v1.2.3 (go)'; exit 0; fi\n"+
		`printf '{"schema_version": 1, "version": "v1.2.3", "runs": {}}'`)
	code, out, stderr := call(t, small("--compare", other)...)
	if code != cli.ExitInvalid || out != "" || strings.Contains(stderr, "seeds") {
		t.Errorf("exit %d: %s\n%s", code, stderr, out)
	}
	for _, want := range []string{"spotter v1.2.3 cannot be compared with this one, spotter " + version,
		"that of spotter v1.2.3 is 1, and this one reads 2"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q does not say %q", stderr, want)
		}
	}
}

// TestCompareOlder: a build that knows neither the scenario nor the policy is no
// pass and no failure.
func TestCompareOlder(t *testing.T) {
	other := script(t, "if [ $1 = version ]; then echo 'spotter v1 (go)'; exit 0; fi\n"+
		"echo 'spotter: scenario \"tiny\" is not known' >&2; echo 'give another' >&2; exit 2")
	code, out, stderr := call(t, small("--compare", other, "--details")...)
	if code != cli.ExitOK || !strings.Contains(out, `the other side cannot run tiny: refused: scenario "tiny" is not known`) ||
		!strings.Contains(out, "⚠ this change: nothing could be compared") {
		t.Errorf("exit %d: %s\n%s", code, stderr, out)
	}
}

// TestCompareStopped: a comparison that is stopped does not count as good, and keeps
// the runs that were done before it.
func TestCompareStopped(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	other := script(t, "if [ $1 = version ]; then echo 'spotter v1 (go)'; exit 0; fi\n"+
		"case \"$*\" in *'--seeds 1 '*) exit 2;; esac\n"+ // the call that reads its schema
		"touch "+started+"; exec sleep 600")
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(started); err == nil {
				stop()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	var out, errs strings.Builder
	if code := spotter.Run(ctx, small("--compare", other), &out, &errs); code != cli.ExitError ||
		!strings.HasPrefix(out.String(), "✗ INCOMPLETE: stopped after all 2 runs") || strings.Contains(out.String(), "this change") {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}

// TestTargetsRefused: an output that cannot be meant is refused.
func TestTargetsRefused(t *testing.T) {
	wrongCallIs(t, "--out", "eval", "--out", "json=")
	wrongCallIs(t, `format "md" is unknown`, "eval", "--out", "md=a.txt")
	wrongCallIs(t, "--out", "eval", "--out", "")
	wrongCallIs(t, "named twice", "eval", "--out", "a.txt", "--out", "csv=a.txt")
	wrongCallIs(t, "its ending means json, but it would be written as csv", "eval", "--out", "csv=a.json")
	wrongCallIs(t, "its ending means json, but it would be written as markdown", "eval", "--out", "a.json", "--format", "markdown")
	wrongCallIs(t, "named twice", "eval", "--out", "-", "--out", "json=-")
	wrongCallIs(t, "--out", "eval", "--out", filepath.Join(t.TempDir(), "gone", "a.json"))
}
