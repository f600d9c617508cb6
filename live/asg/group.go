package asg

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	scaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
)

// Tags with which EKS names the managed node group of an Auto Scaling group.
const (
	tagNodegroup = "eks:nodegroup-name"
	tagCluster   = "eks:cluster-name"
)

// Prefixes of the tags that describe the new nodes of a group to the Cluster Autoscaler.
const (
	tagNodeLabel = "k8s.io/cluster-autoscaler/node-template/label/"
	tagNodeTaint = "k8s.io/cluster-autoscaler/node-template/taint/"
)

// A group is an Auto Scaling group at the last read.
type group struct {
	name, pool        string
	min, max, desired int

	// zones and types are ascending. If types is nil, the group selects types by attributes, and
	// any type is possible.
	zones, types []string

	buys purchase

	// rebalances reports whether the group balances its zones by terminating instances.
	rebalances bool

	// managed is the managed node group of the group; empty for a self-managed group. tags are the
	// tags of the node group if there is one, otherwise of the group. own are the tags of the group
	// in any case.
	managed   nodeGroup
	tags, own map[string]string

	// labels and taints are those expected on its nodes.
	labels []policy.Label
	taints []policy.Taint

	instances []instance
	launches  []launch

	// activities are the newest activities, newest first, if they were requested.
	activities []activity

	read policy.Time
}

// A purchase describes how a group buys instances.
type purchase struct {
	// onDemandPercent is the percentage bought on demand above base. It is 100 or 0 unless the
	// group mixes both capacity types. base is the number of on-demand instances to which the
	// percentage does not apply. policy reports whether the group has a mixed-instances policy.
	onDemandPercent, base int
	policy                bool

	// template and version identify the launch template of the group, or of its mixed-instances
	// policy.
	template, version string
}

// A nodeGroup is a managed node group. read is the time at which its tags were read.
type nodeGroup struct {
	name, cluster, arn string
	read               policy.Time
}

// An instance is an instance of a group.
type instance struct {
	id, zone, kind string
	state          scaling.LifecycleState
	protected      bool
}

// ending reports whether the group is terminating or detaching the instance.
func (i *instance) ending() bool {
	return strings.HasPrefix(string(i.state), "Terminat") || i.state == scaling.LifecycleStateDetaching ||
		i.state == scaling.LifecycleStateDetached
}

// groupOf converts a group. The result lacks the contents of the launch template and of the node
// group.
func groupOf(x *scaling.AutoScalingGroup) *group {
	g := &group{name: sdk.ToString(x.AutoScalingGroupName), buys: purchase{onDemandPercent: 100},
		min: int(sdk.ToInt32(x.MinSize)), max: int(sdk.ToInt32(x.MaxSize)), desired: int(sdk.ToInt32(x.DesiredCapacity)),
		zones: slices.Sorted(slices.Values(x.AvailabilityZones)), tags: map[string]string{}}
	for i := range x.Instances {
		in := &x.Instances[i]
		g.instances = append(g.instances, instance{id: sdk.ToString(in.InstanceId), zone: sdk.ToString(in.AvailabilityZone),
			kind: sdk.ToString(in.InstanceType), state: in.LifecycleState, protected: sdk.ToBool(in.ProtectedFromScaleIn)})
	}
	slices.SortFunc(g.instances, func(a, b instance) int { return cmp.Compare(a.id, b.id) })
	for _, t := range x.Tags {
		g.tags[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
	}
	g.own = g.tags
	g.managed.name, g.managed.cluster = g.tags[tagNodegroup], g.tags[tagCluster]
	g.labels, g.taints = expected(g.tags)
	g.rebalances = len(g.zones) > 1 && !slices.ContainsFunc(x.SuspendedProcesses, func(p scaling.SuspendedProcess) bool {
		return sdk.ToString(p.ProcessName) == "AZRebalance"
	})
	if t := x.LaunchTemplate; t != nil {
		g.buys.template, g.buys.version = sdk.ToString(t.LaunchTemplateId), cmp.Or(sdk.ToString(t.Version), "$Default")
	}
	if m := x.MixedInstancesPolicy; m != nil {
		g.readMixed(m)
	}
	g.launches = decodeLaunches(g.tags)
	return g
}

// readMixed reads a mixed-instances policy. Fields that AWS omits have their defaults: a base of
// zero, and everything above it on demand.
func (g *group) readMixed(m *scaling.MixedInstancesPolicy) {
	g.buys.policy = true
	if d := m.InstancesDistribution; d != nil {
		g.buys.base = int(sdk.ToInt32(d.OnDemandBaseCapacity))
		if d.OnDemandPercentageAboveBaseCapacity != nil {
			g.buys.onDemandPercent = int(*d.OnDemandPercentageAboveBaseCapacity)
		}
	}
	if m.LaunchTemplate == nil {
		return
	}
	if t := m.LaunchTemplate.LaunchTemplateSpecification; t != nil {
		g.buys.template, g.buys.version = sdk.ToString(t.LaunchTemplateId), cmp.Or(sdk.ToString(t.Version), "$Default")
	}
	for _, o := range m.LaunchTemplate.Overrides {
		if o.InstanceRequirements != nil {
			g.types = nil
			return
		}
		g.types = append(g.types, sdk.ToString(o.InstanceType))
	}
	slices.Sort(g.types)
	g.types = slices.Compact(g.types)
}

// expected returns the labels and taints in the tags for the Cluster Autoscaler, ascending.
func expected(tags map[string]string) (labels []policy.Label, taints []policy.Taint) {
	for k, v := range tags {
		if name, ok := strings.CutPrefix(k, tagNodeLabel); ok {
			labels = append(labels, policy.Label{Key: name, Value: v})
		}
		if name, ok := strings.CutPrefix(k, tagNodeTaint); ok {
			value, effect, _ := strings.Cut(v, ":")
			taints = append(taints, policy.Taint{Key: name, Value: value, Effect: effectOf(effect)})
		}
	}
	slices.SortFunc(labels, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(taints, func(a, b policy.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Effect, b.Effect))
	})
	return labels, taints
}

