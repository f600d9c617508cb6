package format

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
)

// written returns a report, in which a run failed, with what it is of and its JSON.
func written(t *testing.T) (eval.Config, *eval.Report, string) {
	t.Helper()
	c := shown()
	r, err := eval.Run(t.Context(), c, fake{fail: func(j eval.Job) bool { return j.Policy == "spot" && j.Seed == 3 }}.run)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	return c, r, out.String()
}

// TestReadRuns: what one build writes another reads, to the micro-dollar, and
// what is no report is refused.
func TestReadRuns(t *testing.T) {
	_, r, text := written(t)
	runs, err := ReadRuns(strings.NewReader(text))
	if err != nil || len(runs) != len(r.Runs) {
		t.Fatalf("%d of %d runs: %v", len(runs), len(r.Runs), err)
	}
	whole, err := ReadReport(strings.NewReader(text))
	if err != nil || !slices.Equal(whole.Policies, r.Config.Policies) || !slices.Equal(whole.Seeds, r.Config.Seeds) ||
		len(whole.Cases) != len(r.Config.Cases) {
		t.Fatalf("the report is %+v, %v", whole, err)
	}
	for i, k := range whole.Cases {
		if w := r.Config.Cases[i].Bound; policy.Time(k.From) != w.Start || k.Duration() != w.Duration || k.Evidence != eval.EvidenceOf(w) {
			t.Errorf("window %d is %+v, want that from %v", i, k, w.Start)
		}
	}
	for i := range runs {
		a, b := &runs[i], &r.Runs[i]
		if a.Scenario != b.Scenario || a.Window != b.Window || a.Seed != b.Seed || a.Policy != b.Policy || (a.Err != "") != (b.Err != nil) {
			t.Fatalf("run %d is %+v", i, a)
		}
		if b.Err == nil && (a.Bill != b.Result.Bill || a.OutageCost != b.Result.OutageCost || a.OutageMinutes != b.Result.OutageMinutes ||
			a.Hash != hex.EncodeToString(b.Result.Hash[:]) || a.Weather != hex.EncodeToString(b.Result.Weather[:])) {
			t.Errorf("run %d is %+v, want bill %v", i, a, b.Result.Bill)
		}
		if b.Err == nil && (a.Rough || a.SpotBill != b.Result.SpotBill || a.JobCost != b.Result.JobCost ||
			a.CapacityHours != b.Result.CapacityHours || a.SpotShare != b.Result.SpotShare) {
			t.Errorf("run %d is %+v, want %v of it for Spot and %v hours", i, a, b.Result.SpotBill, b.Result.CapacityHours)
		}
	}
	older, err := ReadRuns(strings.NewReader(strings.ReplaceAll(text, `"capacity_hours"`, `"other_hours"`)))
	if err != nil || !older[0].Rough || older[0].Bill != runs[0].Bill {
		t.Errorf("a program that does not report capacity: %+v, %v", older[0], err)
	}
	for _, bad := range []struct{ text, want string }{
		{"usage: spotter", "invalid character"},
		{"", "EOF"},
		{text[:len(text)/2], "unexpected EOF"},
		{"{}", "schema_version"},
		{strings.Replace(text, `"schema_version": 2`, `"schema_version": 1`, 1), "that of spotter v0.1.0 is 1, and this one reads 2"},
		{strings.Replace(text, `"bill_usd"`, `"bill_eur"`, 40), "lacks one of bill_usd"},
	} {
		if _, err := ReadRuns(strings.NewReader(bad.text)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%.20q: %v, want %q", bad.text, err, bad.want)
		}
	}
}
