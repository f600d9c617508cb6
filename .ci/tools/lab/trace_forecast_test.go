package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/tracetest"
)

// drawnTrace writes a small synthetic trace and returns its folder.
func drawnTrace(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "drawn")
	if code, _, stderr := call(t, "trace", "generate", "--preset", "aws-2024", "--seed", "5", "--markets", "40",
		"--days", "4", "--out", dir); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	return dir
}

// hazardOfAll returns the folder of a bundle that is the one shipped, but for giving a
// hazard to every type: drawn traces have few accelerators.
func hazardOfAll(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "..", "models", "builtin"))); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "MODEL_MANIFEST.json")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`,\s*"hazard_families": \[[^]]*\]`).ReplaceAll(text, nil)
	if len(all) == len(text) {
		t.Fatal("the manifest names no hazard_families")
	}
	if err := os.WriteFile(name, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// forecastTrace forecasts a trace and returns what was written.
func forecastTrace(t *testing.T, dir string, flags ...string) (string, *trace.Trace) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "forecasts")
	code, text, stderr := call(t, append([]string{"trace", "forecast", dir, "--every", "3h", "--out", out}, flags...)...)
	if code != cli.ExitOK || !strings.Contains(text, "nothing is known in them of what a cluster met") {
		t.Fatalf("exit code %d\n%s%s", code, text, stderr)
	}
	got, err := trace.Open(out, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out, got
}

// hazardsOf returns the values of the column hazard by market name, every three hours until to.
func hazardsOf(t *trace.Trace, to policy.Time) map[string][]float64 {
	out := map[string][]float64{}
	for i := range t.Series {
		s := &t.Series[i]
		k := 0
		for at := t.From; at < to; at = at.Add(3 * time.Hour) {
			for k+1 < len(s.At) && s.At[k+1] <= at {
				k++
			}
			if s.Hazard != nil && s.At[k] <= at {
				out[s.Name()] = append(out[s.Name()], s.Hazard[k])
			}
		}
	}
	return out
}

// What is forecast at a time follows from prices up to it: without the rest of the trace
// it is the same. Prices stay as they were, equal commands write equal bytes, and the
// file says what made it.
func TestTraceForecast(t *testing.T) {
	withONNX(t)
	dir := drawnTrace(t)
	bundle := hazardOfAll(t)
	whole, got := forecastTrace(t, dir, "--bundle", bundle)
	again, _ := forecastTrace(t, dir, "--bundle", bundle)
	a, b := tracetest.Files(t, whole), tracetest.Files(t, again)
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs between two equal calls", name)
		}
	}
	was, err := trace.Open(dir, trace.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cut := was.From.Add(48 * time.Hour)
	_, part := forecastTrace(t, dir, "--bundle", bundle, "--to", cut.Std().Format(time.RFC3339))
	early, full := hazardsOf(part, cut), hazardsOf(got, cut)
	numbers := 0
	for name, values := range full {
		for i, h := range values {
			if h > 0 {
				numbers++
			}
			if early[name][i] != h {
				t.Fatalf("%s: %v is forecast at the time number %d, and %v without what lies behind %v", name, h, i, early[name][i], cut)
			}
		}
	}
	if numbers == 0 {
		t.Error("nothing is forecast")
	}
	for i := range was.Series {
		s, x := &was.Series[i], &got.Series[i]
		k := 0
		for j, at := range x.At {
			for k+1 < len(s.At) && s.At[k+1] <= at {
				k++
			}
			if s.Name() != x.Name() || x.Spot[j] != s.Spot[k] {
				t.Fatalf("%s costs %v at %v, and %s did %v before", x.Name(), x.Spot[j], at, s.Name(), s.Spot[k])
			}
		}
	}
	if got.Meta["forecast.bundle"] != bundle || len(got.Meta["forecast.sha256"]) != 64 || !got.Synthetic {
		t.Errorf("the trace says %v, synthetic %v", got.Meta, got.Synthetic)
	}
}

// TestTraceForecastOfAccelerators: no hazard is written for types that a bundle leaves to
// the closed form. In a run it would replace what the run's cluster observed.
func TestTraceForecastOfAccelerators(t *testing.T) {
	withONNX(t)
	_, got := forecastTrace(t, drawnTrace(t))
	for i := range got.Series {
		s := &got.Series[i]
		kind, _ := catalog.Lookup(s.Provider, s.Type)
		if s.Hazard != nil && kind.GPUResource == "" && slices.ContainsFunc(s.Hazard, func(h float64) bool { return h >= 0 }) {
			t.Errorf("%s has the forecast %v", s.Name(), s.Hazard)
		}
	}
}

func TestTraceForecastWrongCalls(t *testing.T) {
	dir := drawnTrace(t)
	wrongCallIs(t, "--out is missing", "trace", "forecast", dir)
	wrongCallIs(t, "--every: 7m0s", "trace", "forecast", dir, "--out", t.TempDir(), "--every", "7m")
	wrongCallIs(t, "--from", "trace", "forecast", dir, "--out", t.TempDir(), "--from", "monday")
	wrongCallIs(t, "--to", "trace", "forecast", dir, "--out", t.TempDir(), "--from", "2026-01-02", "--to", "2026-01-01")
	wrongCallIs(t, "nowhere", "trace", "forecast", filepath.Join(dir, "nowhere"), "--out", t.TempDir())
	wrongCallIs(t, "embedded", "trace", "forecast", "--out", t.TempDir(), "--from", "2026-01-02")
	wrongCallIs(t, "--bundle: ", "trace", "forecast", dir, "--out", t.TempDir(), "--bundle", "nowhere")
	without(t)
	wrongCallIs(t, bundles.ONNXAdvice, "trace", "forecast", dir, "--out", t.TempDir())
}
