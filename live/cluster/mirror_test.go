package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// A mirror plays the API server and the backends to an observer: it turns snapshots
// back into the objects of which they would be read, and sends what has changed.
type mirror struct {
	t        testing.TB
	observer *cluster.Observer
	clock    *clocktesting.FakePassiveClock
	informer *informertest.FakeInformers
	book     *ledger

	objects  map[string]client.Object
	machines map[string]backend.Machine
	noticed  map[string]bool
	manifest map[string]client.Object // by kind and name

	// seen are the nodes that there ever were, initial how many of them at first.
	seen    map[string]bool
	initial int

	// shuffle, when set, gives the order in which changes are sent.
	shuffle *rand.Rand
}

// newMirror returns one that has sent the manifests of a scenario that stand still.
func newMirror(t testing.TB, manifests []client.Object) *mirror {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	m := &mirror{
		t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), informer: &informertest.FakeInformers{Scheme: scheme},
		book: &ledger{}, objects: map[string]client.Object{}, machines: map[string]backend.Machine{}, noticed: map[string]bool{},
		seen: map[string]bool{}, manifest: map[string]client.Object{},
	}
	cfg := cluster.DefaultConfig()
	cfg.Clock = m.clock
	var err error
	if m.observer, err = cluster.New(cfg, m.book); err != nil {
		t.Fatal(err)
	}
	if err := m.observer.Follow(context.Background(), m.informer); err != nil {
		t.Fatal(err)
	}
	for _, o := range manifests {
		m.manifest[fmt.Sprintf("%T %s", o, nameOf(o))] = o
	}
	return m
}

