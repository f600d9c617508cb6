package trace

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A source is one file of a trace.
type source struct {
	path             string
	provider, region string // from the path; empty if it does not say
	date             policy.Time
	data             []byte // the content, if it is not on disk
}

// smallFile is up to which size a file is read at once, which saves a system
// call for each page.
const smallFile = 8 << 20

// open returns the content of a file and how long it is. A small one is read to
// buf.
func (src *source) open(buf *[]byte) (io.ReaderAt, int64, func(), error) {
	if src.data != nil {
		return bytes.NewReader(src.data), int64(len(src.data)), func() {}, nil
	}
	f, err := os.Open(src.path)
	if err != nil {
		return nil, 0, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, nil, err
	}
	if info.Size() > smallFile {
		return f, info.Size(), func() { f.Close() }, nil
	}
	defer f.Close()
	data := slices.Grow((*buf)[:0], int(info.Size()))[:info.Size()]
	*buf = data
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, 0, nil, &FileError{File: src.path, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)}
	}
	return bytes.NewReader(data), info.Size(), func() {}, nil
}

// findFiles returns the files of the trace at path that o asks for, those of
// one region together and ascending by date.
func findFiles(path string, o *ReadOptions) ([]source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		src, err := locate(path)
		return []source{src}, err
	}
	// Walking does not go behind a link.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	var files []source
	found := false
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".parquet" {
			return err
		}
		found = true
		src, err := locate(p)
		if err == nil && src.wanted(o) {
			files = append(files, src)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, &FileError{File: path, Err: fmt.Errorf("%w: the folder holds no .parquet file", ErrNotTrace)}
	case len(files) == 0:
		return nil, &FileError{File: path, Err: fmt.Errorf("%w: no file lies in the span, providers and regions asked for", ErrEmpty)}
	}
	// Paths sort by date already; only a folder that mixes layouts may not.
	slices.SortStableFunc(files, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return files, nil
}

// locate reads what the path of a file says of its content.
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
				return src, &FileError{File: path, Err: fmt.Errorf("%w: date=%s is no date", ErrNotTrace, value)}
			}
			src.date = policy.TimeOf(at)
		}
	}
	return src, nil
}

func (src *source) wanted(o *ReadOptions) bool {
	return chosen(o.Providers, src.provider) && chosen(o.Regions, src.region) &&
		(src.date == 0 || src.date >= o.start() && src.date <= o.end())
}

// chosen reports whether name passes the choice; what has no name does, since
// it may be found in the file.
func chosen(choice []string, name string) bool {
	return len(choice) == 0 || name == "" || slices.Contains(choice, name)
}
