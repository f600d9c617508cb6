package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestRecordedAvailability plays recorded probes, half an hour apart, and holds
// every launch and every reclaim against them: spot is bought only where one of
// the probes around found it, and nodes are taken only within three minutes of an
// instant between a probe that found it and the next that did not. The intensity
// changes none of it.
func TestRecordedAvailability(t *testing.T) {
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		b := newBuilder(48 * time.Hour)
		b.w.Intensity = []float64{1, 50}[seed%2]
		b.markets(3, 1, false)
		b.pool("p")
		b.workload("web", policy.KindDeployment, 30, policy.Resources{CPU: 1800, Memory: gib})
		b.w.Available = make([]scenarios.AvailabilityCurve, len(b.w.Markets))
		for i := range b.w.Markets {
			c, up := &b.w.Available[i], rnd.IntN(2) == 0
			for when := at(-30 * time.Hour); b.w.Markets[i].Capacity == policy.Spot && when < at(48*time.Hour); when = when.Add(30 * time.Minute) {
				if rnd.IntN(8) == 0 {
					up = !up
				}
				c.At, c.Available, c.Gap = append(c.At, when), append(c.Available, up), append(c.Gap, policy.Time(30*60_000))
			}
		}
		w := b.world()
		_, log := play(t, w, "spot")
		taken := 0
		for _, line := range log {
			f := strings.Fields(line)
			if len(f) < 4 || f[1] != "launch" && f[1] != "reclaimed" {
				continue
			}
			m := policy.MarketID(slices.IndexFunc(w.Markets, func(m policy.Market) bool { return m.Name == f[3] }))
			if w.Markets[m].Capacity != policy.Spot {
				continue
			}
			std, err := time.Parse(time.RFC3339, f[0])
			if err != nil {
				t.Fatal(err)
			}
			when, c := policy.TimeOf(std), &w.Available[m]
			next := min(len(c.At)-1, slices.IndexFunc(append(slices.Clone(c.At), when+1), func(x policy.Time) bool { return x > when }))
			if f[1] == "launch" {
				if !c.Available[next] && !c.Available[max(0, next-1)] {
					t.Errorf("seed %d: bought where no probe found anything: %s", seed, line)
				}
				continue
			}
			taken++
			fell := func(k int) bool { return k > 0 && c.Available[k-1] && !c.Available[k] }
			if !fell(next) && !(fell(next-1) && when <= c.At[next-1].Add(3*time.Minute)) {
				t.Errorf("seed %d: taken where no probe missed it: %s", seed, line)
			}
		}
		if taken == 0 {
			t.Errorf("seed %d: no node was lost", seed)
		}
	}
}
