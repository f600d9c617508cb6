package keep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
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

	// carrier is nil where no bucket is named.
	carrier *carrier

	mu    sync.Mutex
	fault fault // of writing
	said  error // the fault that Record last returned
	lost  int64

	// gap says that the steps since the last one in the queue were left out. It
	// belongs to Record.
	gap bool
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

var _ driver.Recorder = (*Recorder)(nil)

// New returns a recorder that goes on with what c.Dir holds, and starts it. The
// folder and the bucket are taken with the first step: replicas that stand by share
// them with the one that leads.
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
		if r.carrier, err = newCarrier(ctx, r); err != nil {
			cancel()
			return nil, err
		}
	}
	go newScribe(ctx, r).run()
	return r, nil
}

// usable reports what a person would have to change before anything can be
// recorded in dir.
func usable(dir string, meta record.Meta) error {
	_, err := record.Resume(dir, meta, record.Limits{})
	if err != nil && !errors.Is(err, record.ErrOtherRecording) && !errors.Is(err, os.ErrPermission) {
		if info, e := os.Stat(dir); e == nil && info.IsDir() {
			return nil // a damaged segment may be mended while the controller runs
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

// Record puts a step into the queue and returns at once. The tables of the snapshot are
// shared, as nobody writes them again; the rest is copied. Of a fault that keeps steps
// from being recorded it returns the error once, when it first meets it; Err has it as
// long as it lasts.
func (r *Recorder) Record(_ context.Context, s *policy.Snapshot, m *policy.Memory, p *policy.Plan) error {
	entry, err := record.NewEntry(s, m, p)
	if err != nil {
		r.gap = true
		r.lose(1)
		return fmt.Errorf("the step at %v cannot be recorded: %w", s.Now, err)
	}
	select {
	case <-r.closing:
		return fmt.Errorf("the step at %v came after the recorder was closed", s.Now)
	default:
	}
	select {
	case r.queue <- item{entry, r.gap}:
		r.gap = false
	default:
		r.gap = true
		r.lose(1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.fault.err
	if now == nil && r.gap {
		now = errSlow
	}
	if now == nil || r.said != nil {
		if now == nil {
			r.said = nil
		}
		return nil
	}
	r.said = now
	return now
}

// errSlow means that steps come faster than they can be written.
var errSlow = errors.New("steps are left out of the record: writing is slower than they come")

// Err returns what keeps steps or segments from being recorded now, nil when
// nothing does.
func (r *Recorder) Err() error { return errors.Join(r.Faults()) }

// Faults returns what keeps steps from being written to the folder now, and what
// keeps segments from being uploaded; each nil when nothing does.
func (r *Recorder) Faults() (writing, uploading error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault.err != nil {
		writing = fmt.Errorf("since %s: %w", r.fault.since.UTC().Format(time.RFC3339), r.fault.err)
	}
	if r.carrier != nil {
		uploading = r.carrier.err()
	}
	return writing, uploading
}

// Lost returns how many steps were left out since the recorder was made.
func (r *Recorder) Lost() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *Recorder) lose(steps int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost += int64(steps)
}

// fail notes what keeps steps from being written; nil when nothing does any more.
func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && r.fault.err != nil:
		r.cfg.Log.Info("steps are recorded again", "after", r.cfg.Clock.Now().Sub(r.fault.since), "lost", r.lost)
		r.fault = fault{}
	case err != nil && r.fault.err == nil:
		r.cfg.Log.Error("steps cannot be recorded, and wait", "error", err)
		r.fault = fault{err, r.cfg.Clock.Now()}
	case err != nil:
		r.fault.err = err
	}
}

// Flush writes the steps that wait, completes the segment and uploads what is left to
// upload, until ctx ends, and goes on. It returns what is then not recorded. A leader
// calls it before it lets another one lead, which finds in a bucket all that it needs
// to know.
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
	if err := r.carrier.drain(ctx); err != nil {
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
	if r.carrier != nil {
		r.carrier.finish(ctx)
	}
	r.cancel()
	return r.Err()
}
