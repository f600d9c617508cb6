package weather

import (
	"math"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// Whoever holds a slot loses it at the same instant, whenever he took it.
func TestSlotIsLostAtOneInstant(t *testing.T) {
	cfg := config(6)
	cfg.Intensity = 50
	w := mustNew(t, cfg, spotMarkets(12))
	seen := 0
	for m := range 12 {
		for slot := range w.Slots(m) {
			before := begin
			for _, r := range reclaims(w, m, slot, cfg.To) {
				for _, launched := range []policy.Time{before, (before + r.At) / 2, r.At - 1} {
					got, ok := w.Reclaim(m, slot, launched)
					if !ok || got.At != r.At || got.Cause != r.Cause {
						t.Fatalf("slot %d launched at %v is lost at %v, want %v", slot, launched, got.At, r.At)
					}
					if got.Notice != 0 && (got.Notice <= launched || got.Notice > got.At) {
						t.Fatalf("launched %v, notice %v, reclaim %v", launched, got.Notice, got.At)
					}
				}
				before = r.At
				seen++
			}
		}
	}
	if seen == 0 {
		t.Error("nothing was reclaimed")
	}
}

// Over many slots and weeks the calendars take what the band and the frailty
// say, per node-hour.
func TestCalendarRate(t *testing.T) {
	for band := range policy.Band(bands) {
		cfg := config(7)
		cfg.Slots, cfg.To = 4000, begin+days(28*8)
		m := Market{Name: "m", Provider: "aws", Region: "us-east-1", Zone: "z", Type: "m5.large", Family: "m5", Spot: true, Band: band}
		cfg.Params.ShortageShare = [levels]float64{}
		w := mustNew(t, cfg, []Market{m})
		n := 0
		for slot := range cfg.Slots {
			n += len(reclaims(w, 0, slot, cfg.To))
		}
		want := w.markets[0].rate
		got := float64(n) / (float64(cfg.Slots) * float64(cfg.To-cfg.From) / float64(hour))
		// Calm and stressed times of 54 hours leave the mean some play.
		if math.Abs(got/want-1) > 0.2 {
			t.Errorf("band %d: %.6f reclaims per node-hour, want %.6f", band, got, want)
		}
	}
}

// Rates follow the local time of the region: low in the night, high in the
// afternoon, low on Sunday. They have the mean 1 over a week.
func TestRhythm(t *testing.T) {
	p := DefaultParams()
	p.Stressed = 1 // calm and stressed alike
	for region, ahead := range map[string]int{"us-west-2": -8, "eu-west-1": 0, "ap-northeast-1": 9, "nowhere": 0} {
		from := policy.TimeOf(time.Date(2023, 1, 2, 0, 0, 0, 0, time.UTC))
		r := newRhythm(&p, region, 1, from, from+days(7))
		if mean := r.cum[168] / 168; math.Abs(mean-1) > 1e-9 {
			t.Errorf("%s: the mean over a week is %v, want 1", region, mean)
		}
		at := func(day, h int) float64 { // of local time
			return r.rate(policy.TimeOf(time.Date(2023, 1, day, h-ahead, 30, 0, 0, time.UTC)))
		}
		// 4 January was a Wednesday and 8 January a Sunday.
		for what, c := range map[string][2]float64{
			"Wednesday night":     {at(4, 4), .84 * 1.16},
			"Wednesday afternoon": {at(4, 15), 1.17 * 1.16},
			"Sunday noon":         {at(8, 12), 1.15 * .60},
		} {
			if math.Abs(c[0]-c[1]) > 1e-9 {
				t.Errorf("%s: on %s the factor is %.4f, want %.4f", region, what, c[0], c[1])
			}
		}
	}
}

func TestInverseOfIntegral(t *testing.T) {
	p := DefaultParams()
	r := newRhythm(&p, "us-east-1", 5, begin, begin+days(3))
	for at := begin; at < begin+days(3); at += 1_234_567 {
		if back := r.inverse(r.integral(at)); back < at-1 || back > at+1 {
			t.Fatalf("the inverse of the integral at %v is %v", at, back)
		}
	}
}

// Frailty has the mean 1, so that calendars and shortages of a band have its rate on
// average: −ln(1 − .30)/730 in the band that is open above.
func TestMeanRateOfBand(t *testing.T) {
	markets := spotMarkets(3000)
	for i := range markets {
		markets[i].Band, markets[i].GPU = 4, false
	}
	w := mustNew(t, config(8), markets)
	sum := 0.0
	for m := range markets {
		sum += w.markets[m].rate + w.markets[m].shortageRate
	}
	want := -math.Log(0.7) / 730
	if got := sum / 3000; math.Abs(got/want-1) > 0.08 {
		t.Errorf("mean rate %.6f per node-hour, want %.6f", got, want)
	}
}

// rate returns the factor at t, 0 outside of the hours drawn.
func (r *rhythm) rate(t policy.Time) float64 {
	i := int((t - r.begin) / hour)
	if t < r.begin || i+1 >= len(r.cum) {
		return 0
	}
	return r.cum[i+1] - r.cum[i]
}
