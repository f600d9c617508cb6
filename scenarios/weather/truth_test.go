package weather

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// under returns the weather of markets under the truth of a name.
func under(t *testing.T, name string, cfg Config, markets []Market) *Weather {
	t.Helper()
	truth, err := TruthNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Truth = truth
	return mustNew(t, cfg, markets)
}

// A lost is one reclaim of a slot.
type lost struct {
	at     policy.Time
	notice int32
	cause  Cause
}

// losses returns the reclaims of all slots of market m, ascending.
func losses(w *Weather, m int) (all []lost) {
	mk := &w.markets[m]
	for i := mk.first; i < mk.first+mk.slots; i++ {
		for _, e := range w.events[w.starts[i]:w.starts[i+1]] {
			all = append(all, lost{e.at, e.notice, e.cause})
		}
	}
	slices.SortFunc(all, func(a, b lost) int { return cmp.Compare(a.at, b.at) })
	return all
}

// most returns the greatest number of reclaims within the time in which a
// shortage takes its slots.
func most(all []lost) int {
	n := 0
	for i := range all {
		k := i
		for k < len(all) && all[k].at-all[i].at < 180_000 {
			k++
		}
		n = max(n, k-i)
	}
	return n
}

// Every truth has a digest of its own, and what is published does not move.
func TestTruthsPublishTheSame(t *testing.T) {
	cfg, markets := config(3), spotMarkets(60)
	seen := map[[32]byte]string{}
	base := mustNew(t, cfg, markets)
	for _, truth := range Truths() {
		w := under(t, truth.String(), cfg, markets)
		if other, twice := seen[w.Digest()]; twice {
			t.Errorf("%v and %s have one digest", truth, other)
		}
		seen[w.Digest()] = truth.String()
		for m := range markets {
			band, modelled := w.Band(m)
			if want, wantModelled := base.Band(m); band != want || modelled != wantModelled {
				t.Errorf("%v: the band of %s is %v, want %v", truth, markets[m].Name, band, want)
			}
		}
	}
	if w := under(t, modelledName, cfg, markets); w.Digest() != base.Digest() {
		t.Error("the model as it is has another digest as a truth")
	}
	if _, err := TruthNamed("hazard-7"); err == nil {
		t.Error("hazard-7 is taken for a truth")
	}
}

// A truth out of range is refused, also where only intensity and hazard together are.
func TestTruthIsChecked(t *testing.T) {
	for _, truth := range []Truth{{Hazard: -1}, {Lead: math.NaN()}, {Depth: -1}, {Slots: -0.1},
		{Volatility: math.Inf(1)}, {Correlation: 3}, {Hazard: 600}} {
		cfg := config(1)
		cfg.Intensity, cfg.Truth = 2, truth
		if _, err := New(cfg, spotMarkets(1)); err == nil {
			t.Errorf("%+v is taken", truth)
		}
	}
}

// Hazard changes the number of reclaims by its factor and is drawn as an intensity is.
func TestHazardOfTruth(t *testing.T) {
	cfg, markets := config(5), spotMarkets(120)
	cfg.To = cfg.From + days(60)
	count := func(w *Weather) (calendar float64) {
		for m := range markets {
			for _, x := range losses(w, m) {
				if x.cause == CauseCalendar {
					calendar++
				}
			}
		}
		return calendar
	}
	usual := count(mustNew(t, cfg, markets))
	for _, c := range []struct {
		name   string
		factor float64
	}{{"hazard-0.3", 0.3}, {"hazard-3", 3}, {"hazard-10", 10}} {
		w := under(t, c.name, cfg, markets)
		calendar := count(w)
		if x := calendar / usual; x < c.factor*0.93 || x > c.factor*1.07 {
			t.Errorf("%s: %.0f reclaims of calendars beside %.0f, %.2f times", c.name, calendar, usual, x)
		}
		intense := cfg
		intense.Intensity = c.factor
		same := mustNew(t, intense, markets)
		for m := range markets[:6] {
			if account(w, m, cfg.From+days(8)) != account(same, m, cfg.From+days(8)) {
				t.Fatalf("%s: %s is not drawn as under intensity %v", c.name, markets[m].Name, c.factor)
			}
		}
	}
}

// banded returns Spot markets of all bands, those with accelerators of the worst.
func banded(n int) []Market {
	markets := spotMarkets(n)
	for i := range markets {
		markets[i].Band = policy.Band(i / 7 % bands)
		if markets[i].GPU {
			markets[i].Band = bands - 1
		}
	}
	return markets
}

