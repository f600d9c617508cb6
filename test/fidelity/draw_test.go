package fidelity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/test/karpenter"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A drawer draws the manifests of a random day. What it draws depends on the seed and the
// version of Karpenter only. Published days are drawn from the code of the commit that their
// records name: a change here makes other days of the same seeds.
type drawer struct {
	*rand.Rand
	version  scenarios.KarpenterVersion
	duration time.Duration
	objects  []client.Object
	pools    []*karpv1.NodePool
	faults   []string
	capacity []string // the capacity types of the first NodePool
}

// The zones and instance types from which NodePools choose: those of the synthetic trace
// with up to 8 vCPU.
var (
	drawnZones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	drawnTypes = []string{
		"c5.2xlarge", "c5.large", "c5.xlarge", "c6i.2xlarge", "c6i.xlarge", "c7i.2xlarge", "c7i.xlarge", "m5.2xlarge", "m5.large", "m5.xlarge",
		"m5a.2xlarge", "m5a.xlarge", "m6i.2xlarge", "m6i.xlarge", "m7i.2xlarge", "m7i.xlarge", "r5.2xlarge", "r5.large", "r5.xlarge",
	}
)

// dedicated is the key of the taint and the label of the second NodePool.
const dedicated = "dedicated"

// drawDay returns the manifests of the day of a seed under a version of Karpenter.
func drawDay(seed uint64, version scenarios.KarpenterVersion) ([]byte, error) {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 0xda75)), version: version}
	d.duration = time.Duration(pick(d, 4, 5, 6)) * time.Minute
	d.nodePools()
	d.priorities()
	for i := range 2 + d.IntN(4) {
		d.workload(fmt.Sprintf("app-%d", i))
	}
	d.market()
	return d.manifests(seed)
}

func (d *drawer) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d *drawer, list ...T) T { return list[d.IntN(len(list))] }

// some returns a part of list that is not empty, in its order.
func some[T any](d *drawer, percent int, list []T) []T {
	var out []T
	for _, x := range list {
		if d.chance(percent) {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		out = append(out, pick(d, list...))
	}
	return out
}

// between returns a whole number of seconds of the day between two parts of it.
func (d *drawer) between(from, to float64) time.Duration {
	seconds := d.duration.Seconds()
	return time.Duration(seconds*from+d.Float64()*seconds*(to-from)) * time.Second
}

// nodePools draws a NodePool, and in some days another with a taint.
func (d *drawer) nodePools() {
	d.capacity = pick(d, []string{"spot"}, []string{"on-demand"}, []string{"on-demand"}, []string{"on-demand", "spot"},
		[]string{"on-demand", "spot"})
	d.nodePool("general")
	if d.chance(25) {
		p := d.nodePool(dedicated)
		p.Spec.Template.Labels = map[string]string{"team": dedicated}
		p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: dedicated, Value: "x",
			Effect: pick(d, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)}}
		weight := pick[int32](d, 1, 50)
		p.Spec.Weight = &weight
	}
}

func (d *drawer) nodePool(name string) *karpv1.NodePool {
	p := &karpv1.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
	t := &p.Spec.Template.Spec
	t.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: karpenter.NodeClass}
	in := func(key string, values []string) {
		t.Requirements = append(t.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: key,
			Operator: corev1.NodeSelectorOpIn, Values: values})
	}
	in(karpv1.CapacityTypeLabelKey, d.capacity)
	in(corev1.LabelInstanceTypeStable, some(d, pick(d, 25, 60, 100), drawnTypes))
	if d.chance(30) {
		in(corev1.LabelTopologyZone, some(d, 60, drawnZones))
	}
	t.ExpireAfter = karpv1.MustParseNillableDuration("Never")
	if d.chance(15) {
		t.ExpireAfter = karpv1.MustParseNillableDuration(pick(d, "150s", "200s"))
	}
	if d.chance(15) {
		p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse(pick(d, "17", "33", "49"))}
	}
	policies := []karpv1.ConsolidationPolicy{
		karpv1.ConsolidationPolicyWhenEmpty, karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized,
	}
	if d.version >= 14 {
		policies = append(policies, karpv1.ConsolidationPolicyBalanced)
	}
	p.Spec.Disruption = karpv1.Disruption{
		ConsolidationPolicy: pick(d, policies...),
		ConsolidateAfter:    karpv1.MustParseNillableDuration(pick(d, "0s", "15s", "30s", "30s", "60s")),
		Budgets:             []karpv1.Budget{{Nodes: pick(d, "10%", "20%", "50%", "100%", "1", "3")}},
	}
	if d.chance(20) {
		p.Spec.Disruption.Budgets = append(p.Spec.Disruption.Budgets, karpv1.Budget{
			Nodes: pick(d, "0", "1", "20%"), Reasons: []karpv1.DisruptionReason{pick(d, karpv1.DisruptionReasonEmpty,
				karpv1.DisruptionReasonUnderutilized)},
		})
	}
	d.pools = append(d.pools, p)
	d.objects = append(d.objects, p)
	return p
}

