// Package fixed schedules pods onto the existing nodes of a cluster, as kube-scheduler does. No
// node is launched, and no time passes. The package needs no prices, so the nodes can be machines
// of any kind.
//
// A [Cluster] collects objects, and its method Schedule returns which pods have no node, and why.
package fixed

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// kinds are the kinds of objects that affect where pods run.
var kinds = map[string]scenarios.ObjectKind{
	"Node":                  {APIVersion: "v1", Make: func() metav1.Object { return new(corev1.Node) }},
	"Pod":                   {APIVersion: "v1", Make: func() metav1.Object { return new(corev1.Pod) }},
	"Namespace":             {APIVersion: "v1", Make: func() metav1.Object { return new(corev1.Namespace) }},
	"Service":               {APIVersion: "v1", Make: func() metav1.Object { return new(corev1.Service) }},
	"PersistentVolume":      {APIVersion: "v1", Make: func() metav1.Object { return new(corev1.PersistentVolume) }},
	"PersistentVolumeClaim": {APIVersion: "v1", Make: func() metav1.Object { return new(corev1.PersistentVolumeClaim) }},
	"Deployment":            {APIVersion: "apps/v1", Make: func() metav1.Object { return new(appsv1.Deployment) }},
	"ReplicaSet":            {APIVersion: "apps/v1", Make: func() metav1.Object { return new(appsv1.ReplicaSet) }},
	"StatefulSet":           {APIVersion: "apps/v1", Make: func() metav1.Object { return new(appsv1.StatefulSet) }},
	"DaemonSet":             {APIVersion: "apps/v1", Make: func() metav1.Object { return new(appsv1.DaemonSet) }},
	"Job":                   {APIVersion: "batch/v1", Make: func() metav1.Object { return new(batchv1.Job) }},
	"PriorityClass": {APIVersion: "scheduling.k8s.io/v1",
		Make: func() metav1.Object { return new(schedulingv1.PriorityClass) }},
	"PodDisruptionBudget": {APIVersion: "policy/v1",
		Make: func() metav1.Object { return new(policyv1.PodDisruptionBudget) }},
}

const kindDaemonSet = "DaemonSet"

// A Cluster contains the objects that determine where pods run.
type Cluster struct {
	nodes      []node
	pods       []pod
	workloads  []*workload
	services   []*corev1.Service
	namespaces []*corev1.Namespace
	pdbs       []policy.PDB
	claims     map[string]*corev1.PersistentVolumeClaim // by "namespace/name"
	zones      map[string]string                        // zones of volumes, by name

	classes      map[string]kube.Priority
	defaultClass kube.Priority

	seen     map[string]bool // keys of objects that were added: type, namespace and name
	skipped  map[string]int  // number of skipped objects, by kind
	finished int             // number of finished pods
}

// NewCluster returns an empty cluster.
func NewCluster() *Cluster {
	return &Cluster{claims: map[string]*corev1.PersistentVolumeClaim{}, zones: map[string]string{},
		classes: kube.SystemPriorities(),
		seen:    map[string]bool{}, skipped: map[string]int{}}
}

// A node is a policy.Node with its extended resources.
type node struct {
	policy.Node
	extended corev1.ResourceList
	cordoned bool
}

// A pod is one pod. Several pods may share an object; their names differ.
type pod struct {
	name    string // without the namespace
	object  *corev1.Pod
	problem problem
}

// A problem returns an error that names a field of an object.
type problem = func(path []string, format string, args ...any) error

// A workload is a controller of pods.
type workload struct {
	kind, namespace, name string
	by                    *metav1.OwnerReference // controller of the workload itself
	selector              *metav1.LabelSelector
	template              *corev1.PodTemplateSpec
	claims                []corev1.PersistentVolumeClaim
	replicas              int32
	problem               problem
}

// Add reads the objects of a text. Errors name file.
func (c *Cluster) Add(file string, text []byte) error {
	skipped, err := scenarios.EachObject(file, text, kinds, c.take)
	for kind, n := range skipped {
		c.skipped[kind] += n
	}
	return err
}

// Skipped lists the objects that were skipped, in one line. It is empty if none was.
func (c *Cluster) Skipped() string {
	if len(c.skipped) == 0 {
		return ""
	}
	return scenarios.SkippedLine(c.skipped)
}

// Nodes returns the number of nodes.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// Labels returns the labels of a node.
func (c *Cluster) Labels(node int) []policy.Label { return c.nodes[node].Labels }

func (c *Cluster) take(o scenarios.Object) error {
	namespace := ""
	switch o.Value.(type) {
	case *corev1.Node, *corev1.Namespace, *corev1.PersistentVolume, *schedulingv1.PriorityClass:
	default:
		namespace = cmp.Or(o.Value.GetNamespace(), "default")
	}
	key := fmt.Sprintf("%T %s/%s", o.Value, namespace, o.Name)
	if c.seen[key] {
		return o.Problem([]string{"metadata", "name"}, "%s appears twice", strings.TrimPrefix(namespace+"/"+o.Name, "/"))
	}
	c.seen[key] = true
	switch v := o.Value.(type) {
	case *corev1.Node:
		return c.addNode(o, v)
	case *corev1.Pod:
		c.addPod(pod{o.Name, v, o.Problem})
	case *corev1.Namespace:
		c.namespaces = append(c.namespaces, v)
	case *corev1.Service:
		c.services = append(c.services, v)
	case *corev1.PersistentVolume:
		c.zones[o.Name] = kube.ZoneOf(v)
	case *corev1.PersistentVolumeClaim:
		c.claims[namespace+"/"+o.Name] = v
	case *schedulingv1.PriorityClass:
		p := kube.PriorityOf(v)
		if c.classes[o.Name] = p; v.GlobalDefault {
			c.defaultClass = p
		}
	case *policyv1.PodDisruptionBudget:
		return c.addPDB(o, v)
	default:
		return c.addWorkload(o, namespace)
	}
	return nil
}

