package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A foreignRow is a row as another program might store it: microseconds, plain
// strings, 64-bit integers, and provider and region as columns.
type foreignRow struct {
	Time     time.Time `parquet:"time,timestamp(microsecond)"`
	Provider string    `parquet:"provider"`
	Region   string    `parquet:"region"`
	Zone     string    `parquet:"zone,optional"`
	Type     string    `parquet:"instance_type,dict"`
	Spot     *float64  `parquet:"spot_price,optional"`
	Band     *int64    `parquet:"interruption_band,optional"`
	Ignored  string    `parquet:"note"`
}

func foreign(minute int, zone string, price float64) foreignRow {
	return foreignRow{
		Time: at(1, 0).Std().Add(time.Duration(minute) * time.Minute), Provider: "aws", Region: "us-east-1",
		Zone: zone, Type: "m5.large", Spot: &price,
	}
}

// writeRows writes rows to a file and returns its name.
func writeRows[T any](t testing.TB, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[T](f, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// Other programs sort by time alone, use other encodings and leave options
// out; what is there must come out all the same.
func TestForeignFile(t *testing.T) {
	band := int64(2)
	rows := []foreignRow{
		foreign(0, "b", 0.5), foreign(1, "a", 0.096), foreign(2, "b", 0.6), foreign(3, "a", 0.096), foreign(4, "b", 0.6),
	}
	rows[2].Band = &band
	rows[4].Band = &band
	rows[3].Spot = nil
	path := writeRows(t, rows, parquet.DataPageVersion(1), parquet.MaxRowsPerRowGroup(2))
	tr, err := Open(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Series) != 2 || tr.Synthetic || tr.From != at(1, 0) || tr.To != at(1, 0)+4*60_000 {
		t.Fatalf("%+v", tr)
	}
	a, b := tr.Series[0], tr.Series[1]
	if a.Name() != "aws/us-east-1/a/m5.large" || len(a.At) != 2 || a.Spot[0] != 96_000 || a.Spot[1] != policy.NoPrice {
		t.Errorf("%+v", a)
	}
	if len(b.At) != 2 || b.Spot[1] != 600_000 || b.Band[0] != -1 || b.Band[1] != 2 || b.At[1] != at(1, 0)+120_000 {
		t.Errorf("%+v", b)
	}
}

// A nanosecond before a millisecond belongs to the one before it.
func TestTimesAreRoundedDown(t *testing.T) {
	type row struct {
		Time int64   `parquet:"time,timestamp(nanosecond)"`
		Zone string  `parquet:"zone"`
		Type string  `parquet:"instance_type"`
		Spot float64 `parquet:"spot_price"`
	}
	path := writeRows(t, []row{{1_000_999_999, "z", "t", 1}})
	tr, err := Open(path, ReadOptions{Provider: "p", Region: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if got := tr.Series[0].At[0]; got != 1_000 {
		t.Errorf("time %d", got)
	}
}

func TestUnknownRegion(t *testing.T) {
	type row struct {
		Time time.Time `parquet:"time,timestamp(millisecond)"`
		Zone string    `parquet:"zone"`
		Type string    `parquet:"instance_type"`
		Spot float64   `parquet:"spot_price"`
	}
	path := writeRows(t, []row{{at(1, 0).Std(), "z", "t", 1}})
	if _, err := Open(path, ReadOptions{Provider: "aws"}); !errors.Is(err, ErrNoRegion) || !strings.Contains(err.Error(), `"region"`) {
		t.Errorf("without a region: %v", err)
	}
	tr, err := Open(path, ReadOptions{Provider: "aws", Region: "r"})
	if err != nil || tr.Series[0].Name() != "aws/r/z/t" {
		t.Errorf("with both: %v, %v", tr, err)
	}
	folder := filepath.Join(t.TempDir(), "provider=x", "region=y")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	if err := os.WriteFile(filepath.Join(folder, "f.parquet"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	tr, err = Open(filepath.Join(folder, "f.parquet"), ReadOptions{})
	if err != nil || tr.Series[0].Name() != "x/y/z/t" {
		t.Errorf("from the path: %v, %v", tr, err)
	}
}

func TestBadValues(t *testing.T) {
	good := []foreignRow{foreign(0, "a", 0.5), foreign(1, "a", 0.6), foreign(2, "a", 0.7)}
	change := func(f func(rows []foreignRow)) []foreignRow {
		rows := append([]foreignRow(nil), good...)
		f(rows)
		return rows
	}
	price := func(v float64) []foreignRow { return change(func(r []foreignRow) { r[1].Spot = &v }) }
	nine := int64(9)
	for name, c := range map[string]struct {
		rows []foreignRow
		want error
		text []string
	}{
		"negative price": {price(-0.25), ErrValue, []string{"spot_price", "row 2", "negative", "-0.25"}},
		"not a number":   {price(math.NaN()), ErrValue, []string{"spot_price", "row 2", "NaN"}},
		"infinite":       {price(math.Inf(1)), ErrValue, []string{"spot_price", "row 2", "+Inf"}},
		"absurd":         {price(1e300), ErrValue, []string{"spot_price", "row 2", "1e+300"}},
		"no zone":        {change(func(r []foreignRow) { r[2].Zone = "" }), ErrValue, []string{"zone", "row 3", "null"}},
		"clock going back": {
			change(func(r []foreignRow) { r[1].Time, r[2].Time = r[2].Time, r[1].Time }), ErrOrder,
			[]string{"column time", "row 3", "aws/us-east-1/a/m5.large", "00:01", "after", "00:02"},
		},
		"two prices at once": {
			change(func(r []foreignRow) { r[2].Time = r[1].Time }), ErrOrder, []string{"row 3", "00:01"},
		},
		"before 1970": {
			change(func(r []foreignRow) { r[0].Time = time.Unix(-5, 0) }), ErrValue, []string{"column time", "row 1", "-5000"},
		},
		"band": {
			change(func(r []foreignRow) { r[1].Band = &nine }), ErrValue, []string{"interruption_band", "row 2", "9"},
		},
	} {
		path := writeRows(t, c.rows)
		_, err := Open(path, ReadOptions{})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
			continue
		}
		for _, text := range append(c.text, path) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", name, err, text)
			}
		}
	}
}

// The row that is named counts across pages and row groups, and through nulls.
func TestBadValueIsFound(t *testing.T) {
	for _, where := range []int{0, 1, 699, 700, 1399, 1400, 1999} {
		rows := make([]foreignRow, 2000)
		for i := range rows {
			rows[i] = foreign(i, "a", float64(i))
			if i%3 == 2 && i != where {
				rows[i].Spot = nil
			}
		}
		v := -float64(where) - 0.5
		rows[where].Spot = &v
		path := writeRows(t, rows, parquet.MaxRowsPerRowGroup(700), parquet.PageBufferSize(512))
		var fault *FileError
		_, err := Open(path, ReadOptions{})
		if !errors.As(err, &fault) || fault.Row != int64(where)+1 {
			t.Errorf("at row %d: %v", where+1, err)
		}
	}
}

func TestWrongColumns(t *testing.T) {
	type missing struct {
		Time time.Time `parquet:"time,timestamp(millisecond)"`
		Zone string    `parquet:"zone"`
		Type string    `parquet:"instance_type"`
		Cost float64   `parquet:"cost"`
	}
	type text struct {
		Time time.Time `parquet:"time,timestamp(millisecond)"`
		Zone string    `parquet:"zone"`
		Type string    `parquet:"instance_type"`
		Spot string    `parquet:"spot_price"`
	}
	type number struct {
		Time int64   `parquet:"time"`
		Zone string  `parquet:"zone"`
		Type string  `parquet:"instance_type"`
		Spot float64 `parquet:"spot_price"`
	}
	type list struct {
		Time time.Time `parquet:"time,timestamp(millisecond)"`
		Zone []string  `parquet:"zone"`
		Type string    `parquet:"instance_type"`
		Spot float64   `parquet:"spot_price"`
	}
	now := at(1, 0).Std()
	for name, c := range map[string]struct{ path, column, text string }{
		"missing": {writeRows(t, []missing{{now, "z", "t", 1}}), "spot_price", "cost"},
		"string":  {writeRows(t, []text{{now, "z", "t", "1"}}), "spot_price", "DOUBLE"},
		"no time": {writeRows(t, []number{{5, "z", "t", 1}}), "time", "TIMESTAMP"},
		"list":    {writeRows(t, []list{{now, []string{"z"}, "t", 1}}), "zone", "STRING"},
	} {
		_, err := Open(c.path, ReadOptions{Provider: "p", Region: "r"})
		var fault *FileError
		if !errors.Is(err, ErrColumn) || !errors.As(err, &fault) || fault.Column != c.column ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForeignContent(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte("t,az,instance_type,price\n"))
	z.Close()
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(chance.Key(9).At1(uint64(i)))
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":        {nil, ErrNotTrace},
		"noise":        {noise, ErrNotTrace},
		"framed noise": {append(append([]byte("PAR1"), noise...), "PAR1"...), ErrCorrupt},
		"CSV":          {[]byte("t,az,instance_type,price\n1,use1-az1,m5.large,0.1\n"), ErrNotTrace},
		"JSON":         {[]byte(`{"SpotPriceHistory":[]}`), ErrNotTrace},
		"gzip":         {zipped.Bytes(), ErrNotTrace},
		"magic only":   {[]byte("PAR1"), ErrCorrupt},
		"magic twice":  {[]byte("PAR1PAR1"), ErrCorrupt},
		"no footer":    {[]byte("PAR1\x00\x00\x00\x00PAR1"), ErrCorrupt},
	} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, ReadOptions{}); !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestNoTrace(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere"), ReadOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	if _, err := Open(t.TempDir(), ReadOptions{}); !errors.Is(err, ErrNotTrace) {
		t.Errorf("an empty folder: %v", err)
	}
	path := writeRows(t, []foreignRow{})
	if _, err := Open(path, ReadOptions{}); !errors.Is(err, ErrEmpty) {
		t.Errorf("no rows: %v", err)
	}
	folder := filepath.Join(t.TempDir(), "provider=aws", "region=r", "date=2026-02-31")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(folder, "f.parquet")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Dir(folder), ReadOptions{}); !errors.Is(err, ErrNotTrace) || !strings.Contains(err.Error(), "2026-02-31") {
		t.Errorf("no date: %v", err)
	}
}

// The metadata must fit what the file holds.
func TestMetadataThatDoNotFit(t *testing.T) {
	rows := []foreignRow{foreign(0, "a", 1), foreign(60, "a", 2)}
	text := func(now policy.Time) string { return now.Std().Format(time.RFC3339) }
	for name, c := range map[string]struct {
		key, value string
		want       error
		says       string
	}{
		"begins later":  {metaFrom, text(at(1, 0.5)), ErrCorrupt, "row 1"},
		"ends earlier":  {metaTo, text(at(1, 0.5)), ErrCorrupt, "row 2"},
		"no time":       {metaTo, "soon", ErrValue, "soon"},
		"column gone":   {metaColumns, "time,gone", ErrColumn, "gone"},
		"checksum":      {metaSum, "0", ErrCorrupt, "checksum"},
		"newer version": {metaSchema, "2", ErrVersion, `"2"`},
	} {
		path := writeRows(t, rows, parquet.KeyValueMetadata(c.key, c.value))
		if _, err := Open(path, ReadOptions{}); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v and %q", name, err, c.want, c.says)
		}
	}
	path := writeRows(t, rows, parquet.KeyValueMetadata(metaTo, text(at(9, 0))))
	tr, err := Open(path, ReadOptions{})
	if err != nil || tr.To != at(9, 0) || tr.WholeTo != at(9, 0) {
		t.Errorf("ends later: %v, %v", tr, err)
	}
}

