package scenarios

import (
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/karpenter"
)

// A nodePool is a NodePool of Karpenter.
type nodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              karpenter.NodePoolSpec `json:"spec"`
}

// A NodePool contains the settings of a Karpenter NodePool that policy.Pool has no field for. They
// apply to the nodes that Karpenter buys by itself.
type NodePool struct {
	// Weight is its priority; pools with a greater weight are tried first.
	Weight int32

	// Requirements are the requirements on node labels except the capacity type, which is in
	// policy.Pool.CapacityTypes.
	Requirements []policy.Requirement

	// Choices are the user-defined labels of which each node has one value.
	Choices []LabelChoice

	// MinValues are the minimum numbers of label values that a launch must allow.
	MinValues []MinValues

	// NodesMax is the maximum number of nodes, 0 for no limit.
	NodesMax int

	// Static reports that Karpenter maintains Replicas nodes regardless of pods. Policies do not
	// steer such a pool.
	Static   bool
	Replicas int

	// Reserved are the markets of capacity reservations, which it buys first. OnlyReserved reports
	// that it buys nothing else. Only Karpenter launches in these markets.
	Reserved     []policy.MarketID
	OnlyReserved bool

	// Prices are the price adjustments of NodeOverlays, by market.
	Prices map[policy.MarketID]PriceChange

	// DoNotDisrupt reports that its nodes are never disrupted voluntarily.
	DoNotDisrupt bool

	// TerminationGrace is the maximum time from the deletion of a node to its termination,
	// regardless of its pods; 0 for no limit.
	TerminationGrace time.Duration
}

// A MinValues is a minimum number of values of a label.
type MinValues struct {
	Key string
	N   int
}

// An ownPool contains the settings of a NodePool before it is bound to prices.
type ownPool struct {
	NodePool

	ref   karpenter.NodeClassReference
	class *nodeClass // nil for nodes of other providers than AWS

	// gpuNone reports that it may have no accelerators of the kind gpuLimited. gpuLimited is the
	// kind of accelerator whose number is limited.
	gpuNone    bool
	gpuLimited string

	asksReserved bool // requires the capacity type reserved explicitly

	choices []LabelChoice // before they are restricted to the values in pods
}

// refPath returns the path of a field of the node class reference.
func refPath(field string) []string {
	return []string{"spec", "template", "spec", "nodeClassRef", field}
}

// readNodePool reads a NodePool as a pool.
func (sc *Scenario) readNodePool(doc *document, o *nodePool) []error {
	r := &poolReader{sc: sc, doc: doc, spec: &o.Spec, name: o.Name, own: &ownPool{}}
	t := &o.Spec.Template
	p := v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Spec: v1alpha1.CapacityPoolSpec{
		Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{}}, Mode: v1alpha1.ModeActive,
		Template: v1alpha1.NodeTemplate{Labels: maps.Clone(t.Labels), Taints: t.Spec.Taints},
	}}
	p.Default()
	r.readRef()
	r.readRequirements(&p.Spec.Template)
	if err := o.Spec.Template.Validate(); err != nil {
		r.fail([]string{"template"}, "%v", err)
	}
	r.pool = p.Pool()
	r.pool.CapacityTypes = r.capacityTypes()
	r.readTemplate()
	r.readDisruption()
	r.readLimits()
	if _, old := o.Annotations[kubeletAnnotation]; old {
		r.sc.warn("NodePool %s: the annotation %s has no effect since Karpenter 1.1: the kubelet is as spec.kubelet of the EC2NodeClass states", o.Name, kubeletAnnotation)
	}
	r.readReplicas()
	if w := o.Spec.Weight; w != nil {
		if r.own.Weight = *w; *w < 1 || *w > 100 {
			r.fail([]string{"weight"}, "%d is not from 1 to 100", *w)
		}
	}
	sc.pools = append(sc.pools, pool{name: o.Name, doc: doc, base: r.pool, own: r.own})
	return r.errs
}

// kubeletAnnotation is the annotation in which Karpenter 1.0 stores the kubelet settings of a
// v1beta1 NodePool.
const kubeletAnnotation = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"

// A poolReader reads one NodePool.
type poolReader struct {
	sc   *Scenario
	doc  *document
	spec *karpenter.NodePoolSpec
	name string
	own  *ownPool
	pool policy.Pool
	errs []error
}

// fail adds an error about a field below spec.
func (r *poolReader) fail(path []string, format string, args ...any) {
	r.errs = append(r.errs, r.doc.problem(append([]string{"spec"}, path...), format, args...))
}

// classGroups maps the supported kinds of node class to their API group.
var classGroups = map[string]string{"EC2NodeClass": "karpenter.k8s.aws", classAuto: groupAuto,
	classAKS: "karpenter.azure.com", classGCE: "karpenter.k8s.gcp", "KWOKNodeClass": "karpenter.kwok.sh"}

