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

// sentName is the file that says which segments of the folder were uploaded.
const sentName = ".uploaded.json"

// A sent says up to which segment all were uploaded, and where to.
type sent struct {
	Bucket  string
	Segment int
}

// An uploader uploads complete segments in their order, one at a time.
type uploader struct {
	r *Recorder
	b *bucket

	// wake is sent to when there may be something to upload, and flush when a caller waits for
	// that. begun is closed when run starts, done when it has ended.
	wake        chan struct{}
	flush       chan chan struct{}
	begun, done chan struct{}

	sent  atomic.Int64
	fault faults

	// taken reports that a number was taken by another recorder: the segments from that number on
	// stay in the folder, up to one that can be read alone, with a number after those of the bucket.
	taken atomic.Bool
}

// newUploader returns one for the folder and bucket of r.
func newUploader(ctx context.Context, r *Recorder) (*uploader, error) {
	b, err := dial(ctx, &r.cfg)
	if err != nil {
		return nil, err
	}
	return &uploader{r: r, b: b, wake: make(chan struct{}, 1), flush: make(chan chan struct{}),
		begun: make(chan struct{}), done: make(chan struct{})}, nil
}

// begin starts to upload, once, when this recorder has taken the folder: a standby replica uploads
// nothing, and learns only then what the previous leader has uploaded.
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

// runs reports whether the folder was taken, so that its segments are uploaded.
func (c *uploader) runs() bool {
	select {
	case <-c.begun:
		return true
	default:
		return false
	}
}

// notify says that there may be something to upload. A nil uploader has nothing to do.
func (c *uploader) notify() {
	if c == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// lacks reports whether a segment is not uploaded yet. Without a bucket no segment has to be.
func (c *uploader) lacks(segment int) bool { return c != nil && int64(segment) > c.sent.Load() }

// moved reports, once, that the numbers of the writer are taken: it has to restart after those of
// the bucket.
func (c *uploader) moved() bool { return c != nil && c.taken.Swap(false) }

// run uploads until ctx ends, and after a fault waits and tries again.
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

// drain waits until what is complete was tried to upload, or ctx ends. A nil uploader
// has nothing to do.
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

// finish uploads what is left, until ctx ends. It may be called again.
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

// pass uploads every segment that is complete and not uploaded.
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

// uploaded notes that all segments up to number are dealt with.
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