func nameOf(o client.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// manifestsOf returns the objects of an embedded scenario.
func manifestsOf(t testing.TB, name string) []client.Object {
	t.Helper()
	text, err := scenarios.Source(name)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := scenarios.RawObjects(name, text)
	if err != nil {
		t.Fatal(err)
	}
	makers := map[string]func() client.Object{
		"Deployment": func() client.Object { return &appsv1.Deployment{} }, "StatefulSet": func() client.Object { return &appsv1.StatefulSet{} },
		"DaemonSet": func() client.Object { return &appsv1.DaemonSet{} }, "Job": func() client.Object { return &batchv1.Job{} },
		"PodDisruptionBudget": func() client.Object { return &policyv1.PodDisruptionBudget{} },
		"PriorityClass":       func() client.Object { return &schedulingv1.PriorityClass{} },
		"CapacityPool":        func() client.Object { return &v1alpha1.CapacityPool{} },
		"GPUBudget":           func() client.Object { return &v1alpha1.GPUBudget{} },
	}
	var all []client.Object
	for i := range raw {
		create := makers[raw[i].Scalar("kind")]
		if create == nil {
			continue
		}
		o := create()
		if err := raw[i].Decode(o); err != nil {
			t.Fatal(err)
		}
		if raw[i].Scalar("kind") != "CapacityPool" && raw[i].Scalar("kind") != "PriorityClass" && o.GetNamespace() == "" {
			o.SetNamespace("default")
		}
		all = append(all, o)
	}
	return all
}

// show makes the observer see what s shows, and returns what it sees.
func (m *mirror) show(s *policy.Snapshot) *policy.Snapshot {
	m.t.Helper()
	m.send(s)
	seen, err := m.observer.Observe(context.Background())
	if err != nil {
		m.t.Fatalf("at %v: %v", s.Now, err)
	}
	return seen
}

// send reports s to the observer.
func (m *mirror) send(s *policy.Snapshot) {
	m.clock.SetTime(s.Now.Std())
	m.book.s = s
	next := map[string]client.Object{}
	var order []string
	put := func(o client.Object) {
		k := fmt.Sprintf("%T %s", o, nameOf(o))
		if o.GetUID() == "" {
			o.SetUID(types.UID(k))
		}
		next[k] = o
		order = append(order, k)
	}
	m.still(s, put)
	for i := range s.Nodes {
		m.node(s, &s.Nodes[i], put)
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Phase != policy.PodGone {
			m.pod(s, p, put)
		}
	}
	backendsFirst := false
	if m.shuffle != nil {
		m.shuffle.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		backendsFirst = m.shuffle.IntN(2) == 0
	}
	if backendsFirst {
		m.sendMachines(s)
	}
	for _, k := range slices.Sorted(maps.Keys(m.objects)) {
		if now := next[k]; now == nil || now.GetUID() != m.objects[k].GetUID() {
			m.informerOf(m.objects[k]).Delete(m.objects[k])
			delete(m.objects, k)
		}
	}
	for _, k := range order {
		switch before := m.objects[k]; {
		case before == nil:
			m.informerOf(next[k]).Add(next[k])
		case !reflect.DeepEqual(before, next[k]):
			m.informerOf(next[k]).Update(before, next[k])
		}
	}
	m.objects = next
	if !backendsFirst {
		m.sendMachines(s)
	}
}

func (m *mirror) informerOf(o client.Object) interface {
	Add(metav1.Object)
	Update(a, b metav1.Object)
	Delete(metav1.Object)
} {
	i, err := m.informer.FakeInformerFor(context.Background(), o)
	if err != nil {
		m.t.Fatal(err)
	}
	return i
}

// still sends what is not pods or nodes.
func (m *mirror) still(s *policy.Snapshot, put func(client.Object)) {
	for _, k := range slices.Sorted(maps.Keys(m.manifest)) {
		switch o := m.manifest[k].DeepCopyObject().(type) {
		case *v1alpha1.CapacityPool:
			if o.Spec.Mode == "" || o.Spec.Mode == v1alpha1.ModeShadow {
				o.Spec.Mode = v1alpha1.ModeActive
			}
			o.Generation = 1
			put(o)
			i := slices.IndexFunc(s.Pools, func(p policy.Pool) bool { return p.Name == o.Name })
			m.observer.SetSteer(o.Name, s.Pools[i].Steer)
			if at := s.Pools[i].Refused; at != 0 {
				m.observer.Meet(backend.Event{Kind: backend.MetRefusal, Pool: o.Name, At: at})
			}
		case *appsv1.Deployment:
			o.Spec.Replicas = m.wanted(s, nameOf(o))
			put(o)
			put(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name + "-set",
				OwnerReferences: controller("Deployment", o.Name)}, Spec: appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas}})
		case *appsv1.StatefulSet:
			o.Spec.Replicas = m.wanted(s, nameOf(o))
			put(o)
		case *batchv1.Job:
			o.Spec.Parallelism = m.wanted(s, nameOf(o))
			put(o)
		case *policyv1.PodDisruptionBudget:
			o.Generation = 1
			for i := range s.PDBs {
				if b := &s.PDBs[i]; b.Name == nameOf(o) {
					o.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: b.Allowed, CurrentHealthy: b.Healthy,
						DesiredHealthy: b.Desired, ExpectedPods: b.Expected}
				}
			}
			put(o)
		case client.Object:
			put(o)
		}
	}
}

func (m *mirror) wanted(s *policy.Snapshot, workload string) *int32 {
	for i := range s.Workloads {
		if s.Workloads[i].Name == workload {
			return &s.Workloads[i].Replicas
		}
	}
	m.t.Fatalf("no workload is called %s", workload)
	return nil
}

func controller(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: &yes}}
}

func when(t policy.Time) metav1.Time { return metav1.Time{Time: t.Std()} }

