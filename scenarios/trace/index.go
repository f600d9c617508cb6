package trace

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// IndexName is the name of the index of a compact trace, which is at the top of its folder.
const IndexName = "trace.json"

// indexVersion is incremented when a reader of the old index could misread a new one.
const indexVersion = 1

// An Index is the metadata of a compact trace: its files, span and digest. It allows reading a part
// of the trace without the rest.
type Index struct {
	From, To      policy.Time
	Digest        [32]byte
	Markets, Rows int64

	// Sizes are the sizes in bytes of the files, by their slash-separated path relative to the
	// index.
	Sizes map[string]int64
}

// A storedIndex is the JSON form of an Index.
type storedIndex struct {
	Version int              `json:"version"`
	From    time.Time        `json:"from"`
	To      time.Time        `json:"to"`
	Digest  string           `json:"digest"`
	Markets int64            `json:"markets"`
	Rows    int64            `json:"rows"`
	Files   map[string]int64 `json:"files"`
}

// An Extent describes a part of a trace, according to its index.
type Extent struct {
	Providers, Regions []string

	// Rows is the approximate number of rows of the files that may contain the part, and Bytes
	// their size.
	Rows, Bytes int64
}

// Extent returns the extent of the part that o selects. It ignores the zones and types of o.
func (x *Index) Extent(o ReadOptions) (*Extent, error) {
	e := &Extent{}
	all := int64(0)
	for name, size := range x.Sizes {
		src, err := locate(name)
		if err != nil {
			return nil, err
		}
		if all += size; !src.wanted(&o) {
			continue
		}
		e.Providers, e.Regions = append(e.Providers, src.provider), append(e.Regions, src.region)
		e.Bytes += size
	}
	for _, names := range [...]*[]string{&e.Providers, &e.Regions} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	if all > 0 {
		e.Rows = int64(float64(x.Rows) * (float64(e.Bytes) / float64(all)))
	}
	return e, nil
}

func (x *Index) encode() ([]byte, error) {
	text, err := json.MarshalIndent(&storedIndex{
		indexVersion, x.From.Std(), x.To.Std(), hex.EncodeToString(x.Digest[:]), x.Markets, x.Rows, x.Sizes,
	}, "", " ")
	return append(text, '\n'), err
}

// ReadIndex returns the index of the trace at path, or nil for a trace without one, which must be
// read as a whole. A nil store means the disk.
func ReadIndex(path string, store Store) (*Index, error) {
	o := ReadOptions{Store: store}
	entries, err := o.store().List(path)
	if err != nil {
		return nil, err
	}
	return readIndex(o.store(), entries)
}

// readIndex returns the index among the files of a trace, or nil. It returns an error if the files
// differ from those in the index.
func readIndex(store Store, entries []Entry) (*Index, error) {
	for _, e := range entries {
		name := filepath.ToSlash(e.Name)
		if path.Base(name) != IndexName {
			continue
		}
		x, err := decodeIndex(store, e)
		if err == nil {
			err = x.check(strings.TrimSuffix(name, IndexName), entries)
		}
		if err != nil {
			return nil, &FileError{File: e.Name, Err: err}
		}
		return x, nil
	}
	return nil, nil
}

func decodeIndex(store Store, e Entry) (*Index, error) {
	f, err := store.Open(e.Name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, e.Size))
	if err != nil {
		return nil, err
	}
	var stored storedIndex
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if stored.Version != indexVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrFormat, stored.Version, indexVersion)
	}
	x := &Index{
		From: policy.TimeOf(stored.From), To: policy.TimeOf(stored.To),
		Markets: stored.Markets, Rows: stored.Rows, Sizes: stored.Files,
	}
	if n, err := hex.Decode(x.Digest[:], []byte(stored.Digest)); err != nil || n != len(x.Digest) {
		return nil, fmt.Errorf("%w: digest %q", ErrCorrupt, stored.Digest)
	}
	return x, nil
}

// check returns an error if the Parquet files below root differ from those in the index.
func (x *Index) check(root string, entries []Entry) error {
	seen := 0
	for _, e := range entries {
		if filepath.Ext(e.Name) != ".parquet" {
			continue
		}
		name, below := strings.CutPrefix(filepath.ToSlash(e.Name), root)
		size, listed := x.Sizes[name]
		switch {
		case !below || !listed:
			return fmt.Errorf("%w: it does not list %s", ErrCorrupt, e.Name)
		case size != e.Size:
			return fmt.Errorf("%w: %s has %d bytes and not the %d that it lists", ErrCorrupt, e.Name, e.Size, size)
		}
		seen++
	}
	if seen != len(x.Sizes) {
		return fmt.Errorf("%w: it lists %d files, of which %d exist", ErrCorrupt, len(x.Sizes), seen)
	}
	return nil
}