// The classes of priority, one of which does not preempt.
var priorities = []string{"high", "patient", "low"}

func (d *drawer) priorities() {
	never := corev1.PreemptNever
	for i, name := range priorities {
		c := &schedulingv1.PriorityClass{
			TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Value: []int32{1000, 500, -100}[i],
		}
		if name == "patient" {
			c.PreemptionPolicy = &never
		}
		d.objects = append(d.objects, c)
	}
}

// workload draws a Deployment, what its pods require, and how its replicas change.
func (d *drawer) workload(app string) {
	labels := map[string]string{"app": app}
	none := int32(0)
	x := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: app, Namespace: "default",
			Annotations: map[string]string{scenarios.AnnotationReplicas: d.replicas()}},
	}
	x.Spec.Replicas = &none
	x.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	t := &x.Spec.Template
	t.Labels = labels
	t.Annotations = map[string]string{testenv.StartupTime: pick(d, "5s", "10s", "10s", "20s")}
	if d.chance(8) {
		t.Annotations[karpv1.DoNotDisruptAnnotationKey] = "true"
	}
	if d.chance(15) {
		t.Spec.PriorityClassName = pick(d, priorities...)
	}
	t.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(pick(d, "200m", "400m", "600m", "700m", "1", "1500m")),
			corev1.ResourceMemory: resource.MustParse(pick(d, "256Mi", "1Gi", "1Gi", "2Gi", "4Gi")),
		}}}}
	d.constrain(&t.Spec, labels)
	if d.pools[len(d.pools)-1].Name == dedicated && d.chance(50) {
		t.Spec.Tolerations = []corev1.Toleration{{Key: dedicated, Operator: corev1.TolerationOpExists}}
		if d.chance(50) {
			t.Spec.NodeSelector = map[string]string{"team": dedicated}
		}
	}
	d.objects = append(d.objects, x)
	if d.chance(30) {
		d.disruptionBudget(app)
	}
}

// replicas draws a schedule: a start, then growth or shrinkage in up to three steps.
func (d *drawer) replicas() string {
	parts := []string{"+0s=0"}
	n := 2 + d.IntN(14)
	parts = append(parts, fmt.Sprintf("+%v=%d", 5*time.Second+d.between(0, 0.1), n))
	steps := d.IntN(4)
	for i := range steps {
		n = max(1, int(float64(n)*pick(d, 0.25, 0.4, 0.6, 1.4, 2)))
		from := 0.2 + 0.55*float64(i)/float64(steps)
		parts = append(parts, fmt.Sprintf("+%v=%d", d.between(from, from+0.5/float64(steps)), min(n, 24)))
	}
	return strings.Join(parts, " ")
}