// The node classes of Azure and Google Cloud. Their settings are not simulated: nodes have the
// disk and the pod limit of the catalog.
const (
	classAKS = "AKSNodeClass"
	classGCE = "GCENodeClass"
)

// readRef reads the node class reference.
func (r *poolReader) readRef() {
	ref := r.spec.Template.Spec.NodeClassRef
	if ref == nil {
		r.fail(refPath("")[1:4], "must be set")
		return
	}
	r.own.ref = *ref
	switch group, known := classGroups[ref.Kind]; {
	case !known:
		r.fail(refPath("kind")[1:],
			"nodes of kind %q are not simulated; those of an EC2NodeClass, a NodeClass of EKS Auto Mode, an AKSNodeClass, "+
				"a GCENodeClass or a KWOKNodeClass are", ref.Kind)
	case ref.Group != group:
		r.fail(refPath("group")[1:], "%q of kind %s, want %q", ref.Group, ref.Kind, group)
	case ref.Name == "":
		r.fail(refPath("name")[1:], "must be set")
	}
}

// readTemplate reads the fields of the template other than requirements, labels and taints.
func (r *poolReader) readTemplate() {
	t := &r.spec.Template
	if len(t.Spec.StartupTaints) > 0 {
		r.sc.warn("NodePool %s: startupTaints: nodes are taken to lose them as they are initialized", r.name)
	}
	for _, key := range slices.Sorted(maps.Keys(t.Annotations)) {
		if key == karpenter.DoNotDisrupt {
			if r.own.DoNotDisrupt = t.Annotations[key] == "true"; !r.own.DoNotDisrupt && t.Annotations[key] != "false" {
				r.sc.warn("NodePool %s: %s: %q has no effect on nodes: true has", r.name, key, t.Annotations[key])
			}
		} else {
			r.sc.warn("NodePool %s: the annotation %s is not simulated", r.name, key)
		}
	}
	if d := t.Spec.TerminationGracePeriod; d != nil {
		if r.own.TerminationGrace = d.Duration; d.Duration <= 0 {
			r.fail([]string{"template", "spec", "terminationGracePeriod"}, "%v is not above 0", d.Duration)
		}
	}
	d, stated := r.duration(t.Spec.ExpireAfter, "template", "spec", "expireAfter")
	if stated {
		r.pool.ExpireAfter = d
	}
	r.limitLifetime(stated)
}

// duration returns the duration at path, 0 for Never, and whether it is stated.
func (r *poolReader) duration(d karpenter.NillableDuration, path ...string) (time.Duration, bool) {
	switch {
	case r.doc.at(append([]string{"spec"}, path...)) == nil:
		return 0, false
	case d.Duration == nil:
		return 0, true
	case *d.Duration < 0:
		r.fail(path, "%v is negative", *d.Duration)
	}
	return *d.Duration, true
}

var consolidationPolicies = map[karpenter.ConsolidationPolicy]policy.Consolidation{
	"":                                 policy.WhenEmptyOrUnderutilized,
	karpenter.WhenEmpty:                policy.WhenEmpty,
	karpenter.WhenEmptyOrUnderutilized: policy.WhenEmptyOrUnderutilized,
	karpenter.Balanced:                 policy.Balanced,
}

// readDisruption reads the consolidation settings and the disruption budgets.
func (r *poolReader) readDisruption() {
	d := &r.spec.Disruption
	known := false
	if r.pool.Consolidation, known = consolidationPolicies[d.ConsolidationPolicy]; !known {
		r.fail([]string{"disruption", "consolidationPolicy"}, "%q is not WhenEmpty, WhenEmptyOrUnderutilized or Balanced",
			d.ConsolidationPolicy)
	}
	after, stated := r.duration(d.ConsolidateAfter, "disruption", "consolidateAfter")
	if r.pool.ConsolidateAfter = after; stated && d.ConsolidateAfter.Duration == nil {
		r.pool.Consolidation = policy.ConsolidateNever
	}
	if d.Budgets == nil {
		return // the default, a tenth, is the same as that of a CapacityPool
	}
	r.pool.Budgets = nil
	for i := range d.Budgets {
		r.readDisruptionBudget(&d.Budgets[i], []string{"disruption", "budgets", Index(i)})
	}
}

