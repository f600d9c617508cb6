package keep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/flock"
	"github.com/spotter-dev/spotter/policy/record"
)

// A recordWriter is the state of the goroutine that writes steps.
type recordWriter struct {
	r   *Recorder
	ctx context.Context // for requests to the bucket

	// w is nil before the first step and after a fault. lock is held from the first step until the
	// recorder is closed.
	w    *record.Writer
	lock *os.File

	// waiting is a step that could not be written yet, or nil. again is the timer for the next
	// attempt, and wait its duration.
	waiting *item
	again   clock.Timer
	wait    time.Duration

	// complete expires when the segment must be completed. It is nil while the segment has no
	// steps.
	complete clock.Timer

	// pruned is when old segments were last removed from the folder.
	pruned time.Time
}

func newRecordWriter(ctx context.Context, r *Recorder) *recordWriter {
	return &recordWriter{r: r, ctx: ctx}
}

// run writes steps until the recorder is closed and the queue is empty.
func (s *recordWriter) run() {
	defer close(s.r.written)
	for {
		queue := s.r.queue
		if s.waiting != nil {
			queue = nil
		}
		select {
		case it := <-queue:
			s.put(&it)
		case <-expired(s.again):
			s.again = nil
			s.put(s.waiting)
		case <-expired(s.complete):
			s.complete = nil
			s.finish()
		case written := <-s.r.flush:
			s.drain()
			s.finish()
			close(written)
		case <-s.r.closing:
			s.end()
			return
		}
	}
}

func expired(t clock.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C()
}

// put writes one step, or keeps it for another attempt.
func (s *recordWriter) put(it *item) {
	err := s.write(it)
	s.waiting = nil
	switch {
	case err == nil:
		s.wait = 0
		s.r.fail(nil)
		if s.complete == nil {
			s.complete = s.r.cfg.Clock.NewTimer(s.r.cfg.Complete)
		}
		s.prune(false)
		s.r.uploader.notify()
		return
	case hopeless(err):
		s.r.lost.Add(1)
		s.r.cfg.Log.Error("a step cannot be recorded and is skipped", "error", err)
		s.drop()
		return
	}
	s.drop()
	s.prune(true)
	s.r.fail(err)
	s.waiting = it
	s.wait = min(max(2*s.wait, s.r.cfg.RetryMin), s.r.cfg.RetryMax)
	s.again = s.r.cfg.Clock.NewTimer(s.wait)
}

// errPanic means that writing a step panicked.
var errPanic = errors.New("panic")

// hopeless reports whether a step can never be written, even if it is tried again.
func hopeless(err error) bool {
	var value *json.UnsupportedValueError
	return errors.As(err, &value) || errors.Is(err, errPanic)
}

func (s *recordWriter) write(it *item) (err error) {
	defer func() {
		if bug := recover(); bug != nil {
			err = fmt.Errorf("%w while recording: %v\n%s", errPanic, bug, debug.Stack())
		}
	}()
	if s.w != nil && s.r.uploader.moved() {
		if err := s.w.Complete(); err != nil {
			return err
		}
		s.w = nil
		s.stopComplete()
	}
	if s.w == nil {
		if err := s.open(); err != nil {
			return err
		}
	} else if it.gap {
		s.w.Skip()
	}
	return s.w.Write(it.entry)
}

// open locks the folder and continues after the last step in it and in the bucket.
func (s *recordWriter) open() error {
	c := &s.r.cfg
	if s.lock == nil {
		if err := os.MkdirAll(c.Dir, 0o755); err != nil {
			return err
		}
		f, err := flock.Lock(filepath.Join(c.Dir, ".lock"))
		if err != nil {
			return err
		}
		s.lock = f
	}
	if err := s.r.uploader.begin(s.ctx); err != nil {
		return err
	}
	w, err := record.Resume(c.Dir, s.r.meta, record.Limits{Rows: c.Rows, Age: c.Complete, Whole: c.Whole})
	if err != nil {
		return err
	}
	if s.r.uploader != nil {
		p, err := s.r.uploader.b.place(s.ctx)
		if err != nil {
			return err
		}
		w.After(p)
	}
	s.w = w
	return nil
}

// finish completes the segment, so that readers find it.
func (s *recordWriter) finish() {
	if s.w == nil {
		return
	}
	if err := s.w.Complete(); err != nil {
		s.drop()
		s.r.fail(err)
		return
	}
	s.stopComplete()
	s.r.uploader.notify()
}

// stopComplete stops the timer of a segment that has ended, so that the next one is given its own.
func (s *recordWriter) stopComplete() {
	if s.complete != nil {
		s.complete.Stop()
		s.complete = nil
	}
}

// drop abandons the segment that is being written. The next step starts another one.
func (s *recordWriter) drop() {
	if s.w == nil {
		return
	}
	n, err := s.w.Discard()
	s.w = nil
	s.r.lost.Add(int64(n))
	if n > 0 || err != nil {
		s.r.cfg.Log.Error("an unfinished segment is abandoned", "steps", n, "error", err)
	}
	s.stopComplete()
}

// prune removes segments that exceed the limits on age and total size. It does so once per
// Config.Whole, since before that there is nothing new to remove, or at once if now is set because
// space is needed.
func (s *recordWriter) prune(now bool) {
	c := &s.r.cfg
	at := c.Clock.Now()
	if !now && !s.pruned.IsZero() && at.Sub(s.pruned) < c.Whole || s.lock == nil {
		return
	}
	s.pruned = at
	n, err := record.Prune(c.Dir, record.Retention{Age: c.Keep}, at, s.r.uploader.lacks)
	if err == nil {
		var more int
		more, err = record.Prune(c.Dir, record.Retention{Bytes: c.KeepBytes}, at, nil)
		n += more
	}
	if err != nil {
		c.Log.Error("old segments cannot be removed", "dir", c.Dir, "error", err)
	} else if n > 0 {
		c.Log.Info("old segments are removed", "dir", c.Dir, "segments", n)
	}
}

// drain tries once to write all waiting steps.
func (s *recordWriter) drain() {
	if s.waiting != nil {
		if s.again != nil {
			s.again.Stop()
			s.again = nil
		}
		s.put(s.waiting)
	}
	for s.waiting == nil && len(s.r.queue) > 0 {
		it := <-s.r.queue
		s.put(&it)
	}
}

// end tries once to write all waiting steps, completes the segment and releases the folder.
func (s *recordWriter) end() {
	s.drain()
	if s.waiting != nil {
		s.r.lost.Add(1 + int64(len(s.r.queue)))
	}
	s.finish()
	if s.lock != nil {
		if err := s.lock.Close(); err != nil {
			s.r.cfg.Log.Error("releasing the folder", "error", err)
		}
	}
}
