// Package runner creates the policies and forecasters that users name and executes the runs of a
// simulation. It depends on no command and prints nothing.
package runner

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim"
)

// A Runner executes runs. It shares between them what does not depend on the policy: a prepared
// scenario, and the weather of a seed in it. It is safe for concurrent use.
type Runner struct {
	stages each[*scenarios.BoundScenario, *sim.Prepared]

	// files are runtime files of the SpotVortex agent. They are read once, so that all runs of a
	// comparison use the same content even if a file changes.
	files   each[string, spotvortex.Config]
	bundles bundles.Cache

	mu sync.Mutex // guards weathers and answered

	// weathers are the last ones used, oldest first. All runs of a scenario and seed follow each
	// other, so a few are enough; all of them would take gigabytes.
	weathers []weatherOf

	// Models is the folder of models that pools of a controller may name.
	Models ModelsDir

	// answered counts the results of bundles, by policy.
	answered map[string]models.Counts
}

type weatherOf struct {
	scenario *scenarios.BoundScenario
	seed     uint64
	get      func() (*weather.Weather, error)
}

// New returns a runner with empty caches.
func New() *Runner { return &Runner{} }

// An each caches one value for each key. The zero value is an empty cache. It is safe for
// concurrent use.
type each[K comparable, V any] struct {
	mu   sync.Mutex
	made map[K]func() (V, error)
}

func (e *each[K, V]) get(key K, create func() (V, error)) (V, error) {
	e.mu.Lock()
	get := e.made[key]
	if get == nil {
		if e.made == nil {
			e.made = map[K]func() (V, error){}
		}
		get = sync.OnceValues(create)
		e.made[key] = get
	}
	e.mu.Unlock()
	return get()
}

// prepared returns the state that all runs of w share.
func (r *Runner) prepared(w *scenarios.BoundScenario) (*sim.Prepared, error) {
	return r.stages.get(w, func() (*sim.Prepared, error) { return sim.Prepare(w) })
}

// weather returns the weather of a seed in w.
func (r *Runner) weather(prepared *sim.Prepared, w *scenarios.BoundScenario, seed uint64) (*weather.Weather, error) {
	r.mu.Lock()
	i := slices.IndexFunc(r.weathers, func(x weatherOf) bool { return x.scenario == w && x.seed == seed })
	if i < 0 {
		if len(r.weathers) > 2*runtime.GOMAXPROCS(0) {
			r.weathers = slices.Delete(r.weathers, 0, 1)
		}
		i = len(r.weathers)
		r.weathers = append(r.weathers, weatherOf{w, seed, sync.OnceValues(func() (*weather.Weather,
			error) {
			return prepared.DrawWeather(seed)
		})})
	}
	get := r.weathers[i].get
	r.mu.Unlock()
	return get()
}

// Policy returns a new policy for one run in w. Runs do not share policies, since a policy may keep
// scratch memory.
func (r *Runner) Policy(spec string, w *scenarios.BoundScenario) (policy.Policy, error) {
	p, err := registry.New(spec, registry.Options{ReadRuntime: r.ReadRuntime, OpenBundle: r.CheckBundle,
		Manifests: input.Manifests(w)})
	if err != nil {
		return nil, cli.Invalid(err, input.PolicyAdvice)
	}
	return p, nil
}

// ReadRuntime reads a runtime file of the SpotVortex agent. Each file is read once.
func (r *Runner) ReadRuntime(path string) (spotvortex.Config, error) {
	return r.files.get(path, func() (spotvortex.Config, error) { return readRuntime(path, os.ReadFile) })
}

// Config returns the configuration of a run, without settings that only one command needs.
func (r *Runner) Config(j eval.Job) (sim.Config, error) {
	prepared, err := r.prepared(j.Bound)
	if err != nil {
		return sim.Config{}, cli.Invalid(err, "change the scenario, or choose another trace or window")
	}
	p, err := r.Policy(j.Policy, j.Bound)
	if err != nil {
		return sim.Config{}, err
	}
	w, err := r.weather(prepared, j.Bound, j.Seed)
	if err != nil {
		return sim.Config{}, fmt.Errorf("weather of seed %d: %w", j.Seed, err)
	}
	f, err := r.Forecaster(SpecsOf(j)...)
	if err != nil {
		return sim.Config{}, err
	}
	return sim.Config{Prepared: prepared, Policy: p, Forecaster: f, Seed: j.Seed, Weather: w,
		OnDemandStart: j.Policy == eval.OnDemand}, nil
}

// SpecsOf returns the policies of a run as they are written: one, or those that the manifests of
// its pools name.
func SpecsOf(j eval.Job) []string {
	if j.Policy == registry.Manifest {
		return input.Manifests(j.Bound)
	}
	return []string{j.Policy}
}

// Run implements eval.Runner.
func (r *Runner) Run(ctx context.Context, j eval.Job) (*sim.Result, error) {
	cfg, err := r.Config(j)
	if err != nil {
		return nil, err
	}
	return r.Simulate(ctx, j, cfg)
}

// Prepare creates every policy and prepares every scenario once, so that their errors are reported
// before the first run. It returns warnings about pods that stay pending.
func (r *Runner) Prepare(ctx context.Context, cfg *eval.Config) (warnings []string, err error) {
	prepare := func(cases []eval.Case, specs ...string) error {
		for _, k := range cases {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("preparing %s: %w", k.Scenario, err)
			}
			for _, spec := range specs {
				if _, err := r.Policy(spec, k.Bound); err != nil {
					return err
				}
			}
			p, err := r.prepared(k.Bound)
			if err != nil {
				return cli.Invalid(err, "change the scenario, or choose another trace or window")
			}
			warnings = append(warnings, p.Warnings()...)
		}
		return nil
	}
	if err := prepare(cfg.Cases, append([]string{eval.OnDemand, cfg.Baseline}, cfg.Policies...)...); err != nil {
		return nil, err
	}
	for i := range cfg.Variants {
		if err := prepare(cfg.Variants[i].Cases, cfg.Variants[i].Policy); err != nil {
			return nil, err
		}
	}
	return warnings, nil
}

// Simulate executes a run and adds the result counts of its bundle.
func (r *Runner) Simulate(ctx context.Context, j eval.Job, cfg sim.Config) (*sim.Result, error) {
	result, err := sim.Run(ctx, cfg)
	if f, ok := cfg.Forecaster.(*simModel); ok && err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.answered == nil {
			r.answered = map[string]models.Counts{}
		}
		r.answered[j.Policy] = r.answered[j.Policy].Plus(f.Counts())
	}
	return result, err
}

// LivePolicy returns a function that creates the policy for pools that name the given policies.
// Bundles are opened by the forecaster: an invalid bundle is not an error of the policy, which then
// uses the closed form. Only --policies may contain paths; names of pools refer to models.dir.
func (r *Runner) LivePolicy(spec string) func([]string) (policy.Policy, error) {
	o := registry.Options{ReadRuntime: r.ReadRuntime, OpenBundle: func(string) error { return nil }}
	if spec == registry.Manifest {
		o.ReadRuntime, o.OpenBundle = r.Models.readRuntime, r.Models.Has
	}
	return func(named []string) (policy.Policy, error) {
		o.Manifests = named
		return registry.New(spec, o)
	}
}
