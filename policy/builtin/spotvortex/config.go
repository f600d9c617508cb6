package spotvortex

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Config contains the parameters of the policy. Start from [Shipped], or from [DefaultConfig] for
// the agent's defaults without a file.
type Config struct {
	// Compat reproduces the agent exactly, under its own guardrails.
	Compat bool

	// RiskMultiplier makes the policy more careful when raised: it multiplies the odds of both risk
	// scores. With Compat it is the exponent of the odds, which does the opposite below a score of
	// one half.
	RiskMultiplier float64

	// MinShare and MaxShare limit the Spot share. TargetShare is its initial value and the value to
	// which it drifts while nothing else moves it.
	MinShare, MaxShare, TargetShare float64

	// Step is the time between two decisions. The agent itself decides every 30 seconds, but its
	// parameters are meant for steps of this length, at which prices and models change.
	Step time.Duration

	// Cooldown is the minimum time between two changes of one pool that are not urgent, unless the
	// pool states its own. Raising it makes growth slower and moves fewer pods.
	Cooldown time.Duration

	// Calm is the time for which no decision may have reduced or frozen Spot before the share
	// grows. Raising it keeps an unsteady market or cap from moving nodes back and forth.
	Calm time.Duration

	// DrainShareMax is the maximum fraction of a pool that one decision empties, but at least one
	// node; an emergency is limited only by the pool's disruption budgets.
	DrainShareMax float64

	Rules Rules
}

// Rules are the thresholds of the deterministic policy.
type Rules struct {
	// At a score of Emergency, or a runtime score of RuntimeEmergency, the policy leaves Spot
	// altogether. At HighRisk it reduces the Spot share by thirty points, and at MediumRisk by ten.
	// Lowering them reduces it earlier.
	Emergency, RuntimeEmergency, HighRisk, MediumRisk float64

	// Increase is the condition for growth; its RiskMax is not used, MediumRisk is used instead.
	// OutsideIncrease replaces it if a feature is outside its buckets and OutsideConservative is
	// set.
	Increase, OutsideIncrease Edge
	OutsideConservative       bool

	// Drift is the fraction of the distance to TargetShare by which the target moves in a step in
	// which the pool is held and at low risk.
	Drift float64

	// The tables of cap rules, each in descending order of threshold; the first rule whose
	// threshold a feature reaches applies.
	PriorityCaps, PenaltyCaps, StartupCaps, MigrationCaps, UtilizationCaps Caps

	Buckets Buckets
}

// An Edge is the condition that a growth of the share must meet.
type Edge struct {
	// RiskMax is the maximum composite risk.
	RiskMax float64

	// SavingsMin is the minimum saving as a fraction of the on-demand price.
	SavingsMin float64

	// PaybackMax is the maximum time in hours within which the saving must pay for the move.
	PaybackMax float64
}

// Caps are cap rules in descending order of threshold.
type Caps []CapRule

// A CapRule limits the share of a pool whose feature reaches Threshold.
type CapRule struct {
	Threshold float64 `json:"threshold"`
	MaxShare  float64 `json:"max_spot_ratio"`
}

// Buckets are, for each feature, the values for which the thresholds were tuned, in ascending
// order. Only the first and the last matter.
type Buckets struct {
	Startup, Penalty, Priority, Utilization []float64
}

// DefaultBuckets returns the agent's buckets without a file.
func DefaultBuckets() Buckets {
	return Buckets{
		Startup:     []float64{0, 60, 120, 300, 600, 1200},
		Penalty:     []float64{0, 1, 4, 10, 24, 48, 96},
		Priority:    []float64{0, 0.25, 0.5, 0.75, 1},
		Utilization: []float64{0, 0.5, 0.7, 0.85, 0.95, 1},
	}
}

// DefaultConfig returns the agent's defaults without a file, and the defaults of this policy's own
// parameters.
func DefaultConfig() Config {
	return Config{
		RiskMultiplier: 1,
		MaxShare:       1,
		Step:           10 * time.Minute,
		Cooldown:       10 * time.Minute,
		Calm:           30 * time.Minute,
		DrainShareMax:  0.10,
		Rules: Rules{
			Emergency: 0.90, RuntimeEmergency: 0.80, HighRisk: 0.60, MediumRisk: 0.35,
			Increase:            Edge{SavingsMin: 0.15, PaybackMax: 6},
			OutsideIncrease:     Edge{RiskMax: 0.25, SavingsMin: 0.25, PaybackMax: 3},
			OutsideConservative: true,
			Drift:               0.10,
			PriorityCaps:        Caps{{0.9, 0.2}, {0.7, 0.5}, {0.45, 0.8}},
			PenaltyCaps:         Caps{{96, 0.1}, {48, 0.2}, {24, 0.3}, {10, 0.5}},
			StartupCaps:         Caps{{600, 0.2}, {300, 0.3}, {120, 0.5}},
			MigrationCaps:       Caps{{8, 0.2}, {5, 0.3}, {2, 0.6}},
			UtilizationCaps:     Caps{{0.95, 0.7}},
			Buckets:             DefaultBuckets(),
		},
	}
}