// disruptionBudgetNodes matches the numbers of nodes that Karpenter accepts in a disruption budget.
var disruptionBudgetNodes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]{1,9})$`) })

var disruptionReasons = map[karpenter.DisruptionReason]policy.DisruptionReason{
	karpenter.Underutilized: policy.Underutilized, karpenter.Empty: policy.Empty, karpenter.Drifted: policy.Drifted,
}

func (r *poolReader) readDisruptionBudget(b *karpenter.Budget, path []string) {
	at := func(field string) []string { return append(slices.Clip(path), field) }
	if !disruptionBudgetNodes().MatchString(b.Nodes) {
		r.fail(at("nodes"), "%q is not a number of nodes, nor a percentage up to 100%%", b.Nodes)
		return
	}
	nodes := intstr.Parse(b.Nodes)
	out := policy.DisruptionBudget{Nodes: v1alpha1.Quantity(&nodes), Active: true}
	for i, reason := range b.Reasons {
		x, known := disruptionReasons[reason]
		if !known {
			r.fail(append(at("reasons"), Index(i)), "%q is not Underutilized, Empty or Drifted", reason)
		}
		out.Reasons = append(out.Reasons, x)
	}
	if b.Reasons != nil && len(b.Reasons) == 0 {
		r.sc.warn("NodePool %s: spec.%s has no effect: its list of reasons is empty", r.name, joinPath(path))
		return
	}
	switch {
	case b.Schedule == nil && b.Duration == nil:
	case b.Schedule == nil || b.Duration == nil:
		r.fail(path, "schedule and duration must be set together")
	default:
		out.Schedule, out.Duration, out.Active = *b.Schedule, b.Duration.Duration, false
		if _, err := cron.ParseStandard(out.Schedule); err != nil {
			r.fail(at("schedule"), "%q is not a schedule: %v", out.Schedule, err)
		}
		if out.Duration <= 0 {
			r.fail(at("duration"), "%v is not above 0", out.Duration)
		}
	}
	r.pool.Budgets = append(r.pool.Budgets, out)
}

// readLimits reads the limits of the pool. A limit of 0 becomes the smallest positive amount, which
// no node fits in.
func (r *poolReader) readLimits() {
	l := &r.pool.Limits
	for _, name := range slices.Sorted(maps.Keys(r.spec.Limits)) {
		q, path := r.spec.Limits[name], []string{"limits", string(name)}
		if q.Sign() < 0 {
			r.fail(path, "%s is negative", q.String())
			continue
		}
		switch name {
		case corev1.ResourceCPU:
			l.CPU = max(1, q.MilliValue())
		case corev1.ResourceMemory:
			l.Memory = max(1, q.Value())
		case "nodes":
			if r.own.NodesMax = int(q.Value()); q.IsZero() {
				l.CPU = 1
			}
		case "nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi":
			if r.own.gpuLimited != "" {
				r.fail(path, "there is also a limit on %s, and only one kind of accelerator can be limited", r.own.gpuLimited)
			}
			r.own.gpuLimited, r.own.gpuNone, l.GPU = string(name), q.IsZero(), q.Value()
		default:
			r.fail(path, "limits on %s are not simulated; those on cpu, memory, nodes and one kind of accelerator are", name)
		}
	}
}

// readReplicas reads the number of nodes of a static NodePool. Karpenter ignores the consolidation
// settings of such a pool.
func (r *poolReader) readReplicas() {
	n := r.spec.Replicas
	switch {
	case n == nil:
		return
	case *n < 0 || *n > podsMax:
		r.fail([]string{"replicas"}, "%d is not from 0 to %d", *n, podsMax)
		return
	case r.spec.Weight != nil:
		r.fail([]string{"weight"}, "must not be set together with replicas")
	}
	for _, name := range slices.Sorted(maps.Keys(r.spec.Limits)) {
		if name != "nodes" {
			r.fail([]string{"limits", string(name)}, "only a limit on nodes may be set together with replicas")
		}
	}
	r.own.Static, r.own.Replicas = true, int(*n)
	if limit := r.own.NodesMax; limit > 0 && limit < r.own.Replicas {
		r.sc.warn("NodePool %s: limits.nodes allow %d of its %d replicas", r.name, limit, r.own.Replicas)
	}
	r.pool.Mode, r.pool.Consolidation = policy.ModeOff, policy.ConsolidateNever
}

// capacityTypes returns the capacity types that the NodePool buys by itself, ascending. A NodePool
// without a requirement buys all of them: reserved capacity while there is any, then Spot
// (getCapacityType in instance.go).
func (r *poolReader) capacityTypes() []policy.CapacityType {
	var types []policy.CapacityType
	for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot, policy.Reserved} {
		if !slices.ContainsFunc(r.spec.Template.Spec.Requirements, func(q karpenter.Requirement) bool {
			return q.Key == karpenter.LabelCapacityType && !requirementOf(&q).MetBy(c.String(), true)
		}) {
			types = append(types, c)
		}
	}
	if len(types) == 0 {
		r.fail([]string{"template", "spec", "requirements"}, "%s allows neither spot nor on-demand nor reserved",
			karpenter.LabelCapacityType)
	}
	return types
}

// checkPoolNames returns errors for pools with the same name.
func (sc *Scenario) checkPoolNames() []error {
	var errs []error
	first := map[string]*document{}
	for i := range sc.pools {
		p := &sc.pools[i]
		if d := first[p.name]; d != nil {
			errs = append(errs, p.doc.problem([]string{"metadata", "name"},
				"%s is also the name of a %s, on line %d: pools are identified by name",
				p.name, d.kind(), d.node.Line))
			continue
		}
		first[p.name] = p.doc
	}
	return errs
}
