package keep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/record"
)

// A Recorder records decisions. Only one goroutine may call Record; the other methods are safe for
// concurrent use.
type Recorder struct {
	cfg  Config
	meta record.Meta

	queue   chan item
	flush   chan chan struct{}
	closing chan struct{}
	close   sync.Once
	cancel  context.CancelFunc
	written chan struct{} // closed when the last step has been written

	// uploader is nil if no bucket is configured.
	uploader *uploader

	writing faults
	lost    atomic.Int64

	// Only Record uses the following fields. said is the fault that it last returned. gap reports
	// whether steps after the last one in the queue were dropped.
	said error
	gap  bool
}

// An item is a step that waits to be written. gap reports whether steps before it were dropped.
type item struct {
	entry *record.Entry
	gap   bool
}

// A fault is an error that prevents a part from working, and since when it has lasted.
type fault struct {
	err   error
	since time.Time
}

// faults stores the current fault of a part. Only one goroutine at a time may set it; any may read
// it.
type faults struct{ now atomic.Pointer[fault] }

// err returns the current fault, or nil.
func (f *faults) err() error {
	if now := f.now.Load(); now != nil {
		return fmt.Errorf("since %s: %w", now.since.UTC().Format(time.RFC3339), now.err)
	}
	return nil
}

// set records err as the current fault; nil ends the fault. It logs begun when a fault starts and
// ended when it ends.
func (f *faults) set(err error, c *Config, begun, ended string, about ...any) {
	was, at := f.now.Load(), c.Clock.Now()
	switch {
	case err == nil && was != nil:
		c.Log.Info(ended, append(about, "after", at.Sub(was.since))...)
		f.now.Store(nil)
	case err != nil && was == nil:
		c.Log.Error(begun, append(about, "error", err)...)
		f.now.Store(&fault{err, at})
	case err != nil:
		f.now.Store(&fault{err, was.since})
	}
}

var _ driver.Recorder = (*Recorder)(nil)

// New returns a recorder that continues the record in c.Dir, and starts it. The recorder does not
// lock the folder or use the bucket before the first step: standby replicas share them with the
// leader.
func New(c Config, meta record.Meta) (*Recorder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := usable(c.Dir, meta); err != nil {
		return nil, &FieldError{Field: "Dir", Value: c.Dir, Problem: err.Error(), cause: err}
	}
	r := &Recorder{
		cfg: c, meta: meta, queue: make(chan item, c.Queue), flush: make(chan chan struct{}),
		closing: make(chan struct{}), written: make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	if c.Bucket != "" {
		var err error
		if r.uploader, err = newUploader(ctx, r); err != nil {
			cancel()
			return nil, err
		}
	}
	go newRecordWriter(ctx, r).run()
	return r, nil
}

// usable returns an error that the user must fix before steps can be recorded in dir.
func usable(dir string, meta record.Meta) error {
	_, err := record.Resume(dir, meta, record.Limits{})
	if err != nil && !errors.Is(err, record.ErrOtherRecording) && !errors.Is(err, os.ErrPermission) {
		if info, e := os.Stat(dir); e == nil && info.IsDir() {
			return nil // a damaged segment may be repaired while the controller runs
		}
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".writable-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Record adds a step to the queue and returns at once. The tables of the snapshot are shared, as
// they are never modified; the rest is copied. Record returns a fault that prevents recording only
// once, when it first occurs; Err returns it for as long as it lasts.
func (r *Recorder) Record(_ context.Context, s *policy.Snapshot, m *policy.Memory, p *policy.Plan) error {
	entry, err := record.NewEntry(s, m, p)
	if err != nil {
		r.gap = true
		r.lost.Add(1)
		return fmt.Errorf("the step at %v cannot be recorded: %w", s.Now, err)
	}
	select {
	case <-r.closing:
		return fmt.Errorf("the step at %v arrived after the recorder was closed", s.Now)
	default:
	}
	select {
	case r.queue <- item{entry, r.gap}:
		r.gap = false
	default:
		r.gap = true
		r.lost.Add(1)
	}
	var now error
	if f := r.writing.now.Load(); f != nil {
		now = f.err
	} else if r.gap {
		now = errSlow
	}
	first := r.said == nil
	if first || now == nil {
		r.said = now
	}
	if !first {
		now = nil // already returned
	}
	return now
}

// errSlow means that steps arrive faster than they can be written.
var errSlow = errors.New("steps are missing from the record: writing is slower than they arrive")

// Err returns the faults that now prevent steps or segments from being recorded, or nil.
func (r *Recorder) Err() error { return errors.Join(r.Faults()) }

// Faults returns the fault that now prevents steps from being written to the folder, and the fault
// that prevents segments from being uploaded. Each is nil if there is no such fault.
func (r *Recorder) Faults() (writing, uploading error) {
	if r.uploader != nil {
		uploading = r.uploader.fault.err()
	}
	return r.writing.err(), uploading
}

// Lost returns the number of steps that were dropped since the recorder was created.
func (r *Recorder) Lost() int64 { return r.lost.Load() }

// fail records the fault that prevents steps from being written; nil ends it.
func (r *Recorder) fail(err error) {
	r.writing.set(err, &r.cfg, "steps cannot be recorded and are queued", "steps are recorded again", "lost", r.Lost())
}

// Flush writes the queued steps, completes the segment and uploads all segments that are not
// uploaded, until ctx ends. Then recording continues. It returns the faults that remain. A leader
// calls it before it releases its leadership, so that the next leader finds the whole state in the
// bucket.
func (r *Recorder) Flush(ctx context.Context) error {
	written := make(chan struct{})
	select {
	case r.flush <- written:
	case <-r.written:
		return r.Err()
	case <-ctx.Done():
		return fmt.Errorf("flushing the record: %w", errors.Join(ctx.Err(), r.Err()))
	}
	<-written
	if err := r.uploader.drain(ctx); err != nil {
		return fmt.Errorf("flushing the record: %w", err)
	}
	return r.Err()
}

// Close writes the queued steps, completes the segment and uploads all segments that are not
// uploaded, until ctx ends. It returns the faults that remain. It may be called again to wait
// longer. No step is accepted after the first call.
func (r *Recorder) Close(ctx context.Context) error {
	r.close.Do(func() { close(r.closing) })
	select {
	case <-r.written:
	case <-ctx.Done():
		return fmt.Errorf("closing the record: %w", errors.Join(ctx.Err(), r.Err()))
	}
	if r.uploader != nil {
		r.uploader.finish(ctx)
	}
	r.cancel()
	return r.Err()
}
