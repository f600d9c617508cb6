//go:build cgo && (linux || darwin)

package qnet

import (
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/models/onnx"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// session opens the graph of a bundle of n, or skips the test where there is no
// ONNX Runtime.
func session(t testing.TB, n *Net) models.Session {
	t.Helper()
	path := os.Getenv("SPOTTER_ONNXRUNTIME")
	if path == "" {
		path = filepath.Join("..", "..", "..", "..", "bin", "libonnxruntime.so.1")
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("SPOTTER_MODELS") == "required" {
			t.Fatalf("%v: run `make onnxruntime`", err)
		}
		t.Skipf("%v: run `make onnxruntime`", err)
	}
	if _, err := onnx.Start(path); err != nil {
		t.Fatal(err)
	}
	files, err := (&Trained{Net: n}).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{}
	for _, f := range files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	b, err := models.Open(fsys, "aws")
	if err != nil {
		t.Fatal(err)
	}
	s, err := onnx.Open(b.Actions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := models.Probe(b.Actions, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestONNX compares what ONNX Runtime makes of the graph with the network: of
// random networks, whose values are near 1, to 1e-5.
func TestONNX(t *testing.T) {
	const rows = 300
	for seed := range uint64(3) {
		n := NewNet(seed)
		for i := range n.layers[advantage2].w {
			n.layers[advantage2].w[i] *= 5
		}
		s := session(t, n)
		in := make([]float32, 0, rows*inputs)
		for i := range uint64(rows) {
			in = append(in, row(chance.Stream(seed, "row").At1(i))...)
		}
		out := [][]float32{make([]float32, rows*actions)}
		if err := s.Run(rows, in, out); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			for a, want := range n.Values(in[i*inputs : (i+1)*inputs]) {
				if got := out[0][i*actions+a]; math.Abs(float64(got-want)) > 1e-5 {
					t.Fatalf("network %d, row %d, action %d: %v, want %v", seed, i, a, got, want)
				}
			}
		}
	}
}

// BenchmarkDecisions measures decisions per second of processor time, in batches
// of 256.
func BenchmarkDecisions(b *testing.B) {
	const rows = 256
	s := session(b, NewNet(1))
	in := make([]float32, 0, rows*inputs)
	for i := range uint64(rows) {
		in = append(in, row(chance.Stream(1, "row").At1(i))...)
	}
	out := [][]float32{make([]float32, rows*actions)}
	before := used(b)
	n := 0
	for b.Loop() {
		if err := s.Run(rows, in, out); err != nil {
			b.Fatal(err)
		}
		n += rows
	}
	b.ReportMetric(float64(n)/(used(b)-before), "decisions/CPU-s")
}

// used returns the processor time of the process in seconds.
func used(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
