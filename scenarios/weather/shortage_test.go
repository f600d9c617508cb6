package weather

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A market is closed exactly during its shortages, and a node that a shortage takes is taken within
// its first three minutes.
func TestShortages(t *testing.T) {
	cfg := config(9)
	cfg.Intensity = 30
	markets := spotMarkets(120)
	w := mustNew(t, cfg, markets)
	for m := range markets {
		shortages := w.Shortages(m)
		for at := begin; at < cfg.To; at += hour / 4 {
			closed := slices.ContainsFunc(shortages, func(s Shortage) bool { return s.From <= at && at < s.Until })
			if w.Open(m, at) == closed {
				t.Fatalf("%s at %v: open is %v", markets[m].Name, at, !closed)
			}
		}
		for _, s := range shortages {
			if s.Depth <= 0 || s.Depth > 1 || s.Until <= s.From {
				t.Fatalf("a shortage of depth %v lasts %v", s.Depth, s.Until.Sub(s.From))
			}
		}
		for slot := range w.Slots(m) {
			for _, r := range reclaims(w, m, slot, cfg.To) {
				if r.Cause != CauseShortage {
					continue
				}
				if !slices.ContainsFunc(shortages, func(s Shortage) bool { return s.From <= r.At && r.At < min(s.Until, s.From+180_000) }) {
					t.Fatalf("slot %d is taken at %v, within 3 minutes of the begin of no shortage", slot, r.At)
				}
			}
		}
	}
}

// Of many slots a shortage takes the share that is its depth.
func TestDepth(t *testing.T) {
	cfg := config(10)
	cfg.Intensity, cfg.Slots = 0, 5000
	cfg.Shortages = []OrderedShortage{{At: begin + hour, Duration: time.Hour, Depth: 0.3, Capacity: "spot"}}
	w := mustNew(t, cfg, spotMarkets(1))
	n := 0
	for slot := range cfg.Slots {
		n += len(reclaims(w, 0, slot, cfg.To))
	}
	if share := float64(n) / float64(cfg.Slots); math.Abs(share-0.3) > 0.03 {
		t.Errorf("a shortage of depth 0.3 takes %.3f of the slots", share)
	}
}

// What a milder market of a group meets a harsher one meets too.
func TestHarsherMarketsMeetMore(t *testing.T) {
	cfg := config(11)
	cfg.Intensity, cfg.To = 30, begin+days(180)
	m := spotMarkets(1)[0]
	mild, harsh := m, m
	mild.Name, mild.Band = "mild", 0
	harsh.Name, harsh.Band = "harsh", 4
	w := mustNew(t, cfg, []Market{mild, harsh})
	more := w.Shortages(1)
	for _, s := range w.Shortages(0) {
		if !slices.Contains(more, s) {
			t.Fatalf("only the milder market meets the shortage at %v", s.From)
		}
	}
	if len(w.Shortages(0)) == 0 || len(more) < 5*len(w.Shortages(0)) {
		t.Errorf("%d and %d shortages, want many more in the harsher market", len(w.Shortages(0)), len(more))
	}
}

// A greater intensity has all the shortages of a lesser one, and in proportion
// more.
func TestIntensityAddsShortages(t *testing.T) {
	var found [3]int
	var before []Shortage
	for i, intensity := range []float64{1, 4, 16} {
		cfg := config(21)
		cfg.Intensity, cfg.To = intensity, begin+days(300)
		m := spotMarkets(54)
		for k := range m {
			m[k].Band = 4
		}
		w := mustNew(t, cfg, m)
		var all []Shortage
		for k := range m {
			all = append(all, w.Shortages(k)...)
		}
		for _, s := range before {
			if !slices.Contains(all, s) {
				t.Fatalf("intensity %v loses the shortage at %v", intensity, s.From)
			}
		}
		found[i], before = len(all), all
	}
	for i := 1; i < len(found); i++ {
		if ratio := float64(found[i]) / float64(found[i-1]); ratio < 3.3 || ratio > 4.7 {
			t.Errorf("%v shortages at intensities 1, 4 and 16, want four times as many each", found)
		}
	}
}

