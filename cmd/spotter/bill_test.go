package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/record"
)

// billed returns the sum of a column of a CSV, over rows in which a column has a value.
func billed(t *testing.T, text, column, where, value string) float64 {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) < 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	place := map[string]int{}
	for i, name := range lines[0] {
		place[name] = i
	}
	sum := 0.0
	for _, l := range lines[1:] {
		if l[place[where]] == value {
			x, err := strconv.ParseFloat(l[place[column]], 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += x
		}
	}
	return sum
}

// said calls spotter and returns what it prints.
func said(t *testing.T, args ...string) string {
	t.Helper()
	code, out, stderr := call(t, args...)
	if code != cli.ExitOK {
		t.Fatalf("%v: exit %d\n%s", args, code, stderr)
	}
	return out
}

// billedRuns compares policies, and returns where the results are and what portfolio under
// seed 2 cost.
func billedRuns(t *testing.T) (dir string, want float64) {
	t.Helper()
	dir = t.TempDir()
	said(t, "eval", "tiny", "--trace", "synthetic", "--policies", "portfolio", "--seeds", "2", "--intensity", "20",
		"--out", filepath.Join(dir, "r.json"), "--out", filepath.Join(dir, "r.parquet"))
	var results struct {
		Runs []struct {
			Policy  string
			Seed    uint64
			Metrics map[string]any
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err == nil {
		err = json.Unmarshal(data, &results)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results.Runs {
		if bill, ok := r.Metrics["bill_usd"].(float64); ok && r.Policy == "portfolio" && r.Seed == 2 {
			want = bill
		}
	}
	if want == 0 {
		t.Fatal("the run costs nothing")
	}
	return dir, want
}

// TestBill: what spotter eval says that a run costs is what its bills add up to, in each
// form, of a scenario and of results in JSON and Parquet.
func TestBill(t *testing.T) {
	dir, want := billedRuns(t)
	same := func(what string, got float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	same("the scenario", billed(t, said(t, "bill", "tiny", "--trace", "synthetic", "--policy", "portfolio", "--seed",
		"2", "--intensity", "20"), "BilledCost", "SubAccountId", "portfolio@2"))
	for _, file := range []string{"r.json", "r.parquet"} {
		out := filepath.Join(dir, "bill.csv")
		said(t, "bill", filepath.Join(dir, file), "karpenter@1", "portfolio@2", "--granularity", "day", "--out", out)
		rows, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		same(file, billed(t, string(rows), "BilledCost", "SubAccountId", "portfolio@2"))
		if billed(t, string(rows), "BilledCost", "SubAccountId", "karpenter@1") <= 0 {
			t.Errorf("%s: karpenter@1 costs nothing", file)
		}
	}
	var answer struct {
		Data []map[string]struct{ TotalCost float64 }
	}
	if err := json.Unmarshal([]byte(said(t, "bill", filepath.Join(dir, "r.json"), "portfolio@2", "--format", "opencost",
		"--aggregate", "controller")), &answer); err != nil || len(answer.Data) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	sum := 0.0
	for _, a := range answer.Data[0] {
		sum += a.TotalCost
	}
	same("OpenCost", sum)
	if _, there := answer.Data[0]["__idle__"]; !there {
		t.Error("nothing is idle")
	}
}

// TestBillOfResults: runs are named, and one that is another when it is done again is
// refused.
func TestBillOfResults(t *testing.T) {
	dir, _ := billedRuns(t)
	path := filepath.Join(dir, "r.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(data), `"hash": "`, `"hash": "00`)
	wrongCallIs(t, "it differs from the run in the file", "bill", file(t, "changed.json", changed), "portfolio@2")
	wrongCallIs(t, "none is named", "bill", path)
	wrongCallIs(t, "it has no run spot@2", "bill", path, "spot@2")
	wrongCallIs(t, "2 runs are named", "bill", path, "portfolio@1", "portfolio@2", "--format", "opencost")
	wrongCallIs(t, "its runs have their own prices", "bill", path, "portfolio@1", "--seed", "4")
}

// TestBillOfRecording: that of a simulation names itself, and that of a cluster does not
// know its account.
func TestBillOfRecording(t *testing.T) {
	dir := recordedRun(t, "static")
	code, out, stderr := call(t, "bill", dir)
	if code != cli.ExitOK || !strings.Contains(stderr, "are charged until the second") {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	all := billed(t, out, "BilledCost", "BillingAccountId", "simulated/tiny.yaml")
	if all <= 0 {
		t.Errorf("it costs %v", all)
	}
	table := said(t, "bill", dir, "--savings", "namespace")
	for _, want := range []string{" saved of ", "MONTH", "NAMESPACE", "ON DEMAND $", "SAVED %", "2026-01", "default", "__idle__"} {
		if !strings.Contains(table, want) {
			t.Errorf("the savings lack %q:\n%s", want, table)
		}
	}
	live := filepath.Join(t.TempDir(), "live")
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := record.NewWriter(live, record.Meta{Policy: "static", Scenario: "live"})
	for s, stepErr := range r.Steps() {
		err = errors.Join(err, stepErr, w.Record(t.Context(), s.Snapshot, &s.Memory, &s.Plan))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	wrongCallIs(t, "a recording does not say which account is billed", "bill", live)
	if code, out, stderr := call(t, "bill", live, "--account", "42"); code != cli.ExitOK ||
		billed(t, out, "BilledCost", "BillingAccountId", "42") != all {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if code, out, stderr := call(t, "bill", live, "--format", "opencost"); code != cli.ExitOK || !strings.Contains(out, `"code": 200`) {
		t.Errorf("exit %d\n%s", code, stderr) // it names no account
	}
	wrongCallIs(t, "leave RUN and the flags of a run out", "bill", dir, "--seed", "3")
	if err := os.RemoveAll(filepath.Join(dir, "segment=00001")); err != nil {
		t.Fatal(err)
	}
	wrongCallIs(t, "is incomplete", "bill", dir)
}

// TestBillRefuses what cannot be written, before anything is run.
func TestBillRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{`"focs" is unknown`, []string{"--format", "focs"}},
		{"focus is written as .csv or .parquet", []string{"--out", "bill.json"}},
		{"opencost is written as .json", []string{"--format", "opencost", "--out", "bill.csv"}},
		{`"week" is not a granularity`, []string{"--granularity", "week"}},
		{"label:KEY", []string{"--format", "opencost", "--aggregate", "pods"}},
		{"it is for --format opencost", []string{"--aggregate", "node"}},
		{`--savings: "team" is not one of`, []string{"--savings", "team"}},
		{"it is a table of its own", []string{"--savings", "namespace", "--by", "pool"}},
		{"it is a table of its own", []string{"--savings", "namespace", "--format", "focus"}},
		{"no such file or directory", []string{"--out", "none/bill.csv"}},
		{"a scenario has no run x@1", []string{"x@1"}},
	} {
		wrongCallIs(t, c.want, append([]string{"bill", "tiny"}, c.args...)...)
	}
}
