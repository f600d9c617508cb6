package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

// OnDemand is the policy that savings are measured against. It is always run.
const OnDemand = "on-demand"

// OracleName is the name of the bound of package eval/oracle in reports. It is not a policy and
// cannot decide anything.
const OracleName = "oracle"

// The default baselines: the policy of a cluster without Spotter, and for a captured cluster the
// policy that it runs.
const (
	DefaultBaseline = "karpenter"
	CaptureBaseline = "as-is"
)

// BaselineOf returns the default baseline of cases: CaptureBaseline if all of them are captured
// clusters, else DefaultBaseline.
func BaselineOf(cases []Case) string {
	for i := range cases {
		if w := cases[i].Bound; w == nil || !w.Captured {
			return DefaultBaseline
		}
	}
	return CaptureBaseline
}

// ErrConfig is wrapped by all errors about an invalid Config.
var ErrConfig = errors.New("wrong configuration")

// ErrWeather is wrapped by the error for policies with different weather in the same case and seed,
// whose results must not be compared.
var ErrWeather = errors.New("policies had different weather")

// A Config defines a comparison. Zero values of fields with a default mean the default.
type Config struct {
	// The policies in the order of the report, including on-demand and the baseline.
	//
	// They are written as NAME[:key=value…]. If they are missing, [OnDemand] is added as the first
	// and the baseline after it.
	Policies []string `json:"policies"`

	// The policy that others are compared with.
	//
	// Empty means [BaselineOf] of the cases.
	Baseline string `json:"baseline"`

	// Variants replace the elements of Policies with the same names. All other policies are run in
	// Cases.
	Variants []Variant `json:"-"`

	// Cases are the scenarios and windows. With several windows, the intervals also cover other
	// weeks, not only other seeds.
	Cases []Case `json:"-"`

	// Seeds of the weather.
	//
	// Each is run in every case under every policy.
	Seeds []uint64 `json:"seeds"`

	// Gates are the conditions that the report must satisfy.
	Gates []Gate `json:"-"`

	// Mine selects the runs that [Do] executes, and the bounds of a case and seed that it computes;
	// the latter are jobs with policy [OracleName]. nil selects all.
	Mine func(Job) bool `json:"-"`

	// Known returns previously computed bounds, and false if it has no bounds. nil means that no
	// bounds are known.
	Known func(Job) (Bounds, bool) `json:"-"`

	// Parallel is the number of runs that are executed in parallel; 0 means one per processor. It
	// does not affect the report.
	Parallel int `json:"-"`

	// Progress, if not nil, is called after every run, before the first bound and after every
	// bound. Calls do not overlap.
	Progress func(Progress) `json:"-"`

	// Fraction of the on-demand price that a one-year commitment saves (modelled).
	//
	// It is in [0, 1). A higher discount lowers the savings relative to commitments. 0 means no
	// savings, not the default: see [DefaultConfig].
	Discount1y float64 `json:"discount_1y"`
	// Fraction that a three-year commitment saves.
	Discount3y float64 `json:"discount_3y"`

	// Today is the current cost of the cluster of the cases, nil if unknown.
	Today *Today `json:"-"`

	// Command returns the command that repeats a run; nil means [DefaultCommand].
	Command func(Job) string `json:"-"`

	// Invocation is the command that repeats the whole comparison, Version the version of the
	// program. Both are only printed.
	Invocation, Version string `json:"-"`
}

// A Case is one scenario over one window of its trace.
type Case struct {
	// Scenario is the name or path from the user. The windows of a scenario are contiguous and
	// count from 0.
	Scenario string
	Window   int
	Bound    *scenarios.BoundScenario
}

// A Job identifies a run.
type Job struct {
	Case
	Policy string
	Seed   uint64
}

// A Runner executes a run. It must be safe for concurrent use.
type Runner func(context.Context, Job) (*sim.Result, error)

// DefaultPolicies returns the policies that are compared if the user names none.
func DefaultPolicies() []string {
	return []string{OnDemand, DefaultBaseline, "spot", "static", "spotvortex", "spotvortex:compat=true", "portfolio"}
}

// DefaultSeeds returns the seeds 1 to n.
func DefaultSeeds(n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	return seeds
}

// Following returns the n seeds after the highest of seeds, nil if they would overflow.
func Following(seeds []uint64, n int) []uint64 {
	last := slices.Max(seeds)
	if last > math.MaxUint64-uint64(n) {
		return nil
	}
	next := make([]uint64, n)
	for i := range next {
		next[i] = last + 1 + uint64(i)
	}
	return next
}

// DefaultConfig returns the default configuration of a comparison, without cases. The discounts are
// modelled from the published monthly savings of Spot for m5.2xlarge: $139.65 relative to on-demand
// ($280.32 a month), $57.71 relative to a one-year and $13.85 relative to a three-year commitment,
// as fractions of the on-demand price.
func DefaultConfig() Config {
	return Config{
		Policies: DefaultPolicies(), Seeds: DefaultSeeds(20),
		Discount1y: 0.29, Discount3y: 0.45,
	}
}

