package sim

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestSignals: a snapshot has the signals that are published at its own instant (placement
// scores, percentiles of bids, and bands), neither those of the start nor later ones.
func TestSignals(t *testing.T) {
	w := randomScenario(3)
	w.Signals = make([]scenarios.SignalCurve, len(w.Markets))
	change := w.Start.Add(w.Duration / 2)
	begin := w.Start.Add(-w.WarmUp)
	type signals struct {
		score int8
		band  policy.Band
		bids  [3]policy.Money
	}
	first := signals{3, 1, [3]policy.Money{5_000, 10_000, 15_000}}
	then := signals{8, 4, [3]policy.Money{10_000, 20_000, 30_000}}
	for i := range w.Markets {
		if w.Markets[i].Capacity != policy.Spot {
			continue
		}
		c := scenarios.SignalCurve{At: []policy.Time{begin, change}, Score: []int8{first.score, then.score},
			Band: []int8{int8(first.band), int8(then.band)}}
		for k := range c.Bids {
			c.Bids[k] = []policy.Money{first.bids[k], then.bids[k]}
		}
		w.Signals[i] = c
	}
	before, after := 0, 0
	see := func(s *policy.Snapshot) {
		for i := range s.Markets {
			m := &s.Markets[i]
			want := signals{-1, policy.BandUnknown, [3]policy.Money{}}
			switch {
			case m.Capacity != policy.Spot:
			case s.Now < change:
				want, before = first, before+1
			default:
				want, after = then, after+1
			}
			if got := (signals{m.PlacementScore, m.Band, m.BidPercentiles}); got != want || m.BandModelled {
				t.Fatalf("%v after the begin %s shows %+v, want %+v", s.Now.Sub(begin), m.Name, got, want)
			}
		}
	}
	mustRun(t, Config{Prepared: mustPrepare(t, w), Policy: watcher{Policy: mustPolicy(t, "spot"), see: see},
		Forecaster: mustForecaster(t), Seed: 3})
	if before == 0 || after == 0 {
		t.Errorf("%d markets were seen before the change and %d after it", before, after)
	}
}
