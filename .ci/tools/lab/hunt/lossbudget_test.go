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
	"github.com/spotter-dev/spotter/test/testenv"
)

// metered returns w metered from its very begin, since what was saved before the window may be
// lost in it.
func metered(w *scenarios.BoundScenario) *scenarios.BoundScenario {
	x := *w
	x.Start, x.Duration, x.WarmUp = w.Start.Add(-w.WarmUp), w.Duration+w.WarmUp, 0
	return &x
}

// A lossCurve is what a policy has cost more than on demand, at each sample of two runs in the same
// weather: dollars so far, for nodes and outages.
type lossCurve struct {
	at                      []policy.Time
	cost, onDemand, outages []float64 // outages are those of cost
}

// curve plays w under a policy and on demand. What does not come of Spot is left out: what nodes on
// demand cost under the policy above all nodes of the policy on-demand, and outages by moves.
func curve(t *testing.T, w *scenarios.BoundScenario, spec string, seed uint64) lossCurve {
	t.Helper()
	play := func(spec string) *sim.Result {
		cfg := evaltest.Config(t, w, spec, seed)
		cfg.Sample = 10 * time.Minute
		r, err := sim.Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	own, fixed := play(spec), play("on-demand")
	if len(own.Samples) != len(fixed.Samples) {
		t.Fatalf("%d and %d samples", len(own.Samples), len(fixed.Samples))
	}
	var c lossCurve
	rates, fixedRates := onDemandRates(w, own), onDemandRates(w, fixed)
	looser, outages := 0.0, 0.0
	for i, s := range own.Samples {
		if i > 0 {
			was := &own.Samples[i-1]
			looser += max(0, rates[i-1]-fixedRates[i-1]) * s.At.Sub(was.At).Hours()
			outages += (s.OutageCost - was.OutageCost).Float() * (1 - byMoves(&was.Outages, &s.Outages))
		}
		c.at = append(c.at, s.At)
		c.cost = append(c.cost, s.Bill.Float()+outages)
		c.outages = append(c.outages, outages)
		c.onDemand = append(c.onDemand, (fixed.Samples[i].Bill+fixed.Samples[i].OutageCost).Float()+looser)
	}
	return c
}

// byMoves returns which part of the time of outages between two samples comes of moves.
func byMoves(was, now *sim.Outages) float64 {
	all := now.Outage - was.Outage
	if all <= 0 {
		return 0
	}
	moves := time.Duration(0)
	for _, c := range []sim.OutageCause{sim.CauseMove, sim.CauseProvisioner} {
		moves += now.Causes[c].Outage - was.Causes[c].Outage
	}
	return min(1, max(0, moves.Seconds()/all.Seconds()))
}

// onDemandRates returns by sample what the nodes on demand of a run cost, in dollars an hour.
func onDemandRates(w *scenarios.BoundScenario, r *sim.Result) []float64 {
	rate, held := 0.0, make([]int64, len(w.Markets))
	var all []float64
	next := r.Held
	for _, s := range r.Samples {
		for ; len(next) > 0 && next[0].At == s.At; next = next[1:] {
			m := next[0].Market
			if w.Markets[m].Capacity == policy.OnDemand {
				rate += float64(next[0].Nodes-held[m]) * w.Markets[m].OnDemand.Float()
			}
			held[m] = next[0].Nodes
		}
		all = append(all, rate)
	}
	return all
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

// budgetOfTests is the part of the on-demand bill that may be lost.
const budgetOfTests = 0.05

// missed plays a scenario, and returns by how much it misses the guarantee, as excess does.
func missed(t *testing.T, w *scenarios.BoundScenario, spec string, seed uint64) float64 {
	t.Helper()
	c := curve(t, metered(w), spec, seed)
	worst, shock := c.excess(budgetOfTests)
	t.Logf("%s: %s; %.1f%% above the guarantee, first shock %.1f%%", spec, &c, 100*worst, 100*shock)
	return worst
}

// TestLossBudget plays the hunted scenarios: at no time has the policy cost more than the budget
// allows above on demand, but for the shock that first used it up. Without a budget that fails.
func TestLossBudget(t *testing.T) {
	names := scenarios.Hunted()
	if nightly.Count(0, 1) == 1 {
		names = append(names, scenarios.Names()...)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "bench-") {
			continue // the same services in greater number
		}
		t.Run(name, func(t *testing.T) {
			for seed := uint64(101); seed <= uint64(100+nightly.Count(1, 3)); seed++ {
				if worst := missed(t, evaltest.Embedded(t, name), "portfolio", seed); worst > lossSlack {
					t.Errorf("seed %d: %.1f%% of the on-demand bill more than is guaranteed", seed, 100*worst)
				}
			}
		})
	}
	t.Run("without", func(t *testing.T) {
		w := evaltest.Embedded(t, "stateful-zonal")
		if missed(t, w, "portfolio", 104) > lossSlack || missed(t, w, "portfolio:loss_budget=0", 104) <= lossSlack {
			t.Error("the guarantee is missed with a budget, or holds without one")
		}
	})
}

// free changes p where its manifests would hold pods on Spot whatever is lost, which no budget covers:
// by a spread over capacity types, or by a PodDisruptionBudget that lets no pod go.
func (p *plan) free() {
	for i := range p.services {
		s := &p.services[i]
		if s.spread.key == "karpenter.sh/capacity-type" {
			s.spread = spread{}
		}
		if s.replicas*(100-s.available) < 100 {
			s.available = 50
		}
	}
}

// TestLossBudgetAtRandom holds the guarantee over random days on small clusters, ten thousand of them
// at night, in parts that run side by side.
func TestLossBudgetAtRandom(t *testing.T) {
	const part = 500
	seed := testenv.Seed(t)
	cases := chance.LatinHypercube(seed, "loss-budget", nightly.Count(12, 10_000), dims)
	for first := 0; first < len(cases); first += part {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			for i := first; i < min(first+part, len(cases)); i++ {
				p := decode(cases[i], 12*time.Hour)
				p.free()
				text := p.text("try", "", "")
				sc, err := scenarios.Parse("try.yaml", text)
				if err != nil {
					t.Fatal(err)
				}
				w, err := bind(t)(sc)
				if err != nil {
					t.Fatal(err)
				}
				if worst := missed(t, w, "portfolio", uint64(i)); worst > lossSlack {
					t.Errorf("%.1f%% of the on-demand bill more than is guaranteed, in scenario %d of seed %d\n%s", 100*worst, i, seed, text)
				}
			}
		})
	}
}
