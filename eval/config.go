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

// The default policies that improvements are measured against: what a cluster has without Spotter,
// and for a captured cluster the policy that it runs.
const (
	DefaultBaseline = "karpenter"
	CaptureBaseline = "as-is"
)

// BaselineOf returns the baseline of a comparison over cases on which nothing was said:
// CaptureBaseline where all of them are captures, else DefaultBaseline.
func BaselineOf(cases []Case) string {
	for i := range cases {
		if w := cases[i].Bound; w == nil || !w.Captured {
			return DefaultBaseline
		}
	}
	return CaptureBaseline
}

// ErrConfig is wrapped by every error that a wrong Config causes.
var ErrConfig = errors.New("wrong configuration")

// ErrWeather is wrapped when two policies of one case and seed met different
// weather, so that their figures must not be compared.
var ErrWeather = errors.New("policies had different weather")

// A Config says what is compared. The zero value of a field that has a default
// means that default.
type Config struct {
	// In the order of the report, on-demand and the baseline among them.
	//
	// They are as the user writes them: NAME[:key=value…]. [OnDemand] is added
	// in front, and the baseline behind it, when they are not among them.
	Policies []string `json:"policies"`

	// The policy that others are compared with.
	//
	// Empty means [BaselineOf] the cases.
	Baseline string `json:"baseline"`

	// Variants are what is run under those of Policies that have their names. The other policies run
	// in Cases as they are.
	Variants []Variant `json:"-"`

	// Cases are the scenarios and windows. More windows make the intervals speak
	// of other weeks too and not of other seeds only.
	Cases []Case `json:"-"`

	// Seeds of the weather.
	//
	// Each is run in every case under every policy.
	Seeds []uint64 `json:"seeds"`

	// Gates are what the report must satisfy.
	Gates []Gate `json:"-"`

	// Mine says of the runs, and of the bounds of a case and seed, which are jobs of
	// the policy [OracleName], whether [Do] does them; nil means all.
	Mine func(Job) bool `json:"-"`

	// Known returns bounds that were computed before, false where they were not; nil
	// knows none.
	Known func(Job) (Bounds, bool) `json:"-"`

	// Parallel is how many runs are done at once; 0 means one per processor.
	// It changes nothing in the report.
	Parallel int `json:"-"`

	// Progress, if not nil, is called after every run, before the first bound and
	// after every one, never twice at once.
	Progress func(Progress) `json:"-"`

	// Part of the on-demand price that a one-year commitment saves (modelled).
	//
	// It is in [0, 1). Raising it lowers the savings measured against commitments. 0 is a commitment
	// that saves nothing and no default: those are in [DefaultConfig].
	Discount1y float64 `json:"discount_1y"`
	// The same for three years.
	Discount3y float64 `json:"discount_3y"`

	// Today is what the cluster of the cases costs as it is; nil where that is not known.
	Today *Today `json:"-"`

	// Command returns the command that repeats one run; nil means
	// [DefaultCommand].
	Command func(Job) string `json:"-"`

	// Invocation is the command that repeats the whole comparison, and Version
	// the program that made it. Both are printed and not read.
	Invocation, Version string `json:"-"`
}

// A Case is one scenario over one window of its trace.
type Case struct {
	// Scenario is the name or path as the user gave it. Windows of one scenario follow each other
	// without gaps and count from 0.
	Scenario string
	Window   int
	Bound    *scenarios.BoundScenario
}

// A Job is one run to be done.
type Job struct {
	Case
	Policy string
	Seed   uint64
}

// A Runner does one run. It is called from several goroutines at once.
type Runner func(context.Context, Job) (*sim.Result, error)

// DefaultPolicies are compared when the user names none.
func DefaultPolicies() []string {
	return []string{OnDemand, DefaultBaseline, "spot", "static", "spotvortex", "spotvortex:compat=true", "portfolio"}
}

// DefaultSeeds returns the seeds 1…n.
func DefaultSeeds(n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	return seeds
}

// Following returns n seeds behind the greatest of seeds, nil where there are no such numbers.
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

// DefaultConfig returns the configuration of a comparison on which nothing has
// been said but its cases. The discounts are modelled: they are what is left
// of the advantage of spot published for m5.2xlarge ($280.32 a month on
// demand, of which 139.65, 57.71 and 13.85 are saved against on-demand, one
// and three years), as shares of the on-demand price.
func DefaultConfig() Config {
	return Config{
		Policies: DefaultPolicies(), Seeds: DefaultSeeds(20),
		Discount1y: 0.29, Discount3y: 0.45,
	}
}

// DefaultCommand returns the command that repeats j, if the scenario determines it.
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

// shellWord quotes s where a shell would not take it as one word.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,+@", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Role returns what part a policy has in the comparison: on-demand, baseline or compared.
func (c *Config) Role(policy string) string {
	switch policy {
	case OnDemand:
		return OnDemand
	case c.Baseline:
		return "baseline"
	}
	return "compared"
}

// Complete returns c with its defaults and the policies that are always run.
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

// Compared returns the policies that a comparison of c runs, in their order: those of c
// and the ones that are always run.
func (c *Config) Compared() []string { return c.Complete().Policies }

// validate names the first field that cannot be run.
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

// validateGates refuses gates that could not fail because nothing is held to
// them.
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