// Shipped returns the thresholds that the agent is shipped with, and the buckets that its workload
// distributions define.
func Shipped() Config {
	c := DefaultConfig()
	c.MinShare, c.TargetShare = 0.167, 0.5
	r := &c.Rules
	r.Emergency, r.RuntimeEmergency, r.HighRisk, r.MediumRisk = 0.891, 0.865, 0.782, 0.58
	r.Increase = Edge{SavingsMin: 0.249, PaybackMax: 6.372}
	r.OutsideIncrease = Edge{RiskMax: 0.189, SavingsMin: 0.334, PaybackMax: 2.189}
	r.Buckets = Buckets{
		Startup:     []float64{3, 6, 31, 205.15, 500},
		Penalty:     []float64{0.3, 0.4, 1.1, 12.605, 66.9},
		Priority:    DefaultBuckets().Priority,
		Utilization: []float64{0.32, 0.51, 0.73, 0.89, 0.99},
	}
	return c
}

// Normal returns c with every parameter limited to its range, as the agent limits them, and cap
// rules in descending order. It does not share slices with c.
func (c Config) Normal() Config {
	c.RiskMultiplier = clamp(orElse(c.RiskMultiplier, 1), 0.1, 10)
	c.MaxShare = unit(c.MaxShare)
	if c.Compat && c.MaxShare == 0 {
		c.MaxShare = 1 // like the agent, which treats zero as not set
	}
	c.MinShare = min(unit(c.MinShare), c.MaxShare)
	c.TargetShare = clamp(c.TargetShare, c.MinShare, c.MaxShare)
	c.Step = clamp(orElse(c.Step, 10*time.Minute), time.Minute, 2*time.Hour)
	c.Cooldown, c.Calm = max(0, c.Cooldown), max(0, c.Calm)
	c.DrainShareMax = unit(c.DrainShareMax)
	c.Rules = c.Rules.normal()
	return c
}

func (r Rules) normal() Rules {
	d := DefaultConfig().Rules
	r.Emergency = unit(orElse(r.Emergency, d.Emergency))
	r.RuntimeEmergency = unit(orElse(r.RuntimeEmergency, d.RuntimeEmergency))
	r.HighRisk = min(unit(orElse(r.HighRisk, d.HighRisk)), r.Emergency)
	r.MediumRisk = min(unit(orElse(r.MediumRisk, d.MediumRisk)), r.HighRisk)
	r.Increase = r.Increase.normal(d.Increase)
	r.OutsideIncrease = r.OutsideIncrease.normal(d.OutsideIncrease)
	r.Drift = unit(r.Drift)
	r.PriorityCaps = r.PriorityCaps.normal(d.PriorityCaps, 1)
	r.PenaltyCaps = r.PenaltyCaps.normal(d.PenaltyCaps, noLimit)
	r.StartupCaps = r.StartupCaps.normal(d.StartupCaps, noLimit)
	r.MigrationCaps = r.MigrationCaps.normal(d.MigrationCaps, noLimit)
	r.UtilizationCaps = r.UtilizationCaps.normal(d.UtilizationCaps, 1)
	r.Buckets = r.Buckets.normal()
	return r
}

// noLimit is larger than every threshold.
const noLimit = 1e300

func (e Edge) normal(d Edge) Edge {
	return Edge{
		RiskMax:    unit(orElse(e.RiskMax, d.RiskMax)),
		SavingsMin: unit(orElse(e.SavingsMin, d.SavingsMin)),
		PaybackMax: clamp(orElse(e.PaybackMax, d.PaybackMax), 0.1, 168),
	}
}

func (c Caps) normal(d Caps, thresholdMax float64) Caps {
	if len(c) == 0 {
		return d
	}
	c = slices.Clone(c)
	for i := range c {
		c[i].Threshold, c[i].MaxShare = clamp(c[i].Threshold, 0, thresholdMax), unit(c[i].MaxShare)
	}
	slices.SortStableFunc(c, func(a, b CapRule) int { return cmp.Compare(b.Threshold, a.Threshold) })
	return c
}

func (b Buckets) normal() Buckets {
	b.Startup, b.Penalty = ascending(b.Startup), ascending(b.Penalty)
	b.Priority, b.Utilization = ascending(b.Priority), ascending(b.Utilization)
	if min(len(b.Startup), len(b.Penalty), len(b.Priority), len(b.Utilization)) < 2 {
		return DefaultBuckets()
	}
	return b
}

