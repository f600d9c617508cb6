package hunt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim"
	"github.com/spotter-dev/spotter/test/nightly"
)

// metered returns w metered from its very begin, since what was saved before the window may be
// lost in it.
func metered(w *scenarios.BoundScenario) *scenarios.BoundScenario {
	x := *w
	x.Start, x.Duration, x.WarmUp = w.Start.Add(-w.WarmUp), w.Duration+w.WarmUp, 0
	return &x
}

// A lossCurve is what a policy has cost more than on demand, at each sample of two runs in the same
// weather.
type lossCurve struct {
	at             []policy.Time
	cost, onDemand []float64 // dollars so far, bill and outages
	outages        []float64 // of cost
}

// curve plays w under a policy and on demand.
func curve(t *testing.T, w *scenarios.BoundScenario, spec string, seed uint64) lossCurve {
	t.Helper()
	play := func(spec string) []sim.Sample {
		cfg := evaltest.Config(t, w, spec, seed)
		cfg.Sample = 10 * time.Minute
		r, err := sim.Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return r.Samples
	}
	own, fixed := play(spec), play("on-demand")
	if len(own) != len(fixed) {
		t.Fatalf("%d and %d samples", len(own), len(fixed))
	}
	var c lossCurve
	for i := range own {
		c.at = append(c.at, own[i].At)
		c.cost = append(c.cost, (own[i].Bill + own[i].OutageCost).Float())
		c.outages = append(c.outages, own[i].OutageCost.Float())
		c.onDemand = append(c.onDemand, (fixed[i].Bill + fixed[i].OutageCost).Float())
	}
	return c
}

// shockLasts is how long before and after the budget is used up outages belong to the shock that
// used it up: a shortage takes its nodes within minutes, and pods start within minutes again.
const shockLasts = 30 * time.Minute

// excess returns by how much the guarantee was missed at worst, as a part of what on demand cost
// in all, and what the shock that first used up the budget cost as such a part. At or below zero it
// was kept at all times.
func (c *lossCurve) excess(budget float64) (worst, shock float64) {
	first, all := len(c.at), c.onDemand[len(c.at)-1]
	over := func(i int) float64 { return c.cost[i] - c.onDemand[i] - float64(budget*all) }
	for i := range c.at {
		if over(i) > 0 && (i == 0 || c.outages[i] > c.outages[i-1]) {
			first = i
			break
		}
	}
	if first < len(c.at) {
		from, to := first, first
		for from > 0 && c.at[first].Sub(c.at[from-1]) <= shockLasts {
			from--
		}
		for to < len(c.at)-1 && c.at[to+1].Sub(c.at[first]) <= shockLasts {
			to++
		}
		shock = c.outages[to] - c.outages[from]
	}
	worst = -1e9
	for i := range c.at {
		worst = max(worst, over(i)-shock)
	}
	return worst / all, shock / all
}

func (c *lossCurve) String() string {
	n := len(c.at) - 1
	return fmt.Sprintf("$%.2f instead of $%.2f", c.cost[n], c.onDemand[n])
}

// lossSlack is by how much the guarantee may be missed, as a part of what on demand costs: nodes of
// two pools are never filled alike.
const lossSlack = 0.02

// looselyPacked is the same in no-notice, where three nodes hold under on-demand what portfolio
// leaves on five: see the page on policies.
const looselyPacked = 0.15

// TestLossBudget plays random scenarios and the hunted ones: at no time has the policy cost more
// than the budget allows above on demand, but for the shock that first used it up. Without a budget
// that fails.
func TestLossBudget(t *testing.T) {
	const budget = 0.05
	missed := func(t *testing.T, w *scenarios.BoundScenario, spec string, seed uint64) (worst, shock float64) {
		c := curve(t, metered(w), spec, seed)
		worst, shock = c.excess(budget)
		t.Logf("%s: %s; %.1f%% above the guarantee, first shock %.1f%%", spec, &c, 100*worst, 100*shock)
		return worst, shock
	}
	names := scenarios.Hunted()
	if nightly.Count(0, 1) == 1 {
		names = append(names, scenarios.Names()...)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "bench-") {
			continue // the same services in greater number
		}
		slack := lossSlack
		if name == "no-notice" {
			slack = looselyPacked
		}
		t.Run(name, func(t *testing.T) {
			for seed := uint64(101); seed <= uint64(100+nightly.Count(1, 3)); seed++ {
				if worst, _ := missed(t, evaltest.Embedded(t, name), "portfolio", seed); worst > slack {
					t.Errorf("seed %d: %.1f%% of the on-demand bill more than is guaranteed", seed, 100*worst)
				}
			}
		})
	}
	t.Run("without", func(t *testing.T) {
		w := evaltest.Embedded(t, "hunted/shortages-at-peak")
		if worst, _ := missed(t, w, "portfolio:loss_budget=0", 101); worst <= lossSlack {
			t.Error("without a budget the guarantee holds as well")
		}
	})
	seed := uint64(time.Now().UnixNano())
	for i, v := range chance.LatinHypercube(seed, "loss-budget", nightly.Count(12, 10_000), dims) {
		p := decode(v, 12*time.Hour)
		text := p.text("try", "", "")
		sc, err := scenarios.Parse("try.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		w, err := bind(t)(sc)
		if err != nil {
			t.Fatal(err)
		}
		if worst, _ := missed(t, w, "portfolio", uint64(i)); worst > lossSlack {
			t.Errorf("%.1f%% of the on-demand bill more than is guaranteed, in scenario %d of seed %d\n%s",
				100*worst, i, seed, text)
		}
	}
}
