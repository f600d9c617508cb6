package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	runcmd "github.com/spotter-dev/spotter/cmd/spotter/internal/run"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects/objectstest"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestRecordCall refuses what cannot be meant of the record, by field and value.
func TestRecordCall(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "record")
	for want, recording := range map[string]string{
		"recording.dir: Required value: nothing is recorded without it":  "bucket: {url: s3://b}",
		"recording.bucket.url: Required value":                           "dir: " + dir + ", bucket: {region: us-east-1}",
		`recording.bucket.url: "b": it must be s3://bucket`:              "dir: " + dir + ", bucket: {url: b}",
		`recording.keepBytes: Invalid value: "much": must be a quantity`: "dir: " + dir + ", keepBytes: much",
		`recording.keepBytes: Invalid value: "-1": must not be negative`: "dir: " + dir + ", keepBytes: -1",
		`recording.keep: Invalid value: "-1h0m0s": must be within`:       "dir: " + dir + ", keep: -1h",
		`recording.complete: Invalid value: "1ms": must be within`:       "dir: " + dir + ", complete: 1ms",
		`recording.bucket.encryption: Unsupported value: "rot13"`:        "dir: " + dir + ", bucket: {url: s3://b, encryption: rot13}",
		`recording.bucket.kmsKey: "k": it needs the encryption aws:kms`:  "dir: " + dir + ", bucket: {url: s3://b, kmsKey: k}",
		`recording.bucket.endpoint: "b": it must start with http://`:     "dir: " + dir + ", bucket: {url: s3://b, endpoint: b}",
	} {
		path := configured(t, "recording: {"+recording+"}")
		wrongCallIs(t, path+": "+want, "run", "--config", path)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused call made the folder: %v", err)
	}
}

// stepped finds a decision in the log of a replica.
var stepped = regexp.MustCompile(`msg=step decision=(\S+)`)

// lastDecision returns the last decision that the replica logged.
func (r *replica) lastDecision(t *testing.T) string {
	t.Helper()
	all := stepped.FindAllStringSubmatch(r.Said(), -1)
	if len(all) == 0 {
		t.Fatal("it has taken no decision")
	}
	return all[len(all)-1][1]
}

// newRecords returns a bucket that replicas can upload to, and the settings for it.
func newRecords(t *testing.T, dir string) (*objectstest.Bucket, []string) {
	t.Helper()
	b := objectstest.NewBucket(t, "records", 1000)
	return b, []string{
		"recording: {dir: " + dir + ", complete: 1s, bucket: {url: s3://records/a, region: us-east-1, endpoint: '" + b.URL +
			"'}}", "stepInterval: 2s",
	}
}

// TestRunRecord kills one replica and asks the next to end, both of which record to
// one folder and bucket: what readers found stays, every decision in either is taken
// again without a difference, and the last one before SIGTERM is in both when the next
// replica leads.
func TestRunRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	s := newStage(t, shadowRules)
	bucket, settings := newRecords(t, dir)
	a := s.start(t, settings...)
	s.leads(t, a)
	b := s.start(t, settings...)
	var found int
	testenv.Eventually(t, "three decisions are found", func() error {
		found = decisionsIn(t, dir)
		if found < 3 {
			return fmt.Errorf("%d are", found)
		}
		return nil
	})
	body := get(t, a.metric)
	for _, want := range []string{`spotter_record_up{part="folder"} 1`, `spotter_record_up{part="bucket"} 1`,
		"spotter_record_lost_steps_total 0"} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if err := a.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-a.End
	s.leads(t, b)
	testenv.Eventually(t, "it has logged a decision", func() error { // which it does when the step is at its end
		if !stepped.MatchString(b.Said()) {
			return errors.New("it has not")
		}
		return nil
	})
	if n := decisionsIn(t, dir); n < found {
		t.Errorf("of %d decisions that were found %d are left after a kill", found, n)
	}
	asked := time.Now()
	if err := b.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-b.End; err != nil {
		t.Errorf("asked to end it says %v", err)
	}
	t.Logf("ending with a record took %v", time.Since(asked).Round(time.Millisecond))
	last := b.lastDecision(t)
	for name, from := range map[string]string{"folder": dir, "bucket": fetched(t, bucket, "a/")} {
		r, err := record.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		x, err := r.Last()
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Snapshot.Now.String(); got != last {
			t.Errorf("the last decision in the %s is of %s, and the last one taken is of %s", name, got, last)
		}
		if code, out, stderr := call(t, "replay", from); code != cli.ExitOK || !strings.Contains(out, "every plan is the same") {
			t.Errorf("replay of the %s: exit code %d\n%s%s", name, code, out, stderr)
		}
		if code, out, stderr := call(t, "explain", "--run", from, "--at", last, "--pool", "web"); code != cli.ExitOK ||
			!strings.Contains(out, "web") {
			t.Errorf("explain of the %s: exit code %d\n%s%s", name, code, out, stderr)
		}
	}
}

// decisionsIn returns how many decisions a reader finds.
func decisionsIn(t *testing.T, dir string) (n int) {
	t.Helper()
	r, err := record.Open(dir)
	if err != nil {
		return 0
	}
	for _, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// fetched writes what a bucket holds under a prefix into a folder.
func fetched(t *testing.T, b *objectstest.Bucket, prefix string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range b.Objects(t, prefix) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRunRecordFails has a bucket that refuses every write: the pool and the metrics report it,
// the controller continues to decide and keeps its decisions in the folder, and both report
// success once the bucket accepts writes.
func TestRunRecordFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	s := newStage(t, shadowRules)
	bucket, settings := newRecords(t, dir)
	a := s.start(t, settings...)
	s.leads(t, a)
	said := func(status, reason string) {
		t.Helper()
		testenv.Eventually(t, "the condition Recording is "+status, func() error {
			var p v1alpha1.CapacityPool
			if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
				return err
			}
			for _, c := range p.Status.Conditions {
				if c.Type == runcmd.ConditionRecording && string(c.Status) == status && c.Reason == reason {
					return nil
				}
			}
			return fmt.Errorf("conditions %+v", p.Status.Conditions)
		})
	}
	said("True", "Recorded")
	bucket.Down(403)
	said("False", "UploadFailed")
	if body := get(t, a.metric); !strings.Contains(body, `spotter_record_up{part="bucket"} 0`) ||
		!strings.Contains(body, `spotter_record_up{part="folder"} 1`) {
		t.Errorf("the metrics say %s", body)
	}
	before := decisionsIn(t, dir)
	testenv.Eventually(t, "decisions go on", func() error {
		if n := decisionsIn(t, dir); n <= before {
			return fmt.Errorf("%d decisions", n)
		}
		return nil
	})
	bucket.Down(0)
	said("True", "Recorded")
}
