package timeline

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// large is a week of 2,000 nodes, and what holding it takes in bytes.
var large = sync.OnceValues(func() (*Timeline, uint64) {
	b := &testing.B{}
	cfg := config(b, embedded(b, "bench-2000", 0), "spotvortex")
	before := heap()
	tl := New(cfg.Prepared, "spotvortex", cfg.Seed)
	w := cfg
	tl.Watch(&w)
	res, err := sim.Run(context.Background(), w)
	tl.Finish(res, err)
	if err != nil {
		panic(err)
	}
	w = sim.Config{}
	held := heap() - before
	runtime.KeepAlive(cfg.Prepared)
	return tl, held
})

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkAt shows instants at random of a week of 2,000 nodes, and what the
// timeline holds. Bounds: 100 ms, 100 MB.
func BenchmarkAt(b *testing.B) {
	tl, held := large()
	begin, _, to := tl.Span()
	rnd := rand.New(rand.NewPCG(1, 1))
	var f Frame
	tl.At(to, &f)
	worst := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		tl.At(begin+policy.Time(rnd.Int64N(int64(to-begin))), &f)
		worst = max(worst, time.Since(start))
	}
	b.ReportMetric(float64(held)/1e6, "MB")
	b.ReportMetric(float64(worst)/1e6, "worst-ms")
	b.ReportMetric(float64(tl.Events()), "events")
}

// BenchmarkFill runs the week with a timeline and without.
func BenchmarkFill(b *testing.B) {
	w := embedded(b, "bench-2000", 0)
	for _, name := range []string{"plain", "timeline"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				cfg := config(b, w, "spotvortex")
				if name == "timeline" {
					New(cfg.Prepared, "spotvortex", cfg.Seed).Watch(&cfg)
				}
				b.StartTimer()
				if _, err := sim.Run(context.Background(), cfg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