// DefaultCommand returns the command that repeats j, provided that it depends only on the scenario.
func DefaultCommand(j Job) string {
	var b strings.Builder
	fmt.Fprintf(&b, "spotter sim %s --policy %s --seed %d --from %s",
		shellWord(j.Scenario), shellWord(j.Policy), j.Seed, j.Bound.Start.Std().Format(time.RFC3339))
	if name := j.Bound.Trace.Name; name != "" && name != trace.Recorded {
		fmt.Fprintf(&b, " --trace %s", shellWord(name))
	}
	if t := j.Bound.Truth; !t.Modelled() {
		fmt.Fprintf(&b, " --truth %s", t)
	}
	return b.String()
}

// shellWord quotes s unless a shell reads it as one word.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,+@", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Role returns the role of a policy in the comparison: on-demand, baseline or compared.
func (c *Config) Role(policy string) string {
	switch policy {
	case OnDemand:
		return OnDemand
	case c.Baseline:
		return "baseline"
	}
	return "compared"
}

// Complete returns c with defaults and with the policies that are always run.
func (c Config) Complete() Config {
	d := DefaultConfig()
	if len(c.Policies) == 0 {
		c.Policies = d.Policies
	}
	if c.Baseline == "" {
		c.Baseline = BaselineOf(c.Cases)
	}
	if len(c.Seeds) == 0 {
		c.Seeds = d.Seeds
	}
	if c.Command == nil {
		c.Command = DefaultCommand
	}
	c.Policies = slices.Clone(c.Policies)
	if !slices.Contains(c.Policies, OnDemand) {
		c.Policies = slices.Insert(c.Policies, 0, OnDemand)
	}
	if !slices.Contains(c.Policies, c.Baseline) {
		c.Policies = slices.Insert(c.Policies, slices.Index(c.Policies, OnDemand)+1, c.Baseline)
	}
	return c
}

// Compared returns the policies that a comparison of c runs, in order: the policies of c and those
// that are always run.
func (c *Config) Compared() []string { return c.Complete().Policies }

// validate returns an error for the first invalid field.
func (c *Config) validate() error {
	for i, p := range c.Policies {
		if strings.TrimSpace(p) == "" {
			return fmt.Errorf("%w: policies[%d] is empty", ErrConfig, i)
		}
		if p == OracleName {
			return fmt.Errorf("%w: policies[%d] is %q, which is a bound and no policy; it is always reported", ErrConfig, i, p)
		}
		if slices.Contains(c.Policies[:i], p) {
			return fmt.Errorf("%w: policy %q is named twice", ErrConfig, p)
		}
	}
	if len(c.Cases) == 0 {
		return fmt.Errorf("%w: cases: there is no scenario to run", ErrConfig)
	}
	for i, k := range c.Cases {
		if k.Bound == nil {
			return fmt.Errorf("%w: cases[%d] (%s, window %d) has no scenario", ErrConfig, i, k.Scenario, k.Window)
		}
		for _, o := range c.Cases[:i] {
			if o.Scenario == k.Scenario && o.Window == k.Window {
				return fmt.Errorf("%w: cases[%d]: %s, window %d is listed twice", ErrConfig, i, k.Scenario, k.Window)
			}
		}
	}
	for _, v := range c.Variants {
		if len(v.Cases) != len(c.Cases) {
			return fmt.Errorf("%w: variant %q has %d cases, want %d", ErrConfig, v.Name, len(v.Cases), len(c.Cases))
		}
	}
	seen := make(map[uint64]bool, len(c.Seeds))
	for _, s := range c.Seeds {
		if seen[s] {
			return fmt.Errorf("%w: seed %d is named twice", ErrConfig, s)
		}
		seen[s] = true
	}
	for _, d := range []struct {
		name  string
		value float64
	}{{"discount1y", c.Discount1y}, {"discount3y", c.Discount3y}} {
		if !(d.value >= 0 && d.value < 1) {
			return fmt.Errorf("%w: %s is %v, want a share in [0, 1)", ErrConfig, d.name, d.value)
		}
	}
	return c.validateGates()
}

// validateGates rejects gates that cannot fail because they apply to no policy.
func (c *Config) validateGates() error {
	for _, g := range c.Gates {
		if g.Policy != "" && !slices.Contains(c.Policies, g.Policy) {
			return fmt.Errorf("%w: gate %q: policy %q is not compared; compared are %s",
				ErrConfig, g, g.Policy, strings.Join(c.Policies, ", "))
		}
		if g.Versus != "" && !slices.Contains(c.Policies, g.Versus) {
			return fmt.Errorf("%w: gate %q: policy %q is not compared; compared are %s",
				ErrConfig, g, g.Versus, strings.Join(c.Policies, ", "))
		}
		if g.Scenario != "" && !slices.ContainsFunc(c.Cases, func(k Case) bool { return k.Scenario == g.Scenario }) {
			return fmt.Errorf("%w: gate %q: scenario %q is not among those compared", ErrConfig, g, g.Scenario)
		}
		if len(g.holdsFor(c)) == 0 {
			return fmt.Errorf("%w: gate %q holds for no policy: only %s and the baseline %s are compared",
				ErrConfig, g, OnDemand, c.Baseline)
		}
	}
	return nil
}

// Trial reports whether policy p is neither the baseline nor on-demand.
func (c *Config) Trial(p string) bool { return p != c.Baseline && p != OnDemand }
