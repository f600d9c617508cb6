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

// A Recorder keeps what is decided. Record is called by one goroutine, everything
// else by any.
type Recorder struct {
	cfg  Config
	meta record.Meta

	queue   chan item
	flush   chan chan struct{}
	closing chan struct{}
	close   sync.Once
	cancel  context.CancelFunc
	written chan struct{} // closed when the last step is written

	// uploader is nil where no bucket is named.
	uploader *uploader

	writing faults
	lost    atomic.Int64

	// What belongs to Record: said is the fault that it last returned, and gap says that
	// the steps since the last one in the queue were left out.
	said error
	gap  bool
}

// An item is a step that waits to be written; gap says that steps before it were
// left out.
type item struct {
	entry *record.Entry
	gap   bool
}

// A fault is what keeps a part from doing its work now, and since when.
type fault struct {
	err   error
	since time.Time
}

// faults hold the fault of a part. One goroutine at a time sets it, and any reads it.
type faults struct{ now atomic.Pointer[fault] }

// err returns the fault, nil without one.
func (f *faults) err() error {
	if now := f.now.Load(); now != nil {
		return fmt.Errorf("since %s: %w", now.since.UTC().Format(time.RFC3339), now.err)
	}
	return nil
}

// set notes that err keeps the part from its work, nil that nothing does any more, and
// logs with begun or ended where that is new.
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

// New returns a recorder that continues the record in c.Dir, and starts it. The folder and the
// bucket are taken with the first step: standby replicas share them with the leader.
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

// usable reports what a person would have to change before anything can be
// recorded in dir.
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

// Record puts a step into the queue and returns at once. The tables of the snapshot are shared, as
// they are never written again; the rest is copied. It returns a fault that prevents recording only
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
		now = nil // it has been said
	}
	return now
}

// errSlow means that steps come faster than they can be written.
var errSlow = errors.New("steps are missing from the record: writing is slower than they arrive")

// Err returns what keeps steps or segments from being recorded now, nil when
// nothing does.
func (r *Recorder) Err() error { return errors.Join(r.Faults()) }

// Faults returns what keeps steps from being written to the folder now, and what
// keeps segments from being uploaded; each nil when nothing does.
func (r *Recorder) Faults() (writing, uploading error) {
	if r.uploader != nil {
		uploading = r.uploader.fault.err()
	}
	return r.writing.err(), uploading
}

// Lost returns how many steps were left out since the recorder was made.
func (r *Recorder) Lost() int64 { return r.lost.Load() }

// fail notes what keeps steps from being written; nil when nothing does any more.
func (r *Recorder) fail(err error) {
	r.writing.set(err, &r.cfg, "steps cannot be recorded and are queued", "steps are recorded again", "lost", r.Lost())
}

// Flush writes the queued steps, completes the segment and uploads what is left to upload, until
// ctx ends. Then recording continues. It returns what is then not recorded. A leader calls it
// before it lets another one lead, which finds all that it needs to know in a bucket.
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

// Close writes the steps that wait, completes the segment and uploads what is left
// to upload, until ctx ends. It returns what is then not recorded. It may be called
// again to wait longer; no step is taken after the first call.
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
