package importer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// twoTimes and twoDecimals are those of twoPrices.
var (
	twoTimes    = []time.Time{time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 7, 30, 0, 0, time.UTC)}
	twoDecimals = []string{"0.041200", "0.053312"}
)

// parquetOf returns a Parquet file with the rows of columns.
func parquetOf(t testing.TB, columns parquet.Group, values map[string][]parquet.Value, options ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[any](&b, append(options, parquet.NewSchema("prices", columns))...)
	paths := parquet.NewSchema("prices", columns).Columns()
	for k := range values[strings.Join(paths[0], ".")] {
		var row parquet.Row
		for i, path := range paths {
			v := values[strings.Join(path, ".")][k]
			level := 0
			if columns[path[0]].Optional() && !v.IsNull() {
				level = 1
			}
			row = append(row, v.Level(0, level, i))
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func stringValues(texts ...string) (values []parquet.Value) {
	for _, text := range texts {
		values = append(values, parquet.ByteArrayValue([]byte(text)))
	}
	return values
}

// timeColumns are two times as writers store them.
func timeColumns() map[string]struct {
	node   parquet.Node
	values []parquet.Value
} {
	int64s := func(of func(time.Time) int64) (values []parquet.Value) {
		for _, at := range twoTimes {
			values = append(values, parquet.Int64Value(of(at)))
		}
		return values
	}
	texts := func(layout string) []parquet.Value {
		return stringValues(twoTimes[0].Format(layout), twoTimes[1].Format(layout))
	}
	var int96s []parquet.Value
	for _, at := range twoTimes {
		day, nanos := at.Unix()/86400, uint64(at.Unix()%86400)*1e9
		int96s = append(int96s, parquet.Int96Value(deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(day + 2440588)}))
	}
	type column = struct {
		node   parquet.Node
		values []parquet.Value
	}
	return map[string]column{
		"ms":             {parquet.Timestamp(parquet.Millisecond), int64s(time.Time.UnixMilli)},
		"us":             {parquet.Timestamp(parquet.Microsecond), int64s(time.Time.UnixMicro)},
		"ns, optional":   {parquet.Optional(parquet.Timestamp(parquet.Nanosecond)), int64s(time.Time.UnixNano)},
		"by a clock":     {parquet.TimestampAdjusted(parquet.Microsecond, false), int64s(time.Time.UnixMicro)},
		"seconds":        {parquet.Leaf(parquet.Int64Type), int64s(time.Time.Unix)},
		"INT64 of ms":    {parquet.Optional(parquet.Leaf(parquet.Int64Type)), int64s(time.Time.UnixMilli)},
		"INT64 of ns":    {parquet.Leaf(parquet.Int64Type), int64s(time.Time.UnixNano)},
		"text":           {parquet.Optional(parquet.String()), texts(time.RFC3339)},
		"text of pandas": {parquet.String(), texts("2006-01-02 15:04:05-07:00")},
		"bytes":          {parquet.Leaf(parquet.ByteArrayType), texts("2006-01-02 15:04:05.000 UTC")},
		"INT96":          {parquet.Optional(parquet.Leaf(parquet.Int96Type)), int96s},
	}
}

// decimal returns the two's complement of n in size bytes, or in as few as it takes if size is 0.
func decimal(n int64, size int) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 8), uint64(n))
	if size == 0 { // a byte of zeros stays, so that the first bit is no sign
		return append([]byte{0}, bytes.TrimLeft(b, "\x00")...)
	}
	return b[16-size:]
}

