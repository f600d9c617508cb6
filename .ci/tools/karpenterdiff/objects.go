package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"
)

// now is the instant of every state; creation times have whole seconds.
var now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func ago(seconds int64) metav1.Time {
	return metav1.NewTime(now.Add(-time.Duration(seconds) * time.Second))
}

func ptr[T any](x T) *T { return &x }

func init() {
	v1.WellKnownLabels.Insert(labelFamily, labelReservation)
	cloudprovider.ReservationIDLabel = labelReservation
}

// list returns a as a Kubernetes ResourceList, without pods, storage and GPUs where their
// number is 0.
func (a Amount) list() corev1.ResourceList {
	l := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(a.CPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(a.Memory<<20, resource.BinarySI),
	}
	if a.Pods > 0 {
		l[corev1.ResourcePods] = *resource.NewQuantity(a.Pods, resource.DecimalSI)
	}
	if a.Storage > 0 {
		l[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(a.Storage<<20, resource.BinarySI)
	}
	if a.GPUs > 0 {
		l[corev1.ResourceName(a.GPUResource)] = *resource.NewQuantity(a.GPUs, resource.DecimalSI)
	}
	return l
}

// labelReservation names a reservation, as providers of Karpenter do.
const labelReservation = "example.com/reservation"

// instanceType returns t with its offerings, as providers describe it: its zones and
// capacity types are those of available offerings.
func (t *Type) instanceType() *cloudprovider.InstanceType {
	var zones, capacities []string
	x := &cloudprovider.InstanceType{
		Name: t.Name, Capacity: t.capacity().list(),
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: Amount{CPU: reservedCPU, Memory: reservedMemory}.list()},
	}
	for _, o := range t.Offerings {
		of := &cloudprovider.Offering{
			Price: float64(o.Price) / 1e6, Available: o.Available, ReservationCapacity: o.Left,
			Requirements: scheduling.NewLabelRequirements(map[string]string{
				v1.CapacityTypeLabelKey: o.Capacity, corev1.LabelTopologyZone: o.Zone,
			}),
		}
		if o.Reservation == "" {
			of.Requirements.Add(scheduling.NewRequirement(labelReservation, corev1.NodeSelectorOpDoesNotExist))
		} else {
			of.Requirements.Add(scheduling.NewRequirement(labelReservation, corev1.NodeSelectorOpIn, o.Reservation))
		}
		x.Offerings = append(x.Offerings, of)
		if o.Available {
			zones, capacities = append(zones, o.Zone), append(capacities, o.Capacity)
		}
	}
	x.Requirements = scheduling.NewRequirements(
		scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, t.Name),
		scheduling.NewRequirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, t.Arch),
		scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
		scheduling.NewRequirement(corev1.LabelTopologyRegion, corev1.NodeSelectorOpIn, region),
		scheduling.NewRequirement(corev1.LabelWindowsBuild, corev1.NodeSelectorOpDoesNotExist),
		scheduling.NewRequirement(labelFamily, corev1.NodeSelectorOpIn, t.Family),
		scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...),
		scheduling.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacities...),
	)
	return x
}

func taintsOf(list []Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range list {
		out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

func conditions(list ...string) []status.Condition {
	var out []status.Condition
	for _, c := range list {
		out = append(out, status.Condition{Type: c, Status: metav1.ConditionTrue, Reason: c,
			LastTransitionTime: metav1.NewTime(now)})
	}
	return out
}

func (p *Pool) object() *v1.NodePool {
	x := &v1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: types.UID("pool-" + p.Name), CreationTimestamp: ago(100_000)},
		Status:     v1.NodePoolStatus{Conditions: conditions(status.ConditionReady, "NodeClassReady", "ValidationSucceeded")},
	}
	if p.Weight > 0 {
		x.Spec.Weight = ptr(p.Weight)
	}
	limits := v1.Limits{}
	for name, n := range map[corev1.ResourceName]int64{
		corev1.ResourceCPU: p.CPUMax, corev1.ResourceMemory: p.MemoryMax << 30, "nodes": p.NodesMax, gpuResource: p.GPUMax,
	} {
		if n > 0 {
			limits[name] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	if len(limits) > 0 {
		x.Spec.Limits = limits
	}
	x.Spec.Disruption = v1.Disruption{ConsolidationPolicy: v1.ConsolidationPolicy(p.Policy),
		ConsolidateAfter: v1.MustParseNillableDuration("Never")}
	if p.ConsolidateAfter >= 0 {
		x.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration(fmt.Sprintf("%ds", p.ConsolidateAfter))
	}
	for _, b := range p.Budgets {
		budget := v1.Budget{Nodes: b.Nodes}
		for _, r := range b.Reasons {
			budget.Reasons = append(budget.Reasons, v1.DisruptionReason(r))
		}
		if b.Schedule != "" {
			budget.Schedule, budget.Duration = &b.Schedule, &metav1.Duration{Duration: time.Duration(b.Duration) * time.Second}
		}
		x.Spec.Disruption.Budgets = append(x.Spec.Disruption.Budgets, budget)
	}
	t := &x.Spec.Template
	t.Labels = p.Labels
	t.Spec.Taints, t.Spec.StartupTaints = taintsOf(p.Taints), taintsOf(p.StartupTaints)
	if p.TerminationGrace > 0 {
		t.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Duration(p.TerminationGrace) * time.Second}
	}
	t.Spec.NodeClassRef = nodeClassRef()
	t.Spec.ExpireAfter = v1.MustParseNillableDuration("Never")
	if p.ExpireAfter > 0 {
		t.Spec.ExpireAfter = v1.MustParseNillableDuration(fmt.Sprintf("%ds", p.ExpireAfter))
	}
	for _, r := range p.Requirements {
		req := v1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Op),
			Values: r.Values}
		if r.MinValues > 0 {
			req.MinValues = ptr(r.MinValues)
		}
		t.Spec.Requirements = append(t.Spec.Requirements, req)
	}
	return x
}

