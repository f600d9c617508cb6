// Package registry creates policies from a name and parameters, as in "static:share=0.7". It adds
// guardrails to the policies that need them and budgets to all policies. With the policy named
// "manifest", each pool uses the policy named in its manifest.
package registry

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/internal/nearest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/asis"
	"github.com/spotter-dev/spotter/policy/builtin/karpenter"
	"github.com/spotter-dev/spotter/policy/builtin/karpetrack"
	"github.com/spotter-dev/spotter/policy/builtin/leftover"
	"github.com/spotter-dev/spotter/policy/builtin/model"
	"github.com/spotter-dev/spotter/policy/builtin/ondemand"
	"github.com/spotter-dev/spotter/policy/builtin/portfolio"
	"github.com/spotter-dev/spotter/policy/builtin/rescheduler"
	"github.com/spotter-dev/spotter/policy/builtin/spot"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/builtin/static"
	"github.com/spotter-dev/spotter/policy/gpubudget"
	"github.com/spotter-dev/spotter/policy/guard"
)

// Errors of New, for errors.Is.
var (
	// ErrUnknown is returned if there is no policy with the given name.
	ErrUnknown = errors.New("unknown policy")

	// ErrParameter is returned if the policy does not have the key, or if the value is invalid.
	ErrParameter = errors.New("bad parameter")
)

// DefaultPolicy is the policy of pools whose manifest names none.
const DefaultPolicy = "portfolio"

// Manifest is the name of the policy that decides for each pool with the policy named in its
// manifest.
const Manifest = "manifest"

// Options are inputs that a policy may need in addition to its parameters.
type Options struct {
	// Guard contains the limits of the guardrails; nil means the defaults.
	Guard *guard.Config

	// ReadRuntime reads a file of parameters for spotvortex:runtime=FILE. Nil disables the
	// parameter. It is set by callers that may read files. In a manifest, the parameter is a name
	// instead of a path, as for a bundle.
	ReadRuntime func(path string) (spotvortex.Config, error)

	// OpenBundle checks the bundle of trained models in a folder, for NAME:bundle=DIR, and returns
	// an error if it is invalid. Nil disables the parameter. It is set by callers that add the
	// forecasts of the bundle to snapshots.
	OpenBundle func(dir string) error

	// Manifests are the policies that the pools of the scenario name, for the policy "manifest".
	// They are created beforehand, so that errors in them are found early.
	Manifests []string
}

// A Parameter is a key and its value.
type Parameter struct{ Key, Value string }

// A makeFunc creates a policy. The result bare reports whether the policy has no guardrails.
type makeFunc func(params []Parameter, o *Options) (p policy.Policy, bare bool, err error)

// A maker describes a policy and creates it.
type maker struct {
	name string
	make makeFunc

	// about describes the policy in one sentence.
	about string

	// settings are its parameters, ascending.
	settings []KnownSetting
}

// makers returns the known policies, ascending by name.
func makers() []maker {
	return []maker{
		{"as-is", baseline(asis.New()),
			"A captured cluster as it runs, with the capacity types that its own pools allow.", nil},
		{"karpenter", baseline(karpenter.New()), "Karpenter, or the cluster's own autoscaler, alone with Spot allowed.", nil},
		{"karpetrack", configured(karpetrack.DefaultConfig, karpetrack.New),
			"Keeps a pool on the cheapest machines that hold its pods.", karpetrackSettings()},
		{"leftover", configured(leftover.DefaultConfig, leftover.New),
			"Keeps to the instance types and zones with the best placement scores.", leftoverSettings()},
		{Manifest, newManifest, "The policy that the manifest of each pool names.", nil},
		{trained, configured(model.DefaultConfig, model.New),
			"Follows the action values of a bundle of trained models.", modelSettings()},
		{"on-demand", baseline(ondemand.New()), "On-demand only: the reference for savings.", nil},
		{DefaultPolicy, configured(portfolio.DefaultConfig, portfolio.New),
			"Spreads over markets, weighing the cost of losses against savings; the default.", portfolioSettings()},
		{"rescheduler", configured(rescheduler.DefaultConfig, rescheduler.New),
			"Moves pods from on-demand to Spot nodes, as the K8s Spot Rescheduler does.", reschedulerSettings()},
		{"spot", baseline(spot.New()), "Spot only, on demand where Spot is refused and the pool allows it.", nil},
		{"spotvortex", newSpotVortex, "The rules of the SpotVortex agent, fixed; compat=true reproduces it exactly.",
			spotvortexSettings()},
		{"static", configured(static.DefaultConfig, static.New), "A fixed share of Spot in every pool.",
			[]KnownSetting{setting("share", "0.5",
				"the share of Spot in every pool, 0 to 1; raising it saves more and risks more")}},
	}
}