// The intensity multiplies the shortages of scarce types as well: twice as many
// at 2 and, at 1.5, all of those at 1 and half of the rest.
func TestIntensityOfScarceTypes(t *testing.T) {
	found := map[float64]int{}
	var before []Shortage
	for _, intensity := range []float64{0.5, 1, 1.5, 2} {
		cfg := config(22)
		cfg.Intensity, cfg.To = intensity, begin+days(200)
		cfg.Params.ShortageShare = [levels]float64{} // the law alone
		m := spotMarkets(36)
		for k := range m {
			m[k].Band, m[k].GPU = 4, true
		}
		w := mustNew(t, cfg, m)
		var all []Shortage
		for k := range m {
			all = append(all, w.Shortages(k)...)
		}
		there := make(map[Shortage]bool, len(all))
		for _, s := range all {
			there[s] = true
		}
		for _, s := range before {
			if !there[s] {
				t.Fatalf("intensity %v loses the shortage at %v", intensity, s.From)
			}
		}
		found[intensity], before = len(all), all
	}
	for _, intensity := range []float64{0.5, 1.5, 2} {
		if ratio := float64(found[intensity]) / float64(found[1]); math.Abs(ratio/intensity-1) > 0.1 {
			t.Errorf("%d shortages at intensity %v and %d at 1, want %v times as many", found[intensity], intensity, found[1], intensity)
		}
	}
}

// A fitted law takes the place of the default one.
func TestScarceLaw(t *testing.T) {
	cfg := config(23)
	cfg.To = begin + days(100)
	m := spotMarkets(6)
	for k := range m {
		m[k].Band, m[k].GPU = 4, true
	}
	for _, mean := range []float64{-1, 1} {
		cfg.Params.Scarce.Mean, cfg.Params.Scarce.Spread = mean, 0
		w := mustNew(t, cfg, m)
		open := 0.0
		for k := range m {
			for i := range 2400 {
				if w.Open(k, begin+policy.Time(i)*hour) {
					open += 1.0 / 2400 / 6
				}
			}
		}
		if (mean > 0) != (open > .75) || (mean < 0) != (open < .25) {
			t.Errorf("mean slack %v: open %.2f of the time", mean, open)
		}
	}
}

// Common types are nearly always available. Accelerators in the open band are as scarce as the V100
// recordings, whose zones had .17–.91.
func TestAvailability(t *testing.T) {
	cfg := config(12)
	markets := spotMarkets(1800)
	for i := range markets {
		markets[i].Band = 4
	}
	w := mustNew(t, cfg, markets)
	var cpu, gpu []float64
	for m := range markets {
		open, all := 0.0, 0.0
		for at := begin; at < cfg.To; at += hour / 2 {
			all++
			if w.Open(m, at) {
				open++
			}
		}
		if markets[m].GPU {
			gpu = append(gpu, open/all)
		} else {
			cpu = append(cpu, open/all)
		}
	}
	slices.Sort(cpu)
	slices.Sort(gpu)
	mean := 0.0
	for _, a := range cpu {
		mean += a / float64(len(cpu))
	}
	t.Logf("CPU mean %.4f; GPU p10 %.2f p50 %.2f p90 %.2f", mean, gpu[len(gpu)/10], gpu[len(gpu)/2], gpu[len(gpu)*9/10])
	if mean < 0.99 {
		t.Errorf("CPU types are available %.3f of the time, want at least .99", mean)
	}
	if low, mid, high := gpu[len(gpu)/10], gpu[len(gpu)/2], gpu[len(gpu)*9/10]; low < .1 || low > .5 || mid < .5 || mid > .85 || high < .8 {
		t.Errorf("GPU availability p10/50/90 = %.2f/%.2f/%.2f, want about .3/.7/.93", low, mid, high)
	}
}

