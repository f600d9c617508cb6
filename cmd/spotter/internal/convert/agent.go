package convert

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// poolTag is the tag by which the agent finds the groups of a pool, unless configured otherwise.
const poolTag = "spotvortex.io/pool"

// backend sets the backend of p. Karpenter takes precedence over groups, as in the agent, which
// treated a node with a Karpenter label as Karpenter's.
func (a *agent) backend(s *source, p *v1alpha1.CapacityPool, nodeClass string, stated bool) {
	c := &a.config
	if c.Karpenter.Enabled {
		p.Spec.Backend.Karpenter = &v1alpha1.KarpenterBackend{NodeClassName: cmp.Or(nodeClass, "default")}
		if nodeClass == "" {
			s.warnOnce("",
				`spec.backend.karpenter.nodeClassName is "default": the agent steered node pools that were there and knew no node class; give --node-class`)
		}
		if c.Autoscaling.Enabled {
			s.warnOnce("autoscaling.enabled",
				"true together with karpenter.enabled: a pool has one backend, and these are Karpenter's; groups need a CapacityPool of their own")
		}
		return
	}
	p.Spec.Backend.AutoScalingGroups = &v1alpha1.AutoScalingGroupsBackend{
		DiscoveryTags: map[string]string{cmp.Or(c.Autoscaling.Tags.Pool, poolTag): p.Name},
	}
	zero := metav1.Duration{} // the Cluster Autoscaler does not replace nodes because of their age
	p.Spec.Disruption.ExpireAfter = &zero
	if stated && !c.Autoscaling.Enabled {
		s.warnOnce("autoscaling.enabled",
			"neither this nor karpenter.enabled is true, so the agent drained nodes and replaced none; a CapacityPool "+
				"needs who provisions: twin groups are found by the tags, and nodes are replaced")
	}
	if key := c.Autoscaling.Tags.Type; key != "" && key != "spotvortex.io/capacity-type" {
		s.warnOnce("autoscaling.discoveryTags.type",
			"%s is dropped: whether a group is spot is read from the group itself", key)
	}
}

// warnOnce is like warn, but drops a warning that was already recorded for another pool.
func (s *source) warnOnce(path, format string, args ...any) {
	before := len(s.warnings)
	s.warn(path, format, args...)
	last := s.warnings[before]
	for _, w := range s.warnings[:before] {
		if w == last {
			s.warnings = s.warnings[:before]
			return
		}
	}
}

func (a *agent) disruption(p *v1alpha1.CapacityPool) {
	c := &a.config
	if ratio := c.Controller.MaxDrainRatio; ratio != nil && *ratio > 0 {
		percent := max(1, int(math.Floor(100*(*ratio)+1e-9)))
		disruptionBudget := intstr.FromString(strconv.Itoa(percent) + "%")
		p.Spec.Disruption.Budget = &disruptionBudget
		if *ratio != 0.10 {
			set(p, "drain_share", strconv.FormatFloat(*ratio, 'g', -1, 64))
		}
		a.warn("controller.maxDrainRatio",
			"%v of the cluster in one pass becomes %d%% of this pool at once, at least one node", *ratio, percent)
	}
	if after := c.Karpenter.Cooldown; c.Karpenter.Enabled && after != nil {
		a.warn("karpenter.weightChangeCooldownSeconds",
			"%d s between two changes of weights is dropped: the policy waits 10 minutes between two changes; "+
				"disruption.cooldown changes that", *after)
	}
}

func (a *agent) markets(p *v1alpha1.CapacityPool) {
	c := &a.config.AWS
	m := &p.Spec.Markets
	if c.Region != "" {
		m.Regions = []string{c.Region}
	}
	m.InstanceTypes, m.Zones = c.Types, c.Zones
	for _, x := range [...]struct {
		path string
		list []string
	}{{"aws.instanceTypes", c.Types}, {"aws.availabilityZones", c.Zones}} {
		if len(x.list) > 0 {
			a.warn(x.path, "%s selected the prices to read; from now on it also limits what is bought",
				strings.Join(x.list, ", "))
		}
	}
	if a.config.GCP.Project != "" || len(a.config.GCP.Types) > 0 {
		a.warn("gcp", "dropped: pools are bought at AWS and Rackspace Spot")
	}
}

// bundles explains how trained models are configured.
const bundles = "a trained model is a bundle in the folder models.dir of the SpotterConfiguration, which the parameter bundle of a policy names"