// trained is the policy that follows the action values of a bundle. It requires a bundle.
const trained = "model"

// fed are the policies that read forecasts, so that they accept a bundle.
var fed = []string{trained, "portfolio", "spotvortex"}

// Names returns the names of the policies that need no parameters, ascending. These are all
// policies except the one that requires a bundle.
func Names() []string {
	return slices.DeleteFunc(known(), func(name string) bool { return name == trained })
}

// known returns the names of all policies, ascending.
func known() []string {
	var names []string
	for _, m := range makers() {
		names = append(names, m.name)
	}
	return names
}

// A Bundle describes the trained models that a policy uses.
type Bundle struct {
	// Dir is the folder of the bundle; empty for a policy without one.
	Dir string

	// Actions reports whether the policy reads action values.
	Actions bool

	// Letter reports whether the policy reproduces the SpotVortex agent exactly, which treats a
	// market outside the scope of a bundle as lost.
	Letter bool
}

// BundleOf returns the bundle that the policy of spec uses.
func BundleOf(spec string) (Bundle, error) {
	name, params, err := split(spec)
	if err != nil {
		return Bundle{}, err
	}
	rest, dir := withoutBundle(params)
	b := Bundle{Dir: dir, Actions: name == trained}
	for _, p := range rest {
		if name == "spotvortex" && p.Key == "compat" {
			b.Letter, _ = strconv.ParseBool(p.Value) // New rejects values that are not booleans
		}
	}
	return b, nil
}

// withoutBundle separates the bundle from the other parameters.
func withoutBundle(params []Parameter) (rest []Parameter, dir string) {
	i := slices.IndexFunc(params, func(p Parameter) bool { return p.Key == "bundle" })
	if i < 0 {
		return params, ""
	}
	return slices.Delete(slices.Clone(params), i, i+1), params[i].Value
}

// A bundled is a policy that decides with the forecasts of a bundle.
type bundled struct {
	policy.Policy
	dir string
}

// Name returns the name of the policy with its bundle.
func (b *bundled) Name() string { return b.Policy.Name() + ":bundle=" + b.dir }

// with creates the policy with params, which may include a bundle.
func (m *maker) with(params []Parameter, o *Options) (policy.Policy, bool, error) {
	if err := m.checkKeys(params); err != nil {
		return nil, false, err
	}
	if !slices.Contains(fed, m.name) {
		return m.make(params, o)
	}
	rest, dir := withoutBundle(params)
	switch {
	case dir == "" && len(rest) < len(params):
		return nil, false, fmt.Errorf("%w: bundle names no folder", ErrParameter)
	case dir == "" && m.name == trained:
		return nil, false, fmt.Errorf("%w: bundle is missing: name the folder of trained models, as in %s:bundle=DIR",
			ErrParameter, trained)
	case dir == "":
		return m.make(params, o)
	case o.OpenBundle == nil:
		return nil, false, fmt.Errorf("%w: bundle %q cannot be used here", ErrParameter, dir)
	}
	if err := o.OpenBundle(dir); err != nil {
		return nil, false, fmt.Errorf("%w: bundle: %w", ErrParameter, err)
	}
	p, bare, err := m.make(rest, o)
	if err != nil {
		return nil, false, err
	}
	return &bundled{p, dir}, bare, nil
}

// New returns the policy of spec, "NAME[:key=value[:key=value…]]", with its guardrails. All
// policies respect the maximum prices of the pools and the GPU budgets of the cluster.
func New(spec string, o Options) (policy.Policy, error) {
	p, err := newGuarded(spec, o)
	if err != nil {
		return nil, err
	}
	return gpubudget.Around(p, gpubudget.DefaultConfig()), nil
}

