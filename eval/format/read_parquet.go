package format

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// parquetMagic is how a Parquet file begins. No JSON does.
const parquetMagic = "PAR1"

// jsonOf returns a report as JSON: as it is, or of the rows of a Parquet file what the
// JSON has of them, so that there is one reader of both.
func jsonOf(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	if head, err := b.Peek(len(parquetMagic)); err != nil || string(head) != parquetMagic {
		return b, nil //nolint:nilerr // what is shorter is said when it is read as JSON
	}
	data, err := io.ReadAll(b)
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	text, err := parquetAsJSON(data)
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	return bytes.NewReader(text), nil
}

// parquetAsJSON returns the JSON of a file of runs.
func parquetAsJSON(data []byte) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // the decoder panics on some damaged files
			err = fmt.Errorf("it is no whole Parquet file: %v", p)
		}
	}()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("it is no whole Parquet file: %w", err)
	}
	schema, ok := f.Lookup(keySchemaVersion)
	version, err := strconv.Atoi(schema)
	if !ok || err != nil {
		return nil, errors.New("it is no Parquet file of runs: it has no " + keySchemaVersion)
	}
	program, _ := f.Lookup(keyVersion)
	config, _ := f.Lookup(keyConfig)
	about, _ := f.Lookup(keyMetrics)
	var metrics []parquetMetric
	if err := json.Unmarshal([]byte(about), &metrics); err != nil {
		return nil, fmt.Errorf("%s: %w", keyMetrics, err)
	}
	rows, err := parquetRows(f)
	if err != nil {
		return nil, err
	}
	runs, cases := runsOf(rows, metrics)
	return json.Marshal(map[string]any{"schema_version": version, "version": program, "config": json.RawMessage(config), "cases": cases, "runs": runs})
}

// runsOf splits rows into runs and the windows that they are of, each in order.
func runsOf(rows []map[string]any, metrics []parquetMetric) (runs, cases []map[string]any) {
	type window struct{ scenario, number any }
	seen := map[window]bool{}
	for _, row := range rows {
		row["from"], row["to"] = instant(row["from"]), instant(row["to"])
		figures := map[string]any{}
		for _, m := range metrics {
			if v := row[m.Name]; v != nil {
				figures[m.Name] = v
			}
			delete(row, m.Name)
		}
		row["metrics"] = figures
		if w := (window{row["scenario"], row["window"]}); !seen[w] {
			seen[w] = true
			cases = append(cases, row) // its other keys are not those of a case
		}
		runs = append(runs, row)
	}
	return runs, cases
}

// parquetRows returns the rows of f by the names of their columns, without those that are
// null and empty lists.
func parquetRows(f *parquet.File) ([]map[string]any, error) {
	columns := f.Schema().Columns()
	r := parquet.NewReader(f)
	defer r.Close()
	var out []map[string]any
	buf := make([]parquet.Row, 64)
	for {
		n, err := r.ReadRows(buf)
		for _, row := range buf[:n] {
			values := make(map[string]any, len(columns))
			for _, v := range row {
				path := columns[v.Column()]
				switch {
				case v.IsNull():
				case len(path) > 1: // an element of a list
					list, _ := values[path[0]].([]any)
					values[path[0]] = append(list, v.String())
				default:
					values[path[0]] = valueOf(f, path[0], v)
				}
			}
			out = append(out, values)
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("its row %d: %w", len(out)+1, err)
		}
	}
}

// unsigned is the type of a column of uint64, whose values are stored as int64, and object
// that of one of JSON.
var (
	unsigned = parquet.Uint(64).Type().String()
	object   = parquet.JSON().Type().String()
)

// valueOf returns a value of a column as JSON has it.
func valueOf(f *parquet.File, column string, v parquet.Value) any {
	kind := ""
	if leaf, ok := f.Schema().Lookup(column); ok {
		kind = leaf.Node.Type().String()
	}
	switch {
	case v.Kind() == parquet.Boolean:
		return v.Boolean()
	case v.Kind() == parquet.Int64 && kind == unsigned:
		return v.Uint64()
	case v.Kind() == parquet.Int64:
		return v.Int64()
	case v.Kind() == parquet.Double:
		return v.Double()
	case kind == object:
		return json.RawMessage(v.String())
	}
	return v.String()
}
