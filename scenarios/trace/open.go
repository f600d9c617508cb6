package trace

import (
	"context"
	"fmt"
	"path/filepath"
)

// Open reads the trace at path, a folder or a single file.
//
// When a span is asked for, each series begins with the price in force at the
// begin of the day before it, whatever is stored before that.
func Open(path string, o ReadOptions) (*Trace, error) {
	found, err := findFiles(path, &o)
	if err != nil {
		return nil, err
	}
	t, err := load(path, found, o)
	if err != nil {
		return nil, err
	}
	if found.index != nil && o.Whole() && t.Digest != found.index.Digest {
		return nil, &FileError{File: path, Err: fmt.Errorf("%w: its prices do not fit the digest in %s", ErrCorrupt, IndexName)}
	}
	t.Name = filepath.Base(filepath.Clean(path))
	return t, nil
}

// load reads files into a trace called name.
func load(name string, found *listing, o ReadOptions) (*Trace, error) {
	s := newScanner(&o, found.stored)
	b := newBuilder(s)
	if err := s.files(context.Background(), found.files); err != nil {
		return nil, err
	}
	t, err := b.trace()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.Name = name
	if found.index != nil && !o.Whole() {
		t.Digest = found.index.Digest
	} else {
		t.Digest = digest(t.Series)
	}
	return t, nil
}
