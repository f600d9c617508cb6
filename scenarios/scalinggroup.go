package scenarios

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A ScalingGroup contains the settings of an Auto Scaling group that policy.Pool has no field for.
// Sizes are numbers of instances.
type ScalingGroup struct {
	Min, Max, Desired int

	// OnDemandBase is the number of instances that are on demand first. OnDemandPercent is the
	// percentage of the other instances that are on demand.
	OnDemandBase, OnDemandPercent int

	// Types are the names of the instance types, in the order of the overrides. The Cluster
	// Autoscaler assumes that new nodes have the first type.
	Types []string

	// Spot is the allocation strategy for Spot instances. Prioritized reports that on-demand
	// instances are allocated in the order of Types; otherwise they are allocated by price.
	Spot        SpotStrategy
	Prioritized bool
}

// A SpotStrategy is the strategy by which an Auto Scaling group chooses among the Spot markets of a
// zone.
type SpotStrategy uint8

// The allocation strategies, by their names in AWS.
const (
	PriceCapacityOptimized SpotStrategy = iota
	CapacityOptimized
	CapacityOptimizedPrioritized
	LowestPrice
)

var spotStrategies = map[string]SpotStrategy{
	"price-capacity-optimized": PriceCapacityOptimized, "capacity-optimized": CapacityOptimized,
	"capacity-optimized-prioritized": CapacityOptimizedPrioritized, "lowest-price": LowestPrice,
}

// OnDemandOf returns the number of on-demand instances in a group of n. AWS rounds it up.
func (g *ScalingGroup) OnDemandOf(n int) int {
	base := min(n, g.OnDemandBase)
	return base + ((n-base)*g.OnDemandPercent+99)/100
}

// An awsGroup is an Auto Scaling group in the output of `aws autoscaling
// describe-auto-scaling-groups`. Keys that are neither fields here nor in awsGroupKeys are errors.
type awsGroup struct {
	metav1.TypeMeta   `json:"-"`
	metav1.ObjectMeta `json:"-"`

	Name                 string      `json:"AutoScalingGroupName"`
	MinSize              *int32      `json:"MinSize"`
	MaxSize              *int32      `json:"MaxSize"`
	DesiredCapacity      *int32      `json:"DesiredCapacity"`
	AvailabilityZones    []string    `json:"AvailabilityZones"`
	MixedInstancesPolicy *awsMixed   `json:"MixedInstancesPolicy"`
	Tags                 []awsTag    `json:"Tags"`
	SuspendedProcesses   []suspended `json:"SuspendedProcesses"`
	MaxInstanceLifetime  *int32      `json:"MaxInstanceLifetime"`
	CapacityRebalance    bool        `json:"CapacityRebalance"`
	DesiredCapacityType  string      `json:"DesiredCapacityType"`
	Instances            []instance  `json:"Instances"`
	Status               string      `json:"Status"`
}

type awsMixed struct {
	LaunchTemplate struct {
		Specification anything      `json:"LaunchTemplateSpecification"`
		Overrides     []awsOverride `json:"Overrides"`
	} `json:"LaunchTemplate"`
	Distribution awsDistribution `json:"InstancesDistribution"`
}

type awsOverride struct {
	InstanceType     string    `json:"InstanceType"`
	WeightedCapacity string    `json:"WeightedCapacity"`
	Requirements     *anything `json:"InstanceRequirements"`
	LaunchTemplate   *anything `json:"LaunchTemplateSpecification"`
	Image            *anything `json:"ImageId"`
}

type awsDistribution struct {
	OnDemandStrategy string    `json:"OnDemandAllocationStrategy"`
	OnDemandBase     *int32    `json:"OnDemandBaseCapacity"`
	OnDemandPercent  *int32    `json:"OnDemandPercentageAboveBaseCapacity"`
	SpotStrategy     string    `json:"SpotAllocationStrategy"`
	SpotPools        *int32    `json:"SpotInstancePools"`
	SpotMaxPrice     string    `json:"SpotMaxPrice"`
	Segments         *anything `json:"DistributionSegments"`
}

