package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// The prefixes of the names of segments. They differ in the first letter, so that the pattern
// segment=* matches only complete segments.
const (
	finished   = "segment="
	unfinished = "unfinished-"
)

// Limits determine when a segment is complete. Zero means no limit.
type Limits struct {
	// Steps and Rows are the maximum numbers in a segment. A larger Rows needs more memory, because
	// rows are buffered until their row group is complete.
	Steps, Rows int

	// Age is the maximum time between the first and the last step of a segment.
	Age time.Duration

	// Whole is the time after which a full segment is written, with a row for every entry. Other
	// segments continue the previous one, and can only be read together with the segments since the
	// last full one. If Whole is 0, every segment is a full one.
	Whole time.Duration
}

// DefaultLimits returns the limits for recording a complete run. A crash loses the segment being
// written: with the usual step of ten minutes, at most one day. The limit on rows keeps a segment
// of a large cluster with many changes within some tens of megabytes.
func DefaultLimits() Limits { return Limits{Steps: 144, Rows: 1_000_000} }

// A Writer records steps. It implements driver.Recorder and copies the data that it keeps. It must
// not be used concurrently.
type Writer struct {
	dir    string
	meta   Meta
	limits Limits

	number  int   // of the segment being written, or of the last one
	step    int64 // the number of the last step, in all segments
	steps   int   // number of steps in the segment being written
	segment *segment

	// first is the time of the first step of the segment being written, and whole that of the last
	// full segment. last is the snapshot at the end of the previous segment; nil if the next
	// segment must be a full one.
	first, whole policy.Time
	last         *policy.Snapshot

	// failed is the first error. A segment with missing steps must not be completed.
	failed error
}

var _ driver.Recorder = (*Writer)(nil)

// NewWriter returns a writer to the folder dir, which it creates if necessary. If dir contains a
// recording with the same meta, the writer continues it with a new segment. The error is
// ErrOtherRecording if dir contains anything else.
func NewWriter(dir string, meta Meta) (*Writer, error) {
	w := &Writer{dir: dir, meta: meta, limits: DefaultLimits()}
	if err := w.resume(func(m *Meta) bool { return *m == meta }); err != nil {
		return nil, fmt.Errorf("recording to %s: %w", dir, err)
	}
	return w, nil
}

// Resume returns a writer that continues the recording in dir with the same scenario and seed. The
// version and the policy may differ, since a controller can be upgraded and reconfigured during its
// recording. One step number is skipped before its first step, as after any gap; see [Writer.Skip].
func Resume(dir string, meta Meta, limits Limits) (*Writer, error) {
	w := &Writer{dir: dir, meta: meta, limits: limits}
	if err := w.resume(func(m *Meta) bool { return m.Scenario == meta.Scenario && m.Seed == meta.Seed }); err != nil {
		return nil, fmt.Errorf("recording to %s: %w", dir, err)
	}
	if w.step > 0 {
		w.step++
	}
	return w, nil
}

// resume creates the folder and finds the numbers of the last segment and step in it.
func (w *Writer) resume(same func(*Meta) bool) error {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return err
	}
	found, err := list(w.dir)
	if err != nil {
		return err
	}
	if len(found.other) > 0 {
		return fmt.Errorf("%q exists: %w", found.other[0], ErrOtherRecording)
	}
	w.number = found.last
	if len(found.finished) == 0 {
		return nil
	}
	rec, err := Open(w.dir)
	if err != nil {
		return err
	}
	if !same(&rec.Meta) {
		return fmt.Errorf("it holds %s with %s, seed %d: %w", rec.Meta.Scenario, rec.Meta.Policy, rec.Meta.Seed,
			ErrOtherRecording)
	}
	w.step, err = lastStep(w.dir, found.finished[len(found.finished)-1])
	return err
}

// A Place is the end of a recording: the numbers of its last segment and step.
type Place struct {
	Segment int
	Step    int64
}

// Place returns the end of the recording, including the segment being written.
func (w *Writer) Place() Place { return Place{Segment: w.number, Step: w.step} }

// After makes the next segment and step follow those of p, which another writer of the same
// recording wrote elsewhere. It must be called before the first step.
func (w *Writer) After(p Place) {
	if p.Segment > w.number {
		w.number = p.Segment
	}
	if p.Step >= w.step {
		w.step = p.Step + 1
	}
}

// Skip skips the number of a step. Readers can tell from the gap that steps were not recorded, so
// that the next step does not start where the previous one ended.
func (w *Writer) Skip() { w.step++ }