func nodeClassRef() *v1.NodeClassReference {
	return &v1.NodeClassReference{Group: v1alpha1.Group, Kind: "TestNodeClass", Name: "default"}
}

// providerID is that of a node; claims of launching nodes have one too.
func (n *Node) providerID() string { return "fake://" + n.Name }

// claim returns the NodeClaim of a node.
func (s *State) claim(n *Node) *v1.NodeClaim {
	p, t := s.pool(n.Pool), s.typ(n.Type)
	labels := s.labelsOn(n)
	pool := p.object()
	c := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: types.UID("claim-" + n.Name), Labels: labels, CreationTimestamp: ago(n.Age),
			Finalizers: []string{v1.TerminationFinalizer},
			Annotations: map[string]string{
				v1.NodePoolHashAnnotationKey: pool.Hash(), v1.NodePoolHashVersionAnnotationKey: v1.NodePoolHashVersion,
			},
		},
		Spec: v1.NodeClaimSpec{
			Taints: taintsOf(p.Taints), StartupTaints: taintsOf(p.StartupTaints), NodeClassRef: nodeClassRef(),
			ExpireAfter: pool.Spec.Template.Spec.ExpireAfter, TerminationGracePeriod: pool.Spec.Template.Spec.TerminationGracePeriod,
		},
		Status: v1.NodeClaimStatus{ProviderID: n.providerID(), Capacity: t.capacity().list(),
			Allocatable: t.allocatable().list()},
	}
	for k, v := range labels {
		c.Spec.Requirements = append(c.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
			Key: k, Operator: corev1.NodeSelectorOpIn, Values: []string{v},
		})
	}
	slices.SortFunc(c.Spec.Requirements, func(a, b v1.NodeSelectorRequirementWithMinValues) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	if n.DoNotDisrupt {
		c.Annotations[v1.DoNotDisruptAnnotationKey] = "true"
	}
	if n.LastPodEvent > 0 {
		c.Status.LastPodEventTime = ago(n.LastPodEvent)
	}
	list := []string{v1.ConditionTypeLaunched}
	if n.Phase != "launching" {
		c.Status.NodeName = n.Name
		list = append(list, v1.ConditionTypeRegistered)
	}
	if n.Phase == "initialized" {
		list = append(list, v1.ConditionTypeInitialized, status.ConditionReady)
	}
	if n.Consolidable {
		list = append(list, v1.ConditionTypeConsolidatable)
	}
	if n.Drifted {
		list = append(list, v1.ConditionTypeDrifted)
	}
	c.Status.Conditions = conditions(list...)
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == v1.ConditionTypeInitialized {
			c.Status.Conditions[i].LastTransitionTime = ago(n.Initialized)
		}
	}
	return c
}

// object returns the Node of a node that has joined.
func (s *State) node(n *Node) *corev1.Node {
	t := s.typ(n.Type)
	x := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: types.UID("node-" + n.Name), Labels: s.labelsOn(n), CreationTimestamp: ago(n.Age - 20),
			Finalizers: []string{v1.TerminationFinalizer}, Annotations: map[string]string{},
		},
		Spec: corev1.NodeSpec{ProviderID: n.providerID(), Taints: taintsOf(s.taintsOn(n))},
		Status: corev1.NodeStatus{
			Capacity: t.capacity().list(), Allocatable: t.allocatable().list(),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	x.Labels[corev1.LabelHostname], x.Labels[v1.NodeRegisteredLabelKey] = n.Name, "true"
	if n.Phase == "initialized" {
		x.Labels[v1.NodeInitializedLabelKey] = "true"
	}
	if n.Phase != "initialized" || n.NotReady {
		x.Spec.Taints = append(x.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady,
			Effect: corev1.TaintEffectNoSchedule})
		x.Status.Conditions[0].Status = corev1.ConditionFalse
	}
	if n.DoNotDisrupt {
		x.Annotations[v1.DoNotDisruptAnnotationKey] = "true"
	}
	return x
}

func requirementsOf(list []Requirement) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	for _, r := range list {
		out = append(out, corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Op),
			Values: r.Values})
	}
	return out
}

func selector(match map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: match}
}

