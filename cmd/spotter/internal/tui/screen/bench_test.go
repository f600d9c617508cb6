package screen

import (
	"runtime"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
)

// large opens a week of 2,000 nodes under two policies and on-demand at 200 by 60.
func large(b *testing.B) *viewer {
	b.Helper()
	p, err := prepare("bench-2000", 7*24*time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	var o Opened
	for _, spec := range []string{"spotvortex", "static"} {
		r, err := p.run(spec)
		if err != nil {
			b.Fatal(err)
		}
		o.Runs = append(o.Runs, r)
	}
	base, err := p.run("on-demand")
	if err != nil {
		b.Fatal(err)
	}
	o.Baseline = base.Timeline
	v := &viewer{Model: New("bench-2000", draw.NewTheme(termenv.TrueColor, true)), t: b, clock: time.Unix(1_800_000_000, 0)}
	v.send(tea.WindowSizeMsg{Width: 200, Height: 60})
	v.send(o)
	v.send(Bounded{Cost: policy.Dollars(1)})
	return v
}

// BenchmarkView draws a frame of 2,000 nodes. It has 16 ms on a screen of 60
// frames a second and shall take half of them.
func BenchmarkView(b *testing.B) {
	v := large(b)
	v.press("space", "t", "sat 14:00", "enter")
	for _, one := range []struct {
		name string
		keys []string
	}{{"one", nil}, {"both", []string{"b"}}, {"nodes", []string{"b", "1", "z"}}} {
		v.press(one.keys...)
		b.Run(one.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v.View() == "" {
					b.Fatal("nothing is drawn")
				}
			}
		})
	}
}

// BenchmarkPlay shows the next moment of a week of 2,000 nodes that plays: a tick
// and the frame after it.
func BenchmarkPlay(b *testing.B) {
	v := large(b)
	b.ReportAllocs()
	for b.Loop() {
		v.wait(frameTime)
		if v.View() == "" {
			b.Fatal("nothing is drawn")
		}
	}
}

// BenchmarkScrub jumps to far moments and draws each, and says what the process
// holds: three timelines of a week of 2,000 nodes.
func BenchmarkScrub(b *testing.B) {
	v := large(b)
	v.press("space")
	s := v.play.shown()
	length := int64(s.to - s.from)
	var worst time.Duration
	n := int64(0)
	for b.Loop() {
		n++
		start := time.Now()
		v.play.seek(s.from + policy.Time(n*7_919*60_007%length))
		v.refresh()
		if v.View() == "" {
			b.Fatal("nothing is drawn")
		}
		worst = max(worst, time.Since(start))
	}
	b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	b.ReportMetric(float64(mem.HeapAlloc>>20), "heap-MB")
	runtime.KeepAlive(v)
}