// Record adds one step.
func (w *Writer) Record(_ context.Context, s *policy.Snapshot, m *policy.Memory, p *policy.Plan) error {
	e, err := NewEntry(s, m, p)
	if err != nil {
		w.failed = cmp.Or(w.failed, fmt.Errorf("recording the step at %v: %w", s.Now, err))
		return w.failed
	}
	return w.Write(e)
}

// Write adds one step that was prepared as an Entry.
func (w *Writer) Write(e *Entry) error {
	if w.failed != nil {
		return w.failed
	}
	if err := w.write(e); err != nil {
		w.failed = fmt.Errorf("recording the step at %v: %w", e.Now(), err)
	}
	return w.failed
}

func (w *Writer) write(e *Entry) error {
	now := e.Now()
	if age := w.limits.Age; w.segment != nil && age > 0 && now.Sub(w.first) >= age {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.segment == nil {
		if w.last != nil && now.Sub(w.whole) >= w.limits.Whole {
			w.last = nil
		}
		g, err := createSegment(w.dir, w.number+1, &w.meta, w.last)
		if err != nil {
			return err
		}
		if w.last == nil {
			w.whole = now
		}
		w.segment, w.steps, w.first, w.number = g, 0, now, w.number+1
	}
	w.step++
	if err := w.segment.write(w.step, e); err != nil {
		return err
	}
	w.steps++
	if l := w.limits; l.Steps > 0 && w.steps >= l.Steps || l.Rows > 0 && w.segment.rows() >= l.Rows {
		return w.finish()
	}
	return nil
}

func (w *Writer) finish() error {
	g := w.segment
	w.segment, w.last = nil, nil
	if w.limits.Whole > 0 {
		w.last = &g.last
	}
	if err := g.close(); err != nil {
		return err
	}
	w.steps = 0
	return nil
}

// Complete completes the segment with the steps so far, so that readers can find it. It does
// nothing if there has been no step since the last segment.
func (w *Writer) Complete() error {
	if w.failed == nil && w.segment != nil {
		if err := w.finish(); err != nil {
			w.failed = fmt.Errorf("completing segment %d of %s: %w", w.number, w.dir, err)
		}
	}
	return w.failed
}

// Close completes the recording. After a failed Record it leaves the segment unfinished and returns
// nil, because the error was already returned.
func (w *Writer) Close() error {
	if w.failed != nil {
		if g := w.segment; g != nil {
			w.segment = nil
			return g.abandon()
		}
		return nil
	}
	return w.Complete()
}

// Discard ends a writer that failed. It removes the unfinished files, which frees their space, and
// returns the number of steps that are lost.
func (w *Writer) Discard() (steps int, err error) {
	if g := w.segment; g != nil {
		err = g.abandon()
		w.segment = nil
	}
	if w.failed == nil {
		w.failed = errors.New("the writer was discarded")
	}
	return w.steps, errors.Join(err, os.RemoveAll(filepath.Join(w.dir, fmt.Sprintf("%s%05d", unfinished, w.number))))
}

// lostFound is a folder in the root of every ext file system, and therefore of a volume that
// contains only a recording.
const lostFound = "lost+found"

// A listing is the content of a folder: the numbers of segments, ascending, and other names. Names
// that start with a dot are ignored.
type listing struct {
	finished []int

	// last is the highest number of a segment in finished, or of one of which a part was copied.
	last int

	unfinished []string
	other      []string
}

func list(dir string) (listing, error) {
	var l listing
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, err
	}
	for _, e := range entries {
		if number, ok := strings.CutPrefix(e.Name(), finished); ok && e.IsDir() {
			if n, err := strconv.Atoi(number); err == nil {
				l.last = max(l.last, n)
				if _, err := os.Stat(filepath.Join(dir, e.Name(), tableSteps+".parquet")); errors.Is(err, fs.ErrNotExist) {
					l.unfinished = append(l.unfinished, e.Name()) // copying it was interrupted: steps is copied last
				} else {
					l.finished = append(l.finished, n)
				}
				continue
			}
		}
		if strings.HasPrefix(e.Name(), unfinished) && e.IsDir() {
			l.unfinished = append(l.unfinished, e.Name())
			continue
		}
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != lostFound {
			l.other = append(l.other, e.Name())
		}
	}
	slices.Sort(l.finished) // names are in numeric order only up to 99,999
	return l, nil
}

// lastStep returns the number of the last step of a segment.
func lastStep(dir string, number int) (int64, error) {
	r, err := openSegment(dir, number, false)
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