// newGuarded returns the policy of spec without budgets.
func newGuarded(spec string, o Options) (policy.Policy, error) {
	name, params, err := split(spec)
	if err != nil {
		return nil, err
	}
	limits := guard.DefaultConfig()
	if o.Guard != nil {
		limits = *o.Guard
	}
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	all := makers()
	i := slices.IndexFunc(all, func(m maker) bool { return m.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w %q: known are %s%s", ErrUnknown, name, strings.Join(known(), ", "),
			suggestion(name, known()))
	}
	p, bare, err := all[i].with(params, &o)
	if err != nil {
		return nil, fmt.Errorf("policy %q: %w", spec, err)
	}
	if name != Manifest { // the policies of the manifest respect the maximum prices themselves
		p = guard.WithinPriceMax(p)
	}
	if bare {
		return p, nil
	}
	return guard.Around(p, limits), nil
}

// Parse splits a list "NAME[:key=value…],…" into policies. It does not create them, but returns an
// error for an entry that is empty, malformed or duplicate.
func Parse(list string) ([]string, error) {
	var specs []string
	for _, spec := range strings.Split(list, ",") {
		spec = strings.TrimSpace(spec)
		if _, _, err := split(spec); err != nil {
			return nil, fmt.Errorf("policies %q: %w", list, err)
		}
		if slices.Contains(specs, spec) {
			return nil, fmt.Errorf("policies %q: %q is named twice", list, spec)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// split splits a spec into the name and the parameters, in their order.
func split(spec string) (string, []Parameter, error) {
	parts := strings.Split(spec, ":")
	if parts[0] == "" {
		return "", nil, fmt.Errorf("%w: a name is missing in %q", ErrUnknown, spec)
	}
	var params []Parameter
	for _, part := range parts[1:] {
		key, value, ok := strings.Cut(part, "=")
		if !ok || key == "" {
			return "", nil, fmt.Errorf("%w: %q in %q is not key=value", ErrParameter, part, spec)
		}
		if slices.ContainsFunc(params, func(p Parameter) bool { return p.Key == key }) {
			return "", nil, fmt.Errorf("%w: %q is given twice in %q", ErrParameter, key, spec)
		}
		params = append(params, Parameter{key, value})
	}
	return parts[0], params, nil
}

// set applies params to a configuration.
func set(params []Parameter, config interface{ Set(key, value string) error }) error {
	for _, p := range params {
		if err := config.Set(p.Key, p.Value); err != nil {
			return fmt.Errorf("%w: %w", ErrParameter, err)
		}
	}
	return nil
}

// configured returns a function that creates a policy with guardrails from its parameters.
func configured[C any, S interface {
	*C
	Set(key, value string) error
}, P policy.Policy](config func() C, build func(C) (P, error)) makeFunc {
	return func(params []Parameter, _ *Options) (policy.Policy, bool, error) {
		cfg := config()
		if err := set(params, S(&cfg)); err != nil {
			return nil, false, err
		}
		p, err := build(cfg)
		return p, false, err
	}
}

// baseline returns a function that returns a policy without parameters and guardrails.
func baseline(p policy.Policy) makeFunc {
	return func([]Parameter, *Options) (policy.Policy, bool, error) { return p, true, nil }
}

// newSpotVortex reads the runtime file first, so that the other parameters override it regardless
// of their order.
func newSpotVortex(params []Parameter, o *Options) (policy.Policy, bool, error) {
	cfg := spotvortex.Shipped()
	rest := slices.Clone(params)
	if i := slices.IndexFunc(rest, func(p Parameter) bool { return p.Key == "runtime" }); i >= 0 {
		if o.ReadRuntime == nil {
			return nil, false, fmt.Errorf("%w: runtime %q cannot be read here", ErrParameter, rest[i].Value)
		}
		read, err := o.ReadRuntime(rest[i].Value)
		if err != nil {
			return nil, false, fmt.Errorf("%w: runtime: %w", ErrParameter, err)
		}
		cfg = read
		rest = slices.Delete(rest, i, i+1)
	}
	// The maximum is set first, since it lowers a minimum that was not set but must not lower one
	// that was.
	slices.SortStableFunc(rest, func(a, b Parameter) int {
		switch {
		case a.Key == "max" && b.Key != "max":
			return -1
		case a.Key != "max" && b.Key == "max":
			return 1
		}
		return 0
	})
	if err := set(rest, &cfg); err != nil {
		return nil, false, err
	}
	return spotvortex.New(cfg), cfg.Compat, nil
}

// suggestion returns a hint with the known word that is closest to word, or the empty string if
// none of them is close.
func suggestion(word string, known []string) string {
	if best, ok := nearest.Of(word, known); ok {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}
