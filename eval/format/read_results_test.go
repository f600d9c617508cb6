package format

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
)

// TestReadResults: what is written can be done again from what is read, and what cannot
// is refused.
func TestReadResults(t *testing.T) {
	c, r, text := written(t)
	got, err := ReadResults(strings.NewReader(text))
	if err != nil || got.Baseline != c.Baseline || len(got.Runs) != len(r.Runs) {
		t.Fatalf("%+v, %v", got, err)
	}
	windows := map[eval.Instant]bool{}
	for i := range r.Runs {
		a, b := &got.Runs[i], &r.Runs[i]
		windows[a.Case.From] = true
		if k := a.Case; a.Scenario != b.Scenario || a.Seed != b.Seed || a.Policy != b.Policy || k.From != eval.Instant(b.Bound.Start) ||
			k.Intensity != b.Bound.Intensity || k.Truth != b.Bound.Truth.String() || k.Trace != b.Bound.Trace.Name {
			t.Fatalf("run %d is %+v of %+v", i, a, k)
		}
		if b.Err != nil {
			if a.Error == "" {
				t.Errorf("run %d failed, and is %+v", i, a)
			}
			continue
		}
		o := &b.Result.Outages
		if a.Hash != hex.EncodeToString(b.Result.Hash[:]) || a.Metrics.Of("outage_minutes").V != float64(o.OutageMinutes) ||
			a.Metrics.Of("outage_incidents").V != float64(o.Incidents) || a.Metrics.Of("outage_longest_s").V != o.Longest.Outage.Seconds() {
			t.Errorf("run %d is %+v, want %+v", i, a, o)
		}
	}
	if len(windows) != 2 {
		t.Errorf("the windows are %v", windows)
	}
	for _, bad := range []struct{ text, want string }{
		{"usage: spotter", "invalid character"},
		{"{}", "schema_version"},
		{`{"schema_version": 2}`, "no runs"},
		{strings.Replace(text, `"schema_version": 2`, `"schema_version": 3`, 1), "is 3, and this one reads 2"},
		{strings.Replace(text, `"cases"`, `"worlds"`, 1), "runs[0]: cases has no window 0 of web-week"},
	} {
		if _, err := ReadResults(strings.NewReader(bad.text)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%.20q: %v, want %q", bad.text, err, bad.want)
		}
	}
}
