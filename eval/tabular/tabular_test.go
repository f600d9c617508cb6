package tabular

import (
	"bytes"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

// A row is one of the test.
type row struct {
	name string
	n    int64
}

// table has each kind of column.
var table = []Column[row]{
	Text("Name", func(r row) string { return r.name }),
	Time("At", func(r row) policy.Time { return policy.Time(r.n) * 1000 }),
	Decimal("Hours", 3, func(r row) (int64, bool) { return r.n, r.name != "" }),
	Money("Cost", func(r row) policy.Money { return policy.Money(r.n) }),
}

// TestCSV writes numbers exactly, and null as nothing.
func TestCSV(t *testing.T) {
	rows := []row{{"a,b", 1_500_000}, {"", -10}, {"c", 0}}
	var out bytes.Buffer
	if err := WriteCSV(&out, table, slices.Values(rows)); err != nil {
		t.Fatal(err)
	}
	const want = "Name,At,Hours,Cost\n\"a,b\",1970-01-18T08:40:00Z,1500,1.5\n,1969-12-31T23:59:50Z,,-0.00001\nc,1970-01-01T00:00:00Z,0,0\n"
	if out.String() != want {
		t.Errorf("it is\n%s, want\n%s", out.String(), want)
	}
}

// TestParquet reads back what was written, in the order of the table.
func TestParquet(t *testing.T) {
	rows := []row{{"a", 1_500_000}, {"", -10}}
	var out bytes.Buffer
	if err := WriteParquet(&out, table, slices.Values(rows), parquet.KeyValueMetadata("k", "v")); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := f.Lookup("k"); v != "v" {
		t.Errorf("k is %q", v)
	}
	for i, want := range [][2]string{{"Name", "STRING"}, {"At", "TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS)"},
		{"Hours", "DECIMAL(18,3)"}, {"Cost", "DECIMAL(18,6)"}} {
		field := f.Schema().Fields()[i]
		if field.Name() != want[0] || field.Type().String() != want[1] {
			t.Errorf("column %d is %s %s, want %v", i, field.Name(), field.Type(), want)
		}
	}
	type read struct {
		Name  string `parquet:"Name,optional"`
		At    int64  `parquet:"At,timestamp(millisecond)"`
		Hours *int64 `parquet:"Hours,decimal(3:18)"`
		Cost  int64  `parquet:"Cost,decimal(6:18)"`
	}
	got, err := parquet.Read[read](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[0].At != 1_500_000_000 || *got[0].Hours != 1_500_000 ||
		got[1].Hours != nil || got[1].Cost != -10 {
		t.Errorf("%+v, %v", got, err)
	}
}
