package trace

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

// groupRows is the most rows of a row group. DuckDB works on row groups in
// parallel and makes its own this long.
const groupRows = 122_880

// Write stores t as a trace at dir. Nothing is seen of it there until it is
// complete. A trace that was there is replaced; anything else makes it fail
// with ErrTarget.
func Write(dir string, t *Trace) error {
	if err := t.validate(); err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	return replaceFolder(dir, t.writeFolder)
}

// replaceFolder writes a trace by fill, to another folder, which then takes the place of
// dir.
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
	if inner := (*os.PathError)(nil); errors.As(err, &inner) { // whose path nobody knows
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

// A target is what stands where a trace is to be written.
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
			return 0, fmt.Errorf("%s: %w: it holds %q, which is no part of a trace; choose another folder",
				dir, ErrTarget, e.Name())
		}
	}
	return targetTrace, nil
}

// replace puts temp in the place of dir. A trace that is there is moved aside
// first and removed last, so that one of the two is always whole.
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

// validate checks that t could have come from this package.
func (t *Trace) validate() error {
	if len(t.Series) == 0 {
		return fmt.Errorf("%w: no markets", ErrEmpty)
	}
	for i := range t.Series {
		s := &t.Series[i]
		if i > 0 && compareSeries(&t.Series[i-1], s) >= 0 {
			return fmt.Errorf("%w: market %s stands after %s", ErrOrder, s.Name(), t.Series[i-1].Name())
		}
		if slices.Contains([]string{s.Provider, s.Region, s.Zone, s.Type}, "") {
			return fmt.Errorf("%w: market %s lacks a name", ErrValue, s.Name())
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("market %s: %w", s.Name(), err)
		}
		if n := len(s.At); n == 0 || s.At[0] < t.From || s.At[n-1] > t.To {
			return fmt.Errorf("market %s: %w: its times do not lie within %v to %v", s.Name(), ErrValue, t.From, t.To)
		}
	}
	return nil
}

// writeFolder writes one file for each region and date.
func (t *Trace) writeFolder(dir string) error {
	var rows rowBuffer
	for begin := 0; begin < len(t.Series); {
		first := &t.Series[begin]
		end := begin + 1
		for end < len(t.Series) && t.Series[end].Provider == first.Provider && t.Series[end].Region == first.Region {
			end++
		}
		if err := t.writeRegion(filepath.Join(dir, regionPath(first.Provider, first.Region)), t.Series[begin:end], &rows); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// regionPath returns the folder of a region within a trace.
func regionPath(provider, region string) string {
	return filepath.Join("provider="+url.PathEscape(provider), "region="+url.PathEscape(region))
}

func (t *Trace) writeRegion(dir string, series []Series, rows *rowBuffer) error {
	first, last := t.days(series)
	next := make([]int, len(series)) // the interval of each series that is next
	w := t.newWriter(series, false)
	for d := first; d <= last; d += day {
		rows.reset()
		for begin := 0; begin < len(series); {
			end := begin + 1
			for end < len(series) && series[end].Zone == series[begin].Zone && series[end].Type == series[begin].Type {
				end++
			}
			rows.addSpan(series[begin:end], next[begin:end], begin, d, d+day)
			begin = end
		}
		if len(rows.at) == 0 {
			continue
		}
		folder := filepath.Join(dir, "date="+d.Std().Format(time.DateOnly))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := w.writeFile(filepath.Join(folder, "part-0.parquet"), series, rows); err != nil {
			return err
		}
	}
	return nil
}

// days returns the first and last day that need a file.
func (t *Trace) days(series []Series) (first, last policy.Time) {
	first, last = TimeMax, 0
	for i := range series {
		if at := series[i].At; len(at) > 0 {
			first, last = min(first, at[0]), max(last, at[len(at)-1])
		}
	}
	// A span that ends at midnight has nothing in the day that begins then.
	return dayOf(first), dayOf(max(last, t.To-1))
}

// A rowBuffer holds rows in the order in which they are written.
type rowBuffer struct {
	at       []policy.Time
	series   []int32
	interval []int32 // of the series; the values of a row are those of an interval
	values   []parquet.Value
}

func (r *rowBuffer) reset() { r.at, r.series, r.interval = r.at[:0], r.series[:0], r.interval[:0] }

func (r *rowBuffer) add(at policy.Time, series, interval int) {
	r.at = append(r.at, at)
	r.series = append(r.series, int32(series))
	r.interval = append(r.interval, int32(interval))
}

// addSpan adds the rows from d up to end of some series, which differ only in their
// product and of which the first has the number base.
func (r *rowBuffer) addSpan(series []Series, next []int, base int, d, end policy.Time) {
	begin := len(r.at)
	for k := range series {
		s, i := &series[k], next[k]
		if i > 0 && (i == len(s.At) || s.At[i] != d) && s.Sample(i-1).live() {
			r.add(d, base+k, i-1)
		}
		for ; i < len(s.At) && s.At[i] < end; i++ {
			r.add(s.At[i], base+k, i)
		}
		next[k] = i
	}
	if len(series) > 1 {
		r.sort(begin)
	}
}

// sort puts the rows from begin on in order of time, keeping that of products.
func (r *rowBuffer) sort(begin int) {
	order := make([]int, len(r.at)-begin)
	for i := range order {
		order[i] = begin + i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(r.at[a] - r.at[b]) })
	at, series, interval := slices.Clone(r.at), slices.Clone(r.series), slices.Clone(r.interval)
	for i, from := range order {
		r.at[begin+i], r.series[begin+i], r.interval[begin+i] = at[from], series[from], interval[from]
	}
}

// WriteFile stores t as a single file, all of a market's rows together.
func WriteFile(path string, t *Trace) error {
	if err := t.validate(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	var rows rowBuffer
	for begin := 0; begin < len(t.Series); {
		end := begin + 1
		for end < len(t.Series) && sameButProduct(&t.Series[begin], &t.Series[end]) {
			end++
		}
		first := len(rows.at)
		for k := begin; k < end; k++ {
			for i, at := range t.Series[k].At {
				rows.add(at, k, i)
			}
		}
		if end-begin > 1 {
			rows.sort(first)
		}
		begin = end
	}
	first, last := &t.Series[0], &t.Series[len(t.Series)-1]
	several := first.Provider != last.Provider || first.Region != last.Region
	w := t.newWriter(t.Series, several)
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	temp.Close()
	defer os.Remove(temp.Name())
	if err := w.writeFile(temp.Name(), t.Series, &rows); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Chmod(temp.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

func sameButProduct(a, b *Series) bool {
	return a.Provider == b.Provider && a.Region == b.Region && a.Zone == b.Zone && a.Type == b.Type
}
