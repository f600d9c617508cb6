package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/scenarios"
)

// An agentConfig is the agent's config.yaml.
type agentConfig struct {
	Controller struct {
		RiskThreshold *float64 `json:"riskThreshold"`
		MaxDrainRatio *float64 `json:"maxDrainRatio"`
		Interval      *int32   `json:"reconcileIntervalSeconds"`
		Confidence    *float64 `json:"confidenceThreshold"`
		Grace         *int32   `json:"drainGracePeriodSeconds"`
	} `json:"controller"`
	Inference struct {
		TFT      string `json:"tftModelPath"`
		RL       string `json:"rlModelPath"`
		Manifest string `json:"modelManifestPath"`
		Cloud    string `json:"expectedCloud"`
	} `json:"inference"`
	Prometheus struct {
		URL     string `json:"url"`
		Timeout *int32 `json:"timeoutSeconds"`
	} `json:"prometheus"`
	Autoscaling struct {
		Enabled bool `json:"enabled"`
		Tags    struct {
			Pool string `json:"pool"`
			Type string `json:"type"`
		} `json:"discoveryTags"`
		ReadyTimeout *int32 `json:"nodeReadyTimeoutSeconds"`
		Poll         *int32 `json:"pollIntervalSeconds"`
	} `json:"autoscaling"`
	AWS struct {
		Region string   `json:"region"`
		Types  []string `json:"instanceTypes"`
		Zones  []string `json:"availabilityZones"`
	} `json:"aws"`
	GCP struct {
		Project string   `json:"projectId"`
		Region  string   `json:"region"`
		Types   []string `json:"machineTypes"`
	} `json:"gcp"`
	Karpenter struct {
		Enabled        bool     `json:"enabled"`
		ExtendedPoolID bool     `json:"useExtendedPoolId"`
		SpotSuffix     string   `json:"spotNodePoolSuffix"`
		OnDemandSuffix string   `json:"onDemandNodePoolSuffix"`
		SpotWeight     *int32   `json:"spotWeight"`
		OnDemandWeight *int32   `json:"onDemandWeight"`
		Pools          []string `json:"managedWorkloadPools"`
		Cooldown       *int32   `json:"weightChangeCooldownSeconds"`
		PoolInference  *bool    `json:"usePoolLevelInference"`
		RespectBudgets *bool    `json:"respectDisruptionBudgets"`
	} `json:"karpenter"`
}

// An agentRules is the block deterministic_policy of a runtime.json. It is decoded to check its
// keys; the policy interprets it.
type agentRules struct {
	Emergency         *float64             `json:"emergency_risk_threshold"`
	RuntimeEmergency  *float64             `json:"runtime_emergency_threshold"`
	High              *float64             `json:"high_risk_threshold"`
	Medium            *float64             `json:"medium_risk_threshold"`
	SavingsMin        *float64             `json:"min_savings_ratio_for_increase"`
	PaybackMax        *float64             `json:"max_payback_hours_for_increase"`
	OutsideMode       string               `json:"ood_mode"`
	OutsideRiskMax    *float64             `json:"ood_max_risk_for_increase"`
	OutsideSavingsMin *float64             `json:"ood_min_savings_ratio_for_increase"`
	OutsidePaybackMax *float64             `json:"ood_max_payback_hours_for_increase"`
	Drift             *float64             `json:"target_spot_ratio_drift_alpha"`
	Priority          []spotvortex.CapRule `json:"priority_cap_rules"`
	Penalty           []spotvortex.CapRule `json:"outage_penalty_cap_rules"`
	Startup           []spotvortex.CapRule `json:"startup_time_cap_rules"`
	Migration         []spotvortex.CapRule `json:"migration_cost_cap_rules"`
	Utilization       []spotvortex.CapRule `json:"utilization_cap_rules"`
	Buckets           struct {
		Source      string    `json:"source"`
		Startup     []float64 `json:"pod_startup_time_seconds"`
		Penalty     []float64 `json:"outage_penalty_hours"`
		Priority    []float64 `json:"priority_score"`
		Utilization []float64 `json:"cluster_utilization"`
	} `json:"feature_buckets"`
}

// An agentRuntimeFile is the agent's runtime.json.
type agentRuntimeFile struct {
	RiskMultiplier *float64    `json:"risk_multiplier"`
	Min            *float64    `json:"min_spot_ratio"`
	Max            *float64    `json:"max_spot_ratio"`
	Target         *float64    `json:"target_spot_ratio"`
	StepMinutes    *int32      `json:"step_minutes"`
	Mode           string      `json:"policy_mode"`
	ModelShadow    *bool       `json:"rl_shadow_enabled"`
	Rules          *agentRules `json:"deterministic_policy"`
}

// An agent is a config.yaml that was read.
type agent struct {
	*source
	config agentConfig
}

// An agentRuntime is a runtime.json that was read.
type agentRuntime struct {
	*source
	old    agentRuntimeFile
	config spotvortex.Config

	// noBuckets is the error of reading the file of buckets, or nil.
	noBuckets error
}

// agentFile reads a config.yaml or a runtime.json. It returns false for any other file.
func (r *reader) agentFile(o *scenarios.RawObject, data []byte) bool {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return o.Has(key) })
	}
	switch {
	case has("controller", "inference", "prometheus"):
		r.readAgent(o)
	case has("policy_mode", "deterministic_policy", "risk_multiplier", "max_spot_ratio", "min_spot_ratio",
		"target_spot_ratio", "step_minutes"):
		r.readRuntime(o, data)
	default:
		return false
	}
	return true
}

