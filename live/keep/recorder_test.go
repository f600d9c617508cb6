package keep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/test/nightly"
)

var testMeta = record.Meta{Version: "v1", Policy: "static:share=0.5", Scenario: "live"}

const began = policy.Time(1_700_000_000_000)

func testConfig(t *testing.T, dir string) Config {
	t.Helper()
	c := DefaultConfig()
	c.Dir, c.Log = dir, slog.New(slog.DiscardHandler)
	c.RetryMin, c.RetryMax = time.Millisecond, 20*time.Millisecond
	return c
}

func start(t *testing.T, c Config) *Recorder {
	t.Helper()
	r, err := New(c, testMeta)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.cancel()
		ctx, stop := context.WithTimeout(context.Background(), time.Millisecond)
		defer stop()
		r.Close(ctx)
	})
	return r
}

// give records step number i, ten minutes after the one before.
func give(t *testing.T, r *Recorder, i int) error {
	t.Helper()
	s := &policy.Snapshot{Now: began + policy.Time(i)*600_000, Pods: []policy.Pod{{Name: fmt.Sprint("p", i), Phase: policy.PodReady}}}
	return r.Record(t.Context(), s, &policy.Memory{Decisions: uint64(i)}, &policy.Plan{Wake: s.Now + 1})
}

func closed(t *testing.T, r *Recorder) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// until polls, for at most a minute.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// decisions returns which steps a folder has, by what give wrote into them.
func decisions(t *testing.T, dir string) (out []int) {
	t.Helper()
	r, err := record.Open(dir)
	if errors.Is(err, record.ErrNoRecording) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint("p", s.Memory.Decisions); s.Snapshot.Pods[0].Name != want {
			t.Fatalf("step %d has pod %s, want %s", s.Number, s.Snapshot.Pods[0].Name, want)
		}
		out = append(out, int(s.Memory.Decisions))
	}
	return out
}

// A step is found by readers while the recorder runs: each snapshot is ten minutes later than the
// one before, which completes the previous segment.
func TestReadersFindSteps(t *testing.T) {
	dir := t.TempDir()
	r := start(t, testConfig(t, dir))
	for i := range 5 {
		if err := give(t, r, i); err != nil {
			t.Fatal(err)
		}
		until(t, "the steps before are complete", func() bool { return len(decisions(t, dir)) == i })
	}
	closed(t, r)
	if err := give(t, r, 5); err == nil {
		t.Error("a closed recorder takes a step")
	}
	r = start(t, testConfig(t, dir)) // a restart continues
	if err := give(t, r, 5); err != nil {
		t.Fatal(err)
	}
	closed(t, r)
	if got := fmt.Sprint(decisions(t, dir)); got != "[0 1 2 3 4 5]" {
		t.Errorf("steps %s", got)
	}
}

// A segment is completed by time also where no further step comes.
func TestSegmentsComplete(t *testing.T) {
	dir := t.TempDir()
	c := testConfig(t, dir)
	c.Complete = time.Second
	r := start(t, c)
	if err := give(t, r, 0); err != nil {
		t.Fatal(err)
	}
	until(t, "the step is complete", func() bool { return len(decisions(t, dir)) == 1 })
}

// A flush stops the timer of the segment that it completes. With it running, the next segment would
// be completed too early.
func TestFlushStopsTheTimer(t *testing.T) {
	c := testConfig(t, t.TempDir())
	fake := clocktesting.NewFakeClock(time.Now())
	c.Clock = fake
	r := start(t, c)
	if err := give(t, r, 0); err != nil {
		t.Fatal(err)
	}
	until(t, "the segment has a timer", fake.HasWaiters)
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fake.HasWaiters() {
		t.Error("a timer is left after a flush")
	}
}

