package weather

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// begin is a Monday, at 00:17 so that the run begins within an hour.
var begin = policy.TimeOf(time.Date(2023, 1, 2, 0, 17, 0, 0, time.UTC))

func days(n int) policy.Time { return policy.Time(n) * 24 * hour }

// config returns that of a week with one day of warm-up.
func config(seed uint64) Config {
	return Config{Seed: seed, From: begin, To: begin + days(8), Intensity: 1, Params: DefaultParams()}
}

// spotMarkets returns spot markets of several families in the six zones of a
// region, a tenth of them with accelerators.
func spotMarkets(n int) []Market {
	out := make([]Market, n)
	for i := range out {
		zone, typ := fmt.Sprintf("use1-az%d", i%6+1), fmt.Sprintf("m%d.size%d", i/6%10, i/60)
		if i/6%10 == 9 {
			typ = "p" + typ
		}
		family, _, _ := strings.Cut(typ, ".")
		out[i] = Market{
			Name: "aws/us-east-1/" + zone + "/" + typ + "/spot", Provider: "aws", Region: "us-east-1", Zone: zone,
			Type: typ, Family: family, Spot: true, GPU: typ[0] == 'p', Band: policy.BandUnknown,
		}
	}
	return out
}

func mustNew(t testing.TB, cfg Config, markets []Market) *Weather {
	t.Helper()
	w, err := New(cfg, markets)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// reclaims returns all reclaims of a slot before end.
func reclaims(w *Weather, m, slot int, end policy.Time) (all []Reclaim) {
	for after := begin; ; {
		r, ok := w.Reclaim(m, slot, after)
		if !ok || r.At >= end {
			return all
		}
		all = append(all, r)
		after = r.At
	}
}

func recommendations(w *Weather, m, slot int, end policy.Time) (all []policy.Time) {
	for after := begin; ; {
		at, ok := w.Recommendation(m, slot, after)
		if !ok || at >= end {
			return all
		}
		all = append(all, at)
		after = at
	}
}

// account writes down all that a run could see of market m before end, and what
// only the provider knows.
func account(w *Weather, m int, end policy.Time) string {
	var b strings.Builder
	band, modelled := w.Band(m)
	fmt.Fprintln(&b, band, modelled, w.Slots(m))
	for _, s := range w.Spells(m) {
		if s.From < end {
			fmt.Fprintln(&b, s.From, min(s.Until, end), s.Depth, s.Cause)
		}
	}
	for slot := range w.Slots(m) {
		fmt.Fprintln(&b, slot, reclaims(w, m, slot, end), recommendations(w, m, slot, end))
	}
	for t := begin; t < end; t += hour {
		fmt.Fprint(&b, w.Open(m, t), w.Depth(m, t), w.TrueHazard(m, t), " ")
	}
	return b.String()
}

func TestLaterEndChangesNothingBefore(t *testing.T) {
	markets := spotMarkets(60)
	short := config(3)
	short.Intensity = 40
	long := short
	long.To += days(5) + 17*hour/10
	a, b := mustNew(t, short, markets), mustNew(t, long, markets)
	for m := range markets {
		if x, y := account(a, m, short.To), account(b, m, short.To); x != y {
			t.Fatalf("%s differs with a later end:\n%s\n%s", markets[m].Name, x, y)
		}
	}
}

func TestMarketsDoNotDependOnEachOther(t *testing.T) {
	markets := spotMarkets(120)
	for i := range markets {
		markets[i].Band = policy.Band(i%6 - 1) // zones of one region may publish different bands
	}
	cfg := config(4)
	all := mustNew(t, cfg, markets)
	few := slices.Clone(markets[30:50])
	slices.Reverse(few)
	some := mustNew(t, cfg, few)
	for i := range few {
		if x, y := account(all, 49-i, cfg.To), account(some, i, cfg.To); x != y {
			t.Fatalf("%s depends on the other markets:\n%s\n%s", few[i].Name, x, y)
		}
	}
	back := slices.Clone(markets)
	slices.Reverse(back)
	if mustNew(t, cfg, back).Digest() != all.Digest() {
		t.Error("the digest depends on the order of the markets")
	}
}

func TestDigest(t *testing.T) {
	markets := spotMarkets(60)
	base := mustNew(t, config(1), markets).Digest()
	if mustNew(t, config(1), markets).Digest() != base {
		t.Error("two draws of the same weather differ")
	}
	squeeze := Squeeze{At: begin + hour, Duration: time.Hour, Depth: 0.5, Zone: "use1-az2"}
	for name, change := range map[string]func(*Config){
		"seed":         func(c *Config) { c.Seed++ },
		"trace":        func(c *Config) { c.Trace[17]++ },
		"intensity":    func(c *Config) { c.Intensity = 1.01 },
		"begin":        func(c *Config) { c.From += hour },
		"slots":        func(c *Config) { c.Slots = 9 },
		"squeeze":      func(c *Config) { c.Squeezes = []Squeeze{squeeze} },
		"late notices": func(c *Config) { c.LateNotices = []LateSpell{{At: begin, Duration: time.Hour, Share: 1}} },
		"API faults":   func(c *Config) { c.APIFaults = []APIFault{{At: begin, Duration: time.Hour, Share: 1}} },
		"notices":      func(c *Config) { c.Params.NoticeLost = 0.5 },
	} {
		cfg := config(1)
		change(&cfg)
		if mustNew(t, cfg, markets).Digest() == base {
			t.Errorf("%s: the digest does not see it", name)
		}
	}
}

// Bits are pinned: whoever changes the model changes every run ever recorded.
func TestPinned(t *testing.T) {
	cfg, markets := config(1), spotMarkets(60)
	cfg.Intensity = 3
	for i := range markets {
		markets[i].Band = policy.Band(i%6 - 1)
	}
	got := fmt.Sprintf("%x", mustNew(t, cfg, markets).Digest())
	if want := "63080bc0acb8d887e0e159fc8410168b3c361b8d5f36c6820adac234e9fdf565"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// In one window and the next of one seed a market keeps its band, slots and
// frailty, but not its gaps: the windows would not be independent.
func TestWindowsAreIndependent(t *testing.T) {
	markets := spotMarkets(60)
	first, second := config(1), config(1)
	first.Intensity, second.Intensity = 20, 20
	second.From, second.To = first.From+days(7), first.To+days(7)
	a, b := mustNew(t, first, markets), mustNew(t, second, markets)
	same, all := 0, 0
	for m := range markets {
		if a.Slots(m) != b.Slots(m) || a.markets[m].rate != b.markets[m].rate {
			t.Fatalf("%s changed between two windows", markets[m].Name)
		}
		for slot := range a.Slots(m) {
			x, okX := a.Reclaim(m, slot, first.From)
			y, okY := b.Reclaim(m, slot, second.From)
			if okX && okY {
				all++
				if x.At+days(7) == y.At {
					same++
				}
			}
		}
	}
	if all == 0 || same > 0 {
		t.Errorf("%d of %d slots are lost at the same hour of both weeks", same, all)
	}
}

func TestNothingAtIntensityZero(t *testing.T) {
	cfg := config(5)
	cfg.Intensity = 0
	markets := spotMarkets(60)
	w := mustNew(t, cfg, markets)
	for m := range markets {
		if len(w.Spells(m)) > 0 || w.TrueHazard(m, begin+days(1)) != 0 {
			t.Fatalf("%s is squeezed", markets[m].Name)
		}
		for slot := range w.Slots(m) {
			if len(reclaims(w, m, slot, cfg.To)) > 0 || len(recommendations(w, m, slot, cfg.To)) > 0 {
				t.Fatalf("%s: slot %d is reclaimed or recommended", markets[m].Name, slot)
			}
		}
	}
}

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
		cfg.Params.Extra = [levels]float64{}
		w := mustNew(t, cfg, []Market{m})
		n := 0
		for slot := range cfg.Slots {
			n += len(reclaims(w, 0, slot, cfg.To))
		}
		want := w.markets[0].rate
		got := float64(n) / (float64(cfg.Slots) * float64(cfg.To-cfg.From) / float64(hour))
		// Calm and stressed spells of 54 hours leave the mean some play.
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

// Frailty has the mean 1, so that markets of a band have its rate on average:
// −ln(1 − .30)/730 in the band that is open above.
func TestMeanRateOfBand(t *testing.T) {
	markets := spotMarkets(3000)
	for i := range markets {
		markets[i].Band = 4
	}
	w := mustNew(t, config(8), markets)
	sum := 0.0
	for m := range markets {
		sum += w.markets[m].rate
	}
	want := -math.Log(0.7) / 730
	if got := sum / 3000; math.Abs(got/want-1) > 0.08 {
		t.Errorf("mean rate %.6f per node-hour, want %.6f", got, want)
	}
}

func TestBandShares(t *testing.T) {
	markets := spotMarkets(12000)
	w := mustNew(t, Config{Seed: 1, From: begin, To: begin + hour, Params: DefaultParams()}, markets)
	p := DefaultParams()
	var counts, total [2][bands]float64
	perType := map[string]policy.Band{}
	for m := range markets {
		b, modelled := w.Band(m)
		if !modelled {
			t.Fatal("a drawn band is not labelled modelled")
		}
		if old, ok := perType[markets[m].Type]; ok && old != b {
			t.Fatalf("%s has band %d in one zone and %d in another of its region", markets[m].Type, old, b)
		}
		perType[markets[m].Type] = b
		gpu := 0
		if markets[m].GPU {
			gpu = 1
		}
		counts[gpu][b]++
		for i := range bands {
			total[gpu][i]++
		}
	}
	for gpu, shares := range [2][bands]float64{p.BandSharesCPU, p.BandSharesGPU} {
		for b, want := range shares {
			want /= 1.01 // the published shares are rounded and add up to 1.01
			types := total[gpu][b] / 6
			if got := counts[gpu][b] / total[gpu][b]; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/types) {
				t.Errorf("gpu=%d band %d: share %.3f, want %.3f", gpu, b, got, want)
			}
		}
	}
	known := spotMarkets(1)
	known[0].Band = 3
	if b, modelled := mustNew(t, config(1), known).Band(0); b != 3 || modelled {
		t.Errorf("a published band of 3 became %d, modelled %v", b, modelled)
	}
}

func TestSlots(t *testing.T) {
	markets := spotMarkets(2000)
	w := mustNew(t, Config{Seed: 1, From: begin, To: begin + hour, Params: DefaultParams()}, markets)
	var cpu, gpu []int
	for m := range markets {
		if markets[m].GPU {
			gpu = append(gpu, w.Slots(m))
		} else {
			cpu = append(cpu, w.Slots(m))
		}
	}
	slices.Sort(cpu)
	slices.Sort(gpu)
	if m := cpu[len(cpu)/2]; m < 46 || m > 54 {
		t.Errorf("median of CPU slots is %d, want about 50", m)
	}
	if m := gpu[len(gpu)/2]; m < 3 || m > 5 || gpu[0] < 1 {
		t.Errorf("median of GPU slots is %d and the least %d, want about 4 and at least 1", m, gpu[0])
	}
	cfg := config(1)
	cfg.Slots = 7
	if n := mustNew(t, cfg, markets[:1]).Slots(0); n != 7 {
		t.Errorf("ordered 7 slots, got %d", n)
	}
}

// A market is closed exactly in its spells, and whoever is taken by one is taken
// within the window in which it begins.
func TestSqueezes(t *testing.T) {
	cfg := config(9)
	cfg.Intensity = 30
	markets := spotMarkets(120)
	w := mustNew(t, cfg, markets)
	for m := range markets {
		spells := w.Spells(m)
		for at := begin; at < cfg.To; at += hour / 4 {
			closed := slices.ContainsFunc(spells, func(s Spell) bool { return s.From <= at && at < s.Until })
			if w.Open(m, at) == closed {
				t.Fatalf("%s at %v: open is %v", markets[m].Name, at, !closed)
			}
		}
		for _, s := range spells {
			if s.Depth <= 0 || s.Depth > 1 || s.Until <= s.From {
				t.Fatalf("a squeeze of depth %v lasts %v", s.Depth, s.Until.Sub(s.From))
			}
		}
		for slot := range w.Slots(m) {
			for _, r := range reclaims(w, m, slot, cfg.To) {
				if r.Cause != CauseSqueeze {
					continue
				}
				if !slices.ContainsFunc(spells, func(s Spell) bool { return s.From <= r.At && r.At < min(s.Until, s.From+180_000) }) {
					t.Fatalf("slot %d is taken at %v, within 3 minutes of the begin of no squeeze", slot, r.At)
				}
			}
		}
	}
}

// Of many slots a squeeze takes the share that is its depth.
func TestDepth(t *testing.T) {
	cfg := config(10)
	cfg.Intensity, cfg.Slots = 0, 5000
	cfg.Squeezes = []Squeeze{{At: begin + hour, Duration: time.Hour, Depth: 0.3, Capacity: "spot"}}
	w := mustNew(t, cfg, spotMarkets(1))
	n := 0
	for slot := range cfg.Slots {
		n += len(reclaims(w, 0, slot, cfg.To))
	}
	if share := float64(n) / float64(cfg.Slots); math.Abs(share-0.3) > 0.03 {
		t.Errorf("a squeeze of depth 0.3 takes %.3f of the slots", share)
	}
	if got := w.TrueHazard(0, begin+hour/2); got != 0.3 {
		t.Errorf("half an hour before a squeeze of depth 0.3 the true hazard is %v", got)
	}
	if got := w.TrueHazard(0, begin+hour); got != 0 {
		t.Errorf("the true hazard counts a squeeze that has begun: %v", got)
	}
}

// What a milder market of a group meets a harsher one meets too.
func TestHarsherMarketsMeetMore(t *testing.T) {
	cfg := config(11)
	cfg.Intensity, cfg.To = 30, begin+days(60)
	m := spotMarkets(1)[0]
	mild, harsh := m, m
	mild.Name, mild.Band = "mild", 0
	harsh.Name, harsh.Band = "harsh", 4
	w := mustNew(t, cfg, []Market{mild, harsh})
	more := w.Spells(1)
	for _, s := range w.Spells(0) {
		if !slices.Contains(more, s) {
			t.Fatalf("only the milder market meets the squeeze at %v", s.From)
		}
	}
	if len(w.Spells(0)) == 0 || len(more) < 5*len(w.Spells(0)) {
		t.Errorf("%d and %d squeezes, want many more in the harsher market", len(w.Spells(0)), len(more))
	}
}

// A greater intensity has all the squeezes of a lesser one, and in proportion
// more.
func TestIntensityAddsSqueezes(t *testing.T) {
	var found [3]int
	var before []Spell
	for i, intensity := range []float64{1, 4, 16} {
		cfg := config(21)
		cfg.Intensity, cfg.To = intensity, begin+days(300)
		m := spotMarkets(54)
		for k := range m {
			m[k].Band = 4
		}
		w := mustNew(t, cfg, m)
		var all []Spell
		for k := range m {
			all = append(all, w.Spells(k)...)
		}
		for _, s := range before {
			if !slices.Contains(all, s) {
				t.Fatalf("intensity %v loses the squeeze at %v", intensity, s.From)
			}
		}
		found[i], before = len(all), all
	}
	for i := 1; i < len(found); i++ {
		if ratio := float64(found[i]) / float64(found[i-1]); ratio < 3.3 || ratio > 4.7 {
			t.Errorf("%v squeezes at intensities 1, 4 and 16, want four times as many each", found)
		}
	}
}

// The intensity multiplies the squeezes of scarce types as well: twice as many
// at 2 and, at 1.5, all of those at 1 and half of the rest.
func TestIntensityOfScarceTypes(t *testing.T) {
	found := map[float64]int{}
	var before []Spell
	for _, intensity := range []float64{0.5, 1, 1.5, 2} {
		cfg := config(22)
		cfg.Intensity, cfg.To = intensity, begin+days(200)
		cfg.Params.Extra = [levels]float64{} // the law alone
		m := spotMarkets(36)
		for k := range m {
			m[k].Band, m[k].GPU = 4, true
		}
		w := mustNew(t, cfg, m)
		var all []Spell
		for k := range m {
			all = append(all, w.Spells(k)...)
		}
		there := make(map[Spell]bool, len(all))
		for _, s := range all {
			there[s] = true
		}
		for _, s := range before {
			if !there[s] {
				t.Fatalf("intensity %v loses the squeeze at %v", intensity, s.From)
			}
		}
		found[intensity], before = len(all), all
	}
	for _, intensity := range []float64{0.5, 1.5, 2} {
		if ratio := float64(found[intensity]) / float64(found[1]); math.Abs(ratio/intensity-1) > 0.1 {
			t.Errorf("%d squeezes at intensity %v and %d at 1, want %v times as many", found[intensity], intensity, found[1], intensity)
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

// Common types are nearly always to be had. Accelerators in the open band are
// as scarce as the V100 recordings, whose zones had .17–.91.
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

func TestNotices(t *testing.T) {
	cfg := config(13)
	cfg.Intensity = 100
	markets := spotMarkets(60)
	w := mustNew(t, cfg, markets)
	full, late, lost := 0, 0, 0
	for m := range markets {
		for slot := range w.Slots(m) {
			for _, r := range reclaims(w, m, slot, cfg.To) {
				again, _ := w.Reclaim(m, slot, r.At-days(1))
				switch {
				case again.Notice == 0:
					lost++
				case again.At-again.Notice == 120_000:
					full++
				default:
					late++
				}
			}
		}
	}
	all := float64(full + late + lost)
	if x, y := float64(lost)/all, float64(late)/all; math.Abs(x-.01) > .004 || math.Abs(y-.02) > .006 {
		t.Errorf("of %.0f notices %.4f are lost and %.4f late, want .01 and .02", all, x, y)
	}
}

func TestOrderedLateNotices(t *testing.T) {
	cfg := config(14)
	cfg.Intensity, cfg.Slots = 0, 400
	cfg.Params.NoticeLost, cfg.Params.NoticeLate = 0, 0
	at := begin + 10*hour
	cfg.Squeezes = []Squeeze{{At: at, Duration: time.Hour, Depth: 1, Capacity: "spot"}}
	for _, c := range []struct {
		late     LateSpell
		lead     policy.Time // of a notice concerned
		from, to float64     // the share concerned
	}{
		{LateSpell{At: at - hour, Duration: 3 * time.Hour, Share: 1, Delay: 90 * time.Second}, 30_000, 1, 1},
		{LateSpell{At: at - hour, Duration: 3 * time.Hour, Share: .5, Delay: 90 * time.Second}, 30_000, .4, .6},
		{LateSpell{At: at - hour, Duration: 3 * time.Hour, Share: 1, Delay: 130 * time.Second}, 0, 1, 1},
		{LateSpell{At: at - hour, Duration: 3 * time.Hour, Share: 1}, 0, 1, 1},
		{LateSpell{At: at - hour, Duration: time.Minute, Share: 1}, 0, 0, 0},
	} {
		cfg.LateNotices = []LateSpell{c.late}
		w := mustNew(t, cfg, spotMarkets(1))
		n := 0
		for slot := range cfg.Slots {
			r, ok := w.Reclaim(0, slot, begin)
			lead := policy.Time(0)
			if r.Notice != 0 {
				lead = r.At - r.Notice
			}
			switch {
			case !ok:
				t.Fatal("a squeeze of depth 1 left a slot")
			case lead == c.lead:
				n++
			case lead != 120_000:
				t.Fatalf("%+v: a lead of %d ms", c.late, lead)
			}
		}
		if share := float64(n) / float64(cfg.Slots); share < c.from || share > c.to {
			t.Errorf("%+v concerns %.2f of the notices", c.late, share)
		}
	}
}

// Recommendations have the precision and the lead that the constants state: of
// all that come, a quarter are followed by the reclaim within the hour, and those
// that precede one come ten minutes before its notice on average.
func TestRecommendations(t *testing.T) {
	cfg := config(15)
	cfg.Slots, cfg.To = 60, begin+days(60)
	markets := spotMarkets(54)
	for i := range markets {
		markets[i].Band, markets[i].GPU = policy.Band(2+i%3), false
	}
	w := mustNew(t, cfg, markets)
	var reclaimed, warned, all, right, lead float64
	for m := range markets {
		for slot := range w.Slots(m) {
			for _, r := range reclaims(w, m, slot, cfg.To) {
				reclaimed++
				if at, ok := w.Recommendation(m, slot, r.At-hour); ok && at <= r.At-120_000 {
					warned++
				}
			}
			for _, at := range recommendations(w, m, slot, cfg.To-hour) {
				all++
				if r, ok := w.Reclaim(m, slot, at); ok && r.At <= at+hour {
					right++
					lead += float64(r.At-120_000-at) / 60_000
				}
			}
		}
	}
	if share := warned / reclaimed; math.Abs(share-cfg.Params.RecommendedShare) > .03 {
		t.Errorf("%.3f of %v reclaims are recommended, want %v", share, reclaimed, cfg.Params.RecommendedShare)
	}
	if precision := right / all; math.Abs(precision-cfg.Params.RecommendedPrecision) > .03 {
		t.Errorf("%.3f of %v recommendations are right, want %v", precision, all, cfg.Params.RecommendedPrecision)
	}
	if mean := lead / right; math.Abs(mean-cfg.Params.RecommendedLead.Minutes()) > 0.8 {
		t.Errorf("right recommendations come %.2f min before the notice, want %v", mean, cfg.Params.RecommendedLead)
	}
}

func TestOutageAndRefusal(t *testing.T) {
	cfg := config(16)
	cfg.Intensity = 0
	at := begin + 5*hour
	cfg.Squeezes = []Squeeze{
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
	if w.Slots(2) != Unlimited || w.TrueHazard(2, at-1) != 0 {
		t.Error("on-demand has a cap or a hazard")
	}
}

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
	spells := w.Spells(0)
	if len(spells) != 2 {
		t.Fatalf("%d spells, want 2", len(spells))
	}
	for i, want := range [][4]int{{1, 2, 3, 4}, {5, 6, 6, 7}} {
		s := spells[i]
		if s.From <= sample(want[0]) || s.From > sample(want[1]) || s.Until <= sample(want[2]) || s.Until > sample(want[3]) {
			t.Errorf("spell %d from %v until %v", i, s.From, s.Until)
		}
		if w.Open(0, s.From) || !w.Open(0, s.From-1) || !w.Open(0, s.Until) {
			t.Errorf("spell %d: the market is not closed exactly in it", i)
		}
	}
	taken := 0
	for slot := range cfg.Slots {
		for _, r := range reclaims(w, 0, slot, cfg.To) {
			taken++
			if r.Cause != CauseRecorded || w.Open(0, r.At) || r.At >= max(spells[0].From, spells[1].From)+180_000 {
				t.Fatalf("reclaim %+v", r)
			}
		}
	}
	if want := (spells[0].Depth + spells[1].Depth) * float64(cfg.Slots); math.Abs(float64(taken)-want) > 0.15*want {
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

// A change lies anywhere in the gap before the probe that found it; without
// gaps it is where the recording says, and a gap ends at the sample before.
func TestRecordedGaps(t *testing.T) {
	at := []policy.Time{begin, begin + 2*hour, begin + 2*hour + 60_000, begin + 5*hour}
	up := []bool{true, false, true, false}
	var sum float64
	const seeds = 400
	for seed := range uint64(seeds) {
		m := spotMarkets(1)
		m[0].Available = &Availability{At: at, Up: up, Gap: []policy.Time{0, 600_000, 600_000, 600_000}}
		spells := mustNew(t, config(seed), m).Spells(0)
		if len(spells) != 2 {
			t.Fatalf("%d spells, want 2", len(spells))
		}
		for i, in := range []struct{ t, least, most policy.Time }{
			{spells[0].From, at[1] - 600_000 + 1, at[1]}, {spells[0].Until, at[1] + 1, at[2]}, {spells[1].From, at[3] - 600_000 + 1, at[3]},
		} {
			if in.t < in.least || in.t > in.most {
				t.Fatalf("change %d at %v, want from %v to %v", i, in.t, in.least, in.most)
			}
		}
		sum += float64(at[3]-spells[1].From) / seeds
	}
	if sum < 270_000 || sum > 330_000 {
		t.Errorf("changes are %.0f ms before their probe on average, want half of the gap of 600,000", sum)
	}
	m := spotMarkets(1)
	m[0].Available = &Availability{At: at, Up: up}
	spells := mustNew(t, config(1), m).Spells(0)
	if spells[0].From != at[1] || spells[0].Until != at[2] || spells[1].From != at[3] {
		t.Errorf("exact instants became %v", spells)
	}
}

func TestRecordedDownAtBothEnds(t *testing.T) {
	m := spotMarkets(1)
	m[0].Available = &Availability{At: []policy.Time{begin, begin + hour, begin + 2*hour}, Up: []bool{false, true, false}}
	cfg := config(18)
	w := mustNew(t, cfg, m)
	if w.Open(0, begin) || !w.Open(0, begin+hour) || w.Open(0, begin+2*hour) || w.Open(0, cfg.To+days(99)) {
		t.Errorf("open at the begin %v, at 1 h %v, at 2 h %v, at the end %v; want only at 1 h", w.Open(0, begin), w.Open(0, begin+hour), w.Open(0, begin+2*hour), w.Open(0, cfg.To))
	}
}

func TestCallFails(t *testing.T) {
	cfg := config(19)
	cfg.APIFaults = []APIFault{{At: begin + hour, Duration: time.Hour, Share: .25}}
	w := mustNew(t, cfg, spotMarkets(1))
	n := 0
	for s := range policy.Time(3600) {
		at := begin + hour + s*1000
		if w.CallFails(at) {
			n++
		}
		if w.CallFails(at-at%1000) != w.CallFails(at-at%1000+999) && at-at%1000 >= begin+hour {
			t.Fatal("two calls of one second fare differently")
		}
	}
	if share := float64(n) / 3600; math.Abs(share-.25) > .04 {
		t.Errorf("%.3f of calls fail, want .25", share)
	}
	if w.CallFails(begin) || w.CallFails(begin+2*hour) {
		t.Error("calls fail outside of the fault")
	}
}

func TestRefused(t *testing.T) {
	late := Squeeze{At: begin, Duration: time.Hour, Depth: 1}
	for _, c := range []struct {
		want   string
		change func(*Config, []Market)
	}{
		{"To is", func(c *Config, _ []Market) { c.To = c.From }},
		{"From is 0", func(c *Config, _ []Market) { c.From = 0 }},
		{"longer than", func(c *Config, _ []Market) { c.To = c.From + days(1000) }},
		{"Intensity is -1", func(c *Config, _ []Market) { c.Intensity = -1 }},
		{"Intensity is NaN", func(c *Config, _ []Market) { c.Intensity = math.NaN() }},
		{"Slots is -2", func(c *Config, _ []Market) { c.Slots = -2 }},
		{"Squeezes[0].Depth is 1.5", func(c *Config, _ []Market) { s := late; s.Depth = 1.5; c.Squeezes = []Squeeze{s} }},
		{"Squeezes[0].Duration", func(c *Config, _ []Market) { s := late; s.Duration = 0; c.Squeezes = []Squeeze{s} }},
		{`Squeezes[0].Capacity is "spto"`, func(c *Config, _ []Market) { s := late; s.Capacity = "spto"; c.Squeezes = []Squeeze{s} }},
		{"LateNotices[0].Share is 2", func(c *Config, _ []Market) {
			c.LateNotices = []LateSpell{{At: begin, Duration: 1, Share: 2}}
		}},
		{"LateNotices[0].Delay", func(c *Config, _ []Market) {
			c.LateNotices = []LateSpell{{At: begin, Duration: 1, Share: 1, Delay: -1}}
		}},
		{"APIFaults[0].At is 0", func(c *Config, _ []Market) { c.APIFaults = []APIFault{{Duration: 1, Share: 1}} }},
		{"Params.SlotsCPU is 0", func(c *Config, _ []Market) { c.Params = Params{} }},
		{"Params.BandMonthly[2] is 1", func(c *Config, _ []Market) { c.Params.BandMonthly[2] = 1 }},
		{"there twice", func(_ *Config, m []Market) { m[1].Name = m[0].Name }},
		{"needs a name", func(_ *Config, m []Market) { m[1].Zone = "" }},
		{"Band is 5", func(_ *Config, m []Market) { m[1].Band = 5 }},
		{"2 instants and 1 values", func(_ *Config, m []Market) {
			m[0].Available = &Availability{At: []policy.Time{1, 2}, Up: []bool{true}}
		}},
		{"2 instants and 1 gaps", func(_ *Config, m []Market) {
			m[0].Available = &Availability{At: []policy.Time{1, 2}, Up: []bool{true, true}, Gap: []policy.Time{1}}
		}},
		{"Available.Gap[1] is -1", func(_ *Config, m []Market) {
			m[0].Available = &Availability{At: []policy.Time{1, 2}, Up: []bool{true, true}, Gap: []policy.Time{1, -1}}
		}},
		{"Own add up to", func(c *Config, _ []Market) { c.Params.Scarce.Common = make([]float64, 5) }},
		{"5 Paces, 1 Common", func(c *Config, _ []Market) { c.Params.Scarce.Common = []float64{1} }},
		{"Paces[2] is 0", func(c *Config, _ []Market) { c.Params.Scarce.Paces = []float64{1, 2, 0, 4, 5} }},
		{"RecommendedPrecision is 0", func(c *Config, _ []Market) { c.Params.RecommendedPrecision = 0 }},
		{"Available.At[1]", func(_ *Config, m []Market) {
			m[0].Available = &Availability{At: []policy.Time{2, 2}, Up: []bool{true, true}}
		}},
	} {
		cfg, markets := config(1), spotMarkets(2)
		c.change(&cfg, markets)
		if _, err := New(cfg, markets); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one that says %q", err, c.want)
		}
	}
}

func TestQueriesDoNotAllocate(t *testing.T) {
	w := mustNew(t, config(1), spotMarkets(60))
	if n := testing.AllocsPerRun(50, func() {
		w.Open(3, begin+days(2))
		w.Reclaim(3, 1, begin)
		w.Recommendation(3, 1, begin)
		w.TrueHazard(3, begin+days(2))
	}); n != 0 {
		t.Errorf("queries allocate %v times", n)
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{300, 1000} {
		markets := spotMarkets(n)
		for _, m := range spotMarkets(n) {
			m.Name, m.Spot = m.Name+"/on-demand", false
			markets = append(markets, m)
		}
		b.Run(fmt.Sprintf("markets=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustNew(b, config(1), markets)
			}
		})
		b.Run(fmt.Sprintf("digest/markets=%d", n), func(b *testing.B) {
			for b.Loop() {
				mustNew(b, config(1), markets).Digest()
			}
		})
	}
}

// Each provider gives notice as long before as its documentation says.
func TestNoticesOfProviders(t *testing.T) {
	cfg := config(13)
	cfg.Intensity = 100
	cfg.Params.NoticeLost, cfg.Params.NoticeLate = 0, 0
	for _, rule := range policy.NoticeRules() {
		markets := spotMarkets(6)
		for i := range markets {
			markets[i].Provider = rule.Provider
		}
		w, n := mustNew(t, cfg, markets), 0
		for m := range markets {
			for _, r := range reclaims(w, m, 0, cfg.To) {
				again, _ := w.Reclaim(m, 0, r.At-hour+1)
				if n++; again.At == r.At && again.At-again.Notice != policy.Time(rule.Lead.Milliseconds()) {
					t.Errorf("%s: a notice comes %d ms before the reclaim, not %v", rule.Provider, again.At-again.Notice, rule.Lead)
				}
			}
		}
		if n == 0 {
			t.Errorf("%s: no reclaim", rule.Provider)
		}
	}
}
