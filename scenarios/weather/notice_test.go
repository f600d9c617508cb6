package weather

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

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
	cfg.Shortages = []OrderedShortage{{At: at, Duration: time.Hour, Depth: 1, Capacity: "spot"}}
	for _, c := range []struct {
		late     NoticeFault
		lead     policy.Time // of a notice concerned
		from, to float64     // the share concerned
	}{
		{NoticeFault{At: at - hour, Duration: 3 * time.Hour, Share: 1, Delay: 90 * time.Second}, 30_000, 1, 1},
		{NoticeFault{At: at - hour, Duration: 3 * time.Hour, Share: .5, Delay: 90 * time.Second}, 30_000, .4, .6},
		{NoticeFault{At: at - hour, Duration: 3 * time.Hour, Share: 1, Delay: 130 * time.Second}, 0, 1, 1},
		{NoticeFault{At: at - hour, Duration: 3 * time.Hour, Share: 1}, 0, 1, 1},
		{NoticeFault{At: at - hour, Duration: time.Minute, Share: 1}, 0, 0, 0},
	} {
		cfg.NoticeFaults = []NoticeFault{c.late}
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
				t.Fatal("a shortage of depth 1 left a slot")
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

// TestGoogleNotice: nodes of Google Cloud have the notice that is configured, none for 0, and those of
// other providers theirs.
func TestGoogleNotice(t *testing.T) {
	cfg := config(14)
	cfg.Intensity, cfg.Slots = 0, 50
	cfg.Params.NoticeLost, cfg.Params.NoticeLate = 0, 0
	cfg.Shortages = []OrderedShortage{{At: begin + 10*hour, Duration: time.Hour, Depth: 1, Capacity: "spot"}}
	none, long := time.Duration(0), 2*time.Minute
	for provider, cases := range map[string]map[*time.Duration]policy.Time{
		policy.GCP:   {nil: 30_000, &none: 0, &long: 120_000},
		policy.Azure: {nil: 30_000, &none: 30_000, &long: 30_000},
	} {
		for notice, want := range cases {
			cfg.GoogleNotice = notice
			markets := spotMarkets(1)
			markets[0].Provider = provider
			w := mustNew(t, cfg, markets)
			for slot := range cfg.Slots {
				r, ok := w.Reclaim(0, slot, begin)
				lead := policy.Time(0)
				if r.Notice != 0 {
					lead = r.At - r.Notice
				}
				if !ok || lead != want {
					t.Fatalf("%s, %v: a lead of %d ms, want %d", provider, notice, lead, want)
				}
			}
		}
	}
}

// Recommendations have the precision and the lead that the constants state: of
// all that come, a quarter are followed by the reclaim within the hour, and those
// that precede one come ten minutes before its notice on average. Several at once in a
// market are right as often as one.
func TestRecommendations(t *testing.T) {
	cfg := config(15)
	cfg.Slots, cfg.To = 60, begin+days(60)
	markets := regional(600)
	for i := range markets {
		markets[i].Band = policy.Band(2 + i%3)
	}
	w := mustNew(t, cfg, markets)
	var reclaimed, warned, all, right, lead, bursts, burstsRight float64
	for m := range markets {
		var given []recommended
		for slot := range w.Slots(m) {
			for _, r := range reclaims(w, m, slot, cfg.To) {
				reclaimed++
				if at, ok := w.Recommendation(m, slot, r.At-hour); ok && at <= r.At-120_000 {
					warned++
				}
			}
			for _, at := range recommendations(w, m, slot, cfg.To-hour) {
				r, ok := w.Reclaim(m, slot, at)
				x := recommended{at, ok && r.At <= at+hour}
				if given = append(given, x); x.right {
					right++
					lead += float64(r.At-120_000-at) / 60_000
				}
			}
		}
		all += float64(len(given))
		of, ofRight := burstsOf(given)
		bursts, burstsRight = bursts+of, burstsRight+ofRight
	}
	if share := warned / reclaimed; math.Abs(share-cfg.Params.RecommendedShare) > .03 {
		t.Errorf("%.3f of %v reclaims are recommended, want %v", share, reclaimed, cfg.Params.RecommendedShare)
	}
	if precision := right / all; math.Abs(precision-cfg.Params.RecommendedPrecision) > .03 {
		t.Errorf("%.3f of %v recommendations are right, want %v", precision, all, cfg.Params.RecommendedPrecision)
	}
	if share := burstsRight / bursts; math.Abs(share-cfg.Params.RecommendedPrecision) > .07 || bursts < 100 {
		t.Errorf("%.3f of %v bursts of recommendations are right, want %v", share, bursts, cfg.Params.RecommendedPrecision)
	}
	if mean := lead / right; math.Abs(mean-cfg.Params.RecommendedLead.Minutes()) > 0.8 {
		t.Errorf("right recommendations come %.2f min before the notice, want %v", mean, cfg.Params.RecommendedLead)
	}
}

// A recommended is a recommendation, and whether the reclaim came within an hour.
type recommended struct {
	at    policy.Time
	right bool
}

// burstsOf counts the times in which more than three recommendations of one market come a
// quarter of an hour apart at most, and of them those of which most are right.
func burstsOf(given []recommended) (bursts, right float64) {
	slices.SortFunc(given, func(a, b recommended) int { return cmp.Compare(a.at, b.at) })
	for i := 0; i < len(given); {
		n, hits := 0, 0
		for n == 0 || i+n < len(given) && given[i+n].at <= given[i+n-1].at+hour/4 {
			if given[i+n].right {
				hits++
			}
			n++
		}
		if n > 3 {
			bursts++
			if hits > n/2 {
				right++
			}
		}
		i += n
	}
	return bursts, right
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
