package main

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/keep/fake"
	"github.com/spotter-dev/spotter/live/testenv"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestRecordFlags refuses what cannot be meant by flag and value.
func TestRecordFlags(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "record")
	for want, args := range map[string][]string{
		`--record-bucket: nothing is recorded without --record`:  {"--record-bucket", "s3://b"},
		`--record-keep: nothing is recorded without --record`:    {"--record-keep", "1h"},
		`--record-bucket: "b": it must be s3://bucket`:           {"--record", dir, "--record-bucket", "b"},
		`--record-keep-bytes: "much" is no number of bytes`:      {"--record", dir, "--record-keep-bytes", "much"},
		`--record-keep-bytes: -1: it is negative`:                {"--record", dir, "--record-keep-bytes=-1"},
		`--record-keep: -1h0m0s: it is negative`:                 {"--record", dir, "--record-keep=-1h"},
		`--record-complete: 1ms: it must lie within`:             {"--record", dir, "--record-complete", "1ms"},
		`--record-encryption: "rot13": it must be AES256`:        {"--record", dir, "--record-bucket", "s3://b", "--record-encryption", "rot13"},
		`--record-kms-key: "k": it needs the encryption aws:kms`: {"--record", dir, "--record-bucket", "s3://b", "--record-kms-key", "k"},
		`--record-endpoint: "b": it must begin with http://`:     {"--record", dir, "--record-bucket", "s3://b", "--record-endpoint", "b"},
	} {
		wrongCallIs(t, want, append([]string{"run"}, args...)...)
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

// newRecords returns a bucket that replicas can upload to, and the flags for it.
func newRecords(t *testing.T, dir string) (*fake.Bucket, []string) {
	t.Helper()
	b := fake.New("records", 1000)
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	return b, []string{
		"--record", dir, "--record-bucket", "s3://records/a", "--record-region", "us-east-1", "--record-endpoint", server.URL,
		"--record-complete", "1s", "--step", "2s",
	}
}

// TestRunRecord kills one replica and asks the next to end, both of which record to
// one folder and bucket: what readers found stays, every decision in either is taken
// again without a difference, and the last one before SIGTERM is in both when the next
// replica leads.
func TestRunRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	s := newStage(t, shadowRules)
	bucket, flags := newRecords(t, dir)
	a := s.start(t, flags...)
	s.leads(t, a)
	b := s.start(t, flags...)
	var found int
	testenv.Eventually(t, "three decisions are found", func() error {
		found = decisionsIn(t, dir)
		if found < 3 {
			return fmt.Errorf("%d are", found)
		}
		return nil
	})
	body := get(t, a.metric)
	for _, want := range []string{`spotter_record_up{part="folder"} 1`, `spotter_record_up{part="bucket"} 1`, "spotter_record_lost_steps_total 0"} {
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
		if code, out, stderr := call(t, "replay", from); code != exitGood || !strings.Contains(out, "every plan is the same") {
			t.Errorf("replay of the %s: exit code %d\n%s%s", name, code, out, stderr)
		}
		if code, out, stderr := call(t, "explain", "--run", from, "--at", last, "--pool", "web"); code != exitGood || !strings.Contains(out, "web") {
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
func fetched(t *testing.T, b *fake.Bucket, prefix string) string {
	t.Helper()
	dir := t.TempDir()
	for key, o := range b.Objects() {
		path := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(key, prefix)))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, o.Body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRunRecordFails has a bucket that takes nothing: the pool and the metrics say
// so, decisions go on and are kept in the folder, and it is over when the bucket is
// there again.
func TestRunRecordFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "record")
	s := newStage(t, shadowRules)
	bucket, flags := newRecords(t, dir)
	a := s.start(t, flags...)
	s.leads(t, a)
	said := func(status, reason string) {
		t.Helper()
		testenv.Eventually(t, "the condition Recording is "+status, func() error {
			var p v1alpha1.CapacityPool
			if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
				return err
			}
			for _, c := range p.Status.Conditions {
				if c.Type == conditionRecording && string(c.Status) == status && c.Reason == reason {
					return nil
				}
			}
			return fmt.Errorf("conditions %+v", p.Status.Conditions)
		})
	}
	said("True", "Recorded")
	bucket.Down(403)
	said("False", "UploadFailed")
	if body := get(t, a.metric); !strings.Contains(body, `spotter_record_up{part="bucket"} 0`) || !strings.Contains(body, `spotter_record_up{part="folder"} 1`) {
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