// priceColumns are two prices as writers store them.
func priceColumns() map[string]struct {
	node   parquet.Node
	values []parquet.Value
} {
	values := func(of func(micros int64) parquet.Value) []parquet.Value {
		return []parquet.Value{of(41_200), of(53_312)}
	}
	type column = struct {
		node   parquet.Node
		values []parquet.Value
	}
	return map[string]column{
		"DOUBLE": {parquet.Optional(parquet.Leaf(parquet.DoubleType)),
			values(func(n int64) parquet.Value { return parquet.DoubleValue(float64(n) / 1e6) })},
		"FLOAT": {parquet.Leaf(parquet.FloatType),
			values(func(n int64) parquet.Value { return parquet.FloatValue(float32(n) / 1e6) })},
		"text": {parquet.Optional(parquet.String()), stringValues(twoDecimals...)},
		"INT32 decimal": {parquet.Decimal(6, 9, parquet.Int32Type),
			values(func(n int64) parquet.Value { return parquet.Int32Value(int32(n)) })},
		"INT64 decimal": {parquet.Optional(parquet.Decimal(8, 18, parquet.Int64Type)),
			values(func(n int64) parquet.Value { return parquet.Int64Value(n * 100) })},
		"fixed decimal": {parquet.Optional(parquet.Decimal(6, 38, parquet.FixedLenByteArrayType(16))),
			values(func(n int64) parquet.Value { return parquet.FixedLenByteArrayValue(decimal(n, 16)) })},
		"short decimal": {parquet.Decimal(6, 10, parquet.FixedLenByteArrayType(5)),
			values(func(n int64) parquet.Value { return parquet.FixedLenByteArrayValue(decimal(n, 5)) })},
		"decimal of bytes": {parquet.Decimal(6, 20, parquet.ByteArrayType),
			values(func(n int64) parquet.Value { return parquet.ByteArrayValue(decimal(n, 0)) })},
	}
}

// Whatever types a writer chooses for times and prices, and however it packs them, two prices
// are the same two prices.
func TestImportParquet(t *testing.T) {
	types := stringValues("r6i.large", "c7g.xlarge")
	zones := stringValues("us-west-2b", "us-west-2c")
	times, prices := timeColumns(), priceColumns()
	check := func(name, text string) {
		t.Run(name, func(t *testing.T) {
			_, report := checkImport(t, Options{}, twoPrices, put(t, "part-0", text))
			if report.Rows != 2 || report.Bad != 0 || report.Formats[0] != "Parquet of Spot prices" {
				t.Errorf("%+v", report)
			}
		})
	}
	for name, c := range times {
		check("time "+name, parquetOf(t, parquet.Group{
			"Timestamp": c.node, "InstanceType": parquet.String(), "AvailabilityZone": parquet.String(), "SpotPrice": prices["text"].node,
		}, map[string][]parquet.Value{"Timestamp": c.values, "InstanceType": types, "AvailabilityZone": zones, "SpotPrice": prices["text"].values}))
	}
	for name, c := range prices {
		check("price "+name, parquetOf(t, parquet.Group{
			"t": times["us"].node, "instance_type": parquet.Optional(parquet.Encoded(parquet.String(), &parquet.RLEDictionary)),
			"az": parquet.Encoded(parquet.String(), &parquet.RLEDictionary), "price": c.node, "__index_level_0__": parquet.Leaf(parquet.Int64Type),
		}, map[string][]parquet.Value{
			"t": times["us"].values, "instance_type": types, "az": zones, "price": c.values,
			"__index_level_0__": {parquet.Int64Value(0), parquet.Int64Value(1)},
		}))
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd,
		&parquet.Lz4Raw, &parquet.Brotli} {
		for _, version := range []int{1, 2} {
			check(codec.String()+" "+string(rune('0'+version)), parquetOf(t, parquet.Group{
				"time": times["ns, optional"].node, "type": parquet.String(), "zone": parquet.Optional(parquet.String()), "spot price": prices["fixed decimal"].node,
			}, map[string][]parquet.Value{"time": times["ns, optional"].values, "type": types, "zone": zones, "spot price": prices["fixed decimal"].values},
				parquet.Compression(codec), parquet.DataPageVersion(version)))
		}
	}
}

type responses struct {
	Region string
	Prices []historyEntry `parquet:"SpotPriceHistory,list"`
	Tags   []string       `parquet:"tags,list"`
}

type historyEntry struct {
	AvailabilityZone, InstanceType, Timestamp string
	SpotPrice                                 *float32
}

