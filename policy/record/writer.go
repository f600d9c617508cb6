package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// The beginnings of the names of segments. They differ in their first letters,
// so that the pattern segment=* finds complete ones only.
const (
	finished   = "segment="
	unfinished = "unfinished-"
)

// When a segment is full. A crash loses the segment being written: at the
// usual step of ten minutes at most a day. The bound on rows keeps a segment of
// a large and restless cluster within some tens of megabytes.
const (
	stepsMax = 144
	rowsMax  = 1_000_000
)

// A Writer records steps. It is a driver.Recorder and copies what it keeps. It
// is used by one goroutine.
type Writer struct {
	dir  string
	meta Meta

	// stepsMax is the number of steps in a full segment.
	stepsMax int

	number  int   // of the segment being written, or of the last
	step    int64 // steps recorded, in all segments
	steps   int   // those of the segment being written
	segment *segment

	// failed is the first error; a segment with a hole in it must not become
	// a complete one.
	failed error
}

var _ driver.Recorder = (*Writer)(nil)

// NewWriter returns a writer to the folder dir, which is made if it is not
// there. A recording in it that has the same meta is continued with a new
// segment; anything else there is ErrOtherRecording.
func NewWriter(dir string, meta Meta) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	w := &Writer{dir: dir, meta: meta, stepsMax: stepsMax}
	if err := w.resume(); err != nil {
		return nil, fmt.Errorf("recording to %s: %w", dir, err)
	}
	return w, nil
}

// resume finds the number of the last segment and step in the folder.
func (w *Writer) resume() error {
	found, err := list(w.dir)
	if err != nil {
		return err
	}
	if len(found.other) > 0 {
		return fmt.Errorf("%q is there: %w", found.other[0], ErrOtherRecording)
	}
	if len(found.finished) == 0 {
		return nil
	}
	rec, err := Open(w.dir)
	if err != nil {
		return err
	}
	if rec.Meta != w.meta {
		return fmt.Errorf("it holds %s with %s, seed %d: %w", rec.Meta.Scenario, rec.Meta.Policy, rec.Meta.Seed, ErrOtherRecording)
	}
	w.number = found.finished[len(found.finished)-1]
	w.step, err = lastStep(w.dir, w.number)
	return err
}

// Record adds one step.
func (w *Writer) Record(_ context.Context, s *policy.Snapshot, m *policy.Memory, p *policy.Plan) error {
	if w.failed != nil {
		return w.failed
	}
	if err := w.record(s, m, p); err != nil {
		w.failed = fmt.Errorf("recording the step at %v: %w", s.Now, err)
	}
	return w.failed
}

func (w *Writer) record(s *policy.Snapshot, m *policy.Memory, p *policy.Plan) error {
	if w.segment == nil {
		g, err := createSegment(w.dir, w.number+1, &w.meta)
		if err != nil {
			return err
		}
		w.segment, w.steps, w.number = g, 0, w.number+1
	}
	w.step++
	w.steps++
	if err := w.segment.write(w.step, s, m, p); err != nil {
		return err
	}
	if w.steps >= w.stepsMax || w.segment.rows() >= rowsMax {
		return w.finish()
	}
	return nil
}

func (w *Writer) finish() error {
	g := w.segment
	w.segment = nil
	return g.close()
}

// Close completes the recording. After a failed Record it leaves the segment
// unfinished and returns nil, for the failure was returned before.
func (w *Writer) Close() error {
	if w.segment == nil {
		return nil
	}
	if w.failed != nil {
		g := w.segment
		w.segment = nil
		return g.abandon()
	}
	if err := w.finish(); err != nil {
		return fmt.Errorf("completing segment %d of %s: %w", w.number, w.dir, err)
	}
	return nil
}

// A listing is what a folder holds: the numbers of segments, ascending, and
// names that are none.
type listing struct {
	finished   []int
	unfinished []string
	other      []string
}

func list(dir string) (listing, error) {
	var l listing
	entries, err := os.ReadDir(dir) // sorted by name; numbers have equal length up to 99,999
	if err != nil {
		return l, err
	}
	for _, e := range entries {
		if number, ok := strings.CutPrefix(e.Name(), finished); ok && e.IsDir() {
			if n, err := strconv.Atoi(number); err == nil {
				l.finished = append(l.finished, n)
				continue
			}
		}
		if strings.HasPrefix(e.Name(), unfinished) && e.IsDir() {
			l.unfinished = append(l.unfinished, e.Name())
			continue
		}
		l.other = append(l.other, e.Name())
	}
	return l, nil
}

// lastStep returns the number of the last step of a segment.
func lastStep(dir string, number int) (int64, error) {
	r, err := openSegment(dir, number)
	if err != nil {
		return 0, err
	}
	last := int64(0)
	for {
		row, ok, err := r.nextStep()
		if err != nil || !ok {
			return last, errors.Join(err, r.close())
		}
		last = row.Step
	}
}
