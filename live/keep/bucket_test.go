package keep

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/objects/objectstest"
)

// bucketConfig returns a configuration that uploads to b, to the prefix cluster/a.
func bucketConfig(t *testing.T, b *objectstest.Bucket, dir string) Config {
	t.Helper()
	c := testConfig(t, dir)
	c.Bucket, c.Region, c.Endpoint = b.Name+"/cluster/a", "us-east-1", b.URL
	return c
}

// download writes what the bucket holds under the prefix, as `aws s3 sync` does.
func download(t *testing.T, b *objectstest.Bucket) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range b.Objects(t, "cluster/a/") {
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

func giveAll(t *testing.T, r *Recorder, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := give(t, r, i); err != nil {
			t.Fatal(err)
		}
		until(t, "the queue is empty", func() bool { return len(r.queue) == 0 })
	}
}

// What is downloaded is what was recorded, encrypted as configured, also where a replica with an
// empty folder continues.
func TestUpload(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	c := bucketConfig(t, b, t.TempDir())
	c.Encryption, c.KMSKey = "aws:kms", "key/1"
	var encrypted, plain atomic.Int32
	b.Before(func(r *http.Request) {
		switch {
		case r.Method != http.MethodPut:
		case r.Header.Get("X-Amz-Server-Side-Encryption") != "aws:kms" || r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id") != "key/1":
			plain.Add(1)
		default:
			encrypted.Add(1)
		}
	})
	r := start(t, c)
	giveAll(t, r, 0, 8)
	closed(t, r)
	c.Dir = t.TempDir()
	r = start(t, c)
	giveAll(t, r, 8, 10)
	closed(t, r)
	dir := download(t, b)
	if got := fmt.Sprint(decisions(t, dir)); got != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Errorf("steps %s", got)
	}
	if plain.Load() != 0 || encrypted.Load() == 0 {
		t.Errorf("%d objects are encrypted as asked, %d are not", encrypted.Load(), plain.Load())
	}
}

// Requests that fail are sent again, and while the bucket is down steps are still
// recorded in the folder; Err says so, and everything is uploaded later, by this
// process or the next.
func TestBucketDown(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	dir := t.TempDir()
	c := bucketConfig(t, b, dir)
	r := start(t, c)
	b.Fail(503, 500, 503)
	giveAll(t, r, 0, 3)
	until(t, "two segments are uploaded", func() bool { return !r.uploader.lacks(2) })
	b.Down(403)
	giveAll(t, r, 3, 6)
	until(t, "the fault is known", func() bool { return r.Err() != nil })
	until(t, "the folder has them", func() bool { return len(decisions(t, dir)) == 5 })
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := r.Close(ctx); err == nil || !strings.Contains(err.Error(), "s3://records/cluster/a/segment=00003") {
		t.Errorf("closing with segments that are not uploaded: %v", err)
	}
	b.Down(0)
	before := len(b.Requests())
	r = start(t, c)
	giveAll(t, r, 6, 7)
	until(t, "the rest is uploaded", func() bool { return !r.uploader.lacks(6) })
	closed(t, r)
	if got := fmt.Sprint(decisions(t, download(t, b))); got != "[0 1 2 3 4 5 6]" {
		t.Errorf("steps %s", got)
	}
	if slices.ContainsFunc(b.Requests()[before:], func(s string) bool { return strings.Contains(s, "segment=00001") }) {
		t.Error("a segment that was uploaded is uploaded again")
	}
}

// An upload that breaks off, here ahead of its last file, is no segment to readers,
// and is made good.
func TestUploadBreaksOff(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	c := bucketConfig(t, b, t.TempDir())
	var puts atomic.Int32
	b.Before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			if puts.Add(1) == 11 {
				b.Down(403)
			}
		}
	})
	r := start(t, c)
	giveAll(t, r, 0, 2)
	until(t, "the upload breaks off", func() bool { return r.Err() != nil })
	if n := len(b.Objects(t, "cluster/a/")); n != 11 {
		t.Fatalf("%d objects", n)
	}
	if got := decisions(t, download(t, b)); got != nil {
		t.Errorf("steps %v of a segment that is not whole", got)
	}
	b.Down(0)
	until(t, "it is made good", func() bool { return r.Err() == nil })
	closed(t, r)
	if got := fmt.Sprint(decisions(t, download(t, b))); got != "[0 1]" {
		t.Errorf("steps %s", got)
	}
}

// A recorder whose segment number another one took leaves that one's segment alone, keeps its own
// in the folder, and continues after it with a full segment.
func TestNumberTaken(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	dir := t.TempDir()
	c := bucketConfig(t, b, dir)
	r := start(t, c)
	giveAll(t, r, 0, 1)
	until(t, "the first step is written", func() bool {
		_, err := os.Stat(filepath.Join(dir, "unfinished-00001"))
		return err == nil
	})
	other := "segment=00001/" + firstFile
	if err := b.Direct.PutNew(t.Context(), c.Bucket+"/"+other, strings.NewReader("x"),
		map[string]string{metaDigest: "d", metaStep: "7"}); err != nil {
		t.Fatal(err)
	}
	giveAll(t, r, 1, 2) // completes segment 1, whose number is taken
	until(t, "the number is known as taken", func() bool { return !r.uploader.lacks(1) })
	giveAll(t, r, 2, 5)
	closed(t, r)
	if b.Objects(t, "cluster/a/")[other] != "x" {
		t.Error("the other's segment was written over")
	}
	// Segment 1 was taken, 2 continues it and has step 1.
	if got := fmt.Sprint(decisions(t, download(t, b))); got != "[2 3 4]" {
		t.Errorf("steps %s in the bucket", got)
	}
	if got := fmt.Sprint(decisions(t, dir)); got != "[0 1 2 3 4]" {
		t.Errorf("steps %s in the folder", got)
	}
}