// A row may hold a list of prices.
func TestImportNestedParquet(t *testing.T) {
	first, second := float32(0.0412), float32(0.053312)
	var b bytes.Buffer
	err := parquet.Write(&b, []responses{
		{"us-west-2", []historyEntry{
			{"us-west-2b", "r6i.large", "2026-01-01T06:00:00Z", &first},
			{"us-west-2b", "r6i.large", "2026-01-01T07:00:00Z", nil},
		}, []string{"x", "y", "z"}},
		{"us-west-2", []historyEntry{{"us-west-2c", "c7g.xlarge", "2026-01-01T07:30:00Z", &second}}, nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	src := put(t, "nested.parquet", b.String())
	_, report := checkImport(t, Options{}, twoPrices, src)
	if report.Rows != 3 || !reflect.DeepEqual(report.BadRows, []string{src + ":row 1: no price"}) {
		t.Errorf("%+v", report)
	}
}

// Damaged files, other columns and files that need no import result in errors that say so. No such
// file makes the importer allocate memory without bound.
func TestImportParquetRefuses(t *testing.T) {
	columns := parquet.Group{"Timestamp": parquet.String(), "InstanceTyp": parquet.String(),
		"AvailabilityZone": parquet.String(), "SpotPrice": parquet.String()}
	values := map[string][]parquet.Value{
		"Timestamp": stringValues("2026-01-01T06:00:00Z"), "InstanceTyp": stringValues("m5.large"),
		"AvailabilityZone": stringValues("us-east-1a"), "SpotPrice": stringValues("1"),
	}
	path := put(t, "x.parquet", parquetOf(t, columns, values))
	if _, _, err := Import([]string{path}, Options{}); !errors.Is(err, trace.ErrFormat) ||
		!strings.Contains(err.Error(),
			`x.parquet: format not understood: its columns are "AvailabilityZone", "InstanceTyp", "SpotPrice", "Timestamp"; missing are the instance type (as instance_type), of which column "InstanceTyp" comes nearest`) {
		t.Error(err)
	}
	tr, _, err := Import([]string{put(t, "p.csv", tables["snake case"])}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "own")
	if err := trace.Write(dir, tr); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Import([]string{dir}, Options{}); !errors.Is(err, trace.ErrStored) {
		t.Error(err)
	}
	columns["InstanceType"] = parquet.String()
	values["InstanceType"] = values["InstanceTyp"]
	delete(columns, "InstanceTyp")
	for name := range values {
		values[name] = slices.Repeat(values[name], 300)
	}
	whole := parquetOf(t, columns, values, parquet.Compression(&parquet.Lz4Raw))
	for i := 4; i < len(whole); i += 7 {
		damaged := []byte(whole)
		damaged[i] ^= 0x55
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if tr, _, err := Import([]string{path}, Options{}); err == nil && len(tr.Series) == 0 {
			t.Errorf("byte %d: no series and no error", i)
		}
	}
	if _, _, err := Import([]string{put(t, "cut", whole[:len(whole)/2])}, Options{}); !errors.Is(err, trace.ErrCorrupt) {
		t.Errorf("cut: %v", err)
	}
}

// Pages that a compression hardly makes smaller are read as they are: the same rows are the
// same trace, whatever packed them.
func TestImportCompressions(t *testing.T) {
	n := 5000
	values := map[string][]parquet.Value{}
	for i := range n {
		r := uint64(i) * 0x9e3779b97f4a7c15 // no order, so that nothing repeats
		values["timestamp"] = append(values["timestamp"], parquet.Int64Value(int64(1_767_225_600_000+r%2_000_000_000)))
		values["price"] = append(values["price"], parquet.DoubleValue(float64(r>>40)/1e9))
		values["az"] = append(values["az"], parquet.ByteArrayValue([]byte("us-east-1"+string(rune('a'+r>>32%6)))))
		values["instance_type"] = append(values["instance_type"], parquet.ByteArrayValue([]byte("m5.large")))
	}
	columns := parquet.Group{
		"timestamp": parquet.Timestamp(parquet.Millisecond), "price": parquet.Leaf(parquet.DoubleType),
		"az": parquet.Encoded(parquet.String(), &parquet.RLEDictionary), "instance_type": parquet.String(),
	}
	var want string
	for _, codec := range []compress.Codec{&parquet.Zstd, &parquet.Lz4Raw, &parquet.Brotli} {
		for _, version := range []int{1, 2} {
			tr, report, err := Import([]string{put(t, "x", parquetOf(t, columns, values, parquet.Compression(codec),
				parquet.DataPageVersion(version), parquet.MaxRowsPerRowGroup(2000)))}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := describe(tr)
			if want == "" {
				want = got
			}
			if got != want || report.Rows != n || report.Bad != 0 {
				t.Errorf("%v, pages of version %d: %d bytes of text, want %d; %+v", codec, version, len(got), len(want), report)
			}
		}
	}
}
