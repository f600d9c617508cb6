package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/policy/spotvortex"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim"
)

// A runner does runs and shares between them what does not depend on the
// policy: the stage of a world, and the weather of a seed in it. It may be
// used by several goroutines.
type runner struct {
	mu     sync.Mutex
	stages map[*scenarios.World]*lazy[*sim.Stage]

	// weathers are the last ones used, oldest first. All runs of a world and seed
	// follow each other, so a few are enough, and all of them would be gigabytes.
	weathers []weatherOf

	files   runtimeFiles
	bundles bundles
	models  modelsDir // of a controller

	// answered says by policy how often bundles had an answer.
	answered map[string]models.Counts
}

type weatherOf struct {
	world *scenarios.World
	seed  uint64
	*lazy[*weather.Weather]
}

// A lazy is made once, by whoever needs it first.
type lazy[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (l *lazy[T]) get(make func() (T, error)) (T, error) {
	l.once.Do(func() { l.value, l.err = make() })
	return l.value, l.err
}

func newRunner() *runner {
	return &runner{stages: map[*scenarios.World]*lazy[*sim.Stage]{}}
}

// stage returns what all runs of w share.
func (r *runner) stage(w *scenarios.World) (*sim.Stage, error) {
	r.mu.Lock()
	l := r.stages[w]
	if l == nil {
		l = &lazy[*sim.Stage]{}
		r.stages[w] = l
	}
	r.mu.Unlock()
	return l.get(func() (*sim.Stage, error) { return sim.NewStage(w) })
}

// weather returns the weather of a seed in w.
func (r *runner) weather(stage *sim.Stage, w *scenarios.World, seed uint64) (*weather.Weather, error) {
	r.mu.Lock()
	i := slices.IndexFunc(r.weathers, func(x weatherOf) bool { return x.world == w && x.seed == seed })
	if i < 0 {
		if len(r.weathers) > 2*runtime.GOMAXPROCS(0) {
			r.weathers = slices.Delete(r.weathers, 0, 1)
		}
		i = len(r.weathers)
		r.weathers = append(r.weathers, weatherOf{w, seed, &lazy[*weather.Weather]{}})
	}
	l := r.weathers[i].lazy
	r.mu.Unlock()
	return l.get(func() (*weather.Weather, error) { return stage.NewWeather(seed) })
}

// policy returns a new policy for one run in w: a policy may keep scratch
// memory, so no two runs share one.
func (r *runner) policy(spec string, w *scenarios.World) (policy.Policy, error) {
	p, err := registry.New(spec, registry.Options{ReadRuntime: r.readRuntime, OpenBundle: r.checkBundle, Manifests: manifests(w)})
	if err != nil {
		return nil, wrong(err, policyAdvice)
	}
	return p, nil
}

func (r *runner) readRuntime(path string) (spotvortex.Config, error) { return r.files.read(path) }

// config returns a run that lacks what only one command needs.
func (r *runner) config(j eval.Job) (sim.Config, error) {
	stage, err := r.stage(j.World)
	if err != nil {
		return sim.Config{}, wrong(err, "mend the scenario, or choose another trace or window")
	}
	p, err := r.policy(j.Policy, j.World)
	if err != nil {
		return sim.Config{}, err
	}
	w, err := r.weather(stage, j.World, j.Seed)
	if err != nil {
		return sim.Config{}, fmt.Errorf("weather of seed %d: %w", j.Seed, err)
	}
	f, err := r.forecaster(specsOf(j)...)
	if err != nil {
		return sim.Config{}, err
	}
	return sim.Config{Stage: stage, Policy: p, Forecaster: f, Seed: j.Seed, Weather: w}, nil
}

// specsOf returns the policies of a run as they are written: one, or those that
// the manifests of its pools name.
func specsOf(j eval.Job) []string {
	if j.Policy == registry.Manifest {
		return manifests(j.World)
	}
	return []string{j.Policy}
}

// run is an eval.Runner.
func (r *runner) run(ctx context.Context, j eval.Job) (*sim.Result, error) {
	cfg, err := r.config(j)
	if err != nil {
		return nil, err
	}
	return r.play(ctx, j, cfg)
}

// try makes every policy and stage once, so that what is wrong with them is
// said before the first run and not after the last.
func (r *runner) try(ctx context.Context, cfg *eval.Config) error {
	specs := append([]string{eval.OnDemand, cfg.Baseline}, cfg.Policies...)
	for _, k := range cfg.Cases {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("preparing %s: %w", k.Scenario, err)
		}
		for _, spec := range specs {
			if _, err := r.policy(spec, k.World); err != nil {
				return err
			}
		}
		if _, err := r.stage(k.World); err != nil {
			return wrong(err, "mend the scenario, or choose another trace or window")
		}
	}
	return nil
}