// A bucket that hangs holds up no step.
func TestBucketHangs(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	c := bucketConfig(t, b, t.TempDir())
	c.Queue = 4
	release := make(chan struct{})
	b.Before(func(*http.Request) { <-release })
	r := start(t, c)
	for i := range 20 { // returns although nothing can be written
		give(t, r, i)
	}
	if n := r.Lost(); n < 15 || n > 16 {
		t.Errorf("%d of 20 steps are lost with a queue of 4", n)
	}
	close(release)
	closed(t, r)
}

// What the bucket does not have stays in the folder however old it is.
func TestRetentionWaitsForBucket(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	dir := t.TempDir()
	r := start(t, testConfig(t, dir)) // without a bucket
	giveAll(t, r, 0, 13)
	closed(t, r)
	c := bucketConfig(t, b, dir)
	c.Keep = time.Nanosecond
	put := make(chan struct{})
	b.Before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			<-put
		}
	})
	r = start(t, c)
	giveAll(t, r, 13, 14)
	until(t, "the step is written", func() bool {
		_, err := os.Stat(filepath.Join(dir, "unfinished-00014"))
		return err == nil
	})
	close(put)
	closed(t, r)
	if got := decisions(t, dir); len(got) != 14 {
		t.Errorf("steps %v remain", got)
	}
	if got := decisions(t, download(t, b)); len(got) != 14 {
		t.Errorf("steps %v are in the bucket", got)
	}
}

// A replica on standby with the same folder makes no request to the bucket, and when it takes over
// it continues after what its predecessor uploaded meanwhile.
func TestStandbyUploadsNothing(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	dir := t.TempDir()
	c := bucketConfig(t, b, dir)
	a := start(t, c)
	giveAll(t, a, 0, 3)
	until(t, "two segments are uploaded", func() bool { return !a.uploader.lacks(2) })
	asked := len(b.Requests())
	standby := start(t, c)
	if err := standby.Close(t.Context()); err != nil {
		t.Errorf("closing a replica that never led: %v", err)
	}
	if now := b.Requests()[asked:]; len(now) > 0 {
		t.Errorf("the one that stands by asked for %q", now)
	}
	standby = start(t, c)
	closed(t, a)
	asked = len(b.Requests())
	giveAll(t, standby, 3, 4)
	closed(t, standby)
	for _, q := range b.Requests()[asked:] {
		if strings.HasPrefix(q, "PUT") && !strings.Contains(q, "segment=00004") {
			t.Errorf("after taking over it asked for %s", q)
		}
	}
	if got := fmt.Sprint(decisions(t, download(t, b))); got != "[0 1 2 3]" {
		t.Errorf("steps %s", got)
	}
}

// Closing may be tried again: what the bucket did not take at first is uploaded then.
func TestCloseAgain(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	dir := t.TempDir()
	c := bucketConfig(t, b, dir)
	r := start(t, c)
	giveAll(t, r, 0, 1)
	until(t, "the step is written", func() bool {
		_, err := os.Stat(filepath.Join(dir, "unfinished-00001"))
		return err == nil
	})
	b.Down(403)
	if err := r.Close(t.Context()); err == nil {
		t.Error("closed although the bucket takes nothing")
	}
	if _, uploading := r.Faults(); uploading == nil {
		t.Error("that uploading fails is not known")
	}
	if got := fmt.Sprint(decisions(t, dir)); got != "[0]" {
		t.Errorf("steps %s in the folder", got)
	}
	b.Down(0)
	closed(t, r)
	if got := fmt.Sprint(decisions(t, download(t, b))); got != "[0]" {
		t.Errorf("steps %s in the bucket", got)
	}
}

// After a flush nothing is left that only this recorder knows, and the recorder continues.
func TestFlush(t *testing.T) {
	b := objectstest.NewBucket(t, "records", 3)
	dir := t.TempDir()
	r := start(t, bucketConfig(t, b, dir))
	if err := r.Flush(t.Context()); err != nil {
		t.Errorf("flushing before the first step: %v", err)
	}
	for i := range 3 {
		if err := give(t, r, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(decisions(t, download(t, b))); got != "[0 1 2]" {
		t.Errorf("steps %s in the bucket after a flush", got)
	}
	if err := give(t, r, 3); err != nil {
		t.Fatal(err)
	}
	b.Down(403)
	if err := r.Flush(t.Context()); err == nil {
		t.Error("flushed although the bucket takes nothing")
	}
	if got := fmt.Sprint(decisions(t, dir)); got != "[0 1 2 3]" {
		t.Errorf("steps %s in the folder after a flush that failed", got)
	}
	b.Down(0)
	closed(t, r)
	if err := r.Flush(t.Context()); err != nil {
		t.Errorf("flushing what is closed: %v", err)
	}
	if got := fmt.Sprint(decisions(t, download(t, b))); got != "[0 1 2 3]" {
		t.Errorf("steps %s in the bucket at last", got)
	}
}
