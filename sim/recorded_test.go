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
		w := b.scenario()
		_, log := runScenario(t, w, "spot")
		taken := 0
		for _, line := range log {
			f := strings.Fields(line)
			if len(f) < 4 || f[1] != "launch" && f[1] != "reclaimed" {
				continue
			}
			when, m, next := recorded(t, w, f)
			if next < 0 {
				continue
			}
			c := &w.Available[m]
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

// recorded returns the time and the market of an event, from the words of its line in the log,
// and the index of the next probe of that market. If none follows that is the last probe, and on
// demand it is negative.
func recorded(t *testing.T, w *scenarios.BoundScenario, words []string) (when policy.Time, m policy.MarketID, next int) {
	t.Helper()
	m = policy.MarketID(slices.IndexFunc(w.Markets, func(m policy.Market) bool { return m.Name == words[3] }))
	if w.Markets[m].Capacity != policy.Spot {
		return 0, m, -1
	}
	std, err := time.Parse(time.RFC3339, words[0])
	if err != nil {
		t.Fatal(err)
	}
	when = policy.TimeOf(std)
	at := w.Available[m].At
	return when, m, min(len(at)-1, slices.IndexFunc(append(slices.Clone(at), when+1), func(x policy.Time) bool { return x > when }))
}

// recordDepth gives Spot markets a recorded depth, probed every half hour.
func (b *builder) recordDepth(rnd *rand.Rand, most int) {
	b.w.Available = make([]scenarios.AvailabilityCurve, len(b.w.Markets))
	for i := range b.w.Markets {
		c, nodes := &b.w.Available[i], most
		for when := at(-30 * time.Hour); b.w.Markets[i].Capacity == policy.Spot && when < at(48*time.Hour); when = when.Add(30 * time.Minute) {
			if rnd.IntN(4) == 0 {
				nodes = rnd.IntN(most + 1)
			}
			c.At, c.Available, c.Gap = append(c.At, when), append(c.Available, nodes > 0), append(c.Gap, policy.Time(30*60_000))
			c.Nodes = append(c.Nodes, int32(nodes))
		}
	}
}

// TestRecordedDepth plays recorded depth and holds every launch against it: no
// launch is granted when as many nodes are held as one of the probes around found,
// and launches are refused for it while the market is open.
func TestRecordedDepth(t *testing.T) {
	for seed := range uint64(4) {
		b := newBuilder(48 * time.Hour)
		b.markets(3, 1, false)
		b.pool("p")
		b.workload("web", policy.KindDeployment, 40, policy.Resources{CPU: 1800, Memory: gib})
		b.recordDepth(rand.New(rand.NewPCG(seed, 5)), 6)
		w := b.scenario()
		res, log := runScenario(t, w, "spot")
		held, of, full := map[policy.MarketID]int32{}, map[string]policy.MarketID{}, 0
		for _, line := range log {
			f := strings.Fields(line)
			if len(f) < 3 {
				continue
			}
			if m, ok := of[f[2]]; ok && f[1] == "bill" {
				held[m]--
			}
			if f[1] != "launch" {
				continue
			}
			_, m, next := recorded(t, w, f)
			if next < 0 {
				continue
			}
			c := &w.Available[m]
			depth := max(c.Nodes[next], c.Nodes[max(0, next-1)])
			if held[m] >= depth {
				t.Errorf("seed %d: a node is sold where %d of %d are held: %s", seed, held[m], depth, line)
			}
			held[m]++
			of[f[2]] = m
			if held[m] == depth {
				full++
			}
		}
		if full == 0 || res.Refusals == 0 {
			t.Errorf("seed %d: depth never mattered: %d markets filled, %d refusals", seed, full, res.Refusals)
		}
	}
}

// TestNoLeakOfDepth changes a recorded depth after an instant and sees every
// snapshot up to it unchanged.
func TestNoLeakOfDepth(t *testing.T) {
	instant := at(20 * time.Hour)
	observe := func(change bool) string {
		b := newBuilder(48 * time.Hour)
		b.markets(3, 1, false)
		b.pool("p")
		b.workload("web", policy.KindDeployment, 40, policy.Resources{CPU: 1800, Memory: gib})
		b.recordDepth(rand.New(rand.NewPCG(9, 5)), 6)
		w := b.scenario()
		for i := range w.Available {
			c := &w.Available[i]
			for k, when := range c.At {
				// What a probe found may have come since the one before, and a fall to
				// 0 is announced at most an hour before it takes a node.
				if change && when > instant.Add(90*time.Minute) {
					c.Nodes[k] = (c.Nodes[k] + 3) % 7
					c.Available[k] = c.Nodes[k] > 0
				}
			}
		}
		return seenUntil(t, w, instant)
	}
	plain, changed := observe(false), observe(true)
	if plain != changed {
		t.Errorf("a depth of the future changes snapshots of %d bytes before %v", len(plain), instant)
	}
}
