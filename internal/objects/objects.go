// Package objects reads and writes files in a folder or in an S3-compatible object store. The name
// s3://BUCKET/KEY is an object of package s3, every other name is a path.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/aws/s3"
)

// A Store gives access to files and objects. Its zero value is ready for use. It is safe for
// concurrent use.
type Store struct{ s3 s3.Client }

// A File is open for reading.
type File interface {
	io.ReaderAt
	io.Closer

	// Size returns the length in bytes.
	Size() int64
}

// An Info describes a file in a listing.
type Info = s3.Info

// Remote reports whether name is the name of an object rather than a path.
func Remote(name string) bool { return strings.HasPrefix(name, s3.Scheme) }

// Join returns the name of elements in folder.
func Join(folder string, elements ...string) string {
	if Remote(folder) {
		return strings.TrimSuffix(folder, "/") + "/" + path.Join(elements...)
	}
	return filepath.Join(append([]string{folder}, elements...)...)
}

// Open opens a file or an object. Reads of an object are range requests until ctx ends; they fail
// if the object was replaced after Open. The error wraps [fs.ErrNotExist] if name does not exist.
func (s *Store) Open(ctx context.Context, name string) (File, error) {
	if Remote(name) {
		return s.s3.Open(ctx, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return file{f, info.Size()}, nil
}

type file struct {
	*os.File
	size int64
}

func (f file) Size() int64 { return f.size }

// ReadFile returns the content of a file or an object.
func (s *Store) ReadFile(ctx context.Context, name string) (data []byte, err error) {
	f, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
}

// Create atomically replaces name with what write writes: the previous content remains until the
// new one is complete.
func (s *Store) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	if Remote(name) {
		return s.createObject(ctx, name, write)
	}
	return cli.ReplaceFile(name, write)
}

// createObject writes to a temporary file first: an object is uploaded in one request, which
// requires its length and may be repeated.
func (s *Store) createObject(ctx context.Context, name string, write func(io.Writer) error) (err error) {
	t, err := os.CreateTemp("", "spotter-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(), os.Remove(t.Name())) }()
	if err := write(t); err != nil {
		return err
	}
	if _, err := t.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return s.s3.Put(ctx, name, t)
}

// List returns all files or objects in a folder, at any depth, in ascending order of names. The
// result is empty if the folder does not exist.
func (s *Store) List(ctx context.Context, folder string) ([]Info, error) {
	if Remote(folder) {
		return s.s3.List(ctx, folder)
	}
	var out []Info
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out = append(out, Info{Name: name, Size: info.Size()})
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) && out == nil {
		return nil, nil
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// Delete removes a file or an object. It is not an error if it does not exist.
func (s *Store) Delete(ctx context.Context, name string) error {
	if Remote(name) {
		return s.s3.Delete(ctx, name)
	}
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
