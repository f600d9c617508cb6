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

// A Store contains the files of a trace, on disk or in an object store.
type Store interface {
	// List returns the file with this name, or all files at any depth of the folder with this name.
	// The error wraps [fs.ErrNotExist] if neither exists.
	List(name string) ([]Entry, error)

	// Open opens a file returned by List.
	Open(name string) (File, error)
}

// An Entry is a file in a listing: its complete name, and its size in bytes.
type Entry struct {
	Name string
	Size int64
}

// A File is open for reading.
type File interface {
	io.ReaderAt
	io.Closer
}

// disk is the store of the local file system.
type disk struct{}

// Disk returns the store of the local file system. Names are paths.
func Disk() Store { return disk{} }

// List walks the folder, even if path is a symbolic link to it.
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
		// A link within the folder has the size of its target.
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

// A Traffic counts the bytes that were read of a trace, and the total size of its files.
type Traffic struct{ Read, Stored int64 }

// A blockReader reads a file in blocks, which reduces the number of reads that a decoder causes,
// and counts the bytes read.
type blockReader struct {
	file  File
	size  int64
	block []byte // the block in memory, which starts at offset at
	at    int64
	count *int64
}

const (
	// blockMax is the maximum size of a block, and so limits the memory use.
	blockMax = 8 << 20

	// gapMax is the maximum number of bytes between two ranges that are read too in order to save a
	// read, which in an object store is a request.
	gapMax = 32 << 10

	// footerSize is the number of bytes at the end of a file that are read first. Most footers fit.
	footerSize = 16 << 10
)

// fetch loads the bytes in [begin, end) as the block in memory.
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
