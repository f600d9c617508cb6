package trace

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// groupRows is the maximum number of rows in a row group. DuckDB processes row groups in parallel,
// and by default writes groups of this size.
const groupRows = 122_880

// Write stores t as a trace at dir. The trace becomes visible only when it is complete. It replaces
// an existing trace; any other existing content is an error that wraps ErrTarget.
func Write(dir string, t *Trace) error {
	if err := t.validate(); err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	return WriteParts(dir, t, t.parts())
}

// A Part consists of some days of all markets of a region.
type Part struct {
	// From and To are the start and end of the part. They are at midnight, except at the start and
	// end of the trace.
	From, To policy.Time

	// Series are ascending. Each contains the intervals that start in [From, To), preceded by the
	// interval that contains From if it starts earlier.
	Series []Series
}

// WriteParts stores a trace that is not in memory as a whole; see [Write]. Head is the trace
// without its series. Parts yields the parts of each region in ascending order, with the same
// markets and columns in each; a part is invalid once the next one is requested.
func WriteParts(dir string, head *Trace, parts iter.Seq2[*Part, error]) error {
	return replaceFolder(dir, func(temp string) error {
		w := folderWriter{dir: temp, head: head}
		for part, err := range parts {
			if err != nil {
				return err
			}
			if err := head.check(part.Series); err != nil {
				return err
			}
			if err := w.add(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// replaceFolder calls fill to write a trace to a temporary folder, which then replaces dir.
func replaceFolder(dir string, fill func(temp string) error) error {
	dir = filepath.Clean(dir)
	old, err := checkTarget(dir)
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("%s: %w: %w", dir, ErrTarget, err)
	}
	temp, err := os.MkdirTemp(parent, ".spotter-new-*")
	if inner := (*os.PathError)(nil); errors.As(err, &inner) { // without its temporary path
		return fmt.Errorf("%s: %w: %w", dir, ErrTarget, inner.Err)
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := fill(temp); err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	return replace(dir, temp, old)
}

// A target is the existing content of the folder for a trace.
type target uint8

const (
	targetFree target = iota
	targetEmpty
	targetTrace
)

func checkTarget(dir string) (target, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return targetFree, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w: it cannot be read as a folder: %w", dir, ErrTarget, err)
	}
	if len(entries) == 0 {
		return targetEmpty, nil
	}
	for _, e := range entries {
		if e.Name() == IndexName {
			continue
		}
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "provider=") {
			return 0, fmt.Errorf("%s: %w: it holds %q, which is not part of a trace; choose another folder",
				dir, ErrTarget, e.Name())
		}
	}
	return targetTrace, nil
}

// replace moves temp to dir. An existing trace is moved aside first and removed last, so that one
// of the two is always complete.
func replace(dir, temp string, old target) error {
	switch old {
	case targetEmpty:
		if err := os.Remove(dir); err != nil {
			return err
		}
	case targetTrace:
		aside := temp + ".old"
		if err := os.Rename(dir, aside); err != nil {
			return err
		}
		if err := os.Rename(temp, dir); err != nil {
			return errors.Join(err, os.Rename(aside, dir))
		}
		return os.RemoveAll(aside)
	}
	return os.Rename(temp, dir)
}

// validate returns an error if t could not have been created by this package.
func (t *Trace) validate() error {
	if len(t.Series) == 0 {
		return fmt.Errorf("%w: no markets", ErrEmpty)
	}
	return t.check(t.Series)
}

// check returns an error if series, which are all or a part of the series of t, are invalid.
func (t *Trace) check(series []Series) error {
	for i := range series {
		s := &series[i]
		if i > 0 && compareSeries(&series[i-1], s) >= 0 {
			return fmt.Errorf("%w: market %s comes after %s", ErrOrder, s.Name(), series[i-1].Name())
		}
		if slices.Contains([]string{s.Provider, s.Region, s.Zone, s.Type}, "") {
			return fmt.Errorf("%w: market %s lacks a name", ErrValue, s.Name())
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("market %s: %w", s.Name(), err)
		}
		if n := len(s.At); n == 0 || s.At[0] < t.From || s.At[n-1] > t.To {
			return fmt.Errorf("market %s: %w: its times are not within %v to %v", s.Name(), ErrValue, t.From, t.To)
		}
	}
	return nil
}

// parts yields all of t, with each region as one part.
func (t *Trace) parts() iter.Seq2[*Part, error] {
	return func(yield func(*Part, error) bool) {
		for begin, end := 0, 0; begin < len(t.Series); begin = end {
			end = alike(t.Series, begin, 2)
			from, last := t.days(t.Series[begin:end])
			if !yield(&Part{from, last + day, t.Series[begin:end]}, nil) {
				return
			}
		}
	}
}

// alike returns the end of the series, from index begin on, that have the same first n names.
func alike(series []Series, begin, n int) int {
	want := series[begin].names()
	end := begin + 1
	for ; end < len(series); end++ {
		if names := series[end].names(); !slices.Equal(names[:n], want[:n]) {
			break
		}
	}
	return end
}

// A folderWriter writes one file per region and date.
type folderWriter struct {
	dir  string
	head *Trace

	// region is the folder of the current region, to which file writes.
	region string
	file   *fileWriter

	rows []rowRef
	next []int // index of the next interval of each series
}

// add writes the files of a part.
func (w *folderWriter) add(p *Part) error {
	series := p.Series
	if region := filepath.Join(w.dir, regionPath(series[0].Provider, series[0].Region)); region != w.region {
		w.region, w.file = region, w.head.newWriter(columnsOf(series), &series[0], false)
	}
	w.next = w.next[:0]
	for i := range series {
		n := 0
		if series[i].At[0] < p.From {
			n = 1 // the previous part has written it
		}
		w.next = append(w.next, n)
	}
	for d := dayOf(p.From); d < p.To; d += day {
		w.rows = w.rows[:0]
		for begin, end := 0, 0; begin < len(series); begin = end {
			end = alike(series, begin, 4)
			w.rows = addSpan(w.rows, series[begin:end], w.next[begin:end], begin, d, d+day)
		}
		if len(w.rows) == 0 {
			continue
		}
		folder := filepath.Join(w.region, "date="+d.Std().Format(time.DateOnly))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := w.file.writeFile(filepath.Join(folder, "part-0.parquet"), series, w.rows); err != nil {
			return err
		}
	}
	return nil
}

// regionPath returns the folder of a region in a trace.
func regionPath(provider, region string) string {
	return filepath.Join("provider="+url.PathEscape(provider), "region="+url.PathEscape(region))
}

// days returns the first and last day that require a file.
func (t *Trace) days(series []Series) (first, last policy.Time) {
	first, last = TimeMax, 0
	for i := range series {
		if at := series[i].At; len(at) > 0 {
			first, last = min(first, at[0]), max(last, at[len(at)-1])
		}
	}
	// A span that ends at midnight does not require a file for the day that starts then.
	return dayOf(first), dayOf(max(last, t.To-1))
}

// A rowRef is a row to be written. Its values are those of an interval of a series.
type rowRef struct {
	at               policy.Time
	series, interval int32
}

// addSpan appends the rows in [d, end) of series that differ only in their product. Base is the
// index of the first series.
func addSpan(rows []rowRef, series []Series, next []int, base int, d, end policy.Time) []rowRef {
	begin := len(rows)
	for k := range series {
		s, i := &series[k], next[k]
		if i > 0 && (i == len(s.At) || s.At[i] != d) && s.Sample(i-1).live() {
			rows = append(rows, rowRef{d, int32(base + k), int32(i - 1)})
		}
		for ; i < len(s.At) && s.At[i] < end; i++ {
			rows = append(rows, rowRef{s.At[i], int32(base + k), int32(i)})
		}
		next[k] = i
	}
	if len(series) > 1 {
		sortRows(rows[begin:])
	}
	return rows
}

// sortRows sorts rows by time, and keeps the order of products.
func sortRows(rows []rowRef) {
	slices.SortStableFunc(rows, func(a, b rowRef) int { return cmp.Compare(a.at, b.at) })
}

// WriteFile stores t as a single file, in which the rows of each market are contiguous.
func WriteFile(path string, t *Trace) error {
	if err := t.validate(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	var rows []rowRef
	for begin, end := 0, 0; begin < len(t.Series); begin = end {
		end = alike(t.Series, begin, 4)
		first := len(rows)
		for k := begin; k < end; k++ {
			for i, at := range t.Series[k].At {
				rows = append(rows, rowRef{at, int32(k), int32(i)})
			}
		}
		if end-begin > 1 {
			sortRows(rows[first:])
		}
	}
	first, last := &t.Series[0], &t.Series[len(t.Series)-1]
	several := first.Provider != last.Provider || first.Region != last.Region
	w := t.newWriter(columnsOf(t.Series), first, several)
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	temp.Close()
	defer os.Remove(temp.Name())
	if err := w.writeFile(temp.Name(), t.Series, rows); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Chmod(temp.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
