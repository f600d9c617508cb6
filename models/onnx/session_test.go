//go:build cgo && (linux || darwin)

package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
)

// library starts ONNX Runtime, or skips the test where it is not installed.
func library(t testing.TB) {
	t.Helper()
	path := os.Getenv("SPOTTER_ONNXRUNTIME")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "libonnxruntime.so.1")
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("SPOTTER_MODELS") == "required" {
			t.Fatalf("%v: run `make onnxruntime`", err)
		}
		t.Skipf("%v: run `make onnxruntime`", err)
	}
	if _, err := Start(path); err != nil {
		t.Fatal(err)
	}
}

// shared returns a folder next to the repository, or skips.
func shared(t testing.TB, variable, name string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", name)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%v: name the folder by %s", err, variable)
	}
	return dir
}

// seed opens one of the bundles of the SpotVortex agent.
func seed(t testing.TB, name string) *models.Bundle {
	t.Helper()
	b, err := models.Open(os.DirFS(filepath.Join(shared(t, "SPOTTER_COMPAT", "compat"), "spotvortex", name)), "aws")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t testing.TB, n *models.Net) models.Session {
	t.Helper()
	s, err := Open(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A vector is what the agent's own program computed.
type vector struct {
	Name     string    `json:"name"`
	Spot     float64   `json:"spot_price"`
	OnDemand float64   `json:"on_demand_price"`
	History  []float64 `json:"price_history"`
	Unix     int64     `json:"unix_ts"`
	Input    []float64 `json:"tft_input"`
	Capacity float64   `json:"capacity_score"`
	Runtime  float64   `json:"runtime_score"`
	Context  *struct {
		Startup     float64 `json:"startup"`
		Migration   float64 `json:"mig"`
		Utilization float64 `json:"util"`
		Penalty     float64 `json:"pen"`
		Steps       float64 `json:"tsm"`
		Spot        bool    `json:"is_spot"`
		Share       float64 `json:"cur"`
		Target      float64 `json:"tgt"`
	} `json:"rl_context"`
	State  []float64 `json:"rl_input"`
	Values []float64 `json:"q_values"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(shared(t, "SPOTTER_GOLDEN", "golden"), "spotvortex_onnx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("%d vectors", len(all))
	}
	return all
}

const tolerance = 1e-5

func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if !(math.Abs(float64(got[i])-want[i]) <= tolerance*max(1, math.Abs(want[i]))) {
			t.Errorf("%s: number %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// TestGolden runs the shipped bundle on features that were built here, and
// compares features and answers with those of the agent's own program.
func TestGolden(t *testing.T) {
	library(t)
	b := seed(t, "models")
	forecaster, actions := open(t, b.Forecaster), open(t, b.Actions)
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			market := models.MarketState{Spot: v.Spot, OnDemand: v.OnDemand, History: v.History, Now: policy.Time(v.Unix * 1000)}
			capacity, risk := make([]float32, 1), make([]float32, 1)
			if v.Input != nil {
				row := make([]float32, 120)
				market.Row(row)
				near(t, "features", row, v.Input)
				if err := forecaster.Run(1, row, [][]float32{capacity, risk}); err != nil {
					t.Fatal(err)
				}
				near(t, "scores", []float32{capacity[0], risk[0]}, []float64{v.Capacity, v.Runtime})
			}
			state := make([]float32, 13)
			if c := v.Context; c != nil {
				pool := models.PoolState{
					Market: market, Capacity: float64(capacity[0]), Runtime: float64(risk[0]), Startup: c.Startup, MigrationCost: c.Migration,
					Penalty: c.Penalty, Steps: c.Steps, Utilization: c.Utilization, Spot: c.Spot, Share: c.Share, Target: c.Target,
				}
				pool.Row(state)
				near(t, "state", state, v.State)
			} else {
				for i := range state {
					state[i] = float32(v.State[i])
				}
			}
			values := make([]float32, 6)
			if err := actions.Run(1, state, [][]float32{values}); err != nil {
				t.Fatal(err)
			}
			near(t, "values", values, v.Values)
		})
	}
}

// TestOlderBundle runs the older bundle on the same rows: its answers are
// other ones, and finite.
func TestOlderBundle(t *testing.T) {
	library(t)
	b := seed(t, "models-2026-02-17")
	forecaster, actions := open(t, b.Forecaster), open(t, b.Actions)
	others := 0
	for _, v := range vectors(t) {
		if v.Input == nil {
			continue
		}
		row, state := make([]float32, 120), make([]float32, 13)
		for i := range row {
			row[i] = float32(v.Input[i])
		}
		for i := range state {
			state[i] = float32(v.State[i])
		}
		out := make([]float32, 8)
		if err := errors.Join(forecaster.Run(1, row, [][]float32{out[:1], out[1:2]}), actions.Run(1, state, [][]float32{out[2:]})); err != nil {
			t.Fatal(err)
		}
		for i, x := range out {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				t.Errorf("%s: number %d is %v", v.Name, i, x)
			}
		}
		if math.Abs(float64(out[0])-v.Capacity) > 0.01 {
			others++
		}
	}
	if others == 0 {
		t.Error("the older bundle answers as the shipped one")
	}
}

// TestBatches runs many rows at once, in numbers that fall between the buckets, from several
// goroutines, and compares with row by row.
func TestBatches(t *testing.T) {
	library(t)
	b := seed(t, "models")
	for _, net := range []*models.Net{b.Actions, b.Forecaster} {
		s := open(t, net)
		const most = 300
		in := make([]float32, most*net.Width)
		for i := range in {
			in[i] = float32(i%97) / 97
		}
		single := outputs(net, most)
		for r := range most {
			one := outputs(net, 1)
			if err := s.Run(1, in[r*net.Width:(r+1)*net.Width], one); err != nil {
				t.Fatal(err)
			}
			for i, w := range net.Widths {
				copy(single[i][r*w:], one[i])
			}
		}
		var wait sync.WaitGroup
		for _, rows := range []int{1, 2, 7, 8, 9, 63, 64, 65, 100, 256, 257, 300} {
			wait.Go(func() {
				for range 20 {
					got := outputs(net, rows)
					if err := s.Run(rows, in, got); err != nil {
						t.Error(err)
						return
					}
					for i, w := range net.Widths {
						for k := range rows * w {
							if d := math.Abs(float64(got[i][k] - single[i][k])); d > tolerance {
								t.Errorf("%s: %d rows: output %d, number %d is %v, and %v by itself", net.Model.Graph, rows, i, k, got[i][k], single[i][k])
								return
							}
						}
					}
				}
			})
		}
		wait.Wait()
		if err := s.Run(2, in[:net.Width], outputs(net, 2)); err == nil {
			t.Error("half of two rows was taken")
		}
	}
}

func outputs(n *models.Net, rows int) [][]float32 {
	out := make([][]float32, len(n.Widths))
	for i, w := range n.Widths {
		out[i] = make([]float32, rows*w)
	}
	return out
}

// TestClosed closes a session while it is used: calls under way end well, later
// ones fail, and nothing is freed twice.
func TestClosed(t *testing.T) {
	library(t)
	b := seed(t, "models")
	s, err := Open(b.Actions)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				if err := s.Run(3, make([]float32, 39), [][]float32{make([]float32, 18)}); err != nil {
					if !strings.Contains(err.Error(), "closed") {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	time.Sleep(10 * time.Millisecond)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	wait.Wait()
}

// TestDropped forgets sessions that were used: they are collected with what
// they hold, which must not end the process.
func TestDropped(t *testing.T) {
	library(t)
	b := seed(t, "models")
	for range 20 {
		s, err := Open(b.Actions)
		if err == nil {
			err = s.Run(3, make([]float32, 39), [][]float32{make([]float32, 18)})
		}
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
	}
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

// TestNoLeak calls a session a million times, one row at a time and by its
// buckets in turn, and compares the resident memory after a tenth of the calls
// with that at the end.
func TestNoLeak(t *testing.T) {
	library(t)
	if testing.Short() || raced {
		t.Skip("a million calls take long")
	}
	b := seed(t, "models")
	s := open(t, b.Actions)
	const calls = 1_000_000
	in, out := make([]float32, 8*13), [][]float32{make([]float32, 8*6)}
	early := 0
	for i := range calls {
		rows := 1
		if i%10 == 0 {
			rows = 8
		}
		if err := s.Run(rows, in, out); err != nil {
			t.Fatal(err)
		}
		if i == calls/10 {
			early = resident(t)
		}
	}
	if late := resident(t); late-early > 16<<10 {
		t.Errorf("resident memory went from %d to %d KiB", early, late)
	} else {
		t.Logf("resident memory went from %d to %d KiB", early, late)
	}
}

// resident returns the resident memory in KiB.
func resident(t *testing.T) int {
	t.Helper()
	runtime.GC()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("%v: resident memory is read from /proc alone", err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize() / 1024
}

// TestStart refuses another library, none, and one that is no ONNX Runtime.
func TestStart(t *testing.T) {
	library(t)
	if _, err := Start("/nowhere/libonnxruntime.so.1"); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "already") {
		t.Errorf("another library: %v", err)
	}
	for version, want := range map[string]bool{"1.24.3": true, "1.24.0": true, "1.29.1": true, "1.23.2": false,
		"1.30.0": false, "2.0.0": false, "x": false} {
		if supported(version) != want {
			t.Errorf("%s is supported: %v", version, !want)
		}
	}
}

// BenchmarkForecast scores 300 markets, of which the seed's graph takes one at
// a time.
func BenchmarkForecast(b *testing.B) {
	library(b)
	bundle := seed(b, "models")
	s := open(b, bundle.Forecaster)
	in, out := make([]float32, 300*120), outputs(bundle.Forecaster, 300)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Run(300, in, out); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkActions values the actions of 256 pools at once.
func BenchmarkActions(b *testing.B) {
	library(b)
	bundle := seed(b, "models")
	s := open(b, bundle.Actions)
	in, out := make([]float32, 256*13), outputs(bundle.Actions, 256)
	for b.Loop() {
		if err := s.Run(256, in, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(256*float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
