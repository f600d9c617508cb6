package recorded

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrFormat is returned for a file that is not a workload recording of a known format.
var ErrFormat = errors.New("no recorded workload that is understood")

// ErrEmpty is returned when nothing of a recording is left to run.
var ErrEmpty = errors.New("no workload is left")

// bytesMax is the most that one file may hold, after unpacking.
const bytesMax = 8 << 30

// An input is one open file, unpacked.
type input struct {
	path string
	name string // of the file, without its folder
	*bufio.Reader
	closers []io.Closer
}

func open(path string) (*input, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	in := &input{path: path, name: filepath.Base(path), closers: []io.Closer{f}}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s is a folder; give the files in it", path), in.Close())
	}
	in.Reader = bufio.NewReaderSize(f, 1<<16)
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in.Reader)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: unpacking: %w", path, err), in.Close())
		}
		in.closers = append(in.closers, z)
		in.Reader = bufio.NewReaderSize(z, 1<<16)
	}
	in.Reader = bufio.NewReaderSize(&limited{in.Reader, bytesMax}, 1<<16)
	return in, nil
}

// A limited reader fails after left bytes, where io.LimitReader would make a truncated file
// look complete.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("it holds more than %d GiB", bytesMax>>30)
	}
	return n, err
}

// Close closes the file.
func (in *input) Close() error {
	var err error
	for _, c := range slices.Backward(in.closers) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// columns are those by which a table is known, by format.
var columns = []struct {
	format string
	names  []string
}{
	{FormatOpenB, []string{"cpu_milli", "memory_mib", "num_gpu", "qos", "creation_time", "deletion_time",
		"scheduled_time"}},
	{FormatSnowflake, []string{"USAGE_HOUR", "REGION_NUM", "INSTANCE_TYPE", "NORM_USAGE"}},
	{FormatBatch, []string{"submit_time", "duration", "cpu", "memory", "instances_num"}},
	{FormatRequests, []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}},
}

// sniff tells the format of in by its first bytes.
func (in *input) sniff() (string, error) {
	head, err := in.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return "", fmt.Errorf("%s: %w", in.path, err)
	}
	if len(bytes.TrimSpace(head)) == 0 {
		return "", fmt.Errorf("%s: %w: it is empty", in.path, ErrFormat)
	}
	if bytes.TrimSpace(head)[0] == '{' || packedMap(head[0]) {
		return FormatSimKube, nil
	}
	first, _, _ := strings.Cut(string(head), "\n")
	names := strings.Split(strings.TrimSpace(strings.TrimPrefix(first, "\ufeff")), ",")
	for _, c := range columns {
		if !slices.ContainsFunc(c.names, func(n string) bool { return !slices.Contains(names, n) }) {
			return c.format, nil
		}
	}
	return "", fmt.Errorf("%s: %w: its first line is %.80q", in.path, ErrFormat, first)
}

// A table is a CSV file whose first line names its columns.
type table struct {
	in     *input
	csv    *csv.Reader
	column map[string]int
	row    []string
	line   int
	err    error
}

// openTable reads the first line of in, which must name the columns of format.
func openTable(in *input, format string) (*table, error) {
	t := &table{in: in, csv: csv.NewReader(in), column: map[string]int{}}
	t.csv.ReuseRecord = true
	header, err := t.csv.Read()
	if err != nil {
		return nil, fmt.Errorf("%s:1: %w", in.path, err)
	}
	for i, n := range header {
		t.column[strings.TrimPrefix(n, "\ufeff")] = i
	}
	for _, c := range columns {
		for _, n := range c.names {
			if _, ok := t.column[n]; !ok && c.format == format {
				return nil, fmt.Errorf("%s:1: %w: it has no column %q", in.path, ErrFormat, n)
			}
		}
	}
	return t, nil
}

// next reads a row and reports whether there is one.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		return false
	}
	if err != nil {
		t.err = fmt.Errorf("%s: %w", t.in.path, err)
		return false
	}
	t.row = row
	t.line, _ = t.csv.FieldPos(0)
	return true
}

func (t *table) text(column string) string { return strings.TrimSpace(t.row[t.column[column]]) }

// fail keeps the first fault of the table.
func (t *table) fail(column, format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("%s:%d: field %q: %s", t.in.path, t.line, column, fmt.Sprintf(format, args...))
	}
}

// number reads a number from least to most.
func (t *table) number(column string, least, most float64) float64 {
	x, err := strconv.ParseFloat(t.text(column), 64)
	if err != nil || math.IsNaN(x) {
		t.fail(column, "%q is not a number", t.text(column))
		return 0
	}
	if x < least || x > most {
		t.fail(column, "%v is not from %v to %v", x, least, most)
		return 0
	}
	return x
}

// integer reads a whole number from 0 to most.
func (t *table) integer(column string, most int64) int64 {
	x := t.number(column, 0, float64(most))
	if x != math.Trunc(x) {
		t.fail(column, "%q is not a whole number", t.text(column))
	}
	return int64(x)
}

// seconds reads a time in seconds, to the millisecond.
func (t *table) seconds(column string) time.Duration {
	return inSeconds(t.number(column, 0, secondsMost))
}

// secondsMost bounds recorded times: about thirty years.
const secondsMost = 1e9

func inSeconds(x float64) time.Duration {
	return time.Duration(math.Round(float64(x*1000))) * time.Millisecond
}

// instants are the ways in which calendar times are written; none of a zone
// means UTC.
var instants = []string{
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", time.RFC3339Nano, time.DateOnly,
}

func parseInstant(text string) (time.Time, bool) {
	for _, layout := range instants {
		if t, err := time.Parse(layout, text); err == nil && t.Unix() >= 0 {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// instant reads a calendar time.
func (t *table) instant(column string) time.Time {
	at, ok := parseInstant(t.text(column))
	if !ok {
		t.fail(column, "%q is not a time such as 2021-02-01 00:00:00", t.text(column))
	}
	return at
}
