package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A run on a trace with forecasts passes them to the policy without ONNX Runtime, and uses the
// closed form where the trace has none. Before the start of the trace its first forecasts hold,
// as its first prices do.
func TestSimOnForecastTrace(t *testing.T) {
	without(t)
	forecasts, _, err := trace.EmbeddedNamed("embedded")
	if err != nil {
		t.Fatal(err)
	}
	for i := range forecasts.Series {
		s := &forecasts.Series[i]
		if i%3 == 0 {
			continue
		}
		for k := range s.At {
			h := float64(i+k%2) / 65536
			if i%2 == 1 && k%2 == 1 {
				h = -1 // nothing is forecast
			}
			s.Hazard = append(s.Hazard, h)
		}
	}
	if forecasts, err = trace.New("forecasts", forecasts.Series); err != nil {
		t.Fatal(err)
	}
	forecasts.Synthetic, forecasts.Meta = true, map[string]string{}
	dir := filepath.Join(t.TempDir(), "forecasts")
	if err := trace.Write(dir, forecasts); err != nil {
		t.Fatal(err)
	}
	steps := filepath.Join(t.TempDir(), "steps")
	scenario := file(t, "tiny.yaml", strings.Replace(tiny, "markets: {families: [m5], maxVCPU: 8}", "markets: {}", 1))
	if code, _, stderr := call(t, "sim", scenario, "--trace", dir, "--policy", "portfolio", "--check", "--record", steps); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r, err := record.Open(steps)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*trace.Series{}
	for i := range forecasts.Series {
		byName[forecasts.Series[i].Name()+"/spot"] = &forecasts.Series[i]
	}
	recorded := 0
	for s, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Snapshot.Markets {
			m := &s.Snapshot.Markets[i]
			want, x := -1.0, byName[m.Name]
			if x != nil && x.Hazard != nil {
				for k := 0; k < len(x.At) && x.At[k] <= max(s.Snapshot.Now, forecasts.From); k++ {
					want = x.Hazard[k]
				}
			}
			if got := m.Forecast; (want >= 0) != (got.Source == policy.SourceRecorded) || want >= 0 && got.Hazard != want {
				t.Fatalf("step %d: the forecast of %s is %+v, and the trace has %v", s.Number, m.Name, got, want)
			}
			if want >= 0 {
				recorded++
			}
		}
	}
	if recorded == 0 {
		t.Error("no forecast is the trace's")
	}
}