// While the folder cannot be written the controller keeps running: the fault is reported to it
// once, the queue is bounded, and the later record has a gap where steps were left out.
func TestFolderFault(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	c := testConfig(t, dir)
	c.Queue = 2
	r := start(t, c)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder was
		t.Fatal(err)
	}
	said := 0
	record := func(i int) {
		if err := give(t, r, i); err != nil {
			said++
		}
	}
	record(0)
	until(t, "the fault is known", func() bool { return r.Err() != nil })
	for i := 1; i < 9; i++ { // one waits outside of the queue, two in it
		record(i)
	}
	if said != 1 || r.Lost() != 6 {
		t.Errorf("the fault was said %d times, %d steps lost; want once and 6", said, r.Lost())
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	until(t, "the fault is over", func() bool { return r.Err() == nil })
	record(9)
	closed(t, r)
	if got := fmt.Sprint(decisions(t, dir)); got != "[0 1 2 9]" {
		t.Errorf("steps %s", got)
	}
	if last := lastStep(t, dir); last.Number != 5 {
		t.Errorf("the step after the gap has number %d, want 5", last.Number)
	}
}

func lastStep(t *testing.T, dir string) *record.Step {
	t.Helper()
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Last()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Two recorders never write one folder: the second waits, says so, and continues when the first is
// gone.
func TestFolderIsLocked(t *testing.T) {
	dir := t.TempDir()
	a, b := start(t, testConfig(t, dir)), start(t, testConfig(t, dir))
	if err := give(t, a, 0); err != nil {
		t.Fatal(err)
	}
	until(t, "the first has the folder", func() bool {
		_, err := os.Stat(filepath.Join(dir, "unfinished-00001"))
		return err == nil
	})
	give(t, b, 1)
	until(t, "the second says so", func() bool { return errors.Is(b.Err(), ErrBusy) })
	closed(t, a)
	until(t, "the second goes on", func() bool { return b.Err() == nil })
	closed(t, b)
	if got := fmt.Sprint(decisions(t, dir)); got != "[0 1]" {
		t.Errorf("steps %s", got)
	}
}

// A folder that is not a recording is refused before anything is written.
func TestOtherFolders(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(testConfig(t, dir), testMeta); !errors.Is(err, record.ErrOtherRecording) || !strings.Contains(err.Error(), "letter.txt") {
		t.Errorf("New in a foreign folder: %v", err)
	}
}

func TestConfig(t *testing.T) {
	for field, set := range map[string]func(*Config){
		"Dir":        func(c *Config) { c.Dir = "" },
		"Complete":   func(c *Config) { c.Complete = 0 },
		"Whole":      func(c *Config) { c.Whole = time.Second },
		"Keep":       func(c *Config) { c.Keep = -1 },
		"KeepBytes":  func(c *Config) { c.KeepBytes = -1 },
		"Rows":       func(c *Config) { c.Rows = 1 },
		"Queue":      func(c *Config) { c.Queue = 0 },
		"RetryMax":   func(c *Config) { c.RetryMax = 0 },
		"Bucket":     func(c *Config) { c.Bucket = "https://b" },
		"Endpoint":   func(c *Config) { c.Bucket, c.Endpoint = "s3://b", "b" },
		"Encryption": func(c *Config) { c.Bucket, c.Encryption = "s3://b", "rot13" },
		"KMSKey":     func(c *Config) { c.Bucket, c.KMSKey = "s3://b", "k" },
	} {
		c := testConfig(t, t.TempDir())
		set(&c)
		if _, err := New(c, testMeta); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestKilled kills a process that records, again and again: what readers found
// before is there after, and the whole can be read.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("KEEP_TEST_DIR"); dir != "" {
		c := testConfig(t, dir)
		c.Queue = 100
		r := start(t, c)
		for i := 0; ; i++ {
			give(t, r, i)
			time.Sleep(time.Millisecond)
		}
	}
	dir := t.TempDir()
	found := 0
	for range nightly.Count(3, 5) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "KEEP_TEST_DIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		want := found + 10
		until(t, "the process records", func() bool { found = len(decisions(t, dir)); return found >= want })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if n := len(decisions(t, dir)); n < found {
			t.Fatalf("%d steps are left of %d", n, found)
		}
	}
}

// What is older or more than is kept goes, by the hour; the newest hour stays.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	r := start(t, testConfig(t, dir))
	giveAll(t, r, 0, 13) // the segments with steps 0, 6 and 12 are full
	closed(t, r)
	c := testConfig(t, dir)
	c.KeepBytes = 1
	r = start(t, c)
	giveAll(t, r, 13, 14)
	closed(t, r)
	if got := fmt.Sprint(decisions(t, dir)); got != "[12 13]" {
		t.Errorf("steps %s remain", got)
	}
}