func effectOf(effect string) policy.TaintEffect {
	switch corev1.TaintEffect(effect) {
	case corev1.TaintEffectPreferNoSchedule:
		return policy.PreferNoSchedule
	case corev1.TaintEffectNoExecute:
		return policy.NoExecute
	}
	return policy.NoSchedule
}

// mixes reports whether g buys both on-demand and Spot capacity.
func (g *group) mixes() bool {
	return g.buys.onDemandPercent > 0 && g.buys.onDemandPercent < 100 || g.buys.base > 0 && g.buys.onDemandPercent < 100
}

// offers reports whether g may launch in the market.
func (g *group) offers(zone, kind string, c policy.CapacityType) bool {
	if g.types != nil && !slices.Contains(g.types, kind) || !slices.Contains(g.zones, zone) {
		return false
	}
	return g.mixes() || (c == policy.Spot) == (g.buys.onDemandPercent == 0)
}

// live returns the number of instances that are not ending.
func (g *group) live() int {
	n := 0
	for i := range g.instances {
		if !g.instances[i].ending() {
			n++
		}
	}
	return n
}

// marked reports whether g has launches or a maximum size that were recorded by Spotter.
func (g *group) marked() bool { return len(g.launches) > 0 || g.tags[TagMax] != "" }

// missing returns the number of instances that are still to be launched.
func (g *group) missing() int { return max(0, g.desired-g.live()) }

func (g *group) find(id string) *instance {
	if i, ok := slices.BinarySearchFunc(g.instances, id, func(x instance,
		id string) int {
		return cmp.Compare(x.id, id)
	}); ok {
		return &g.instances[i]
	}
	return nil
}

func (g *group) has(id string) bool { return g.find(id) != nil }

// launch returns the launch with a token; nil if g has no such launch.
func (g *group) launch(token string) *launch {
	for i := range g.launches {
		if g.launches[i].token == token {
			return &g.launches[i]
		}
	}
	return nil
}

// launched returns a predicate that reports whether a group has the launch with a token.
func launched(token string) func(*group) bool {
	return func(g *group) bool { return g.launch(token) != nil }
}

// tokenOf returns the token of the launch that created an instance; empty if no known launch did.
func (g *group) tokenOf(id string) string {
	for i := range g.launches {
		if g.launches[i].instance == id {
			return g.launches[i].token
		}
	}
	return ""
}

// balanced reports whether the zones of g differ by at most one instance if the instances in gone
// are not counted. Otherwise the group would launch in one zone and terminate an instance in
// another.
func (g *group) balanced(gone func(id string) bool) bool {
	n := make([]int, len(g.zones))
	for i := range g.instances {
		x := &g.instances[i]
		if z, ok := slices.BinarySearch(g.zones, x.zone); ok && !x.ending() && !gone(x.id) {
			n[z]++
		}
	}
	return len(n) == 0 || slices.Max(n)-slices.Min(n) <= 1
}

// marketName returns the name of a market in the format of [policy.Market.Name].
func marketName(region, zone, kind string, c policy.CapacityType) string {
	return "aws/" + region + "/" + zone + "/" + kind + "/" + c.String()
}

func capacityOf(spot bool) policy.CapacityType {
	if spot {
		return policy.Spot
	}
	return policy.OnDemand
}

// providerID returns the provider ID of the Node of an instance.
func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }

// instanceID returns the instance ID at the end of a provider ID or a similar name, and whether
// there is one.
func instanceID(providerID string) (string, bool) {
	id := providerID[strings.LastIndex(providerID, "/")+1:]
	return id, strings.HasPrefix(id, "i-")
}

// TagSteer is the key of the tag that records the last steer of a pool, on the pool's first group.
const TagSteer = "spotter.dev/steer"

func encodeSteer(st policy.SteerState) string {
	text := "share=" + strconv.FormatFloat(st.Share, 'f', -1, 64) + " since=" + strconv.FormatInt(int64(st.Since), 10)
	if st.Exact {
		text += " exact"
	}
	if st.Fallback {
		text += " fallback"
	}
	return text
}

// decodeSteer decodes the value of TagSteer; ok is false if it is missing or invalid.
func decodeSteer(value string) (st policy.SteerState, ok bool) {
	for _, word := range strings.Fields(value) {
		name, v, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "share":
			st.Share, err = strconv.ParseFloat(v, 64)
		case "since":
			var ms int64
			ms, err = strconv.ParseInt(v, 10, 64)
			st.Since = policy.Time(ms)
		case "exact":
			st.Exact = true
		case "fallback":
			st.Fallback = true
		}
		if err != nil {
			return policy.SteerState{}, false
		}
	}
	st.Set = st.Since != 0 && st.Share >= 0 && st.Share <= 1
	return st, st.Set
}
