package format

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/sim"
)

// kept returns r as Parquet.
func kept(t *testing.T, r *eval.Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := writeParquet(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestParquet holds every figure of every run bit for bit, null where it is unknown, in
// columns of the type that its unit says, and equal bytes for equal reports.
func TestParquet(t *testing.T) {
	_, r, _ := written(t)
	r.Runs[1].Seed = math.MaxUint64
	data := kept(t, r)
	for range 5 {
		if !bytes.Equal(data, kept(t, r)) {
			t.Fatal("two files of one report differ")
		}
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[any](bytes.NewReader(data), int64(len(data)))
	if err != nil || len(rows) != len(r.Runs) {
		t.Fatalf("%d rows of %d runs: %v", len(rows), len(r.Runs), err)
	}
	for i := range rows {
		row, run := rows[i].(map[string]any), &r.Runs[i]
		if row["seed"] != int64(run.Seed) || //nolint:gosec // it is stored so
			row["from"] != int64(run.Bound.Start) || row["to"] != int64(run.End()) || row["baseline"] != (run.Policy == r.Config.Baseline) ||
			row["scenario_digest"] != eval.EvidenceOf(run.Bound).File || row["version"] != "v0.1.0" {
			t.Fatalf("row %d is %v", i, row)
		}
		for _, m := range eval.Metrics() {
			v, got := run.Value(m.Name), row[m.Name]
			switch {
			case !v.Known && got != nil, v.Known && m.YesNo() && got != (v.V != 0), v.Known && m.Whole() && got != int64(v.V):
				t.Errorf("row %d: %s is %v, want %v", i, m.Name, got, v)
			case v.Known && !m.YesNo() && !m.Whole():
				if x, ok := got.(float64); !ok || math.Float64bits(x) != math.Float64bits(v.V) {
					t.Errorf("row %d: %s is %v, want %v", i, m.Name, got, v)
				}
			case m.Whole() && v.V != math.Trunc(v.V):
				t.Errorf("%s is %v, and its unit %s counts", m.Name, v.V, m.Unit)
			}
		}
	}
	for column, want := range map[string]string{"from": "TIMESTAMP", "seed": "INT(64,false)", "bill_usd": "DOUBLE",
		"node_launches": "INT", "improvement_floored": "BOOLEAN", "scenario": "STRING"} {
		leaf, ok := f.Schema().Lookup(column)
		if !ok || !strings.Contains(leaf.Node.Type().String(), want) {
			t.Errorf("column %s is %v, want %s", column, leaf.Node, want)
		}
	}
	if about, _ := f.Lookup(keyMetrics); !strings.Contains(about, `{"name":"bill_usd","unit":"$"`) {
		t.Errorf("the file says of its metrics %s", about)
	}
}

// withoutBounds takes from a case what Parquet does not have of it.
func withoutBounds(k *eval.CaseReport) {
	k.Oracle, k.OracleOnDemand, k.OracleSlots, k.Warnings = eval.Value{}, eval.Value{}, eval.Value{}, nil
}

// TestReadParquet reads from Parquet what is read from JSON.
func TestReadParquet(t *testing.T) {
	_, r, _ := written(t)
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Err == nil {
			run.Result.Violations, run.Result.Budgets = []string{"a", "b"}, []sim.BudgetResult{{Name: "gpus", Peak: 0.5}}
		}
	}
	var out bytes.Buffer
	if err := writeJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	data, text := string(kept(t, r)), out.String()
	report, err := ReadReport(strings.NewReader(data))
	want, _ := ReadReport(strings.NewReader(text))
	for i := range want.Cases {
		withoutBounds(&want.Cases[i])
	}
	if err != nil || !reflect.DeepEqual(report, want) {
		t.Errorf("%v: the report is %.2000v, want %.2000v", err, report, want)
	}
	results, err := ReadResults(strings.NewReader(data))
	list, _ := ReadResults(strings.NewReader(text))
	for i := range list.Runs {
		withoutBounds(list.Runs[i].Case)
	}
	if err != nil || !reflect.DeepEqual(results, list) {
		t.Errorf("%v: the runs are %+v, want %+v", err, results.Runs[0], list.Runs[0])
	}
	var a, b struct{ Runs []map[string]any }
	converted, err := parquetAsJSON([]byte(data))
	if err != nil || json.Unmarshal(converted, &a) != nil || json.Unmarshal([]byte(text), &b) != nil || len(a.Runs) != len(b.Runs) {
		t.Fatalf("%v: %d runs, want %d", err, len(a.Runs), len(b.Runs))
	}
	outages := 0
	for i := range b.Runs {
		for key, want := range b.Runs[i] {
			if !reflect.DeepEqual(a.Runs[i][key], want) {
				t.Errorf("run %d: %s is %v, want %v", i, key, a.Runs[i][key], want)
			}
		}
		if b.Runs[i]["outage"] != nil && b.Runs[i]["violations"] != nil {
			outages++
		}
	}
	if outages == 0 {
		t.Error("no run has an outage and violations")
	}
	var other bytes.Buffer
	if err := parquet.Write(&other, []struct{ A int64 }{{1}}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ text, want string }{
		{data[:len(data)/2], "not a whole Parquet file"},
		{other.String(), "no Parquet file of runs"},
	} {
		if _, err := ReadResults(strings.NewReader(bad.text)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %q", err, bad.want)
		}
	}
}
