package trace

import (
	"bytes"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A source is one file of a trace.
type source struct {
	path             string
	size             int64
	provider, region string      // from the path; empty if it does not contain them
	begin, end       policy.Time // of the day or month in the path; 0 if it has none
	data             []byte      // the content, if it is not in a store
}

// open opens the file in the store, or its content in memory.
func (src *source) open(store Store) (File, error) {
	if src.data != nil {
		return memory{bytes.NewReader(src.data)}, nil
	}
	return store.Open(src.path)
}

// A listing lists the selected files of a trace.
type listing struct {
	files  []source
	stored int64  // size in bytes of all files, selected or not
	index  *Index // nil if the trace has none
}

// findFiles returns the files of the trace at path that o selects, grouped by region and ascending
// by date.
func findFiles(path string, o *ReadOptions) (*listing, error) {
	entries, err := o.store().List(path)
	if err != nil {
		return nil, err
	}
	l := &listing{}
	if l.index, err = readIndex(o.store(), entries); err != nil {
		return nil, err
	}
	found := false
	for _, e := range entries {
		if filepath.Ext(e.Name) != ".parquet" && (len(entries) > 1 || e.Name != path) {
			continue
		}
		found = true
		src, err := locate(e.Name)
		if err != nil {
			return nil, err
		}
		src.size = e.Size
		l.stored += e.Size
		if src.wanted(o) {
			l.files = append(l.files, src)
		}
	}
	switch {
	case !found:
		return nil, &FileError{File: path, Err: fmt.Errorf("%w: the folder holds no .parquet file", ErrNotTrace)}
	case len(l.files) == 0:
		return nil, &FileError{File: path, Err: fmt.Errorf("%w: no file is in the requested span, providers and regions",
			ErrEmpty)}
	}
	// Paths already sort by date, except in a folder that mixes layouts.
	slices.SortStableFunc(l.files, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return l, nil
}

// locate returns the properties of a file that its path contains.
func locate(path string) (source, error) {
	src := source{path: path}
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		value, err := url.PathUnescape(value)
		if err != nil {
			return src, &FileError{File: path, Err: fmt.Errorf("%w: %w", ErrNotTrace, err)}
		}
		switch key {
		case "provider":
			src.provider = value
		case "region":
			src.region = value
		case "date":
			at, err := time.Parse(time.DateOnly, value)
			if err != nil {
				return src, &FileError{File: path, Err: fmt.Errorf("%w: date=%s is not a date", ErrNotTrace, value)}
			}
			src.begin, src.end = policy.TimeOf(at), policy.TimeOf(at.AddDate(0, 0, 1))
		case "month":
			at, err := time.Parse(monthLayout, value)
			if err != nil {
				return src, &FileError{File: path, Err: fmt.Errorf("%w: month=%s is not a month", ErrNotTrace, value)}
			}
			src.begin, src.end = policy.TimeOf(at), policy.TimeOf(at.AddDate(0, 1, 0))
		}
	}
	return src, nil
}

func (src *source) wanted(o *ReadOptions) bool {
	return chosen(o.Providers, src.provider) && chosen(o.Regions, src.region) &&
		(src.end == 0 || src.end > o.start() && src.begin <= o.end())
}

// monthLayout is the format of a month in paths.
const monthLayout = "2006-01"

// chosen reports whether choice includes name. An empty choice includes all names, and an empty
// name, which may be in the file, is always included.
func chosen(choice []string, name string) bool {
	return len(choice) == 0 || name == "" || slices.Contains(choice, name)
}
