package weather

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// withOnDemand returns the markets and after them their twins on demand.
func withOnDemand(spot []Market) []Market {
	all := append([]Market(nil), spot...)
	for _, m := range spot {
		m.Twin, m.Name, m.Spot = m.Name, strings.TrimSuffix(m.Name, "/spot")+"/on-demand", false
		all = append(all, m)
	}
	return all
}

// closedTime returns for how long in all market m is closed within the span.
func closedTime(w *Weather, m int) (sum policy.Time) {
	mk := &w.markets[m]
	for _, c := range w.closed[mk.closedFrom:mk.closedUntil] {
		sum += max(0, min(c.until, w.cfg.To)-max(c.from, w.cfg.From))
	}
	return sum
}

// Where on-demand launches are refused, the Spot market of the same type and zone sells nothing
// either, and no on-demand node is ever taken.
func TestOnDemandShortagesLieWithinThoseOfSpot(t *testing.T) {
	for seed := uint64(1); seed <= 12; seed++ {
		cfg := config(seed)
		cfg.OnDemandShortages, cfg.Intensity = true, []float64{1, 1, 2.5, 40}[seed%4]
		spot := spotMarkets(120)
		for i := range spot {
			spot[i].Band = policy.Band(i%6 - 1)
		}
		spot[3].Available = &Availability{At: []policy.Time{begin, begin + 5*hour, begin + 9*hour, begin + 20*hour, begin +
			44*hour}, Up: []bool{true, false, true, false, true},
			Gap: []policy.Time{hour, hour, hour, hour, hour}}
		w := mustNew(t, cfg, withOnDemand(spot))
		for i := range spot {
			m := len(spot) + i
			for _, s := range w.Shortages(m) {
				for _, at := range []policy.Time{s.From, (s.From + min(s.Until, cfg.To)) / 2, min(s.Until, cfg.To) - 1} {
					if at >= cfg.From && at < cfg.To && w.Open(i, at) {
						t.Fatalf("seed %d: %s refuses at %v and its spot market does not", seed, w.markets[m].name, at)
					}
				}
				if s.Depth != 0 {
					t.Fatalf("seed %d: a shortage of %s takes nodes", seed, w.markets[m].name)
				}
			}
			if _, lost := w.Reclaim(m, 0, cfg.From); lost {
				t.Fatalf("seed %d: a node of %s is taken", seed, w.markets[m].name)
			}
			if band, _ := w.Band(i); len(w.Shortages(m)) > 0 && !spot[i].GPU && band != bands-1 {
				t.Fatalf("seed %d: %s refuses although it is not scarce", seed, w.markets[m].name)
			}
		}
	}
}

// On-demand shortages change nothing else: every Spot market has the same weather as without them,
// and without the setting no on-demand launch is refused.
func TestOnDemandShortagesMoveNothingElse(t *testing.T) {
	cfg, spot := config(5), spotMarkets(60)
	cfg.Intensity = 3
	without := mustNew(t, cfg, withOnDemand(spot))
	cfg.OnDemandShortages = true
	with := mustNew(t, cfg, withOnDemand(spot))
	refused := policy.Time(0)
	for m := range spot {
		if account(with, m, cfg.To) != account(without, m, cfg.To) {
			t.Errorf("%s meets another weather", spot[m].Name)
		}
		refused += closedTime(with, len(spot)+m)
		if closedTime(without, len(spot)+m) != 0 {
			t.Errorf("%s refuses on demand without the setting", spot[m].Name)
		}
	}
	if refused == 0 {
		t.Error("nothing on demand is ever refused")
	}
	if with.Digest() == without.Digest() {
		t.Error("the digest does not see it")
	}
}

// Launches on demand of scarce types are refused for about a tenth of the time
// for which spot is, as Params.OnDemandShare says.
func TestOnDemandShare(t *testing.T) {
	spot, onDemand := policy.Time(0), policy.Time(0)
	for seed := uint64(1); seed <= 60; seed++ {
		cfg, markets := config(seed), spotMarkets(60)
		cfg.OnDemandShortages = true
		scarce := markets[:0]
		for _, m := range markets {
			if m.Band = bands - 1; m.GPU {
				scarce = append(scarce, m)
			}
		}
		w := mustNew(t, cfg, withOnDemand(scarce))
		for i := range scarce {
			spot += closedTime(w, i)
			onDemand += closedTime(w, len(scarce)+i)
		}
	}
	if share := float64(onDemand) / float64(spot); share < .05 || share > .16 {
		t.Errorf("launches on demand are refused for %.3f of the time for which spot is, want about .1", share)
	} else {
		t.Logf("share %.3f of %.1f h", share, float64(spot)/float64(hour))
	}
}

// Of the falls of a recorded availability the part reaches launches on demand that
// Params.OnDemandShare says, and each lasts as long as for spot.
func TestOnDemandShareOfRecordedFalls(t *testing.T) {
	spot := spotMarkets(30)
	for i := range spot {
		a := &Availability{}
		for k := range 100 {
			a.At, a.Up = append(a.At, begin+policy.Time(k)*hour), append(a.Up, k%2 == 0)
			a.Gap = append(a.Gap, hour/10)
		}
		spot[i].Available, spot[i].Band = a, bands-1
	}
	cfg := config(3)
	cfg.OnDemandShortages = true
	w := mustNew(t, cfg, withOnDemand(spot))
	falls, kept := 0, 0
	for i := range spot {
		all := map[interval]bool{}
		for _, s := range w.Shortages(i) {
			all[interval{s.From, s.Until}] = true
			falls++
		}
		for _, s := range w.Shortages(len(spot) + i) {
			if kept++; !all[interval{s.From, s.Until}] {
				t.Errorf("%s refuses on demand from %v to %v, which is no fall of it", spot[i].Name, s.From, s.Until)
			}
		}
	}
	if share := float64(kept) / float64(falls); share < .07 || share > .13 {
		t.Errorf("%.3f of %d recorded falls reach launches on demand, want about .1", share, falls)
	}
}