type awsTag struct {
	Key   string `json:"Key"`
	Value string `json:"Value"`
}

type suspended struct {
	Name string `json:"ProcessName"`
}

type instance struct {
	Type string `json:"InstanceType"`
}

// Tags that describe the labels and taints of new nodes to the Cluster Autoscaler.
const (
	tagNodeTemplate = "k8s.io/cluster-autoscaler/node-template/"
	tagNodeLabel    = tagNodeTemplate + "label/"
	tagNodeTaint    = tagNodeTemplate + "taint/"
)

// needed are the scaling processes that the simulation of a group requires.
var needed = []string{"Launch", "Terminate", "HealthCheck", "ReplaceUnhealthy"}

// A groupReader reads an Auto Scaling group or a managed node group as a pool.
type groupReader struct {
	sc   *Scenario
	doc  *document
	kind string
	pool v1alpha1.CapacityPool
	own  ScalingGroup
	errs []error
}

func newGroupReader(sc *Scenario, doc *document, kind, name string) *groupReader {
	return &groupReader{sc: sc, doc: doc, kind: kind,
		pool: v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.CapacityPoolSpec{
			Backend:  v1alpha1.Backend{AutoScalingGroups: &v1alpha1.AutoScalingGroupsBackend{DiscoveryTags: map[string]string{"Name": name}}},
			Mode:     v1alpha1.ModeActive,
			Template: v1alpha1.NodeTemplate{Labels: map[string]string{}},
		}}}
}

func (r *groupReader) fail(path []string, format string, args ...any) {
	r.errs = append(r.errs, r.doc.problem(path, format, args...))
}

func (r *groupReader) warn(format string, args ...any) {
	r.sc.warn(r.kind+" "+r.pool.Name+": "+format, args...)
}

// readGroup reads an Auto Scaling group as a pool. The pool has the name of the managed node group
// that created it, if managed is not nil, or else the name of the group.
func (sc *Scenario) readGroup(doc *document, o *awsGroup, managed *eksGroup) []error {
	r := newGroupReader(sc, doc, "Auto Scaling group", o.Name)
	if managed != nil {
		r.pool.Name = managed.Name
		r.readManaged(managed)
	}
	r.leaveOut()
	if o.Status != "" {
		r.fail([]string{"Status"}, "%q: the group is being deleted", o.Status)
	}
	r.readSizes(o.MinSize, o.MaxSize, o.DesiredCapacity, "MinSize", "MaxSize", "DesiredCapacity")
	if len(o.AvailabilityZones) == 0 {
		r.fail([]string{"AvailabilityZones"}, "must name a zone")
	}
	r.pool.Spec.Markets.Zones = o.AvailabilityZones
	for i, p := range o.SuspendedProcesses {
		if slices.Contains(needed, p.Name) {
			r.fail([]string{"SuspendedProcesses", Index(i)}, "%s: a group without it is not simulated", p.Name)
		}
	}
	if len(o.AvailabilityZones) > 1 && !slices.ContainsFunc(o.SuspendedProcesses,
		func(p suspended) bool { return p.Name == "AZRebalance" }) {
		r.warn("AZRebalance is taken as suspended: it ends instances to even out zones, and that is not simulated")
	}
	if o.CapacityRebalance {
		r.warn("CapacityRebalance has no effect: replacing instances on a recommendation is not simulated")
	}
	if t := o.DesiredCapacityType; t != "" && t != "units" {
		r.fail([]string{"DesiredCapacityType"}, "%q: the Cluster Autoscaler counts instances", t)
	}
	if d := o.MaxInstanceLifetime; d != nil && *d > 0 {
		r.pool.Spec.Disruption.ExpireAfter = &metav1.Duration{Duration: time.Duration(*d) * time.Second}
	}
	r.readTags(o.Tags)
	switch {
	case o.MixedInstancesPolicy != nil:
		r.readMixed(o.MixedInstancesPolicy)
	case len(o.Instances) == 0:
		r.fail([]string{"LaunchTemplate"},
			"which instance type it launches is not said: state MixedInstancesPolicy.LaunchTemplate.Overrides, or describe the group while it has instances")
	default:
		for _, x := range o.Instances {
			if !slices.Contains(r.own.Types, x.Type) {
				r.own.Types = append(r.own.Types, x.Type)
			}
		}
		r.own.OnDemandPercent, r.own.Prioritized = 100, true
		r.warn("what its launch template launches is taken from its instances: %s on demand", strings.Join(r.own.Types, ", "))
	}
	return r.keep()
}

