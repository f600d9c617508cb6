package format

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
)

// Every output says that it is incomplete, and of how many runs it is.
func TestIncompleteOutputs(t *testing.T) {
	r, err := stoppedAfter(t, shown(), 14)
	if err != nil {
		t.Fatal(err)
	}
	const says = "INCOMPLETE: stopped after 12 of 40 runs"
	for _, f := range []Format{Table, Markdown, JUnit} {
		var b bytes.Buffer
		if err := Write(&b, r, f, Options{Width: 0, Details: true}); err != nil || !strings.Contains(b.String(), says) {
			t.Errorf("%s, %v, does not say so:\n%s", f, err, b.String())
		}
		first, _, _ := strings.Cut(b.String(), "\n")
		if (f == Table || f == Markdown) && !strings.Contains(first, says) {
			t.Errorf("the title of %s is %q", f, first)
		}
	}
	var b bytes.Buffer
	if err := writeJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var j struct {
		Incomplete bool              `json:"incomplete"`
		RunsDone   int               `json:"runs_done"`
		RunCount   int               `json:"run_count"`
		Passed     bool              `json:"passed"`
		Cases      []eval.CaseReport `json:"cases"`
	}
	if err := json.Unmarshal(b.Bytes(), &j); err != nil {
		t.Fatal(err)
	}
	if !j.Incomplete || j.RunsDone != 12 || j.RunCount != 40 || j.Passed || len(j.Cases) != 2 || j.Cases[0].Oracle.Known {
		t.Errorf("JSON: incomplete %t, %d of %d runs, passed %t, %+v", j.Incomplete, j.RunsDone, j.RunCount, j.Passed, j.Cases)
	}
	if runs, err := ReadRuns(&b); err != nil || len(runs) != 12 {
		t.Errorf("JSON has %d runs, %v", len(runs), err)
	}
	b.Reset()
	if err := writeCSV(&b, r); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 13 {
		t.Fatalf("CSV has %d lines, %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		if row[slices.Index(rows[0], "incomplete")] != "true" || row[slices.Index(rows[0], "runs_done")] != "12" ||
			row[slices.Index(rows[0], "run_count")] != "40" {
			t.Errorf("a line of CSV is not marked: %v", row)
		}
	}
	b.Reset()
	var suites junitSuites
	if err := writeJUnit(&b, r); err != nil || xml.Unmarshal(b.Bytes(), &suites) != nil ||
		suites.Errors != 1+len(r.Gates) || suites.Failures != 0 {
		t.Errorf("JUnit has %d errors and %d failures, %v", suites.Errors, suites.Failures, err)
	}
}