func (r *reader) readAgent(o *scenarios.RawObject) {
	a := &agent{source: &source{file: o.File(), object: o}}
	if err := o.Decode(&a.config); err != nil {
		r.fail(err)
		return
	}
	if r.agent != nil {
		r.fail(fmt.Errorf("%s: a second config.yaml; the first is %s", o.File(), r.agent.file))
		return
	}
	a.ratio("controller.riskThreshold", a.config.Controller.RiskThreshold)
	a.ratio("controller.maxDrainRatio", a.config.Controller.MaxDrainRatio)
	a.ratio("controller.confidenceThreshold", a.config.Controller.Confidence)
	r.agent = a
}

// configMap reads the files of the agent in a ConfigMap, in the form of its chart. Errors and
// warnings name the key, and the line within its text.
func (r *reader) configMap(o *scenarios.RawObject) {
	var old corev1.ConfigMap
	if err := o.Decode(&old); err != nil {
		r.fail(err)
		return
	}
	found := false
	for _, key := range []string{"config.yaml", "runtime.json"} {
		text := []byte(old.Data[key])
		inner, err := scenarios.RawObjects(o.File()+": data."+key, text)
		r.fail(err)
		for i := range inner {
			found = r.agentFile(&inner[i], text) || found
		}
	}
	if !found {
		r.skip(o, "ConfigMap")
	}
}

// ratio records an error unless v is in (0, 1], the limits of the agent, or nil.
func (s *source) ratio(path string, v *float64) {
	if v != nil && !(*v > 0 && *v <= 1) {
		s.fail(path, "%v is not above 0 and at most 1", *v)
	}
}

func (r *reader) readRuntime(o *scenarios.RawObject, data []byte) {
	t := &agentRuntime{source: &source{file: o.File(), object: o}}
	if err := o.Decode(&t.old); err != nil {
		r.fail(err)
		return
	}
	if r.runtime != nil {
		r.fail(fmt.Errorf("%s: a second runtime.json; the first is %s", o.File(), r.runtime.file))
		return
	}
	if strings.EqualFold(t.old.Mode, "rl") {
		t.warn("policy_mode",
			"rl: decisions were taken by a reinforcement-learning model; from now on by the deterministic rules")
	}
	if err := t.parse(data, r.o.ReadBuckets); err != nil {
		r.fail(fmt.Errorf("%s: %w", o.File(), err))
		return
	}
	r.runtime = t
}

// parse parses the file with the reader of the policy. It sets the mode to rules, and leaves out
// buckets whose file cannot be read.
func (t *agentRuntime) parse(data []byte, buckets func(file, source string) ([]byte, error)) error {
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	delete(all, "policy_mode")
	read := func(source string) ([]byte, error) {
		if buckets == nil {
			return nil, fmt.Errorf("nothing reads it here")
		}
		return buckets(t.file, source)
	}
	rules, _ := all["deterministic_policy"].(map[string]any)
	if t.bucketsFile() != "" {
		if _, t.noBuckets = read(t.bucketsFile()); t.noBuckets != nil {
			delete(rules, "feature_buckets")
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	t.config, err = spotvortex.ParseRuntime(text, read)
	if t.noBuckets != nil {
		t.config.Rules.Buckets = spotvortex.Shipped().Rules.Buckets
		t.warn(bucketsSource, "%s cannot be read (%v), so the buckets that the agent is shipped with hold", t.bucketsFile(),
			t.noBuckets)
	}
	return err
}

// bucketsSource is the path of the field that names the file of buckets.
const bucketsSource = "deterministic_policy.feature_buckets.source"

// bucketsFile returns the name of the file of buckets. It is empty if none is named, or if the
// rules contain the buckets.
func (t *agentRuntime) bucketsFile() string {
	if t.old.Rules == nil || t.old.Rules.Buckets.Source == "default" {
		return ""
	}
	b := &t.old.Rules.Buckets
	if len(b.Startup)+len(b.Penalty)+len(b.Priority)+len(b.Utilization) > 0 {
		return ""
	}
	return b.Source
}

// finishAgent creates the pools of an agent after all files are read.
func (r *reader) finishAgent() {
	a, t := r.agent, r.runtime
	if a == nil && t == nil {
		return
	}
	var s *source
	switch {
	case a == nil:
		s = t.source
		a = &agent{source: s}
		s.warn("", "there is no config.yaml next to it: add the provisioner, the region and the budget")
	case t != nil:
		s = a.source
	default:
		s = a.source
		s.warn("", "it comes without a runtime.json: the agent's default thresholds are used")
	}
	names := a.pools(s, r.o.Pools)
	base := s.newPool("", "spotvortex")
	stated := r.agent != nil
	if stated {
		a.disruption(base)
		a.markets(base)
		a.leftOut()
	}
	if t != nil {
		t.apply(base)
		if t.source != s {
			s.warnings, s.errs = append(s.warnings, t.warnings...), append(s.errs, t.errs...)
		}
	}
	s.warn("",
		"the rules are the agent's with their known faults fixed: pods keep their own grace, a drain waits for its replacement, a workload "+
			"without a PodDisruptionBudget freezes nothing, changes have a cooldown; the parameter compat: \"true\" reproduces them exactly")
	s.shadow("the agent, which has --dry-run=true unless that flag is changed,")
	for i, name := range names {
		p := base.DeepCopy()
		p.Name = name
		a.backend(s, p, r.o.NodeClass, stated)
		r.addAlike(s, p, i, names[0])
	}
}

// pools returns the names of the pools.
func (a *agent) pools(s *source, given []string) []string {
	if len(given) > 0 {
		return given
	}
	if names := a.config.Karpenter.Pools; len(names) > 0 {
		return names
	}
	s.warn("",
		"the pool is called default: the agent found its pools by labels and tags of the cluster; give --pools with their names")
	return []string{"default"}
}