// constrain draws where the pods may run.
func (d *drawer) constrain(s *corev1.PodSpec, labels map[string]string) {
	key := func() string { return pick(d, corev1.LabelTopologyZone, corev1.LabelHostname) }
	selector := &metav1.LabelSelector{MatchLabels: labels}
	if d.chance(35) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: pick[int32](d, 1, 1, 2), TopologyKey: key(), LabelSelector: selector,
			WhenUnsatisfiable: pick(d, corev1.DoNotSchedule, corev1.ScheduleAnyway),
		}}
	}
	s.Affinity = &corev1.Affinity{}
	switch term := (corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector}); {
	case d.chance(10):
		s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case d.chance(12):
		s.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: term}},
		}
	case d.chance(11):
		term.TopologyKey = corev1.LabelTopologyZone
		s.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	}
	switch {
	case d.chance(8):
		s.NodeSelector = map[string]string{corev1.LabelTopologyZone: pick(d, d.zones()...)}
	case d.chance(9):
		s.NodeSelector = map[string]string{karpv1.CapacityTypeLabelKey: pick(d, d.capacity...)}
	case d.chance(12):
		r := corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn,
			Values: []string{pick(d, drawnZones...)}}
		if d.chance(50) {
			r = corev1.NodeSelectorRequirement{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpNotIn,
				Values: some(d, 20, drawnTypes)}
		}
		s.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{r}}},
		}}
	}
	if *s.Affinity == (corev1.Affinity{}) {
		s.Affinity = nil
	}
}

// zones returns those in which the first NodePool may buy.
func (d *drawer) zones() []string {
	for _, r := range d.pools[0].Spec.Template.Spec.Requirements {
		if r.Key == corev1.LabelTopologyZone {
			return r.Values
		}
	}
	return drawnZones
}

func (d *drawer) disruptionBudget(app string) {
	b := &policyv1.PodDisruptionBudget{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1",
			Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Name: app, Namespace: "default"},
	}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	most := pick(d, intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("25%"))
	least := intstr.FromString(pick(d, "50%", "80%"))
	if d.chance(70) {
		b.Spec.MaxUnavailable = &most
	} else {
		b.Spec.MinAvailable = &least
	}
	d.objects = append(d.objects, b)
}

// market draws how prices move, what is reclaimed and what is refused.
func (d *drawer) market() {
	zone := func(percent int) string {
		if d.chance(percent) {
			return ", zone: " + pick(d, drawnZones...)
		}
		return ""
	}
	for range d.IntN(3) {
		d.faults = append(d.faults, fmt.Sprintf("{kind: price-ramp, at: %v, duration: %v, capacityType: %s%s, factor: %g}",
			d.between(0, 0.6), d.between(0.2, 0.6), pick(d, d.capacity...), zone(40), pick(d, 0.5, 1.5, 2, 4)))
	}
	if slices.Contains(d.capacity, "spot") {
		for range d.IntN(3) {
			d.faults = append(d.faults, fmt.Sprintf("{kind: squeeze, at: %v, duration: %v%s, share: %g}",
				d.between(0, 0.7), d.between(0.15, 0.35), zone(60), pick(d, 0.2, 0.5, 0.8)))
		}
	}
	if slices.Contains(d.capacity, "on-demand") && d.chance(20) {
		d.faults = append(d.faults, fmt.Sprintf("{kind: on-demand-refused, at: %v, duration: %v, zone: %s}",
			d.between(0, 0.5), d.between(0.15, 0.35), pick(d, drawnZones...)))
	}
}

// manifests writes what was drawn.
func (d *drawer) manifests(seed uint64) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: random-%d, annotations: {%s: %q}}\nspec:\n",
		seed, scenarios.AnnotationKarpenterVersion, d.version)
	fmt.Fprintf(&b, "  duration: %v\n  warmUp: 0s\n  market: {intensity: 0, slots: 500}\n", d.duration)
	if len(d.faults) > 0 {
		fmt.Fprintf(&b, "  faults:\n    - %s\n", strings.Join(d.faults, "\n    - "))
	}
	for _, o := range d.objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		var fields map[string]any
		if err := yaml.Unmarshal(text, &fields); err != nil {
			return nil, err
		}
		delete(fields, "status")
		if text, err = yaml.Marshal(prune(fields)); err != nil {
			return nil, err
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return []byte(b.String()), nil
}

// prune removes fields without a value, which typed objects write and people do not.
func prune(v any) any {
	fields, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, x := range fields {
		if x = prune(x); x == nil {
			delete(fields, k)
		} else if m, ok := x.(map[string]any); ok && len(m) == 0 {
			delete(fields, k)
		}
	}
	return fields
}
