package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Store holds the files of a trace: on disk or in an object store.
type Store interface {
	// List returns the file called name, or all files at any depth of the folder
	// called so. The error wraps [fs.ErrNotExist] when it is neither.
	List(name string) ([]Entry, error)

	// Open opens a file that List has named.
	Open(name string) (File, error)
}

// An Entry is what a listing says of a file: its complete name, and its size in
// bytes.
type Entry struct {
	Name string
	Size int64
}

// A File is open for reading.
type File interface {
	io.ReaderAt
	io.Closer
}

// disk is the store of paths.
type disk struct{}

// Disk returns the store whose names are paths.
func Disk() Store { return disk{} }

// List walks the folder, also where path is a link to it.
func (disk) List(path string) ([]Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []Entry{{path, info.Size()}}, nil
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	var all []Entry
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		// A link within the folder has the size of what it leads to.
		info, err := os.Stat(p)
		if errors.Is(err, fs.ErrNotExist) && filepath.Ext(p) != ".parquet" {
			return nil
		}
		if err == nil {
			all = append(all, Entry{p, info.Size()})
		}
		return err
	})
	return all, err
}

func (disk) Open(path string) (File, error) { return os.Open(path) }

// A memory is a File whose content is in memory.
type memory struct{ io.ReaderAt }

func (memory) Close() error { return nil }

// A Traffic counts bytes: those that were read of a trace, and those that all of
// its files have.
type Traffic struct{ Read, Stored int64 }

// A blockReader reads a file a stretch at a time, so that the many small reads of
// a decoder become few of the file, and counts what it reads of it.
type blockReader struct {
	file  File
	size  int64
	block []byte // the stretch in memory, which starts at byte at
	at    int64
	count *int64
}

const (
	// blockMax bounds the stretch that is read at once, and with it the memory.
	blockMax = 8 << 20

	// gapMax is up to how many bytes between two stretches are read as well to
	// save a read, which in an object store is a request.
	gapMax = 32 << 10

	// footerSize is how much of the end of a file is read at first. Most
	// footers fit.
	footerSize = 16 << 10
)

// fetch makes the bytes from begin up to end the stretch in memory.
func (r *blockReader) fetch(begin, end int64) error {
	if begin >= r.at && end <= r.at+int64(len(r.block)) {
		return nil
	}
	n := int(end - begin)
	r.block, r.at = slices.Grow(r.block[:0], n)[:n], begin
	got, err := r.file.ReadAt(r.block, begin)
	*r.count += int64(got)
	if got < n {
		r.block = r.block[:0]
		return fmt.Errorf("%w: %d bytes from %d on are missing: %w", ErrCorrupt, n-got, begin+int64(got), err)
	}
	return nil
}

// ReadAt implements [io.ReaderAt].
func (r *blockReader) ReadAt(p []byte, at int64) (int, error) {
	if from := at - r.at; from >= 0 && from+int64(len(p)) <= int64(len(r.block)) {
		return copy(p, r.block[from:]), nil
	}
	n, err := r.file.ReadAt(p, at)
	*r.count += int64(n)
	return n, err
}
