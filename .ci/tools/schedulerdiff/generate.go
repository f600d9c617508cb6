package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	labelTier       = "tier"
	labelGeneration = "generation"
	labelApp        = "app"
	labelVersion    = "version"
	driver          = "ebs.csi.aws.com"
)

var (
	zones    = []string{"zone-a", "zone-b", "zone-c"}
	apps     = []string{"web", "api", "cache", "batch"}
	versions = []string{"v1", "v2"}
	spaces   = []string{"default", "team"}
)

// A generator draws a cluster. Few values of everything make ties and conflicts
// frequent.
type generator struct {
	*rand.Rand
	st *state

	// rare is the factor by which constraints are rarer. Where they are rare, pods fail for
	// lack of free capacity and priority decides.
	rare int
}

func generate(seed uint64) *state {
	g := &generator{rand.New(rand.NewPCG(seed, 0x5eed)), &state{Seed: seed}, 1}
	if g.one(2) {
		g.rare = 4
	}
	for _, name := range spaces {
		g.st.Namespaces = append(g.st.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"kubernetes.io/metadata.name": name, "team": name[:1]},
		}})
	}
	g.classes()
	for i := range 2 + g.IntN(g.sizes()) {
		g.node(i)
	}
	for i := range 2 + g.IntN(8) {
		g.workload(i)
	}
	if g.one(4) {
		g.daemons()
	}
	for i := range g.IntN(3) {
		g.service(i)
	}
	for i := range g.IntN(4) {
		g.budget(i)
	}
	g.place()
	g.steps()
	return g.st
}

// sizes returns the limit of the number of nodes: mostly small clusters, where
// constraints bind.
func (g *generator) sizes() int { return []int{4, 10, 10, 25}[g.IntN(4)] }

// seldom is true once in n times, and less often where constraints are rare.
func (g *generator) seldom(n int) bool { return g.one(n * g.rare) }

// one is true once in n times.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

func (g *generator) uid() types.UID { return types.UID(fmt.Sprintf("%016x", g.Uint64())) }

func (g *generator) classes() {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	for _, name := range []string{"block", "file"} {
		g.st.StorageClasses = append(g.st.StorageClasses, storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver, VolumeBindingMode: &wait,
		})
	}
}

func (g *generator) node(i int) {
	name := fmt.Sprintf("node-%02d", i)
	zone := pick(g, zones)
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelArchStable: "amd64",
		labelTier: pick(g, []string{"gold", "silver"}), labelGeneration: fmt.Sprint(3 + g.IntN(5)),
	}
	if !g.one(12) {
		labels[corev1.LabelTopologyZone] = zone
	}
	size := int64(1 + g.IntN(4))
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: g.uid(), Labels: labels},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:              *resource.NewMilliQuantity(size*2000-80, resource.DecimalSI),
				corev1.ResourceMemory:           *resource.NewQuantity(size*int64(2+2*g.IntN(4))<<30-(300<<20), resource.BinarySI),
				corev1.ResourceEphemeralStorage: *resource.NewQuantity(20<<30, resource.BinarySI),
				corev1.ResourcePods:             *resource.NewQuantity(int64(4+g.IntN(30)), resource.DecimalSI),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if g.one(6) {
		n.Status.Allocatable["nvidia.com/gpu"] = *resource.NewQuantity(int64(1+g.IntN(4)), resource.DecimalSI)
	}
	for range g.IntN(3) {
		if g.seldom(2) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
				Key: fmt.Sprintf("taint-%d", len(n.Spec.Taints)), Value: pick(g, []string{"a", "b"}),
				Effect: pick(g, []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
					corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}),
			})
		}
	}
	n.Status.Capacity = n.Status.Allocatable
	g.st.Nodes = append(g.st.Nodes, n)
	g.st.CSINodes = append(g.st.CSINodes, storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(1 + g.IntN(6)))},
		}}},
	})
}

