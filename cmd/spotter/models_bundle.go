package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/models/onnx"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/sim"
)

// onnxAdvice is the one command that lets trained models run.
const onnxAdvice = "run `make onnxruntime`, or let SPOTTER_ONNXRUNTIME name a library of ONNX Runtime 1.24"

// bundleCloud is the provider whose markets bundles are used on.
const bundleCloud = "aws"

// startONNX loads ONNX Runtime: what SPOTTER_ONNXRUNTIME names and nothing else
// where that is set; else what lies beside this program, or in the system.
func startONNX() (library, version string, err error) {
	candidates := []string{os.Getenv("SPOTTER_ONNXRUNTIME")}
	if candidates[0] == "" {
		candidates = libraries()
	}
	for _, path := range candidates {
		v, startErr := onnx.Start(path)
		if startErr == nil {
			return path, v, nil
		}
		err = errors.Join(err, startErr)
	}
	return "", "", err
}

// libraries returns where ONNX Runtime is looked for. A name without a folder
// is looked for where the system keeps its libraries.
func libraries() []string {
	names := []string{"libonnxruntime.so.1", "libonnxruntime.so"}
	if runtime.GOOS == "darwin" {
		names = []string{"libonnxruntime.1.dylib", "libonnxruntime.dylib"}
	}
	var found []string
	if program, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(program), names[0])
		if _, err := os.Stat(beside); err == nil {
			found = append(found, beside)
		}
	}
	return append(found, names...)
}

// bundles are the bundles that policies name. Each is opened once and its
// sessions are shared by all runs.
type bundles struct {
	mu   sync.Mutex
	open map[string]*lazy[*openBundle]
}

// An openBundle is a bundle with sessions of its graphs.
type openBundle struct {
	*models.Bundle
	forecaster, actions models.Session
}

// get returns the bundle in dir, verified, and ready to run.
func (b *bundles) get(dir string) (*openBundle, error) {
	b.mu.Lock()
	if b.open == nil {
		b.open = map[string]*lazy[*openBundle]{}
	}
	l := b.open[dir]
	if l == nil {
		l = &lazy[*openBundle]{}
		b.open[dir] = l
	}
	b.mu.Unlock()
	return l.get(func() (*openBundle, error) {
		v, err := readBundle(dir, bundleCloud)
		if err != nil {
			return nil, err
		}
		return start(dir, v)
	})
}

// start makes a bundle that was read ready to run.
func start(name string, v *models.Bundle) (*openBundle, error) {
	if _, _, err := startONNX(); err != nil {
		return nil, wrong(err, onnxAdvice)
	}
	o, err := openSessions(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}

// readBundle reads and verifies the bundle in dir.
func readBundle(dir, cloud string) (*models.Bundle, error) {
	fsys, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	b, err := models.Open(fsys, cloud)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return b, nil
}

// openSessions makes a session of each graph of b and asks each one thing.
func openSessions(b *models.Bundle) (*openBundle, error) {
	o := &openBundle{Bundle: b}
	for _, x := range []struct {
		net *models.Net
		to  *models.Session
	}{{b.Forecaster, &o.forecaster}, {b.Actions, &o.actions}} {
		if x.net == nil {
			continue
		}
		s, err := onnx.Open(x.net)
		if err == nil {
			*x.to = s
			err = models.Probe(x.net, s)
		}
		if err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	return o, nil
}

// close frees the sessions.
func (o *openBundle) close() error {
	var err error
	for _, s := range []models.Session{o.forecaster, o.actions} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// checkBundle says why the policy that names the bundle in dir cannot run.
func (r *runner) checkBundle(dir string) error {
	_, err := r.bundles.get(dir)
	return err
}

// What a bundle cannot be to two policies at once, since a market has one
// forecast.
var (
	errTwoBundles = errors.New("the policies of one world name two bundles")
	errTwoLetters = errors.New("of the policies of one world that share a bundle only some are spotvortex:compat=true")
)

// forecaster returns what writes the forecasts of one run under specs: the
// closed form, or the bundle that they name.
func (r *runner) forecaster(specs ...string) (driver.Forecaster, error) {
	closed, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return nil, fmt.Errorf("closed-form forecaster: %w", err)
	}
	var want registry.Bundle
	for _, spec := range specs {
		b, err := registry.BundleOf(spec)
		if err == nil && b.Dir != "" && want.Dir != "" {
			err = fit(want, b)
		}
		if err != nil {
			return nil, wrong(err, policyAdvice)
		}
		if b.Dir != "" {
			b.Actions = b.Actions || want.Actions
			want = b
		}
	}
	if want.Dir == "" {
		return closed, nil
	}
	b, err := r.bundles.get(want.Dir)
	if err != nil {
		return nil, wrong(fmt.Errorf("bundle: %w", err), bundleAdvice)
	}
	f, err := newSimModel(b, closed, models.TrainedConfig{Unsupported: want.Letter, Actions: want.Actions})
	if err != nil {
		return nil, wrong(fmt.Errorf("bundle %s: %w", want.Dir, err), bundleAdvice)
	}
	return f, nil
}

// fit says why one forecaster cannot serve both a and b.
func fit(a, b registry.Bundle) error {
	switch {
	case a.Dir != b.Dir:
		return fmt.Errorf("%w: %s and %s", errTwoBundles, a.Dir, b.Dir)
	case a.Letter != b.Letter:
		return fmt.Errorf("%w: %s", errTwoLetters, a.Dir)
	}
	return nil
}

// play does a run and counts how often its bundle had an answer.
func (r *runner) play(ctx context.Context, j eval.Job, cfg sim.Config) (*sim.Result, error) {
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

// unanswered says for each policy, ascending, what its bundle could not answer
// in the runs so far.
func (r *runner) unanswered() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, spec := range slices.Sorted(maps.Keys(r.answered)) {
		if text := r.answered[spec].String(); text != "" {
			out = append(out, spec+": "+text)
		}
	}
	return out
}

const bundleAdvice = "run `spotter models verify DIR` on the folder of the bundle"

// skip takes out of the policies of cfg those whose bundle cannot run for want
// of ONNX Runtime, and says so; the others are compared. A bundle that is wrong
// in itself stays, for its fault to be told.
func (p *program) skip(r *runner, cfg *eval.Config) error {
	var kept []string
	for _, spec := range cfg.Policies {
		want, err := registry.BundleOf(spec)
		if err == nil && want.Dir != "" {
			if err := r.checkBundle(want.Dir); errors.Is(err, onnx.ErrUnavailable) {
				fmt.Fprintf(p.stderr, "warning: skipped %s: %v; %s\n", spec, err, onnxAdvice)
				continue
			}
		}
		kept = append(kept, spec)
	}
	if len(kept) == 0 {
		return wrong(errors.New("--policies: none is left of them"), onnxAdvice)
	}
	cfg.Policies = kept
	return nil
}