func (c *Cluster) addNode(o scenarios.Object, v *corev1.Node) error {
	field, offers := "allocatable", v.Status.Allocatable
	if len(offers) == 0 {
		field, offers = "capacity", v.Status.Capacity // the default of the API server
	}
	if len(offers) == 0 {
		return o.Problem([]string{"status", "allocatable"}, "must be set: it is what the node has for pods")
	}
	n := node{Node: policy.Node{ID: policy.NodeID(len(c.nodes)), Name: o.Name, Pool: policy.None, Market: policy.None,
		Phase: policy.NodeInitialized, Labels: kube.Labels(v.Labels)}, cordoned: v.Spec.Unschedulable}
	n.Allocatable, _ = kube.NodeResources(offers)
	n.Allocatable.GPU = 0 // GPUs are extended resources here
	for _, name := range slices.Sorted(maps.Keys(offers)) {
		q := offers[name]
		if q.Sign() < 0 || tooMuch(name, q) {
			return o.Problem([]string{"status", field, string(name)}, "%s is not from 0 to %s", q.String(), most(name).String())
		}
		if !native(name) {
			if n.extended == nil {
				n.extended = corev1.ResourceList{}
			}
			n.extended[name] = q
		}
	}
	for _, t := range v.Spec.Taints {
		n.Taints = append(n.Taints, policy.Taint{Key: t.Key, Value: t.Value, Effect: v1alpha1.Effect(t.Effect)})
	}
	cordon := policy.Taint{Key: corev1.TaintNodeUnschedulable, Effect: policy.NoSchedule}
	if n.cordoned && !slices.Contains(n.Taints, cordon) {
		n.Taints = append(n.Taints, cordon)
	}
	c.nodes = append(c.nodes, n)
	return nil
}

// native reports whether every node has the resource.
func native(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	return false
}

// most returns the largest accepted amount of a resource. It keeps sums from overflowing an
// integer.
func most(name corev1.ResourceName) *resource.Quantity {
	if name == corev1.ResourceCPU {
		return resource.NewQuantity(1_000_000, resource.DecimalSI)
	}
	return resource.NewQuantity(1<<53, resource.BinarySI)
}

func tooMuch(name corev1.ResourceName, q resource.Quantity) bool { return q.Cmp(*most(name)) > 0 }

// addPod adds a pod, unless it has finished.
func (c *Cluster) addPod(p pod) {
	switch phase := p.object.Status.Phase; {
	case phase == corev1.PodSucceeded || phase == corev1.PodFailed:
		c.finished++
	case p.object.DeletionTimestamp != nil && p.object.Spec.NodeName == "": // it will never be bound
		c.finished++
	default:
		c.pods = append(c.pods, p)
	}
}

func (c *Cluster) addPDB(o scenarios.Object, v *policyv1.PodDisruptionBudget) (err error) {
	b := kube.PDB(v, func(path []string, format string, args ...any) { err = o.Problem(path, format, args...) })
	b.ID = policy.PDBID(len(c.pdbs))
	c.pdbs = append(c.pdbs, b)
	return err
}

func (c *Cluster) addWorkload(o scenarios.Object, namespace string) error {
	w := &workload{namespace: namespace, name: o.Name, by: metav1.GetControllerOf(o.Value), replicas: 1,
		problem: o.Problem}
	var replicas *int32
	switch v := o.Value.(type) {
	case *appsv1.Deployment:
		w.kind, w.selector, w.template, replicas = "Deployment", v.Spec.Selector, &v.Spec.Template, v.Spec.Replicas
	case *appsv1.ReplicaSet:
		w.kind, w.selector, w.template, replicas = "ReplicaSet", v.Spec.Selector, &v.Spec.Template, v.Spec.Replicas
	case *appsv1.StatefulSet:
		w.kind, w.selector, w.template, replicas = "StatefulSet", v.Spec.Selector, &v.Spec.Template, v.Spec.Replicas
		w.claims = v.Spec.VolumeClaimTemplates
	case *appsv1.DaemonSet:
		w.kind, w.selector, w.template = kindDaemonSet, v.Spec.Selector, &v.Spec.Template
	case *batchv1.Job:
		w.kind, w.template, w.replicas = "Job", &v.Spec.Template, jobPods(v)
	}
	if replicas != nil {
		w.replicas = *replicas
	}
	if w.replicas < 0 || w.replicas > podsMax {
		return o.Problem([]string{"spec", "replicas"}, "%d is not from 0 to %d", w.replicas, podsMax)
	}
	c.workloads = append(c.workloads, w)
	return nil
}

// podsMax is the maximum number of pods of one workload.
const podsMax = 200_000

// jobPods returns the number of pods of a job that run at once.
func jobPods(j *batchv1.Job) int32 {
	over := slices.ContainsFunc(j.Status.Conditions, func(x batchv1.JobCondition) bool {
		return (x.Type == batchv1.JobComplete || x.Type == batchv1.JobFailed) && x.Status == corev1.ConditionTrue
	})
	if over || j.Spec.Suspend != nil && *j.Spec.Suspend {
		return 0
	}
	pods := int32(1)
	if j.Spec.Parallelism != nil {
		pods = *j.Spec.Parallelism
	}
	if j.Spec.Completions != nil {
		pods = min(pods, max(0, *j.Spec.Completions-j.Status.Succeeded))
	}
	return pods
}
