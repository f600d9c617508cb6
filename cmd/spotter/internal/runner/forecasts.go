package runner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/registry"
)

// CheckBundle returns an error if a policy that names the bundle in dir cannot run.
func (r *Runner) CheckBundle(dir string) error {
	_, err := r.bundles.Get(dir)
	return err
}

// Forecaster returns the forecaster of one run under specs: the closed form, or the bundle that
// they name.
func (r *Runner) Forecaster(specs ...string) (driver.Forecaster, error) {
	closed, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return nil, fmt.Errorf("closed-form forecaster: %w", err)
	}
	var want registry.Bundle
	for _, spec := range specs {
		b, err := registry.BundleOf(spec)
		if err == nil && b.Dir != "" && want.Dir != "" {
			err = bundles.Compatible(want, b)
		}
		if err != nil {
			return nil, cli.Invalid(err, input.PolicyAdvice)
		}
		if b.Dir != "" {
			b.Actions = b.Actions || want.Actions
			want = b
		}
	}
	if want.Dir == "" {
		return closed, nil
	}
	b, err := r.bundles.Get(want.Dir)
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("bundle: %w", err), bundles.Advice)
	}
	f, err := newSimModel(b, closed, models.TrainedConfig{Unsupported: want.Letter, Actions: want.Actions})
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("bundle %s: %w", want.Dir, err), bundles.Advice)
	}
	return f, nil
}

// Unanswered describes for each policy, ascending, the requests of the runs so far for which its
// bundle had no result.
func (r *Runner) Unanswered() []string {
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

// BundleSum returns the bundle that specs name and the SHA-256 of its manifest, in the form of a
// recording. Both are empty if no bundle is named or it is unavailable.
func (r *Runner) BundleSum(specs ...string) (name, sum string) {
	want, err := bundles.Of(specs, func(one []string) (policy.Policy, error) { return r.RecordedPolicy(one[0], nil) })
	if err != nil || want.Dir == "" {
		return "", ""
	}
	b, err := r.bundles.Get(want.Dir)
	if err != nil {
		return "", ""
	}
	return want.Dir, b.Fingerprint
}

// Bundle returns the bundle in dir, ready to run.
func (r *Runner) Bundle(dir string) (*bundles.Loaded, error) { return r.bundles.Get(dir) }

// RecordedPolicy returns a policy for the forecasts of a recording, which needs no bundle.
func (r *Runner) RecordedPolicy(spec string, manifests []string) (policy.Policy, error) {
	recorded := func(string) error { return nil }
	return registry.New(spec, registry.Options{ReadRuntime: r.ReadRuntime, OpenBundle: recorded, Manifests: manifests})
}
