package eval

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim"
)

// A library does runs on embedded scenarios. Runs of one seed in one scenario share
// its weather.
type library struct {
	check bool

	mu       sync.Mutex
	stages   map[*scenarios.BoundScenario]*sim.Prepared
	weathers map[libraryKey]*weather.Weather
}

type libraryKey struct {
	scenario *scenarios.BoundScenario
	seed     uint64
}

func newLibrary(check bool) *library {
	return &library{check: check, stages: map[*scenarios.BoundScenario]*sim.Prepared{}, weathers: map[libraryKey]*weather.Weather{}}
}

// draw returns a prepared scenario and the weather of a seed in it.
func (l *library) draw(w *scenarios.BoundScenario, seed uint64) (*sim.Prepared, *weather.Weather, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := libraryKey{w, seed}
	if drawn := l.weathers[key]; drawn != nil {
		return l.stages[w], drawn, nil
	}
	if l.stages[w] == nil {
		prepared, err := sim.Prepare(w)
		if err != nil {
			return nil, nil, err
		}
		l.stages[w] = prepared
	}
	drawn, err := l.stages[w].DrawWeather(seed)
	l.weathers[key] = drawn
	return l.stages[w], drawn, err
}

// run is a Runner.
func (l *library) run(ctx context.Context, j Job) (*sim.Result, error) {
	cfg, err := l.config(j)
	if err != nil {
		return nil, err
	}
	return sim.Run(ctx, cfg)
}

// config returns what runs j.
func (l *library) config(j Job) (sim.Config, error) {
	prepared, drawn, err := l.draw(j.Bound, j.Seed)
	if err != nil {
		return sim.Config{}, err
	}
	var named []string
	for i := range j.Bound.Pools {
		named = append(named, j.Bound.Pools[i].Policy)
	}
	p, err := registry.New(j.Policy, registry.Options{Manifests: named})
	if err != nil {
		return sim.Config{}, err
	}
	f, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return sim.Config{}, err
	}
	return sim.Config{Prepared: prepared, Policy: p, Forecaster: f, Seed: j.Seed, Weather: drawn, Check: l.check}, nil
}

// TestLibraryUnderEveryPolicy runs every embedded scenario under every policy with
// the checkers on, which panic or fail when pods, nodes or money do not add up.
// The scenarios for measuring speed are left to the benchmarks. Of the longer ones a day
// is metered, at night all; and under the race detector hours, under some policies, other
// ones in each scenario.
func TestLibraryUnderEveryPolicy(t *testing.T) {
	l := newLibrary(true)
	for i, name := range slices.Concat(scenarios.Names(), scenarios.Hunted()) {
		if strings.HasPrefix(name, "bench-") {
			continue
		}
		w := evaltest.Embedded(t, name)
		if d := time.Duration(libraryHours) * time.Hour; w.Duration > max(d, 48*time.Hour) {
			w.Duration, w.WarmUp = d, d/2
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k, p := range registry.Names() {
				if (i+k)%libraryEvery != 0 {
					continue
				}
				r, err := l.run(context.Background(), Job{Case: Case{Scenario: name, Bound: w}, Policy: p, Seed: 1})
				if err != nil {
					t.Errorf("%s: %v", p, err)
					continue
				}
				if r.Bill <= 0 {
					t.Errorf("%s: bill %v", p, r.Bill)
				}
			}
		})
	}
}

// Of the policies that only choose how much to put on spot each is best in some
// scenarios of the library and far behind in others: a library in which one of them
// always won would teach nothing. The scenarios here suffice for it and take little
// time; docs/results.md has all of them.
func TestLibrarySeparatesPolicies(t *testing.T) {
	winner := map[string]string{
		"black-friday": OnDemand, "long-jobs": OnDemand, "stateful-zonal": OnDemand,
		"squeeze": "static",
		"no-pdb":  "spot", "zone-outage": "spot", "restart": "spot", "tiny": "spot",
	}
	// A lead of less than this many points of the on-demand bill is luck.
	const solid = 5.0
	c := DefaultConfig()
	c.Policies, c.Baseline, c.Seeds = []string{OnDemand, "spot", "static"}, OnDemand, DefaultSeeds(7)
	for _, name := range scenarios.Names() {
		if winner[name] != "" {
			c.Cases = append(c.Cases, Case{Scenario: name, Bound: evaltest.Embedded(t, name)})
		}
	}
	r, err := Run(context.Background(), c, newLibrary(false).run)
	if err != nil {
		t.Fatal(err)
	}
	best, behind := map[string]int{}, map[string]int{}
	for i := range r.Groups {
		g := &r.Groups[i]
		won := slices.Index(c.Policies, winner[g.Scenario])
		saved := func(p int) float64 { return g.Policies[p].Summary("net_savings_pct").Median }
		for p, name := range c.Policies {
			if g.Policies[p].Summary("net_savings_pct").N == 0 {
				t.Fatalf("%s: no figure of %s", g.Scenario, name)
			}
			switch distance := saved(won) - saved(p); {
			case p == won:
				best[name]++
			case distance < 0:
				t.Errorf("%s: %s is %.1f points behind %s, and was to be the best", g.Scenario, winner[g.Scenario], -distance, name)
			case distance < solid:
				t.Errorf("%s: %s is only %.1f points behind %s", g.Scenario, name, distance, winner[g.Scenario])
			default:
				behind[name]++
			}
		}
	}
	for _, name := range c.Policies {
		if best[name] < 1 || behind[name] < 3 {
			t.Errorf("%s is best in %d scenarios and far behind in %d; want at least 1 and 3", name, best[name], behind[name])
		}
	}
}