// Alone, as many nodes are reclaimed, and never many of a market together, while
// markets refuse launches as they did.
func TestAlone(t *testing.T) {
	cfg, markets := config(7), banded(180)
	cfg.To = cfg.From + days(90)
	base, w := mustNew(t, cfg, markets), under(t, "alone", cfg, markets)
	together, usual, alone := 0, 0, 0
	for m := range markets {
		all, before := losses(w, m), losses(base, m)
		usual, alone = usual+len(before), alone+len(all)
		for _, x := range all {
			if x.cause != CauseCalendar {
				t.Fatalf("%s: a node is taken by a %v", markets[m].Name, x.cause)
			}
		}
		if n := most(all); n > 4 && !scarce(&markets[m], markets[m].Band) { // those are taken often
			t.Errorf("%s: %d of %d slots are taken within three minutes", markets[m].Name, n, w.Slots(m))
		}
		together = max(together, most(before))
		for i, s := range w.Shortages(m) {
			if b := base.Shortages(m)[i]; s.From != b.From || s.Until != b.Until || s.Depth != 0 {
				t.Fatalf("%s: shortage %d is %+v, was %+v", markets[m].Name, i, s, b)
			}
		}
	}
	if together < 40 {
		t.Errorf("in the model at most %d slots of a market go together: the test sees nothing", together)
	}
	if x := float64(alone) / float64(usual); x < 0.85 || x > 1.15 {
		t.Errorf("%d reclaims alone beside %d, %.2f times", alone, usual, x)
	}
}

// By zone, as many nodes are reclaimed, all of them in shortages, and what a market
// meets the harsher ones of its zone meet at the same instant.
func TestByZone(t *testing.T) {
	cfg, markets := config(11), banded(180)
	cfg.To, cfg.Intensity = cfg.From+days(180), 4
	markets = slices.DeleteFunc(markets, func(m Market) bool { return m.GPU })
	base, w := mustNew(t, cfg, markets), under(t, "by-zone", cfg, markets)
	usual, all := 0, 0
	begins := map[string][][]policy.Time{}
	for m := range markets {
		usual += len(losses(base, m))
		for _, x := range losses(w, m) {
			if all++; x.cause != CauseShortage {
				t.Fatalf("%s: a node is taken by a %v", markets[m].Name, x.cause)
			}
		}
		var own []policy.Time
		for _, s := range w.Shortages(m) {
			own = append(own, s.From)
		}
		begins[markets[m].Zone] = append(begins[markets[m].Zone], own)
	}
	for zone, of := range begins {
		slices.SortFunc(of, func(a, b []policy.Time) int { return cmp.Compare(len(a), len(b)) })
		for i := range of[:len(of)-1] {
			for _, at := range of[i] {
				if !slices.Contains(of[i+1], at) {
					t.Fatalf("%s: a market with %d shortages has one that a market with %d lacks", zone, len(of[i]), len(of[i+1]))
				}
			}
		}
	}
	if x := float64(all) / float64(usual); x < 0.8 || x > 1.2 {
		t.Errorf("%d reclaims by zone beside %d, %.2f times", all, usual, x)
	}
}

// By zone, scarce types share their slack: while the better of two is closed the
// worse one is too, but for the few shortages that reach all types. The depth of a
// type that the law does not close stays.
func TestScarceByZone(t *testing.T) {
	cfg := config(11)
	cfg.To = cfg.From + days(90)
	markets := slices.DeleteFunc(banded(180), func(m Market) bool { return !m.GPU })
	calm := slices.Clone(markets[:6])
	for i := range calm {
		calm[i].Band = 0
	}
	is, usual := under(t, "by-zone", cfg, calm), mustNew(t, cfg, calm)
	for m := range calm {
		if len(usual.Steps(m)) == 0 || !slices.Equal(is.Steps(m), usual.Steps(m)) {
			t.Fatalf("%s: its depth changes otherwise", calm[m].Name)
		}
	}
	both, all := zonesNested(under(t, "by-zone", cfg, markets), markets, cfg)
	was, of := zonesNested(mustNew(t, cfg, markets), markets, cfg)
	if nested, before := float64(both)/float64(all), float64(was)/float64(of); !(nested > 0.99 && before < 0.9) {
		t.Errorf("while the better of two scarce types of a zone is closed the worse is for %.3f of the time, in the model for %.3f", nested, before)
	}
}