// node sends the Node object of n, if it has one.
func (m *mirror) node(s *policy.Snapshot, n *policy.Node, put func(client.Object)) {
	if n.Phase < policy.NodeRegistered {
		return
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, CreationTimestamp: when(n.Registered),
		Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.NodeSpec{ProviderID: "sim:///" + n.Name}}
	for _, l := range n.Labels {
		o.Labels[l.Key] = l.Value
	}
	for _, t := range n.Taints {
		o.Spec.Taints = append(o.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: map[policy.TaintEffect]corev1.TaintEffect{
			policy.NoSchedule: corev1.TaintEffectNoSchedule, policy.PreferNoSchedule: corev1.TaintEffectPreferNoSchedule, policy.NoExecute: corev1.TaintEffectNoExecute}[t.Effect]})
	}
	o.Status.Allocatable = resources(n.Allocatable, n.GPUResource)
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: when(n.Registered)}
	if n.Phase >= policy.NodeInitialized {
		o.Labels["karpenter.sh/initialized"] = "true"
		ready.Status, ready.LastTransitionTime = corev1.ConditionTrue, when(n.Initialized)
	}
	if n.NotReady {
		ready.Status = corev1.ConditionUnknown
	}
	o.Status.Conditions = []corev1.NodeCondition{ready}
	if n.DoNotDisrupt {
		o.Annotations[kube.AnnotationDoNotDisrupt] = "true"
	}
	m.marks(s, n, o)
	put(o)
}

// marks puts on o what who acts on n leaves there.
func (m *mirror) marks(s *policy.Snapshot, n *policy.Node, o *corev1.Node) {
	draining := n.Phase >= policy.NodeDraining
	taint := func(key string) {
		o.Spec.Taints = append(o.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	switch n.ActedBy {
	case policy.ActorUs:
		o.Annotations[drain.AnnotationDrain] = "{}"
		if draining {
			o.Annotations[drain.AnnotationCordon] = "share"
			o.Spec.Unschedulable = true
			taint(drain.TaintDraining)
		}
	case policy.ActorKarpenter:
		taint("karpenter.sh/disrupted")
		if draining {
			now := when(s.Now)
			o.DeletionTimestamp = &now
		}
	case policy.ActorClusterAutoscaler:
		taint("ToBeDeletedByClusterAutoscaler")
	case policy.ActorNTH:
		taint("aws-node-termination-handler/asg-lifecycle-termination")
	case policy.ActorPerson:
		o.Spec.Unschedulable = true
	}
}

func resources(r policy.Resources, gpu string) corev1.ResourceList {
	l := corev1.ResourceList{}
	set := func(k corev1.ResourceName, milli int64) {
		q := *newMilli(milli)
		l[k] = q
	}
	set(corev1.ResourceCPU, r.CPU)
	set(corev1.ResourceMemory, r.Memory*1000)
	set(corev1.ResourceEphemeralStorage, r.Storage*1000)
	set(corev1.ResourcePods, r.Pods*1000)
	if gpu != "" {
		set(corev1.ResourceName(gpu), r.GPU*1000)
	}
	return l
}

// sendMachines reports what backends know: of every node, and of notices.
func (m *mirror) sendMachines(s *policy.Snapshot) {
	now := map[string]backend.Machine{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone {
			continue
		}
		x := backend.Machine{Name: n.Name, Pool: s.Pools[n.Pool].Name, Market: s.Markets[n.Market].Name, ProviderID: "sim:///" + n.Name,
			Phase: policy.NodeInitialized, Token: n.Token, Bid: n.Bid, Launched: n.Launched, AtGroupMin: n.AtGroupMin}
		if n.Phase == policy.NodeLaunching {
			x.Phase, x.ActedBy = policy.NodeLaunching, n.ActedBy
		}
		if n.Phase == policy.NodeDeleting {
			x.Phase = policy.NodeDeleting
		}
		now[n.Name] = x
		m.seen[n.Name] = true
		if before, known := m.machines[n.Name]; !known || !reflect.DeepEqual(before, x) {
			m.observer.SetMachine("sim", x)
		}
		if reported := n.Name + n.ReclaimAt.String(); n.ReclaimAt != 0 && !m.noticed[reported] {
			m.noticed[reported] = true
			m.observer.Notice(backend.Notice{Machine: n.Name, At: n.NoticeAt, ReclaimAt: n.ReclaimAt, Source: "sim"})
		}
		if reported := n.Name + "rebalance"; n.Recommended != 0 && !m.noticed[reported] {
			m.noticed[reported] = true
			m.observer.Notice(backend.Notice{Machine: "sim:///" + n.Name, At: n.Recommended, Source: "sim"})
		}
	}
	for name := range m.machines {
		if _, there := now[name]; !there {
			m.observer.DropMachine("sim", name)
		}
	}
	if m.machines = now; m.initial == 0 {
		m.initial = len(now)
	}
}

// template returns the pod template, annotations and claims of a workload.
func (m *mirror) template(w *policy.Workload) (*corev1.PodTemplateSpec, []corev1.PersistentVolumeClaim) {
	for _, o := range m.manifest {
		if nameOf(o) != w.Name {
			continue
		}
		switch o := o.(type) {
		case *appsv1.Deployment:
			return &o.Spec.Template, nil
		case *appsv1.StatefulSet:
			return &o.Spec.Template, o.Spec.VolumeClaimTemplates
		case *appsv1.DaemonSet:
			return &o.Spec.Template, nil
		case *batchv1.Job:
			return &o.Spec.Template, nil
		}
	}
	m.t.Fatalf("no manifest of workload %s", w.Name)
	return nil, nil
}

// pod sends a pod, and the volumes that it has claimed.
func (m *mirror) pod(s *policy.Snapshot, p *policy.Pod, put func(client.Object)) {
	w := &s.Workloads[s.Templates[p.Template].Workload]
	spec, claims := m.template(w)
	namespace, name, _ := strings.Cut(p.Name, "/")
	_, owner, _ := strings.Cut(w.Name, "/")
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(fmt.Sprint(p.Name, p.Created)),
		CreationTimestamp: when(p.Created), Labels: maps.Clone(spec.Labels), Annotations: maps.Clone(spec.Annotations)}}
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	spec.Spec.DeepCopyInto(&o.Spec)
	switch w.Kind {
	case policy.KindDeployment:
		o.OwnerReferences = controller("ReplicaSet", owner+"-set")
	default:
		o.OwnerReferences = controller(w.Kind.String(), owner)
	}
	if w.Kind == policy.KindStatefulSet {
		o.Labels["statefulset.kubernetes.io/pod-name"] = name
	}
	if p.DoNotDisrupt {
		o.Annotations[kube.AnnotationDoNotDisrupt] = "true"
	}
	if p.DeletionCost != 0 {
		o.Annotations[kube.AnnotationDeletionCost] = fmt.Sprint(p.DeletionCost)
		if !p.DeletionCostFixed {
			o.Annotations[drain.AnnotationCostOwner] = fmt.Sprint(p.DeletionCost)
		}
	}
	for i := range claims {
		m.claim(s, p, o, &claims[i], put)
	}
	m.status(s, p, o)
	put(o)
}

