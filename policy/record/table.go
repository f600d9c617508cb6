package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

// rowGroupRows is the number of rows in a row group. It is the default of DuckDB, so that each of
// its threads can process one row group.
const rowGroupRows = 122_880

// A sink is a table that is being written. Rows are collected and written once per step, because a
// call per row would cost more than the row itself.
type sink[R any] struct {
	file *os.File
	w    *parquet.GenericWriter[R]
	rows []R
	n    int
}

func create[R any](dir, name string, meta *Meta, continues bool) (*sink[R], error) {
	f, err := os.Create(filepath.Join(dir, name+".parquet"))
	if err != nil {
		return nil, err
	}
	options := append(meta.options(continues),
		parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroupRows))
	return &sink[R]{file: f, w: parquet.NewGenericWriter[R](f, options...)}, nil
}

func (s *sink[R]) add(r R) { s.rows = append(s.rows, r) }

func (s *sink[R]) flush() error {
	if len(s.rows) == 0 {
		return nil
	}
	_, err := s.w.Write(s.rows)
	s.n += len(s.rows)
	clear(s.rows)
	s.rows = s.rows[:0]
	return err
}

func (s *sink[R]) count() int { return s.n }

// close completes the file on disk. It closes the file even if an error occurs.
func (s *sink[R]) close() error {
	err := s.w.Close()
	if err == nil {
		err = s.file.Sync()
	}
	return errors.Join(err, s.file.Close())
}

// A source is a table that is being read in order. Its zero value is a table without rows.
type source[R any] struct {
	path string
	file *os.File
	r    *parquet.GenericReader[R]
	step func(*R) int64
	buf  []R
	next int
	done bool

	plain bool // see OpenPlain
}

// batchRows is the number of rows that are decoded at a time.
const batchRows = 1024

// open opens the table called name of the segment in dir. The function step returns the step of a
// row.
func open[R any](dir, name string, step func(*R) int64) (s *source[R], err error) {
	path := filepath.Join(dir, name+".parquet")
	defer func() {
		if p := recover(); p != nil { // the decoder panics on some damaged footers
			err = fmt.Errorf("%s: %v: %w", path, p, ErrCorrupt)
		}
	}()
	f, pf, err := openFile(path)
	if err != nil {
		return nil, err
	}
	if !sameColumns(pf.Schema(), parquet.SchemaOf(new(R))) {
		return nil, errors.Join(fmt.Errorf("%s: columns are not those of table %s: %w", path, name, ErrCorrupt), f.Close())
	}
	return &source[R]{path: path, file: f, r: parquet.NewGenericReader[R](pf), step: step}, nil
}

func openFile(path string) (*os.File, *parquet.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	pf, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w: %w", path, ErrCorrupt, err), f.Close())
	}
	return f, pf, nil
}

func sameColumns(a, b *parquet.Schema) bool {
	x, y := a.Columns(), b.Columns()
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if filepath.Join(x[i]...) != filepath.Join(y[i]...) || !sameKind(a, b, x[i]) {
			return false
		}
	}
	return true
}

// sameKind reports whether both schemas store the values of a column in the same way. The decoder
// trusts the file, and would otherwise read arbitrary bytes.
func sameKind(a, b *parquet.Schema, path []string) bool {
	x, xOK := a.Lookup(path...)
	y, yOK := b.Lookup(path...)
	return xOK && yOK && x.Node.Type().Kind() == y.Node.Type().Kind() &&
		x.MaxDefinitionLevel == y.MaxDefinitionLevel && x.MaxRepetitionLevel == y.MaxRepetitionLevel
}

// each calls f for every row of the given step, in order. The row is valid during the call only.
func (s *source[R]) each(step int64, f func(*R) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v: %w", s.path, p, ErrCorrupt)
		}
	}()
	for {
		if s.next == len(s.buf) && !s.fill(&err) {
			return err
		}
		r := &s.buf[s.next]
		switch at := s.step(r); {
		case at > step:
			return nil
		case at < step:
			return fmt.Errorf("%s: a row of step %d comes after step %d: %w", s.path, at, step, ErrCorrupt)
		}
		s.next++
		if err := f(r); err != nil {
			return fmt.Errorf("%s: step %d: %w: %w", s.path, step, ErrCorrupt, err)
		}
	}
}

// fill decodes the next rows and reports whether there are any.
func (s *source[R]) fill(err *error) bool {
	if s.done {
		return false
	}
	if s.buf == nil {
		s.buf = make([]R, min(batchRows, max(1, s.r.NumRows())))
	}
	s.buf, s.next = s.buf[:cap(s.buf)], 0
	n, e := s.r.Read(s.buf)
	s.buf = s.buf[:n]
	if e != nil {
		s.done = true
		if !errors.Is(e, io.EOF) {
			*err = fmt.Errorf("%s: %w: %w", s.path, ErrCorrupt, e)
			return false
		}
	}
	return n > 0
}

func (s *source[R]) close() error { return errors.Join(s.r.Close(), s.file.Close()) }