// zonesNested counts the hours in which the better one of two scarce types of a
// zone is closed by their law, and those of them in which the worse one is too.
func zonesNested(w *Weather, markets []Market, cfg Config) (both, all int) {
	zones := map[string][]int{}
	for m := range markets {
		if scarce(&markets[m], markets[m].Band) {
			zones[markets[m].Zone] = append(zones[markets[m].Zone], m)
		}
	}
	b := newBuilder(cfg, 0)
	mean := func(m int) float64 { return b.scarcePlace(&markets[m], 0).Mean }
	for _, of := range zones {
		slices.SortFunc(of, func(a, b int) int { return cmp.Compare(mean(a), mean(b)) })
		for i := range len(of) - 1 {
			for at := cfg.From; at < cfg.To; at += hour {
				if !w.Open(of[i+1], at) {
					if all++; !w.Open(of[i], at) {
						both++
					}
				}
			}
		}
	}
	return both, all
}

// Without notices none comes, and late ones come with a tenth of their lead; when
// nodes are taken and recommended to be left stays.
func TestNoticesOfTruth(t *testing.T) {
	cfg, markets := config(13), spotMarkets(60)
	cfg.Intensity = 20
	base, none, late := mustNew(t, cfg, markets), under(t, "no-notice", cfg, markets), under(t, "late-notice", cfg, markets)
	noticed := 0
	for m := range markets {
		was, is, tenth := losses(base, m), losses(none, m), losses(late, m)
		for i, x := range was {
			if is[i].at != x.at || is[i].notice != 0 {
				t.Fatalf("without notices %s has %+v, was %+v", markets[m].Name, is[i], x)
			}
			if tenth[i].at != x.at || tenth[i].notice != int32(float64(x.notice)*0.1) {
				t.Fatalf("with late notices %s has %+v, was %+v", markets[m].Name, tenth[i], x)
			}
			if x.notice == 120_000 {
				noticed++
			}
		}
		for slot := range base.Slots(m) {
			if !slices.Equal(recommendations(base, m, slot, cfg.To), recommendations(none, m, slot, cfg.To)) {
				t.Fatalf("%s: recommendations of slot %d change with notices", markets[m].Name, slot)
			}
		}
	}
	if noticed < 100 {
		t.Errorf("only %d reclaims have a whole notice", noticed)
	}
}

// Twice as deep, shortages are those of the model and take twice the share, at most
// all; what a scenario orders stays.
func TestDepthOfTruth(t *testing.T) {
	cfg, markets := config(17), spotMarkets(60)
	cfg.To, cfg.Intensity = cfg.From+days(60), 10
	cfg.Shortages = []OrderedShortage{{At: cfg.From + hour, Duration: 3_600_000_000_000, Depth: 0.3}}
	base, w := mustNew(t, cfg, markets), under(t, "depth-2", cfg, markets)
	doubled, capped := 0, 0
	for m := range markets {
		for i, s := range w.Shortages(m) {
			b := base.Shortages(m)[i]
			want := min(1, 2*b.Depth)
			if b.Cause == CauseOrdered {
				want = 0.3
			}
			if s.From != b.From || s.Until != b.Until || s.Depth != want {
				t.Fatalf("%s: shortage %d is %+v, was %+v", markets[m].Name, i, s, b)
			}
			if b.Cause == CauseShortage && b.Depth < 0.5 {
				doubled++
			} else if b.Cause == CauseShortage {
				capped++
			}
		}
	}
	if doubled < 10 || capped < 10 {
		t.Errorf("%d shortages are doubled and %d capped", doubled, capped)
	}
}

// A fifth of the slots is there, at least one, and never more at any time; their
// calendars are those of the model.
func TestSlotsOfTruth(t *testing.T) {
	cfg, markets := config(19), spotMarkets(120)
	base, w := mustNew(t, cfg, markets), under(t, "slots-0.2", cfg, markets)
	steps := 0
	for m := range markets {
		want := max(1, int(float64(base.Slots(m))*0.2+0.5))
		if w.Slots(m) != want {
			t.Fatalf("%s holds %d of %d nodes, want %d", markets[m].Name, w.Slots(m), base.Slots(m), want)
		}
		for i, s := range w.Steps(m) {
			steps++
			if b := base.Steps(m)[i]; s.From != b.From || s.Nodes != max(1, int32(float64(b.Nodes)*0.2+0.5)) {
				t.Fatalf("%s: depth %d is %+v, was %+v", markets[m].Name, i, s, b)
			}
		}
		if !slices.Equal(reclaims(w, m, 0, cfg.To), reclaims(base, m, 0, cfg.To)) {
			t.Fatalf("%s: the first slot is taken at other times", markets[m].Name)
		}
	}
	if steps == 0 {
		t.Error("no market has a depth that changes")
	}
	for set, want := range map[int]int{1: 1, 2: 1, 10: 2} {
		cfg.Slots = set
		if n := under(t, "slots-0.2", cfg, markets).Slots(0); n != want {
			t.Errorf("of %d nodes that a scenario sets %d are there, want %d", set, n, want)
		}
	}
}