func ascending(x []float64) []float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return slices.Compact(x)
}

func orElse[T cmp.Ordered](x, instead T) T {
	var zero T
	if x == zero {
		return instead
	}
	return x
}

func clamp[T cmp.Ordered](x, lo, hi T) T { return max(lo, min(hi, x)) }

// Validate returns an error for the first parameter of c that is out of range.
func (c *Config) Validate() error {
	for _, f := range [...]struct {
		name   string
		x      float64
		lo, hi float64
	}{
		{"risk_multiplier", c.RiskMultiplier, 0.1, 10},
		{"min", c.MinShare, 0, 1},
		{"max", c.MaxShare, 0, 1},
		{"target", c.TargetShare, 0, 1},
		{"drain_share", c.DrainShareMax, 0, 1},
	} {
		if !(f.x >= f.lo && f.x <= f.hi) { // also refuses NaN
			return fmt.Errorf("spotvortex: %s = %v is not in [%v, %v]", f.name, f.x, f.lo, f.hi)
		}
	}
	for _, f := range [...]struct {
		name      string
		x, lo, hi time.Duration
	}{
		{"step", c.Step, time.Minute, 2 * time.Hour},
		{"cooldown", c.Cooldown, 0, 7 * 24 * time.Hour},
		{"calm", c.Calm, 0, 7 * 24 * time.Hour},
	} {
		if f.x < f.lo || f.x > f.hi {
			return fmt.Errorf("spotvortex: %s = %v is not in [%v, %v]", f.name, f.x, f.lo, f.hi)
		}
	}
	if c.MinShare > c.MaxShare {
		return fmt.Errorf("spotvortex: min = %v is above max = %v", c.MinShare, c.MaxShare)
	}
	return nil
}

// Parameters lists the keys that [Config.Set] accepts.
const Parameters = "compat, target, min, max, risk_multiplier, step, cooldown, calm, drain_share"

// Set sets the parameter called key to value: "true" or "false" for compat, a duration such as
// "10m" for step, cooldown and calm, and a number for the others. Setting max below the minimum
// lowers the minimum too.
func (c *Config) Set(key, value string) error {
	n := *c
	var err error
	form := "a number"
	switch key {
	case "compat":
		form = "true or false"
		n.Compat, err = strconv.ParseBool(value)
	case "target":
		n.TargetShare, err = strconv.ParseFloat(value, 64)
	case "min":
		n.MinShare, err = strconv.ParseFloat(value, 64)
	case "max":
		n.MaxShare, err = strconv.ParseFloat(value, 64)
		n.MinShare = min(n.MinShare, n.MaxShare)
	case "risk_multiplier":
		n.RiskMultiplier, err = strconv.ParseFloat(value, 64)
	case "drain_share":
		n.DrainShareMax, err = strconv.ParseFloat(value, 64)
	case "step":
		form = "a duration such as 10m"
		n.Step, err = time.ParseDuration(value)
	case "cooldown":
		form = "a duration such as 10m"
		n.Cooldown, err = time.ParseDuration(value)
	case "calm":
		form = "a duration such as 10m"
		n.Calm, err = time.ParseDuration(value)
	default:
		return fmt.Errorf("spotvortex: there is no parameter %q; there are %s", key, Parameters)
	}
	if err != nil {
		return fmt.Errorf("spotvortex: %s %q is not %s", key, value, form)
	}
	if err := n.Validate(); err != nil {
		return err
	}
	*c = n
	return nil
}

// String returns the parameters that differ from [Shipped] as "key=value" pairs joined with colons;
// it is empty if none differs. Thresholds have no keys: if any differs, "rules=custom" is added.
func (c *Config) String() string {
	d := Shipped()
	var parts []string
	add := func(key, value, same string) {
		if value != same {
			parts = append(parts, key+"="+value)
		}
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	add("compat", strconv.FormatBool(c.Compat), "false")
	add("target", number(c.TargetShare), number(d.TargetShare))
	add("min", number(c.MinShare), number(d.MinShare))
	add("max", number(c.MaxShare), number(d.MaxShare))
	add("risk_multiplier", number(c.RiskMultiplier), number(d.RiskMultiplier))
	add("step", c.Step.String(), d.Step.String())
	add("cooldown", c.Cooldown.String(), d.Cooldown.String())
	add("calm", c.Calm.String(), d.Calm.String())
	add("drain_share", number(c.DrainShareMax), number(d.DrainShareMax))
	if fmt.Sprint(c.Rules) != fmt.Sprint(d.Rules) {
		parts = append(parts, "rules=custom")
	}
	return strings.Join(parts, ":")
}

// step returns the time between two decisions.
func (c *Config) step() policy.Time { return policy.Time(c.Step.Milliseconds()) }