// Compression without a bound on its output is refused.
func TestCompression(t *testing.T) {
	rows := []foreignRow{foreign(0, "a", 1)}
	if _, err := Open(writeRows(t, rows, parquet.Compression(&parquet.Lz4Raw)), ReadOptions{}); !errors.Is(err, ErrFormat) {
		t.Errorf("LZ4: %v", err)
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd} {
		if _, err := Open(writeRows(t, rows, parquet.Compression(codec)), ReadOptions{}); err != nil {
			t.Errorf("%v: %v", codec, err)
		}
	}
}

// A writer gives up a dictionary that grows too long in the middle of a
// column.
func TestDictionaryGivenUp(t *testing.T) {
	type row struct {
		Time time.Time `parquet:"time,timestamp(millisecond),dict"`
		Zone string    `parquet:"zone,dict"`
		Type string    `parquet:"instance_type,dict"`
		Spot *float64  `parquet:"spot_price,dict,optional"`
	}
	var rows []row
	for i := range 3000 {
		price := float64(i)
		rows = append(rows, row{at(1, float64(i)/60).Std(), "z", "t", &price})
		if i%7 == 3 {
			rows[i].Spot = nil
		}
	}
	path := writeRows(t, rows, parquet.DictionaryMaxBytes(2048), parquet.PageBufferSize(1024))
	tr, err := Open(path, ReadOptions{Provider: "p", Region: "r"})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := 0, &tr.Series[0]; i < len(rows); i++ {
		want := policy.Money(i) * policy.Dollar
		if i%7 == 3 {
			want = policy.NoPrice
		}
		if s.Spot[i] != want || s.At[i] != policy.TimeOf(rows[i].Time) {
			t.Fatalf("row %d: %v at %v", i, s.Spot[i], s.At[i])
		}
	}
}

