package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
)

// What was mistyped is answered by what was meant, in the user's words.
func TestMistyped(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`did you mean "web-week"?`, []string{"eval", "web-wek"}},
		{`did you mean "spot"?`, []string{"eval", "tiny", "--policies", "spto"}},
		{`did you mean "holding"?`, []string{"eval", "tiny", "--policies", "portfolio:holdin=8h"}},
		{"did you mean net_savings_pct?", []string{"eval", "tiny", "--gate", "spot:net_saving_pct.median > 1"}},
		{"did you mean json?", []string{"eval", "tiny", "--format", "jsno"}},
		{"did you mean yaml?", []string{"metrics", "-o", "yml"}},
		{"did you mean hazard-3?", []string{"sim", "tiny", "--truth", "hazrd-3"}},
		{"did you mean us-east-1?", []string{"catalog", "--region", "us-eest-1"}},
		{"did you mean --policies?", []string{"eval", "tiny", "--polcies", "spot"}},
		{`--days: "NaN" is not a whole number`, []string{"trace", "record", "--days", "NaN"}},
		{`--every: "week" is not a length of time`, []string{"eval", "tiny", "--every", "week"}},
		{"--policies", []string{"eval", "tiny", "--policies", ""}},
		{"--baseline: it names no policy", []string{"eval", "tiny", "--baseline", ""}},
		{".xyz is not the ending of a format", []string{"eval", "tiny", "--out", filepath.Join(t.TempDir(), "foo.xyz")}},
		{"--report", []string{"eval", "tiny", "--out", filepath.Join(t.TempDir(), "foo.html")}},
		{"has no zone", []string{"eval", "tiny", "--from", "2026-01-02T00:00:00"}},
		{"names no policy, and these are compared: spot, static", []string{"eval", "tiny", "--gate", "outage_minutes.max <= 0"}},
	} {
		wrongCallIs(t, c.want, c.args...)
	}
	if code, stdout, _ := call(t, "--version"); code != cli.ExitOK || !strings.HasPrefix(stdout, "spotter version unknown (go") {
		t.Errorf("--version ends with %d and says %q", code, stdout)
	}
}

// A stderrUntil cancels a call when it has said something.
type stderrUntil struct {
	mu   sync.Mutex
	text bytes.Buffer
	want string
	stop func()
}

func (s *stderrUntil) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	if strings.Contains(s.text.String(), s.want) {
		s.stop()
	}
	return len(b), nil
}

