package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/internal/objects/objectstest"
	"github.com/spotter-dev/spotter/live/aws/fake"
)

// spotMarket serves a drawn week of one region.
func spotMarket(t *testing.T, faults fake.Faults) (url string) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	h := httptest.NewServer(fake.New(fake.Draw(fake.Shape{
		Seed: 1, Regions: []string{"us-east-1"}, Zones: 2, Types: []string{"m5.large", "c6i.large"},
		From: day, Until: day.Add(7 * 24 * time.Hour), PerDay: 3, Repeats: 0.3,
	}), faults))
	t.Cleanup(h.Close)
	return h.URL
}

// A recording becomes a trace that the other commands read.
func TestTraceRecord(t *testing.T) {
	url := spotMarket(t, fake.Faults{PageMax: 20, Again: 3, Shuffle: true})
	dir := filepath.Join(t.TempDir(), "prices")
	args := []string{"trace", "record", "--region", "us-east-1", "--endpoint", url, "--rate", "10000",
		"--days", "5", "--until", "2026-01-08", "--out", dir}
	code, out, errs := call(t, args...)
	if code != cli.ExitOK || !strings.Contains(out, "2026-01-03 00:00 … 2026-01-08 00:00:") ||
		!strings.Contains(out, "in 4 markets, 5 files written") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs = call(t, args...); code != cli.ExitOK || !strings.Contains(out, " 0 files written") {
		t.Errorf("again: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs = call(t, "trace", "info", dir); code != cli.ExitOK || !strings.Contains(out, "4 of 2 instance types") {
		t.Errorf("info: exit %d\n%s%s", code, out, errs)
	}
}

// sameFiles fails unless the files of the days below dir are those under the prefix of a store.
func sameFiles(t *testing.T, dir, prefix string) {
	t.Helper()
	var store objects.Store
	names, err := fs.Glob(os.DirFS(dir), "provider=*/region=*/date=*/*.parquet")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	found, err := store.List(t.Context(), prefix)
	if err != nil || len(found) != len(names) {
		t.Fatalf("%d files, in the store %v, %v", len(names), found, err)
	}
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := store.ReadFile(t.Context(), objects.Join(prefix, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
}

// A copy of a recording has what was recorded before and what is, also where a call failed in
// between, and is a trace.
func TestTraceRecordUpload(t *testing.T) {
	url := spotMarket(t, fake.Faults{})
	down := false
	objectstest.Use(t, objectstest.Serve(t, func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down && r.Method == http.MethodPut {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			inner.ServeHTTP(w, r)
		})
	}, "b"))
	const prefix = "s3://b/world"
	dir := filepath.Join(t.TempDir(), "prices")
	record := func(until string, args ...string) (code int, out, errs string) {
		return call(t, append([]string{"trace", "record", "--region", "us-east-1", "--endpoint", url, "--rate", "10000",
			"--days", "2", "--until", until, "--out", dir}, args...)...)
	}
	if code, out, errs := record("2026-01-04"); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := record("2026-01-05", "--upload", prefix); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	sameFiles(t, dir, prefix)
	down = true
	if code, _, errs := record("2026-01-07", "--upload", prefix); code != cli.ExitInvalid || !strings.Contains(errs, "check --upload") {
		t.Fatalf("refused: exit %d\n%s", code, errs)
	}
	down = false
	if code, out, errs := record("2026-01-07", "--upload", prefix); code != cli.ExitOK || !strings.Contains(out, "begun before") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	sameFiles(t, dir, prefix)
	if code, out, errs := call(t, "trace", "info", prefix); code != cli.ExitOK || !strings.Contains(out, "4 of 2 instance types") {
		t.Errorf("info: exit %d\n%s%s", code, out, errs)
	}
	dir = filepath.Join(t.TempDir(), "another")
	if code, _, errs := record("2026-01-07", "--upload", prefix); code != cli.ExitInvalid || !strings.Contains(errs, "holds no recording") {
		t.Errorf("a copy of another: exit %d\n%s", code, errs)
	}
	if code, _, errs := record("2026-01-07", "--upload", "elsewhere"); code != cli.ExitInvalid ||
		!strings.Contains(errs, "not an s3:// name") {
		t.Errorf("no S3: exit %d\n%s", code, errs)
	}
}

// What is wrong with a call is said with what to do about it.
func TestTraceRecordFaults(t *testing.T) {
	url := spotMarket(t, fake.Faults{Deny: map[string]string{"DescribeSpotPriceHistory": "UnauthorizedOperation"}})
	dir := filepath.Join(t.TempDir(), "prices")
	for _, c := range []struct {
		args       []string
		code       int
		said, next string
	}{
		{[]string{"--region", "us-east-1", "--out", dir}, cli.ExitInvalid,
			"ec2:DescribeSpotPriceHistory in us-east-1: no permission", "--print-iam-policy"},
		{[]string{"--region", "us-east-1", "--out", dir, "--endpoint", "http://127.0.0.1:1"}, cli.ExitInvalid,
			"connection refused", "--endpoint"},
		{[]string{"--region", "us-east", "--out", dir}, cli.ExitInvalid, `region "us-east"`, "--help"},
		{[]string{"--region", "us-east-1"}, cli.ExitInvalid, "--out is missing", "--help"},
		{[]string{"--out", dir}, cli.ExitInvalid, "--region is missing", "--help"},
		{[]string{"--region", "us-east-1", "--out", dir, "--until", "soon"}, cli.ExitInvalid, `"soon" is not a time`, "2026-01-31"},
		{[]string{"--region", "us-east-1", "--out", dir, "--until", "2026-01-08", "--follow"}, cli.ExitInvalid, "--follow", "leave one"},
		{[]string{"--region", "us-east-1", "--out", dir, "--product", "Plan 9"}, cli.ExitInvalid, `product "Plan 9"`, "--help"},
		{[]string{"--region", "us-east-1", "--out", filepath.Dir(dir)}, cli.ExitInvalid, "not a folder of a recorder", "-o"},
	} {
		if filepath.Dir(dir) == c.args[len(c.args)-1] {
			if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "mine.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := append([]string{"trace", "record", "--endpoint", url, "--rate", "10000"}, c.args...)
		code, _, errs := call(t, args...)
		if code != c.code || !strings.Contains(errs, c.said) || !strings.Contains(errs, c.next) {
			t.Errorf("%v: exit %d, want %d with %q and %q\n%s", c.args, code, c.code, c.said, c.next, errs)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	if code, _, errs := call(t, "trace", "record", "--region", "us-east-1", "--out", dir); code != cli.ExitInvalid ||
		!strings.Contains(errs, "no credentials found") || !strings.Contains(errs, "AWS_PROFILE") {
		t.Errorf("without credentials: exit %d\n%s", code, errs)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a folder was left behind")
	}
}

// The policy that is printed is one that IAM reads.
func TestTraceRecordPolicy(t *testing.T) {
	code, out, errs := call(t, "trace", "record", "--print-iam-policy")
	var policy struct{ Statement []struct{ Action []string } }
	if err := json.Unmarshal([]byte(out), &policy); code != cli.ExitOK || err != nil || len(policy.Statement) != 1 ||
		len(policy.Statement[0].Action) != 5 {
		t.Errorf("exit %d, %v\n%s%s", code, err, out, errs)
	}
}