func TestPagesThatDoNotFit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := WriteFile(path, small(t)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	src := &source{path: path, size: int64(len(data)), data: data}
	f, err := (&blockReader{count: new(int64)}).open(src, memory{bytes.NewReader(data)}, true)
	if err != nil {
		t.Fatal(err)
	}
	meta := f.Metadata().RowGroups[0].Columns[0].MetaData
	for rows := int64(8); rows <= 12; rows++ {
		if err := checkPages(f, &meta, rows); (err == nil) != (rows == 10) {
			t.Errorf("10 values for %d rows: %v", rows, err)
		}
	}
	meta.TotalCompressedSize--
	if err := checkPages(f, &meta, 10); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a column one byte short: %v", err)
	}
}

// Row groups that begin after the span are not read; earlier ones are, since
// they hold the price in force.
func TestLateRowGroupsAreSkipped(t *testing.T) {
	var rows []foreignRow
	for i := range 100 {
		rows = append(rows, foreign(i*60, "a", float64(i)))
	}
	path := writeRows(t, rows, parquet.MaxRowsPerRowGroup(10))
	read := 0
	o := ReadOptions{From: at(3, 0), To: at(3, 1.5)}
	if err := scan(path, o, func(_ *scanner, rows []row) { read += len(rows) }); err != nil || read != 50 {
		t.Errorf("%d rows read, %v", read, err)
	}
	tr, err := Open(path, o)
	if err != nil || len(tr.Series[0].At) != 26 || tr.Series[0].Spot[25].Float() != 49 {
		t.Errorf("%v, %v", tr, err)
	}
}

