package record

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

// A Recording is a folder of complete segments, opened for reading.
type Recording struct {
	Meta Meta

	// Warnings describe content of the folder that is not read, segments that were never completed,
	// and missing segments.
	Warnings []string

	// Missing lists the segments that do not exist although a later one does. In the recording of a
	// run, from which nothing is removed, it includes missing segments at the start. Segments
	// missing at the end cannot be detected.
	Missing []Span

	dir      string
	segments []int
	plain    bool // see OpenPlain
}

// OpenPlain is like [Open], for callers that display the recording: all text of its steps is
// converted to plain text, see [figures.Plain]. Other parties may choose names in a recording: for
// example, the name of a workload comes from the owner reference of a pod, and the recording itself
// may come from elsewhere.
func OpenPlain(dir string) (*Recording, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	r.plain = true
	plain(&r.Meta)
	return r, nil
}

// Open opens the recording in dir.
func Open(dir string) (*Recording, error) {
	found, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the recording: %w", err)
	}
	r := &Recording{dir: dir, segments: found.finished}
	for _, name := range found.unfinished {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"%s was never completed, its steps are lost: the writer was stopped or is still running", filepath.Join(dir, name)))
	}
	if len(r.segments) == 0 {
		if len(r.Warnings) > 0 {
			return nil, fmt.Errorf("%s: %w", r.Warnings[0], ErrNoRecording)
		}
		return nil, fmt.Errorf("%s: no folder %s… in it: %w", dir, finished, ErrNoRecording)
	}
	for i, number := range r.segments {
		r.Meta, _, err = metaOf(segmentDir(dir, number))
		if err == nil || !errors.Is(err, fs.ErrNotExist) || !removed(dir, number) {
			r.segments = r.segments[i:]
			break
		}
	}
	if err != nil {
		return nil, err
	}
	r.findMissing()
	return r, nil
}

// findMissing sets Missing, and adds warnings about it.
func (r *Recording) findMissing() {
	before := 0
	if r.Meta.Seed == 0 { // the oldest segments of a cluster's recording are removed over time
		before = r.segments[0] - 1
	}
	for _, number := range r.segments {
		if number > before+1 {
			r.Missing = append(r.Missing, Span{int64(before) + 1, int64(number) - 1})
		}
		before = number
	}
	for _, s := range r.Missing {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %s missing, and the steps in it are lost", r.dir, s.Are("segment")))
	}
}

// A Span is a range of numbers of segments or steps, inclusive at both ends.
type Span struct{ First, Last int64 }

// String returns "3" or "3 to 4".
func (s Span) String() string {
	if s.First == s.Last {
		return strconv.FormatInt(s.First, 10)
	}
	return fmt.Sprintf("%d to %d", s.First, s.Last)
}

// Are returns text such as "step 3 is" or "steps 3 to 4 are".
func (s Span) Are(what string) string {
	if s.First == s.Last {
		return fmt.Sprintf("%s %v is", what, s)
	}
	return fmt.Sprintf("%ss %v are", what, s)
}

// metaOf returns the metadata in the files of a segment.
func metaOf(dir string) (m Meta, continues bool, err error) {
	path := filepath.Join(dir, tableSteps+".parquet")
	defer func() {
		if p := recover(); p != nil { // the decoder panics on some damaged footers
			err = fmt.Errorf("%s: %v: %w", path, p, ErrCorrupt)
		}
	}()
	f, pf, err := openFile(path)
	if err != nil {
		return m, false, missing(err)
	}
	if m, err = readMeta(pf.Lookup); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	c, _ := pf.Lookup(keyContinues)
	return m, c == "true", errors.Join(err, f.Close())
}

// missing converts the error of a file that does not exist in a complete segment to ErrCorrupt.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

func segmentDir(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("%s%05d", finished, number))
}

// Steps yields the steps in order. It ends after an error. A gap in the numbers means that steps
// were not recorded, or that their segment is missing.
//
// The recording may still be written, and its oldest segments may be removed at the same time: the
// iteration starts with the first full segment that exists.
func (r *Recording) Steps() iter.Seq2[*Step, error] { return r.from(0) }

