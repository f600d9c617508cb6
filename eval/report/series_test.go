package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A week is sampled by the hour, and every window in whole minutes.
func TestSampleEvery(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		7 * day: time.Hour, 48 * time.Hour: 18 * time.Minute, 10 * time.Minute: time.Minute, 30 * day: 258 * time.Minute,
	} {
		if got := SampleEvery(window); got != want {
			t.Errorf("%v: every %v, want %v", window, got, want)
		}
	}
}

// A course has the median of the runs at each sample, by the time since the
// window of each began.
func TestMedianCourse(t *testing.T) {
	c := shown("web-week")
	c.Seeds = c.Seeds[:3]
	r := compared(t, c, fake{samples: 4})
	for i := range r.Runs { // the k-th sample of the run with seed s costs k·s dollars
		for k := range r.Runs[i].Result.Samples {
			r.Runs[i].Result.Samples[k].Bill = policy.Dollar * policy.Money(uint64(k+1)*r.Runs[i].Seed)
		}
	}
	got := medianCourse(r, &r.Groups[0], 2, func(s sim.Sample) (float64, bool) { return s.Bill.Float(), true })
	if fmt.Sprint(got.x, got.y) != "[6 12 18 24] [2 4 6 8]" {
		t.Errorf("the course is %v, %v", got.x, got.y)
	}
	odd := medianCourse(r, &r.Groups[0], 2, func(s sim.Sample) (float64, bool) { return 1, s.Bill > 3*policy.Dollar })
	if !slices.Equal(odd.x, []float64{12, 18, 24}) {
		t.Errorf("a figure without a value at first begins at %v", odd.x)
	}
}

// Every reclaim of a run that was sampled is in one cell, whatever the number of
// markets, and markets that share the last row are counted.
func TestReclaimMap(t *testing.T) {
	c := shown("web-week")
	r := compared(t, c, fake{samples: 2})
	for k := range c.Cases {
		w := r.Config.Cases[k].Bound
		for i := len(w.Markets); i < mapRows+9; i++ {
			m := w.Markets[1]
			m.ID, m.Name = policy.MarketID(i), fmt.Sprintf("aws/r/a/t%02d/spot", i)
			w.Markets = append(w.Markets, m)
		}
	}
	want := 0
	for i := range r.Runs {
		res := r.Runs[i].Result
		for k := range res.Taken {
			res.Taken[k].Market = policy.MarketID(2 + (i+k)%(mapRows+7))
			want++
		}
	}
	m := reclaims(r, &r.Groups[0])
	got := 0
	for _, row := range m.values {
		for _, v := range row {
			got += v
		}
	}
	if got != want || m.total != want || m.runs != len(r.Runs) {
		t.Errorf("%d nodes in cells, %d in all of %d runs, want %d of %d", got, m.total, m.runs, want, len(r.Runs))
	}
	if n := len(m.rows); n != mapRows+1 || m.rows[n-1] != "7 other markets" {
		t.Errorf("%d rows, the last is %q", n, m.rows[n-1])
	}
	if first, last := m.edges[0], m.edges[mapColumns]; last-first != 2*86400 {
		t.Errorf("the map is %v s long, want two days", last-first)
	}
}

func TestShort(t *testing.T) {
	if got, want := short("static:share=0.123456789:and-more-parameters"), "static:share=…e-parameters"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