// A file that was cut short anywhere is an error, and never a panic.
func TestTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := WriteFile(path, small(t)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		_, err := load("t", &listing{files: []source{{path: "cut", size: int64(len(whole[:n:n])), data: whole[:n:n]}}}, ReadOptions{})
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNotTrace) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// A flipped bit is an error or changes nothing that is used; it never panics,
// and never turns one price into another.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	want := small(t)
	if err := WriteFile(path, want); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	failed, same, silent := 0, 0, 0
	const pace = 3 // odd, so that each bit of a byte is met
	for n := 0; n < len(whole); n += pace {
		data := bytes.Clone(whole)
		bit := n % 8
		data[n] ^= 1 << bit
		tr, err := load("t", &listing{files: []source{{path: "flipped", size: int64(len(data)), data: data}}}, ReadOptions{})
		switch {
		case err != nil:
			failed++
		case tr.Digest == want.Digest:
			same++
		default:
			silent++
			t.Logf("bit %d of byte %d of %d: read as another trace", bit, n, len(whole))
		}
	}
	if failed == 0 || silent > 0 {
		t.Errorf("%d flips were seen, %d changed nothing, %d were not seen", failed, same, silent)
	}
}

// scan calls visit with the rows of a trace in the order in which they are stored.
func scan(path string, o ReadOptions, visit func(s *scanner, rows []row)) error {
	found, err := findFiles(path, &o)
	if err != nil {
		return err
	}
	s := newScanner(&o, found.stored)
	s.meta = func(*parquet.File) error { return nil }
	s.visit = func(_ string, _ int64, rows []row) error {
		visit(s, rows)
		return nil
	}
	return s.files(context.Background(), found.files)
}