// from yields the steps of the segments starting with the given number. It reads the earlier
// segments that they continue.
func (r *Recording) from(first int) iter.Seq2[*Step, error] {
	return func(yield func(*Step, error) bool) {
		var last *policy.Snapshot // the last snapshot of the previous segment
		before := 0
		for _, number := range r.segments[r.whole(first):] {
			g, err := openSegment(r.dir, number, r.plain)
			if before == 0 && errors.Is(err, fs.ErrNotExist) && removed(r.dir, number) {
				continue
			}
			if err == nil && g.continues && last == nil && before == 0 {
				if err = g.close(); err == nil {
					continue // the segments that it continues were removed
				}
			}
			if err == nil && g.continues && before != number-1 {
				err = errors.Join(fmt.Errorf("%s continues segment %d, which is not there: %w", segmentDir(r.dir, number),
					number-1, ErrCorrupt), g.close())
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if g.continues {
				g.last = *last
			}
			if !g.yield(number >= first, yield) {
				return
			}
			before, last = number, &g.last
		}
	}
}

// whole returns the index of the last full segment whose number is at most the given one, or 0 if
// there is no such segment.
func (r *Recording) whole(number int) int {
	for i := range slices.Backward(r.segments) {
		if r.segments[i] > number {
			continue
		}
		if _, continues, err := metaOf(segmentDir(r.dir, r.segments[i])); err == nil && !continues {
			return i
		}
	}
	return 0
}

// removed reports whether a segment that existed when the folder was listed no longer exists.
func removed(dir string, number int) bool {
	_, err := os.Stat(segmentDir(dir, number))
	return errors.Is(err, fs.ErrNotExist)
}

// yield yields the steps of the segment, or only reads them if wanted is false, and closes it. It
// reports whether the iteration continues.
func (g *segmentReader) yield(wanted bool, yield func(*Step, error) bool) (more bool) {
	defer func() {
		if err := g.close(); err != nil && more {
			more = yield(nil, err)
		}
	}()
	for {
		s, err := g.read()
		if err != nil {
			yield(nil, err)
			return false
		}
		if s == nil {
			return true
		}
		if wanted && !yield(s, nil) {
			return false
		}
	}
}

// A segmentReader reconstructs the snapshots of one segment.
type segmentReader struct {
	steps     *source[stepRow]
	types     *source[specRow]
	markets   *source[marketRow]
	pools     *source[poolRow]
	nodes     *source[nodeRow]
	templates *source[specRow]
	workloads *source[workloadRow]
	pdbs      *source[pdbRow]
	pods      *source[podRow]
	ended     *source[endedRow]
	plan      *source[planRow]
	closers   []func() error

	// continues reports whether the rows continue from last, the end of the previous segment.
	continues bool
	meta      *Meta
	plain     bool

	last policy.Snapshot
}

func openSegment(dir string, number int, plain bool) (*segmentReader, error) {
	g := &segmentReader{plain: plain}
	d := segmentDir(dir, number)
	if err := checkSums(d); err != nil {
		return nil, err
	}
	meta, continues, err := metaOf(d)
	if err != nil {
		return nil, err
	}
	show(g, &meta)
	g.meta, g.continues = &meta, continues
	err = errors.Join(
		from(g, &g.steps, d, tableSteps, func(r *stepRow) int64 { return r.Step }),
		from(g, &g.types, d, tableTypes, func(r *specRow) int64 { return r.Step }),
		from(g, &g.markets, d, tableMarkets, func(r *marketRow) int64 { return r.Step }),
		from(g, &g.pools, d, tablePools, func(r *poolRow) int64 { return r.Step }),
		from(g, &g.nodes, d, tableNodes, func(r *nodeRow) int64 { return r.Step }),
		from(g, &g.templates, d, tableTemplates, func(r *specRow) int64 { return r.Step }),
		from(g, &g.workloads, d, tableWorkloads, func(r *workloadRow) int64 { return r.Step }),
		from(g, &g.pdbs, d, tablePDBs, func(r *pdbRow) int64 { return r.Step }),
		from(g, &g.pods, d, tablePods, func(r *podRow) int64 { return r.Step }),
		from(g, &g.ended, d, tableEnded, func(r *endedRow) int64 { return r.Step }),
		from(g, &g.plan, d, tablePlan, func(r *planRow) int64 { return r.Step }))
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// from opens one table for g and registers it for closing.
func from[R any](g *segmentReader, to **source[R], dir, name string, step func(*R) int64) error {
	s, err := open(dir, name, step)
	if err != nil {
		return missing(err)
	}
	s.plain = g.plain
	*to = s
	g.closers = append(g.closers, s.close)
	return nil
}

func (g *segmentReader) close() error {
	var errs []error
	for _, c := range g.closers {
		errs = append(errs, c())
	}
	g.closers = nil
	return errors.Join(errs...)
}

// nextStep returns the next row of the table steps, and reports whether there is one.
func (g *segmentReader) nextStep() (row stepRow, ok bool, err error) {
	s := g.steps
	if s.next == len(s.buf) && !s.fill(&err) {
		return row, false, err
	}
	row = s.buf[s.next]
	s.next++
	return row, true, nil
}

// read returns the next step, or nil after the last one.
func (g *segmentReader) read() (*Step, error) {
	row, ok, err := g.nextStep()
	if err != nil || !ok {
		return nil, err
	}
	if err := g.apply(&row); err != nil {
		return nil, err
	}
	st := &Step{Number: row.Step, Meta: g.meta, Snapshot: g.copy(), Plan: policy.Plan{Wake: policy.Time(row.Wake)}}
	if err := fromJSON(row.Memory, &st.Memory); err != nil {
		return nil, fmt.Errorf("%s: memory of step %d: %w: %w", g.steps.path, row.Step, ErrCorrupt, err)
	}
	err = g.ended.each(row.Step, func(r *endedRow) error {
		e, err := r.ended()
		show(g, &e)
		st.Snapshot.Ended = append(st.Snapshot.Ended, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = g.plan.each(row.Step, func(r *planRow) error { return r.addTo(&st.Plan) })
	show(g, &st.Plan)
	show(g, &st.Memory)
	return st, err
}

// apply updates g.last to the step of row.
func (g *segmentReader) apply(row *stepRow) error {
	l, step := &g.last, row.Step
	if l.Now != 0 {
		advance(l.Markets, l.Now, policy.Time(row.Now))
	}
	l.Now = policy.Time(row.Now)
	l.Zones, l.Quotas, l.Commitments, l.Sources, l.Budgets = nil, nil, nil, nil, nil
	if err := errors.Join(fromJSON(row.Zones, &l.Zones), fromJSON(row.Quotas, &l.Quotas),
		fromJSON(row.Commits, &l.Commitments),
		fromJSON(row.Sources, &l.Sources), fromJSON(row.Budgets, &l.Budgets)); err != nil {
		return fmt.Errorf("%s: step %d: %w: %w", g.steps.path, step, ErrCorrupt, err)
	}
	show(g, &l.Zones)
	show(g, &l.Quotas)
	show(g, &l.Commitments)
	show(g, &l.Sources)
	show(g, &l.Budgets)
	err := errors.Join(
		patch(&l.Types, row.Types, g.types, step, func(r *specRow) (int32, policy.InstanceType, error) {
			t, err := readSpec[policy.InstanceType](r)
			return r.Slot, t, err
		}),
		patch(&l.Markets, row.Markets, g.markets, step, func(r *marketRow) (int32, policy.Market, error) {
			m, err := r.market()
			return r.Slot, m, err
		}),
		patch(&l.Pools, row.Pools, g.pools, step, func(r *poolRow) (int32, policy.Pool, error) {
			p, err := r.pool()
			return r.Slot, p, err
		}),
		patch(&l.Nodes, row.Nodes, g.nodes, step, func(r *nodeRow) (int32, policy.Node, error) {
			n, err := r.node()
			return r.Slot, n, err
		}),
		patch(&l.Templates, row.Templates, g.templates, step, func(r *specRow) (int32, policy.Template, error) {
			t, err := readSpec[policy.Template](r)
			return r.Slot, t, err
		}),
		patch(&l.Workloads, row.Workloads, g.workloads, step, func(r *workloadRow) (int32, policy.Workload, error) {
			w, err := r.workload()
			return r.Slot, w, err
		}),
		patch(&l.PDBs, row.PDBs, g.pdbs, step, func(r *pdbRow) (int32, policy.PDB, error) {
			p, err := r.pdb()
			return r.Slot, p, err
		}),
		patch(&l.Pods, row.Pods, g.pods, step, func(r *podRow) (int32, policy.Pod, error) {
			p, err := r.pod()
			return r.Slot, p, err
		}),
	)
	l.EstimateUse()
	return err
}

// patch resizes a table and applies the rows of a step to it.
func patch[E, R any](table *[]E, size int32, rows *source[R], step int64, entry func(*R) (int32, E, error)) error {
	had := len(*table)
	t := (*table)[:min(had, int(size))]
	for len(t) < int(size) {
		var zero E
		t = append(t, zero)
	}
	*table = t
	written := 0
	err := rows.each(step, func(r *R) error {
		slot, e, err := entry(r)
		if err != nil {
			return err
		}
		if !in(int(slot), len(t)) {
			return fmt.Errorf("slot %d is not below %d", slot, len(t))
		}
		if int(slot) >= had {
			written++
		}
		if rows.plain {
			plain(&e)
		}
		t[slot] = e
		return nil
	})
	if err == nil && written < len(t)-had {
		err = fmt.Errorf("%s: step %d: %d of %d new entries are missing: %w", rows.path, step, len(t)-had-written,
			len(t)-had, ErrCorrupt)
	}
	return err
}

// copy returns the snapshot with its own tables. The data to which the entries refer is never
// modified and is shared.
func (g *segmentReader) copy() *policy.Snapshot {
	s := g.last
	s.Types, s.Markets, s.Pools = cloned(s.Types), cloned(s.Markets), cloned(s.Pools)
	s.Nodes, s.Pods = cloned(s.Nodes), cloned(s.Pods)
	s.Templates, s.Workloads, s.PDBs = cloned(s.Templates), cloned(s.Workloads), cloned(s.PDBs)
	return &s
}

func cloned[E any](table []E) []E {
	if len(table) == 0 {
		return nil
	}
	return slices.Clone(table)
}