// claim gives o a claim like c, bound where the pod's volumes are.
func (m *mirror) claim(s *policy.Snapshot, p *policy.Pod, o *corev1.Pod, c *corev1.PersistentVolumeClaim, put func(client.Object)) {
	name := c.Name + "-" + o.Name
	o.Spec.Volumes = append(o.Spec.Volumes, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	mine := c.DeepCopy()
	mine.Namespace, mine.Name = o.Namespace, name
	if p.VolumeZone != policy.None {
		mine.Spec.VolumeName = "pv-" + name
		put(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: mine.Spec.VolumeName}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: o.Namespace, Name: name},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn,
					Values: []string{s.Zones[p.VolumeZone]}}}}}}}}})
	}
	put(mine)
}

// status fills in the status that corresponds to the pod's phase.
func (m *mirror) status(s *policy.Snapshot, p *policy.Pod, o *corev1.Pod) {
	if p.Nominated != policy.None {
		o.Status.NominatedNodeName = s.Nodes[p.Nominated].Name
	}
	if p.Node != policy.None {
		o.Spec.NodeName = s.Nodes[p.Node].Name
		o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled,
			Status: corev1.ConditionTrue, LastTransitionTime: when(p.Bound)})
	}
	if p.ReadySince != 0 {
		o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady,
			Status: corev1.ConditionTrue, LastTransitionTime: when(p.ReadySince)})
	}
	if p.Phase == policy.PodTerminating {
		grace := int64(30)
		end := when(p.Deleting.Add(30 * time.Second))
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &end, &grace
	}
}
