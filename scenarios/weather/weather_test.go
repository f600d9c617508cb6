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

// begin is a Monday, at 00:17 so that the run starts within an hour.
var begin = policy.TimeOf(time.Date(2023, 1, 2, 0, 17, 0, 0, time.UTC))

func days(n int) policy.Time { return policy.Time(n) * 24 * hour }

// config returns that of a week with one day of warm-up.
func config(seed uint64) Config {
	return Config{Seed: seed, From: begin, To: begin + days(8), Intensity: 1, Params: DefaultParams()}
}

// spotMarkets returns Spot markets of several families in the six zones of a region, a tenth of
// them with accelerators.
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
	for _, s := range w.Shortages(m) {
		if s.From < end {
			fmt.Fprintln(&b, s.From, min(s.Until, end), s.Depth, s.Cause)
		}
	}
	for slot := range w.Slots(m) {
		fmt.Fprintln(&b, slot, reclaims(w, m, slot, end), recommendations(w, m, slot, end))
	}
	for t := begin; t < end; t += hour {
		fmt.Fprint(&b, w.Open(m, t), w.Depth(m, t), w.ExpectedHazard(m, t), " ")
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
	shortage := OrderedShortage{At: begin + hour, Duration: time.Hour, Depth: 0.5, Zone: "use1-az2"}
	for name, change := range map[string]func(*Config){
		"seed":         func(c *Config) { c.Seed++ },
		"trace":        func(c *Config) { c.Trace[17]++ },
		"intensity":    func(c *Config) { c.Intensity = 1.01 },
		"begin":        func(c *Config) { c.From += hour },
		"slots":        func(c *Config) { c.Slots = 9 },
		"shortage":     func(c *Config) { c.Shortages = []OrderedShortage{shortage} },
		"late notices": func(c *Config) { c.NoticeFaults = []NoticeFault{{At: begin, Duration: time.Hour, Share: 1}} },
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
	if want := "107d305ba7cb06556a45530c4efae40f51ebf1321414669074601371c86e239b"; got != want {
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
		if len(w.Shortages(m)) > 0 {
			t.Fatalf("%s has shortages", markets[m].Name)
		}
		for slot := range w.Slots(m) {
			if len(reclaims(w, m, slot, cfg.To)) > 0 || len(recommendations(w, m, slot, cfg.To)) > 0 {
				t.Fatalf("%s: slot %d is reclaimed or recommended", markets[m].Name, slot)
			}
		}
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

func TestQueriesDoNotAllocate(t *testing.T) {
	w := mustNew(t, config(1), spotMarkets(60))
	if n := testing.AllocsPerRun(50, func() {
		w.Open(3, begin+days(2))
		w.Reclaim(3, 1, begin)
		w.Recommendation(3, 1, begin)
		w.ExpectedHazard(3, begin+days(2))
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
