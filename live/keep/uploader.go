package keep

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/policy/record"
)

// sentName is the name of the file that records which segments of the folder were uploaded.
const sentName = ".uploaded.json"

// A sent records that all segments up to Segment were uploaded to Bucket.
type sent struct {
	Bucket  string
	Segment int
}

// An uploader uploads complete segments in ascending order, one at a time.
type uploader struct {
	r *Recorder
	b *bucket

	// wake receives a value when there may be a segment to upload, flush when a caller waits for an
	// upload. begun is closed when run starts, done when it returns.
	wake        chan struct{}
	flush       chan chan struct{}
	begun, done chan struct{}

	sent  atomic.Int64
	fault faults

	// taken reports whether another recorder has used the number of a segment. The segments from
	// that number on stay in the folder, up to the next one that can be read without earlier ones,
	// which gets a number after the numbers in the bucket.
	taken atomic.Bool
}

// newUploader returns an uploader for the folder and bucket of r.
func newUploader(ctx context.Context, r *Recorder) (*uploader, error) {
	b, err := dial(ctx, &r.cfg)
	if err != nil {
		return nil, err
	}
	return &uploader{r: r, b: b, wake: make(chan struct{}, 1), flush: make(chan chan struct{}),
		begun: make(chan struct{}), done: make(chan struct{})}, nil
}

// begin starts to upload, once, after this recorder has locked the folder: a standby replica
// uploads nothing, and reads only then which segments the previous leader has uploaded.
func (c *uploader) begin(ctx context.Context) error {
	if c == nil || c.runs() {
		return nil
	}
	path := filepath.Join(c.r.cfg.Dir, sentName)
	text, err := os.ReadFile(path)
	var s sent
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case json.Unmarshal(text, &s) != nil:
		c.r.cfg.Log.Warn("the list of uploaded segments cannot be read; all are uploaded again", "file", path)
	case s.Bucket == c.b.url:
		c.sent.Store(int64(s.Segment))
	}
	close(c.begun)
	go c.run(ctx)
	return nil
}

// runs reports whether begin has started to upload.
func (c *uploader) runs() bool {
	select {
	case <-c.begun:
		return true
	default:
		return false
	}
}

// notify signals that there may be a segment to upload. On a nil uploader it does nothing.
func (c *uploader) notify() {
	if c == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// lacks reports whether a segment still has to be uploaded. Without a bucket it returns false.
func (c *uploader) lacks(segment int) bool { return c != nil && int64(segment) > c.sent.Load() }

// moved reports, once, whether the numbers of the writer are used by another recorder. The writer
// then has to continue after the numbers in the bucket.
func (c *uploader) moved() bool { return c != nil && c.taken.Swap(false) }

// run uploads segments until ctx ends. After a fault, it waits before the next attempt.
func (c *uploader) run(ctx context.Context) {
	defer close(c.done)
	wait := time.Duration(0)
	for ctx.Err() == nil {
		err := c.pass(ctx)
		c.fail(err)
		wake, again := c.wake, clock.Timer(nil)
		if wait = min(max(2*wait, c.r.cfg.RetryMin), c.r.cfg.RetryMax); err != nil {
			wake, again = nil, c.r.cfg.Clock.NewTimer(wait)
		} else {
			wait = 0
		}
		select {
		case <-wake:
		case <-expired(again):
		case uploaded := <-c.flush:
			c.fail(c.pass(ctx))
			close(uploaded)
		case <-ctx.Done():
		}
		if again != nil {
			again.Stop()
		}
	}
}

// drain waits until an upload of all complete segments was attempted, or ctx ends. On a nil
// uploader it does nothing.
func (c *uploader) drain(ctx context.Context) error {
	if c == nil || !c.runs() {
		return nil
	}
	uploaded := make(chan struct{})
	select {
	case c.flush <- uploaded:
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-uploaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish uploads the remaining segments, until ctx ends. It may be called again.
func (c *uploader) finish(ctx context.Context) {
	c.r.cancel()
	if !c.runs() {
		return
	}
	<-c.done
	c.fail(c.pass(ctx))
}

func (c *uploader) fail(err error) {
	if !errors.Is(err, context.Canceled) {
		c.fault.set(err, &c.r.cfg, "segments cannot be uploaded and stay in the folder", "segments are uploaded again",
			"bucket", c.b.url)
	}
}

// pass uploads all complete segments that are not uploaded yet.
func (c *uploader) pass(ctx context.Context) error {
	skip := false
	for {
		s, ok, err := record.After(c.r.cfg.Dir, int(c.sent.Load()))
		if errors.Is(err, fs.ErrNotExist) && !ok || err == nil && !ok {
			return nil
		}
		if errors.Is(err, record.ErrCorrupt) {
			c.r.cfg.Log.Error("a damaged segment is not uploaded", "segment", s.Number, "error", err)
			skip, err = true, nil
		} else if err == nil && !(skip && s.Continues) {
			err = c.b.upload(ctx, s)
			skip = errors.Is(err, errTaken)
		}
		if errors.Is(err, errTaken) {
			c.r.cfg.Log.Error("a segment stays only in the folder", "segment", s.Number, "error", err)
			c.taken.Store(true)
			err = nil
		}
		if err == nil {
			err = c.uploaded(s.Number)
		}
		if err != nil {
			return err
		}
	}
}

// uploaded records that all segments up to number were uploaded or skipped.
func (c *uploader) uploaded(number int) error {
	text, err := json.Marshal(sent{Bucket: c.b.url, Segment: number})
	if err != nil {
		return err
	}
	path := filepath.Join(c.r.cfg.Dir, sentName)
	if err := os.WriteFile(path+"-", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+"-", path); err != nil {
		return err
	}
	c.sent.Store(int64(number))
	return nil
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