// A comparison of many seeds says first how long it takes, is not begun beyond an hour
// without --yes where there is no terminal, and ends soon after a signal.
func TestManySeeds(t *testing.T) {
	aMillion := func(ctx context.Context, stderr io.Writer, more ...string) int {
		args := append([]string{"eval", "web-week", "--trace", "synthetic", "--policies", "static", "--seeds", "1000000"}, more...)
		return spotter.Run(ctx, args, io.Discard, stderr)
	}
	var refused bytes.Buffer
	if code := aMillion(t.Context(), &refused); code != cli.ExitInvalid {
		t.Errorf("it ends with %d", code)
	}
	for _, want := range []string{"3000000 runs, about ",
		"3 policies × 1000000 cells, seeds 1-1000000 (--seeds 1000000-1000000 is one seed)", "--yes"} {
		if !strings.Contains(refused.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, refused.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &stderrUntil{want: "3000000 runs, about ", stop: cancel}
	if code := aMillion(ctx, stderr, "--yes"); ctx.Err() == nil || code != cli.ExitError {
		t.Errorf("it ends with %d:\n%s", code, stderr.text.String())
	}
}

// A pipe without a writer does not delay the end of a call.
func TestPipeIsLeft(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ended := make(chan int)
	go func() { ended <- spotter.Run(ctx, []string{"sim", pipe}, &bytes.Buffer{}, &bytes.Buffer{}) }()
	select {
	case code := <-ended:
		if code != cli.ExitError {
			t.Errorf("exit code %d, want %d", code, cli.ExitError)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the pipe")
	}
}

// A disk that is full is no fault of the call.
func TestPlotFullDisk(t *testing.T) {
	var errs bytes.Buffer
	if code := cli.Report(&errs, outFault(&os.PathError{Op: "write", Path: "x.png",
		Err: syscall.ENOSPC})); code != cli.ExitError || !strings.Contains(errs.String(), "make room") {
		t.Errorf("a full disk ends with %d: %s", code, &errs)
	}
	if code := cli.Report(&errs, outFault(os.ErrPermission)); code != cli.ExitInvalid {
		t.Errorf("a folder that cannot be written ends with %d", code)
	}
}

// The failure of a gate says once what failed, by how much, and how to see it: on standard error
// where what is on standard output is for programs.
func TestFailedGateIsNamed(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	for _, format := range []string{"table", "json"} {
		code, stdout, stderr := call(t, "eval", scenario, "--policies", "static", "--seeds", "2", "--gate",
			"net_savings_pct.median >= 200", "-o", format)
		if code != cli.ExitFailed || !strings.Contains(stderr, "1 of 1 failed") {
			t.Errorf("%s: exit code %d\n%s", format, code, stderr)
		}
		read := stderr
		if format == "table" {
			read += stdout
		}
		for _, want := range []string{"static", "net_savings_pct.median >= 200, is ", "off by ", "the worst run has seed ",
			"spotter sim " + scenario + " --policy static --seed "} {
			if strings.Count(read, want) < 1 || format == "table" && strings.Contains(stderr, want) {
				t.Errorf("%s: %q is missing or repeated in\n%s", format, want, read)
			}
		}
	}
}

// A link to a trace is a trace.
func TestTraceBehindLink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(writeTrace(t, []priceRow{priced(0, 0.05), priced(7, 0.06)}), link); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "trace", "info", link); code != cli.ExitOK {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// TestUnreachable: a server that does not answer is said in one line, and no command prints a
// result that it does not have.
func TestUnreachable(t *testing.T) {
	kubeconfig := file(t, "kubeconfig",
		"apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n")
	for _, args := range [][]string{
		{"status"}, {"cleanup", "--dry-run"}, {"cleanup", "--timeout", "5s"}, {"cleanup", "--deployment", "spotter"},
		{"capture", "--out", filepath.Join(t.TempDir(), "x.yaml")}, {"try", "-q", "--dir", t.TempDir()}, {"run", "--leader-elect=false"},
		{"eval", "-q", "--on", "kubernetes", "--parts", "s3://none/parts"}, {"eval", "-q", "--attach", "spotter-eval-0"},
	} {
		wrongCallIs(t, "the API server at http://127.0.0.1:1 does not answer: connection refused\n", append(args, "--kubeconfig", kubeconfig)...)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	wrongCallIs(t, "no cluster: no kubeconfig was found\n", "status")
}

// TestFileForFolder: a file where a folder belongs is the caller's to change.
func TestFileForFolder(t *testing.T) {
	letter := file(t, "letter", "")
	for _, args := range [][]string{{"explain", "--run", letter}, {"replay", letter}, {"tui", "--run", letter}, {"tui", "--live", letter}} {
		wrongCallIs(t, letter+" is a file, and not a folder\n", args...)
	}
}

// TestTooLarge: a number that is too large is not called none.
func TestTooLarge(t *testing.T) {
	const digits = "99999999999999999999"
	scenario := file(t, "tiny.yaml", strings.Replace(tiny, "replicas: 4", "replicas: "+digits, 1))
	for _, args := range [][]string{
		{"sim", "tiny", "--seed", digits}, {"eval", "--seeds", digits}, {"eval", "--windows", "1-" + digits}, {"catalog", "--min-vcpu", digits},
		{"sim", "tiny", "--intensity", "1e999"}, {"eval", "--gate", "net_savings_pct.median >= 1e999"}, {"scenario", "validate", scenario},
	} {
		wrongCallIs(t, " is too large a number\n", args...)
	}
	wrongCallIs(t, "a duration is at most 292 years", "status", "--wait", "9999999999h")
	wrongCallIs(t, "--seed: the value is missing", "sim", "tiny", "--seed")
}
