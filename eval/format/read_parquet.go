package format

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/eval"
)

// parquetMagic is the start of a Parquet file. JSON cannot start with it.
const parquetMagic = "PAR1"

// jsonOf returns a report as JSON. It converts Parquet, so that one decoder reads both.
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

// parquetAsJSON converts a Parquet file of runs to JSON.
func parquetAsJSON(data []byte) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // the decoder panics on some damaged files
			err = fmt.Errorf("it is not a whole Parquet file: %v", p)
		}
	}()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("it is not a whole Parquet file: %w", err)
	}
	schema, ok := f.Lookup(keySchemaVersion)
	version, err := strconv.Atoi(schema)
	if !ok || err != nil {
		return nil, errors.New("it is no Parquet file of runs: it has no " + keySchemaVersion)
	}
	program, _ := f.Lookup(keyVersion)
	config, _ := f.Lookup(keyConfig)
	rows, err := parquet.Read[any](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("it is not a whole Parquet file: %w", err)
	}
	runs, cases, of := runsOf(rows)
	return json.Marshal(map[string]any{"schema_version": version, "version": program, "config": json.RawMessage(config),
		"cases": cases, "runs": runs, "case_of": of})
}

// runsOf splits rows into runs and their cases, one for each window and truth, each in order. of
// maps each run to the index of its case.
func runsOf(rows []any) (runs, cases []map[string]any, of []int) {
	type window struct{ scenario, number, truth any }
	seen := map[window]int{}
	for i := range rows {
		row, _ := rows[i].(map[string]any)
		maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
		figures := map[string]any{}
		for _, m := range eval.Metrics() {
			if v, known := row[m.Name]; known {
				figures[m.Name] = v
				delete(row, m.Name)
			}
		}
		row["metrics"] = figures
		asJSON(row)
		w := window{row["scenario"], row["window"], row["truth"]}
		if _, known := seen[w]; !known {
			seen[w] = len(cases)
			k := maps.Clone(row) // the other keys are not keys of a case
			delete(k, "warnings")
			cases = append(cases, k)
		}
		runs, of = append(runs, row), append(of, seen[w])
	}
	return runs, cases, of
}

// asJSON converts the values of a row to those of the JSON format.
func asJSON(row map[string]any) {
	for key, v := range row {
		switch x := v.(type) {
		case int64:
			switch key {
			case "from", "to":
				row[key] = eval.Instant(x)
			case "seed":
				row[key] = uint64(x) //nolint:gosec // it is stored so
			}
		case string:
			if key == "outage" || key == "budgets" {
				row[key] = json.RawMessage(x)
			}
		case []any:
			if len(x) == 0 {
				delete(row, key)
			}
		}
	}
}