// A workload is what its pods have in common.
func (g *generator) workload(i int) {
	name := fmt.Sprintf("w%d", i)
	space := pick(g, []string{"default", "default", "default", "team"})
	labels := map[string]string{labelApp: pick(g, apps), labelVersion: pick(g, versions), "pod-template-hash": name}
	if g.one(10) {
		labels = nil
	}
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Labels: labels}}
	g.resources(&p.Spec)
	g.selection(&p.Spec)
	g.topology(&p.Spec, labels)
	p.Spec.SchedulerName = corev1.DefaultSchedulerName
	p.Spec.Priority = ptr.To(pick(g, []int32{0, 0, 0, 0, 10, 10, 100, 1000, -5}))
	if g.one(6) {
		p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	}
	p.OwnerReferences = g.owner(name, space, labels)
	shared := g.volumeKind()
	for k := range 1 + g.IntN(9) {
		pod := *p.DeepCopy()
		pod.Name = fmt.Sprintf("%s-%d", name, k)
		g.volumes(&pod, shared)
		g.st.Pods = append(g.st.Pods, g.stamp(pod))
	}
}

// stamp gives a pod what the API server does.
func (g *generator) stamp(p corev1.Pod) corev1.Pod {
	p.UID = g.uid()
	p.CreationTimestamp = metav1.Unix(1_000_000+int64(g.IntN(600)), 0)
	return p
}

func (g *generator) owner(name, space string, labels map[string]string) []metav1.OwnerReference {
	ref := func(version, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name),
			Controller: ptr.To(true)}}
	}
	meta := metav1.ObjectMeta{Name: name, Namespace: space, UID: types.UID(name)}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	switch kind := g.IntN(5); {
	case kind < 2 && labels != nil:
		g.st.ReplicaSets = append(g.st.ReplicaSets, appsv1.ReplicaSet{ObjectMeta: meta,
			Spec: appsv1.ReplicaSetSpec{Selector: selector}})
		return ref("apps/v1", "ReplicaSet")
	case kind == 2 && labels != nil:
		g.st.StatefulSets = append(g.st.StatefulSets, appsv1.StatefulSet{ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Selector: selector}})
		return ref("apps/v1", "StatefulSet")
	case kind == 3:
		return ref("batch/v1", "Job")
	}
	return nil
}

func (g *generator) resources(s *corev1.PodSpec) {
	container := func(name string, asks bool) corev1.Container {
		c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
		if asks {
			c.Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(pick(g,
				[]int{50, 100, 250, 500, 900, 1500, 3000})), resource.DecimalSI)
			c.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(int64(pick(g,
				[]int{32, 128, 256, 512, 1024, 3000}))<<20, resource.BinarySI)
		}
		return c
	}
	asks := !g.one(8)
	s.Containers = []corev1.Container{container("main", asks)}
	if g.one(6) {
		s.Containers = append(s.Containers, container("side", asks && !g.one(3)))
	}
	if asks && g.one(8) {
		s.InitContainers = []corev1.Container{container("init", true)}
		if g.one(2) {
			s.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
	}
	requests := s.Containers[0].Resources.Requests
	switch {
	case g.one(10):
		requests["nvidia.com/gpu"] = *resource.NewQuantity(int64(1+g.IntN(2)), resource.DecimalSI)
	case g.one(10):
		requests[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(1+g.IntN(8))<<30, resource.BinarySI)
	case g.one(12):
		delete(requests, corev1.ResourceMemory)
	case g.one(12):
		delete(requests, corev1.ResourceCPU)
	}
	if g.one(8) {
		s.Containers[0].Ports = []corev1.ContainerPort{{
			HostPort: int32(8080 + g.IntN(2)), ContainerPort: 80, HostIP: pick(g, []string{"", "", "127.0.0.1", "0.0.0.0"}),
			Protocol: pick(g, []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP}),
		}}
		if len(s.InitContainers) > 0 && g.one(2) {
			s.InitContainers[0].Ports = []corev1.ContainerPort{{HostPort: 8081, ContainerPort: 81, Protocol: corev1.ProtocolTCP}}
		}
	}
}

