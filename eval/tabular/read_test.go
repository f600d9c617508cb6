package tabular

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
)

// texts reads the columns of a table, a line of text each row.
func texts(data []byte, columns ...string) (out []string, err error) {
	t := Reader{
		Want: func(names []string) ([]int, error) { return Find(names, columns...), nil },
		Each: func(r Row) error {
			var line []string
			for i := range columns {
				line = append(line, r.Text(i))
			}
			out = append(out, strings.Join(line, " "))
			return nil
		},
	}
	return out, t.Read(bytes.NewReader(data), int64(len(data)))
}

// TestRead reads what is written here, in both forms: more rows than are read at once, nulls,
// and a column that is not there.
func TestRead(t *testing.T) {
	var rows []row
	var want []string
	for i := range 2*batch + 7 {
		r := row{name: fmt.Sprint("n", i%5), n: int64(i)}
		if i%5 == 3 {
			r.name = ""
		}
		rows = append(rows, r)
		hours := ""
		if r.name != "" {
			hours = decimal(r.n, 3)
		}
		want = append(want, strings.Join([]string{hours, r.name, "", decimal(r.n, 6)}, " "))
	}
	var p, c, z bytes.Buffer
	if err := WriteParquet(&p, table, slices.Values(rows), parquet.MaxRowsPerRowGroup(1500)); err != nil {
		t.Fatal(err)
	}
	if err := WriteCSV(&c, table, slices.Values(rows)); err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(&z)
	if _, err := w.Write(append([]byte("\ufeff"), c.Bytes()...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for form, data := range map[string][]byte{"Parquet": p.Bytes(), "CSV": c.Bytes(), "gzip": z.Bytes()} {
		got, err := texts(data, "h/o_u rs", "name", "none", "Cost")
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if form == "Parquet" { // it keeps the digits of its type
			for i := range got {
				got[i] = trimmed(got[i])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d; the fifth is %q, want %q", form, len(got), len(want), got[4], want[4])
		}
	}
	if _, err := texts(p.Bytes()[:p.Len()/2], "Name"); err == nil || !strings.Contains(err.Error(), "not a complete Parquet file") {
		t.Errorf("half of a file: %v", err)
	}
}

// trimmed leaves out zeros behind points.
func trimmed(line string) string {
	words := strings.Split(line, " ")
	for i, w := range words {
		if strings.Contains(w, ".") {
			words[i] = strings.TrimSuffix(strings.TrimRight(w, "0"), ".")
		}
	}
	return strings.Join(words, " ")
}

// TestForeign reads types of columns that others write.
func TestForeign(t *testing.T) {
	type foreign struct {
		Old   deprecated.Int96  `parquet:"old"`
		Micro time.Time         `parquet:"micro,timestamp(microsecond)"`
		Day   int32             `parquet:"day,date"`
		Price float64           `parquet:"price"`
		Tags  map[string]string `parquet:"tags"`
		Fixed [8]byte           `parquet:"fixed,decimal(2:18)"`
		Text  *string           `parquet:"text,optional"`
	}
	at := time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC)
	nanos := uint64(time.Hour)
	x := foreign{deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(julianEpoch + at.Unix()/86400)}, at,
		int32(at.Unix() / 86400), 0.125, map[string]string{"a": "b"}, [8]byte{255, 255, 255, 255, 255, 255, 255, 106}, nil}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[foreign](&b)
	if _, err := w.Write([]foreign{x}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := texts(b.Bytes(), "old", "micro", "day", "price", "tags", "fixed", "text")
	if want := "2026-03-02T01:00:00Z 2026-03-02T01:00:00Z 2026-03-02 0.125  -1.50 "; err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestTime reads times as exports write them.
func TestTime(t *testing.T) {
	want := time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC).UnixMilli()
	for _, text := range []string{"2026-03-02T01:00:00Z", "2026-03-02T02:00:00+01:00", "2026-03-02 01:00:00",
		"2026-03-02 01:00:00.000", "2026-03-02 01:00:00 UTC", "2026-03-02T01:00:00", "2026-03-02T01:00Z"} {
		if at, err := (Row{[]string{"t"}, []string{text}}).Time(0); err != nil || int64(at) != want {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
}