func (w *Workload) affinity() *corev1.Affinity {
	a := &corev1.Affinity{}
	if len(w.Required)+len(w.Preferred) > 0 {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	for _, term := range w.Required {
		if a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		}
		r := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		r.NodeSelectorTerms = append(r.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: requirementsOf(term)})
	}
	for _, p := range w.Preferred {
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: p.Weight,
				Preference: corev1.NodeSelectorTerm{MatchExpressions: requirementsOf(p.Term)}})
	}
	for _, t := range w.Affinity {
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		addTerm(t, &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			&a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, t := range w.Anti {
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		addTerm(t, &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			&a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return a
}

func addTerm(t Term, required *[]corev1.PodAffinityTerm, preferred *[]corev1.WeightedPodAffinityTerm) {
	term := corev1.PodAffinityTerm{TopologyKey: t.Key, LabelSelector: selector(t.Match)}
	if t.Weight == 0 {
		*required = append(*required, term)
	} else {
		*preferred = append(*preferred, corev1.WeightedPodAffinityTerm{Weight: t.Weight, PodAffinityTerm: term})
	}
}

func (w *Workload) spec() corev1.PodSpec {
	c := corev1.Container{Name: "main", Image: "image",
		Resources: corev1.ResourceRequirements{Requests: w.requests().list()}}
	for _, p := range w.HostPorts {
		c.Ports = append(c.Ports, corev1.ContainerPort{HostIP: p.IP, HostPort: p.Port, ContainerPort: p.Port,
			Protocol: corev1.Protocol(p.Protocol)})
	}
	spec := corev1.PodSpec{Containers: []corev1.Container{c}, NodeSelector: w.Selector, Affinity: w.affinity(),
		Priority: ptr(w.Priority)}
	for _, t := range w.Tolerations {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: t.Key, Operator: corev1.TolerationOperator(t.Op), Value: t.Value, Effect: corev1.TaintEffect(t.Effect),
		})
	}
	for _, x := range w.Spread {
		c := corev1.TopologySpreadConstraint{
			TopologyKey: x.Key, MaxSkew: x.MaxSkew, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector(x.Match),
		}
		if x.Soft {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		}
		if x.MinDomains > 0 {
			c.MinDomains = ptr(x.MinDomains)
		}
		if x.IgnoreAffinity {
			c.NodeAffinityPolicy = ptr(corev1.NodeInclusionPolicyIgnore)
		}
		if x.HonorTaints {
			c.NodeTaintsPolicy = ptr(corev1.NodeInclusionPolicyHonor)
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
	}
	return spec
}

// podUID returns a UID by which pods of the same age sort in the order of the state.
func podUID(i int) types.UID { return types.UID(fmt.Sprintf("pod-%05d", i)) }

func podIndex(uid types.UID) int {
	i, err := strconv.Atoi(string(uid[len("pod-"):]))
	if err != nil {
		panic(fmt.Sprintf("pod %q is none of a state", uid))
	}
	return i
}

func (s *State) pod(i int) *corev1.Pod {
	p := &s.Pods[i]
	w := &s.Workloads[p.Workload]
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: w.Name,
		UID: types.UID("rs-" + w.Name), Controller: ptr(true)}
	if w.Daemon {
		owner.Kind = "DaemonSet"
	}
	x := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-%05d", w.Name, i), UID: podUID(i), Labels: w.Labels,
			CreationTimestamp: ago(p.Age), OwnerReferences: []metav1.OwnerReference{owner}, Annotations: map[string]string{},
		},
		Spec:   w.spec(),
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	x.Spec.NodeName, x.Spec.Volumes = p.Node, s.volumesOf(i)
	if p.Node == "" {
		x.Status.Phase = corev1.PodPending
		x.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
	}
	if p.DeletionCost != 0 {
		x.Annotations[corev1.PodDeletionCost] = strconv.Itoa(int(p.DeletionCost))
	}
	if p.DoNotDisrupt {
		x.Annotations[v1.DoNotDisruptAnnotationKey] = "true"
	}
	if p.Terminating {
		x.DeletionTimestamp, x.DeletionGracePeriodSeconds = ptr(ago(-20)), ptr[int64](30)
		x.Finalizers = []string{"example.com/hold"} // the client of tests keeps no deleted object without one
	}
	return x
}

// objects returns all that the API server holds.
func (s *State) objects() []client.Object {
	list := []client.Object{&v1alpha1.TestNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	for i := range s.Pools {
		list = append(list, s.Pools[i].object())
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		list = append(list, s.claim(n))
		if n.Phase != "launching" {
			list = append(list, s.node(n), s.csiNode(n))
		}
	}
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.Daemon {
			list = append(list, &appsv1.DaemonSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.Name, UID: types.UID("ds-" + w.Name)},
				Spec: appsv1.DaemonSetSpec{
					Selector: selector(w.Labels),
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.Labels}, Spec: w.spec()},
				},
			})
		}
	}
	for i := range s.Pods {
		list = append(list, s.pod(i))
	}
	list = append(list, s.claims()...)
	for i := range s.PDBs {
		b := &s.PDBs[i]
		list = append(list, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.Name, Generation: 1},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector(b.Match)},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: b.Allowed, ObservedGeneration: 1},
		})
	}
	return list
}