// leaveOut reports the keys that are not read.
func (r *groupReader) leaveOut() {
	idle, errs := r.doc.unreadValues()
	r.errs = append(r.errs, errs...)
	if len(idle) > 0 {
		r.warn("not simulated: %s", strings.Join(idle, ", "))
	}
}

// readSizes reads the bounds of the size and the desired size, whose fields have the given paths.
func (r *groupReader) readSizes(least, most, desired *int32, paths ...string) {
	for i, x := range []struct {
		from *int32
		to   *int
	}{{least, &r.own.Min}, {most, &r.own.Max}, {desired, &r.own.Desired}} {
		path := strings.Split(paths[i], ".")
		if x.from == nil {
			if i < 2 {
				r.fail(path, "must be set")
			}
			*x.to = r.own.Min
			continue
		}
		if why := outside(*x.from, 0, nodesMax); why != "" {
			r.fail(path, "%s", why)
		}
		*x.to = int(*x.from)
	}
	if r.own.Max < r.own.Min {
		r.fail(strings.Split(paths[1], "."), "%d is below the least size, %d", r.own.Max, r.own.Min)
	} else if r.own.Desired < r.own.Min || r.own.Desired > r.own.Max {
		r.fail(strings.Split(paths[2], "."), "%d is not from %d to %d", r.own.Desired, r.own.Min, r.own.Max)
	}
}

