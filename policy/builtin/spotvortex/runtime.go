package spotvortex

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrModelMode is returned by [ParseRuntime] for a file that requests decisions by a
// reinforcement-learning model, which this package does not implement.
var ErrModelMode = errors.New(`policy_mode "rl" is decided by a model and not by rules`)

// runtimeFile is the schema of the agent's runtime.json.
type runtimeFile struct {
	RiskMultiplier float64    `json:"risk_multiplier"`
	Min            float64    `json:"min_spot_ratio"`
	Max            *float64   `json:"max_spot_ratio"`
	Target         float64    `json:"target_spot_ratio"`
	StepMinutes    int        `json:"step_minutes"`
	Mode           string     `json:"policy_mode"`
	ModelShadow    *bool      `json:"rl_shadow_enabled"`
	Rules          *rulesFile `json:"deterministic_policy"`
}

type rulesFile struct {
	Emergency         float64     `json:"emergency_risk_threshold"`
	RuntimeEmergency  float64     `json:"runtime_emergency_threshold"`
	High              float64     `json:"high_risk_threshold"`
	Medium            float64     `json:"medium_risk_threshold"`
	SavingsMin        float64     `json:"min_savings_ratio_for_increase"`
	PaybackMax        float64     `json:"max_payback_hours_for_increase"`
	OutsideMode       string      `json:"ood_mode"`
	OutsideRiskMax    float64     `json:"ood_max_risk_for_increase"`
	OutsideSavingsMin float64     `json:"ood_min_savings_ratio_for_increase"`
	OutsidePaybackMax float64     `json:"ood_max_payback_hours_for_increase"`
	Drift             *float64    `json:"target_spot_ratio_drift_alpha"`
	Priority          Caps        `json:"priority_cap_rules"`
	Penalty           Caps        `json:"outage_penalty_cap_rules"`
	Startup           Caps        `json:"startup_time_cap_rules"`
	Migration         Caps        `json:"migration_cost_cap_rules"`
	Utilization       Caps        `json:"utilization_cap_rules"`
	Buckets           bucketsFile `json:"feature_buckets"`
}

type bucketsFile struct {
	Source      string    `json:"source"`
	Startup     []float64 `json:"pod_startup_time_seconds"`
	Penalty     []float64 `json:"outage_penalty_hours"`
	Priority    []float64 `json:"priority_score"`
	Utilization []float64 `json:"cluster_utilization"`
}

// overall is the block "overall" of the agent's workload distributions.
type overall struct {
	Startup     *spread `json:"pod_startup_time"`
	Penalty     *spread `json:"outage_penalty_hours"`
	Utilization *spread `json:"cluster_utilization_typical"`
}

type spread struct{ Min, P05, P50, P95, Max float64 }

func (s *spread) list() []float64 {
	if s == nil {
		return nil
	}
	return []float64{s.Min, s.P05, s.P50, s.P95, s.Max}
}

// ParseRuntime parses the agent's runtime.json. A value that is absent or zero is replaced by the
// agent's default, and a value out of range by the nearest limit, as in the agent; but an explicit
// max_spot_ratio of 0 is kept, and means no Spot, unless Compat is set.
//
// buckets returns the file that feature_buckets.source names, as JSON: the block
// workload_profile_bounds.overall of that file, which is YAML on disk. It is not called if
// runtime.json contains the buckets or the source is "default", which means the default buckets. It
// may be nil if no source is named.
//
// An unknown key is an error. So is policy_mode rl, with [ErrModelMode].
func ParseRuntime(data []byte, buckets func(source string) ([]byte, error)) (Config, error) {
	var f runtimeFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return Config{}, fmt.Errorf("spotvortex: runtime file: %w", explain(err))
	}
	if dec.More() {
		return Config{}, fmt.Errorf("spotvortex: runtime file: more than one JSON value")
	}
	c := DefaultConfig()
	c.RiskMultiplier, c.MinShare, c.TargetShare = f.RiskMultiplier, f.Min, f.Target
	c.Step = time.Duration(f.StepMinutes) * time.Minute
	if f.Max != nil {
		c.MaxShare = *f.Max
	}
	if strings.EqualFold(f.Mode, "rl") {
		return Config{}, fmt.Errorf("spotvortex: runtime file: %w", ErrModelMode)
	}
	if f.Rules != nil {
		c.Rules = f.Rules.rules()
		b, err := f.Rules.Buckets.read(buckets)
		if err != nil {
			return Config{}, fmt.Errorf("spotvortex: runtime file: %w", err)
		}
		c.Rules.Buckets = b
	}
	return c.Normal(), nil
}

// explain replaces errors of the JSON decoder with errors that readers of the file understand.
func explain(err error) error {
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown key %s", key)
	}
	return err
}

func (f *rulesFile) rules() Rules {
	r := Rules{
		Emergency: f.Emergency, RuntimeEmergency: f.RuntimeEmergency, HighRisk: f.High, MediumRisk: f.Medium,
		Increase: Edge{SavingsMin: f.SavingsMin, PaybackMax: f.PaybackMax},
		OutsideIncrease: Edge{RiskMax: f.OutsideRiskMax, SavingsMin: f.OutsideSavingsMin,
			PaybackMax: f.OutsidePaybackMax},
		OutsideConservative: f.OutsideMode == "" || f.OutsideMode == "conservative",
		Drift:               DefaultConfig().Rules.Drift,
		PriorityCaps:        f.Priority, PenaltyCaps: f.Penalty, StartupCaps: f.Startup,
		MigrationCaps: f.Migration, UtilizationCaps: f.Utilization,
	}
	if f.Drift != nil {
		r.Drift = *f.Drift
	}
	return r
}

func (f *bucketsFile) read(source func(string) ([]byte, error)) (Buckets, error) {
	b := Buckets{Startup: f.Startup, Penalty: f.Penalty, Priority: f.Priority, Utilization: f.Utilization}
	written := len(b.Startup)+len(b.Penalty)+len(b.Priority)+len(b.Utilization) > 0
	if written || f.Source == "" || f.Source == "default" {
		return b, nil
	}
	if source == nil {
		return b, fmt.Errorf("feature_buckets.source = %q: nothing reads it here", f.Source)
	}
	data, err := source(f.Source)
	if err != nil {
		return b, fmt.Errorf("feature_buckets.source = %q: %w", f.Source, err)
	}
	var o overall
	if err := json.Unmarshal(data, &o); err != nil {
		return b, fmt.Errorf("feature_buckets.source = %q: %w", f.Source, err)
	}
	if o.Startup == nil || o.Penalty == nil || o.Utilization == nil {
		return b,
			fmt.Errorf("feature_buckets.source = %q: the block lacks one of pod_startup_time, outage_penalty_hours and cluster_utilization_typical", f.Source)
	}
	return Buckets{
		Startup: o.Startup.list(), Penalty: o.Penalty.list(),
		Priority: DefaultBuckets().Priority, Utilization: o.Utilization.list(),
	}, nil
}