// leftOut warns about settings without a counterpart.
func (a *agent) leftOut() {
	c := &a.config
	if v := c.Controller.Confidence; v != nil && *v != 0.50 {
		a.warn("controller.confidenceThreshold", "%v is dropped: the guardrails require a confidence of 0.5", *v)
	}
	a.drop(
		[2]string{"controller.riskThreshold",
			"Spot is left at emergency_risk_threshold; with compat the rules keep 0.85 as a threshold of the capacity score"},
		[2]string{"controller.reconcileIntervalSeconds",
			"decisions are taken every step (10 minutes), and at once on a notice, a lost node, a refused launch or a pod that waits"},
		[2]string{"controller.drainGracePeriodSeconds",
			"the agent never passed it on and killed pods with a grace of 0; a pod has its own terminationGracePeriodSeconds"},
		[2]string{"inference.tftModelPath", "the scores are of the closed form; " + bundles},
		[2]string{"inference.rlModelPath", "the rules decide; " + bundles},
		[2]string{"inference.modelManifestPath", "the scores are of the closed form; " + bundles},
		[2]string{"inference.expectedCloud", "the scores are of the closed form"},
	)
	for _, f := range [...]string{"url", "timeout"} {
		old := map[string]string{"url": "prometheus.url", "timeout": "prometheus.timeoutSeconds"}[f]
		if a.has(old) {
			a.warn(old,
				"%sis none of a pool: set usage.prometheus.%s of the SpotterConfiguration, by which the controller asks what nodes use", a.value(old), f)
		}
	}
	if c.Autoscaling.Enabled {
		a.drop(
			[2]string{"autoscaling.nodeReadyTimeoutSeconds",
				"a drain waits for its replacement and does not happen when that fails"},
			[2]string{"autoscaling.pollIntervalSeconds", "nodes are watched"},
		)
	}
	if c.Karpenter.Enabled {
		a.drop(
			[2]string{"karpenter.useExtendedPoolId", "a pool has one name"},
			[2]string{"karpenter.spotNodePoolSuffix", "a CapacityPool has node pools of its own"},
			[2]string{"karpenter.onDemandNodePoolSuffix", "a CapacityPool has node pools of its own"},
			[2]string{"karpenter.spotWeight", "weights follow from the share"},
			[2]string{"karpenter.onDemandWeight", "weights follow from the share"},
			[2]string{"karpenter.usePoolLevelInference", "every pool is decided as one"},
			[2]string{"karpenter.respectDisruptionBudgets", "disruption.budget always holds"},
		)
	}
}

// apply copies the share range and the rules of a runtime.json to p.
func (t *agentRuntime) apply(p *v1alpha1.CapacityPool) {
	c := &t.config
	low, high, target := c.MinShare, c.MaxShare, c.TargetShare
	p.Spec.Capacity.SpotShare = &v1alpha1.SpotShare{Min: &low, Max: &high, Target: &target}
	t.parameters(p)
	if c.RiskMultiplier != 1 {
		t.warn("risk_multiplier",
			"%v multiplies the odds of a risk; it was an exponent, by which a greater value made risks below one half smaller", c.RiskMultiplier)
	}
	if m := t.old.Max; m != nil && *m == 0 {
		t.warn("max_spot_ratio", "0 counted as not given, which meant 1; from now on the pool holds no spot")
	}
	if low > 0 {
		t.warn("min_spot_ratio",
			"%v was what an emergency went down to, and still is: capacity.spotShare.min is a bound for every policy", low)
	}
	t.limited()
	if t.old.ModelShadow != nil {
		t.drop([2]string{"rl_shadow_enabled", "no model decides in addition to the rules"})
	}
	if t.old.StepMinutes == nil {
		t.warn("", "step_minutes is not given; decisions are taken every %v", 10*time.Minute)
	}
}

// parameters sets the parameters that differ from the configuration with which the agent is
// shipped. The policy reads parameters without a key from the file.
func (t *agentRuntime) parameters(p *v1alpha1.CapacityPool) {
	parts := strings.Split(t.config.String(), ":")
	if slices.Contains(parts, "rules=custom") {
		if !strings.EqualFold(t.old.Mode, "rl") {
			t.rules(p)
			return
		}
		t.warn("deterministic_policy",
			"its thresholds, or those that the agent takes without any, are not the shipped ones, and they have no keys; "+
				"the policy reads no file with policy_mode rl, so the shipped ones hold")
	}
	for _, part := range parts {
		switch key, value, _ := strings.Cut(part, "="); key {
		case "", "rules", "max", "target", "drain_share":
			// The spotShare of the pool has the range, and config.yaml the drain share.
		default: // including min: the policy has its own minimum share
			set(p, key, value)
		}
	}
}

// rules makes the policy read the file, which keeps thresholds that are not the shipped ones.
func (t *agentRuntime) rules(p *v1alpha1.CapacityPool) {
	if strings.ContainsAny(t.file, ":,") || t.file == "-" {
		t.fail("deterministic_policy",
			"its thresholds are not the shipped ones, so the policy is to read the file, and %q cannot be the value "+
				"of a parameter; save it as a file whose name has no colon and no comma", t.file)
		return
	}
	if t.noBuckets != nil {
		t.fail(bucketsSource,
			"%q cannot be read: %v; the thresholds are not the shipped ones, so the policy is to read this file and that one: "+
				"put it there, or write \"default\"", t.bucketsFile(), t.noBuckets)
		return
	}
	set(p, "runtime", filepath.Base(t.file))
	t.warn("deterministic_policy",
		"its thresholds are not the shipped ones and have no keys: the parameter runtime names the file, which must "+
			"be in the folder of models.dir, with the file of feature_buckets.source")
}

// limited warns about values that were out of range and were clamped.
func (t *agentRuntime) limited() {
	c := &t.config
	for _, x := range [...]struct {
		path string
		old  *float64
		now  float64
	}{
		{"risk_multiplier", t.old.RiskMultiplier, c.RiskMultiplier},
		{"min_spot_ratio", t.old.Min, c.MinShare},
		{"max_spot_ratio", t.old.Max, c.MaxShare},
		{"target_spot_ratio", t.old.Target, c.TargetShare},
	} {
		if x.old != nil && *x.old != x.now {
			t.warn(x.path, "%v is out of its range and becomes %v, as in the agent", *x.old, x.now)
		}
	}
	if m := t.old.StepMinutes; m != nil && time.Duration(*m)*time.Minute != c.Step {
		t.warn("step_minutes", "%d is out of its range and becomes %v, as in the agent", *m, c.Step)
	}
}
