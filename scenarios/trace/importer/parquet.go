package importer

import (
	"fmt"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// parquet reads a Parquet file written by any program.
func (im *importer) parquet(f trace.File, size int64) error {
	if size == 0 {
		err := fmt.Errorf("%w: Parquet is read from files, not from a pipe", trace.ErrFormat)
		return &trace.FileError{File: im.path, Err: err}
	}
	t, err := trace.OpenTable(im.path, f, size)
	if err != nil {
		return err
	}
	l, fault := im.layoutOf(t.Columns)
	if fault != nil {
		return &trace.FileError{File: im.path, Err: fmt.Errorf("%w: %w", trace.ErrFormat, fault)}
	}
	im.take("Parquet", l)
	l.counted = "row "
	// Read only the columns with a known meaning.
	chosen := make([]int, len(t.Columns))
	for i := range chosen {
		chosen[i] = -1
	}
	for _, i := range append(l.at[:], l.clock) {
		if i >= 0 {
			chosen[i] = i
		}
	}
	return t.Rows(chosen, func(row int64, fields [][]byte) error {
		return im.row(int(row), fields, l)
	})
}
