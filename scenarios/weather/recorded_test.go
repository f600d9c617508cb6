package weather

import (
	"math"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// A recorded availability closes the market between the samples around its
// steps, takes slots as it falls, and is left alone by the intensity.
func TestRecordedAvailability(t *testing.T) {
	sample := func(i int) policy.Time { return begin + days(1) + policy.Time(i)*600_000 }
	up := []bool{true, true, false, false, true, true, false, true}
	a := &Availability{Up: up}
	for i := range up {
		a.At, a.Gap = append(a.At, sample(i)), append(a.Gap, 600_000)
	}
	m := spotMarkets(1)
	m[0].Available = a
	cfg := config(17)
	cfg.Slots = 300
	w := mustNew(t, cfg, m)
	shortages := w.Shortages(0)
	if len(shortages) != 2 {
		t.Fatalf("%d shortages, want 2", len(shortages))
	}
	for i, want := range [][4]int{{1, 2, 3, 4}, {5, 6, 6, 7}} {
		s := shortages[i]
		if s.From <= sample(want[0]) || s.From > sample(want[1]) || s.Until <= sample(want[2]) || s.Until > sample(want[3]) {
			t.Errorf("shortage %d from %v until %v", i, s.From, s.Until)
		}
		if w.Open(0, s.From) || !w.Open(0, s.From-1) || !w.Open(0, s.Until) {
			t.Errorf("shortage %d: the market is not closed exactly in it", i)
		}
	}
	taken := 0
	for slot := range cfg.Slots {
		for _, r := range reclaims(w, 0, slot, cfg.To) {
			taken++
			if r.Cause != CauseRecorded || w.Open(0, r.At) || r.At >= max(shortages[0].From, shortages[1].From)+180_000 {
				t.Fatalf("reclaim %+v", r)
			}
		}
	}
	if want := (shortages[0].Depth + shortages[1].Depth) * float64(cfg.Slots); math.Abs(float64(taken)-want) > 0.15*want {
		t.Errorf("%d slots are taken, want about %.0f", taken, want)
	}
	for _, intensity := range []float64{0, 50} {
		changed := cfg
		changed.Intensity = intensity
		v := mustNew(t, changed, m)
		for slot := range cfg.Slots {
			if !slices.Equal(reclaims(v, 0, slot, cfg.To), reclaims(w, 0, slot, cfg.To)) {
				t.Fatalf("intensity %v changes a recording", intensity)
			}
		}
	}
}

// A change is drawn anywhere in the gap before the probe that found it; without gaps it is where
// the recording says, and a gap ends at the sample before.
func TestRecordedGaps(t *testing.T) {
	at := []policy.Time{begin, begin + 2*hour, begin + 2*hour + 60_000, begin + 5*hour}
	up := []bool{true, false, true, false}
	var sum float64
	const seeds = 400
	for seed := range uint64(seeds) {
		m := spotMarkets(1)
		m[0].Available = &Availability{At: at, Up: up, Gap: []policy.Time{0, 600_000, 600_000, 600_000}}
		shortages := mustNew(t, config(seed), m).Shortages(0)
		if len(shortages) != 2 {
			t.Fatalf("%d shortages, want 2", len(shortages))
		}
		for i, in := range []struct{ t, least, most policy.Time }{
			{shortages[0].From, at[1] - 600_000 + 1, at[1]}, {shortages[0].Until, at[1] + 1, at[2]}, {shortages[1].From, at[3] - 600_000 + 1, at[3]},
		} {
			if in.t < in.least || in.t > in.most {
				t.Fatalf("change %d at %v, want from %v to %v", i, in.t, in.least, in.most)
			}
		}
		sum += float64(at[3]-shortages[1].From) / seeds
	}
	if sum < 270_000 || sum > 330_000 {
		t.Errorf("changes are %.0f ms before their probe on average, want half of the gap of 600,000", sum)
	}
	m := spotMarkets(1)
	m[0].Available = &Availability{At: at, Up: up}
	shortages := mustNew(t, config(1), m).Shortages(0)
	if shortages[0].From != at[1] || shortages[0].Until != at[2] || shortages[1].From != at[3] {
		t.Errorf("exact instants became %v", shortages)
	}
}

func TestRecordedDownAtBothEnds(t *testing.T) {
	m := spotMarkets(1)
	m[0].Available = &Availability{At: []policy.Time{begin, begin + hour, begin + 2*hour}, Up: []bool{false, true, false}}
	cfg := config(18)
	w := mustNew(t, cfg, m)
	if w.Open(0, begin) || !w.Open(0, begin+hour) || w.Open(0, begin+2*hour) || w.Open(0, cfg.To+days(99)) {
		t.Errorf("open at the begin %v, at 1 h %v, at 2 h %v, at the end %v; want only at 1 h", w.Open(0, begin),
			w.Open(0, begin+hour), w.Open(0, begin+2*hour), w.Open(0, cfg.To))
	}
}