// readTags reads the labels and taints of nodes.
func (r *groupReader) readTags(tags []awsTag) {
	effects := []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule),
		string(corev1.TaintEffectNoExecute)}
	for i, t := range tags {
		if name, ok := strings.CutPrefix(t.Key, tagNodeLabel); ok {
			r.pool.Spec.Template.Labels[name] = t.Value
		}
		if strings.HasPrefix(t.Key, tagNodeTemplate) && !strings.HasPrefix(t.Key, tagNodeLabel) &&
			!strings.HasPrefix(t.Key, tagNodeTaint) {
			r.warn("the tag %s is not simulated", t.Key)
		}
		if name, ok := strings.CutPrefix(t.Key, tagNodeTaint); ok {
			value, effect, _ := strings.Cut(t.Value, ":")
			if !slices.Contains(effects, effect) {
				r.fail([]string{"Tags", Index(i), "Value"}, "%q is not a taint of the form VALUE:NoSchedule", t.Value)
			}
			r.pool.Spec.Template.Taints = append(r.pool.Spec.Template.Taints,
				corev1.Taint{Key: name, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
}

// readMixed reads the instance types of a group and the number of on-demand instances.
func (r *groupReader) readMixed(m *awsMixed) {
	for i, x := range m.LaunchTemplate.Overrides {
		path := []string{"MixedInstancesPolicy", "LaunchTemplate", "Overrides", Index(i)}
		at := func(field string) []string { return append(slices.Clip(path), field) }
		switch {
		case x.Requirements != nil:
			r.fail(at("InstanceRequirements"),
				"types that are chosen by attributes are not simulated: list them as overrides of InstanceType")
			continue
		case x.InstanceType == "":
			r.fail(at("InstanceType"), "must be set")
		}
		if w := x.WeightedCapacity; w != "" && w != "1" {
			r.fail(at("WeightedCapacity"),
				"%q: the Cluster Autoscaler counts instances, and groups whose size counts weights are not simulated", w)
		}
		if x.LaunchTemplate != nil || x.Image != nil {
			r.warn("the launch template of override %d itself is not simulated", i)
		}
		r.own.Types = append(r.own.Types, x.InstanceType)
	}
	if len(m.LaunchTemplate.Overrides) == 0 {
		r.fail([]string{"MixedInstancesPolicy", "LaunchTemplate", "Overrides"}, "must name the instance types")
	}
	d := &m.Distribution
	at := func(field string) []string { return []string{"MixedInstancesPolicy", "InstancesDistribution", field} }
	r.own.OnDemandPercent = 100
	for _, x := range []struct {
		field string
		from  *int32
		most  int32
		to    *int
	}{
		{"OnDemandBaseCapacity", d.OnDemandBase, nodesMax, &r.own.OnDemandBase},
		{"OnDemandPercentageAboveBaseCapacity", d.OnDemandPercent, 100, &r.own.OnDemandPercent},
	} {
		if x.from == nil {
			continue
		}
		if why := outside(*x.from, 0, x.most); why != "" {
			r.fail(at(x.field), "%s", why)
		}
		*x.to = int(*x.from)
	}
	switch s := cmp.Or(d.OnDemandStrategy, "prioritized"); s {
	case "prioritized", "lowest-price":
		r.own.Prioritized = s == "prioritized"
	default:
		r.fail(at("OnDemandAllocationStrategy"), "%q is not prioritized or lowest-price", s)
	}
	r.readSpotStrategy(d, at)
}

// readSpotStrategy reads the allocation strategy of a mixed group for Spot instances.
func (r *groupReader) readSpotStrategy(d *awsDistribution, at func(field string) []string) {
	known := false
	if r.own.Spot, known = spotStrategies[cmp.Or(d.SpotStrategy, "lowest-price")]; !known {
		r.fail(at("SpotAllocationStrategy"), "%q is not one of %s", d.SpotStrategy,
			strings.Join(slices.Sorted(maps.Keys(spotStrategies)), ", "))
	}
	if n := d.SpotPools; n != nil && *n > 1 && r.own.Spot == LowestPrice {
		r.warn("SpotInstancePools %d is taken as 1: the cheapest market is used, and not several", *n)
	}
	if d.Segments != nil {
		r.fail(at("DistributionSegments"), "segments of a distribution are not simulated")
	}
	if d.SpotMaxPrice != "" {
		r.fail(at("SpotMaxPrice"), "%q: a maximum price for Spot only is not simulated", d.SpotMaxPrice)
	}
}

// keep adds the pool of the group to the scenario, and returns all errors.
func (r *groupReader) keep() []error {
	for _, t := range r.own.Types {
		if _, known := catalog.Lookup(policy.AWS, t); !known && t != "" {
			r.fail(nil, "the catalog does not know the instance type %q", t)
		}
	}
	if problems := validation.IsDNS1123Subdomain(strings.ToLower(r.pool.Name)); len(problems) > 0 {
		r.fail(nil, "the name %q is not a valid pool name: %s", r.pool.Name, problems[0])
	}
	r.pool.Spec.Markets.InstanceTypes = slices.Compact(slices.Sorted(slices.Values(r.own.Types)))
	r.pool.Default()
	base := r.pool.Pool()
	if r.own.OnDemandPercent > 0 || r.own.OnDemandBase > 0 {
		base.CapacityTypes = append(base.CapacityTypes, policy.OnDemand)
	}
	if r.own.OnDemandPercent < 100 {
		base.CapacityTypes = append(base.CapacityTypes, policy.Spot)
	}
	r.sc.pools = append(r.sc.pools, pool{name: r.pool.Name, doc: r.doc, base: base, capacity: &r.pool, group: &r.own})
	return r.errs
}