// daemons adds a DaemonSet's pod for every node, as its controller makes them.
func (g *generator) daemons() {
	var shape corev1.PodSpec
	g.resources(&shape)
	high := g.one(2)
	for i := range g.st.Nodes {
		p := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("daemon-%d", i), Namespace: "default",
				Labels: map[string]string{labelApp: "daemon"}},
			Spec: *shape.DeepCopy(),
		}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "daemon",
			UID: "daemon", Controller: ptr.To(true)}}
		p.Spec.SchedulerName = corev1.DefaultSchedulerName
		p.Spec.Priority = ptr.To(int32(0))
		if high {
			p.Spec.Priority = ptr.To(int32(2_000_001_000))
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{g.st.Nodes[i].Name}},
			}}},
		}}}
		g.st.Pods = append(g.st.Pods, g.stamp(p))
	}
}

func (g *generator) service(i int) {
	selector := map[string]string{labelApp: pick(g, apps)}
	if g.one(4) {
		selector[labelVersion] = pick(g, versions)
	}
	g.st.Services = append(g.st.Services, corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i), Namespace: pick(g, spaces)},
		Spec:       corev1.ServiceSpec{Selector: selector},
	})
}

func (g *generator) budget(i int) {
	g.st.Budgets = append(g.st.Budgets, policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b%d", i), Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: pick(g,
				apps)}}, MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(g.IntN(3))},
	})
}

// place binds some of the pods to nodes with room, whatever else keeps them away:
// labels and taints may have changed since.
func (g *generator) place() {
	type free struct{ cpu, memory, pods int64 }
	room := make([]free, len(g.st.Nodes))
	for i := range g.st.Nodes {
		a := g.st.Nodes[i].Status.Allocatable
		room[i] = free{a.Cpu().MilliValue(), a.Memory().Value(), a.Pods().Value()}
	}
	start := time.Unix(2_000_000, 0)
	share := g.IntN(6)
	for i := range g.st.Pods {
		p := &g.st.Pods[i]
		if g.IntN(5) >= share || len(p.Spec.Volumes) > 0 || hasPorts(p) {
			continue
		}
		var cpu, memory int64
		for k := range p.Spec.Containers {
			r := p.Spec.Containers[k].Resources.Requests
			cpu, memory = cpu+r.Cpu().MilliValue(), memory+r.Memory().Value()
		}
		n := g.IntN(len(room))
		if room[n].cpu < cpu || room[n].memory < memory || room[n].pods < 1 {
			continue
		}
		room[n] = free{room[n].cpu - cpu, room[n].memory - memory, room[n].pods - 1}
		start = start.Add(time.Duration(1+g.IntN(5)) * time.Second)
		p.Spec.NodeName, p.Status.StartTime = g.st.Nodes[n].Name, &metav1.Time{Time: start}
		p.CreationTimestamp = metav1.Unix(900_000+int64(i), 0)
		if g.one(2) {
			p.Spec.Priority = ptr.To(int32(-10 * g.IntN(3)))
		}
	}
	for i := range g.st.Nodes {
		if g.one(15) {
			g.st.Steps = append(g.st.Steps, step{"cordon", g.st.Nodes[i].Name})
		}
	}
}

// hasPorts reports whether p takes ports of its node: two with the same cannot have
// come onto one.
func hasPorts(p *corev1.Pod) bool {
	return len(p.Spec.Containers[0].Ports) > 0
}

// steps lets all pending pods be tried, with events in between, and those without a
// node again.
func (g *generator) steps() {
	var pending []*corev1.Pod
	for i := range g.st.Pods {
		if g.st.Pods[i].Spec.NodeName == "" {
			pending = append(pending, &g.st.Pods[i])
		}
	}
	queued(pending)
	for _, p := range pending {
		if g.one(6) {
			g.event()
		}
		g.st.Steps = append(g.st.Steps, step{"schedule", key(p)})
	}
	g.st.Steps = append(g.st.Steps, step{Do: "retry"})
	g.event()
	g.st.Steps = append(g.st.Steps, step{Do: "retry"})
}

func (g *generator) event() {
	p := key(&g.st.Pods[g.IntN(len(g.st.Pods))])
	switch g.IntN(8) {
	case 0:
		g.st.Steps = append(g.st.Steps, step{"cordon", g.anyNode()})
	case 1:
		g.st.Steps = append(g.st.Steps, step{"uncordon", g.anyNode()})
	case 2, 3, 4:
		g.st.Steps = append(g.st.Steps, step{"terminate", p})
	default:
		g.st.Steps = append(g.st.Steps, step{"remove", p})
	}
}