func TestOutageAndRefusal(t *testing.T) {
	cfg := config(16)
	cfg.Intensity = 0
	at := begin + 5*hour
	cfg.Shortages = []OrderedShortage{
		{At: at, Duration: time.Hour, Depth: 1, Zone: "use1-az1", NoNotice: true},
		{At: at + 10*hour, Duration: time.Hour, Capacity: "on-demand"},
	}
	spot := spotMarkets(2) // in zones 1 and 2
	here, there := spot[0], spot[1]
	here.Name, here.Spot = "here/on-demand", false
	there.Name, there.Spot = "there/on-demand", false
	w := mustNew(t, cfg, append(spot, here, there))
	for m, hit := range []bool{true, false, true, false} {
		if w.Open(m, at) == hit || !w.Open(m, at-1) || !w.Open(m, at+hour) {
			t.Errorf("market %d: open %v in the outage, %v before, %v after", m, w.Open(m, at), w.Open(m, at-1), w.Open(m, at+hour))
		}
		if onDemand := m >= 2; w.Open(m, at+10*hour) == onDemand {
			t.Errorf("market %d: open %v while on-demand launches are refused", m, w.Open(m, at+10*hour))
		}
		r, ok := w.Reclaim(m, 3, begin)
		if ok != hit || ok && (r.At < at || r.At >= at+180_000 || r.Notice != 0 || r.Cause != CauseOrdered) {
			t.Errorf("market %d: reclaim %+v, %v", m, r, ok)
		}
		if _, again := w.Reclaim(m, 3, at+180_000); again {
			t.Errorf("market %d: a refusal takes nodes", m)
		}
		if _, ok := w.Recommendation(m, 3, begin); ok {
			t.Errorf("market %d: an outage is recommended", m)
		}
	}
	if w.Slots(2) != Unlimited || w.ExpectedHazard(2, at-1) != 0 {
		t.Error("on-demand has a cap or a hazard")
	}
}

// A provider knows what it took and nothing to come: until a shortage starts it expects what it
// would without one, then a multiple for a day, and less every hour in which nothing is taken.
func TestExpectedHazardKnowsThePast(t *testing.T) {
	cfg := config(10)
	cfg.Intensity, cfg.Slots = 0, 50
	calm := mustNew(t, cfg, spotMarkets(1))
	at := begin + days(2)
	cfg.Shortages = []OrderedShortage{{At: at, Duration: time.Hour, Depth: 1, Capacity: "spot"}}
	w := mustNew(t, cfg, spotMarkets(1))
	for _, before := range []policy.Time{begin, begin + hour, at - hour, at - 1} {
		if got, want := w.ExpectedHazard(0, before), calm.ExpectedHazard(0, before); got != want || got <= 0 {
			t.Errorf("%v before a shortage %v is expected, want %v", at.Sub(before), got, want)
		}
	}
	band, _ := w.Band(0)
	if got, want := w.ExpectedHazard(0, begin), cfg.Params.rate(band); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("with no history %v is expected, want the band's %v", got, want)
	}
	if before, later := w.ExpectedHazard(0, begin+hour), w.ExpectedHazard(0, begin+days(1)); later >= before {
		t.Errorf("%v is expected after a quiet day, %v after a quiet hour", later, before)
	}
	for _, after := range []policy.Time{at + hour, at + days(1) - 1} {
		if got, want := w.ExpectedHazard(0, after), 10*calm.ExpectedHazard(0, after); got < want {
			t.Errorf("%v after a shortage that took every node %v is expected, want at least %v", after.Sub(at), got, want)
		}
	}
	if got, want := w.ExpectedHazard(0, at+days(1)+hour), calm.ExpectedHazard(0, at+days(1)+hour); got != want {
		t.Errorf("a day later %v is expected, want %v", got, want)
	}
}
