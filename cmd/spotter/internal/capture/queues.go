package capture

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/manifest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// groupKueue is the API group of Kueue.
const groupKueue = "kueue.x-k8s.io"

// The labels of Kueue that a queued Job has, and the one that it gives the pods of an admitted job
// (pkg/controller/constants and pkg/constants of Kueue 0.17).
const (
	labelQueue      = groupKueue + "/queue-name"
	labelPriority   = groupKueue + "/priority-class"
	labelLocalQueue = groupKueue + "/local-queue-name"
)

// The kinds of Kueue that are captured.
const (
	kindFlavor       = "ResourceFlavor"
	kindClusterQueue = "ClusterQueue"
	kindCohort       = "Cohort"
	kindLocalQueue   = "LocalQueue"
	kindPriority     = "WorkloadPriorityClass"
)

// queueKinds are the kinds of Kueue with the fields that a run depends on, in the order in which they
// are written.
var queueKinds = []struct {
	kind   string
	fields []string
}{
	{kindFlavor, []string{"nodeLabels", "nodeTaints", "tolerations"}},
	{kindCohort, []string{"parentName", "parent", "resourceGroups"}},
	{kindClusterQueue, []string{"cohortName", "cohort", "resourceGroups", "queueingStrategy", "namespaceSelector",
		"flavorFungibility", "preemption", "stopPolicy"}},
	{kindLocalQueue, []string{"clusterQueue", "stopPolicy"}},
	{kindPriority, nil},
}

func fieldsOf(kind string) []string {
	for i := range queueKinds {
		if queueKinds[i].kind == kind {
			return queueKinds[i].fields
		}
	}
	return nil
}

// A Queued is a Job that waits in a queue of Kueue, or was admitted from one.
type Queued struct {
	// Queue is the name of its LocalQueue, and Priority of its WorkloadPriorityClass; empty without
	// one.
	Queue, Priority string

	// Created is when it was created, which decides its place in the queue.
	Created metav1.Time

	// Pods is the number of pods that it needs at once. While it is suspended it has none.
	Pods int32
}

// queuedJob returns the queue of a Job. A job of a JobSet has no label, but its pods do once it is
// admitted.
func queuedJob(j *batchv1.Job) (q Queued, ok bool) {
	q = Queued{Queue: j.Labels[labelQueue], Priority: j.Labels[labelPriority], Created: j.CreationTimestamp}
	if q.Queue == "" {
		q.Queue = j.Spec.Template.Labels[labelLocalQueue]
	}
	q.Pods = ptr.Deref(j.Spec.Parallelism, 1)
	if j.Spec.Completions != nil {
		q.Pods = min(q.Pods, *j.Spec.Completions-j.Status.Succeeded)
	}
	return q, q.Queue != ""
}

// A flavor is what a ResourceFlavor adds to the pods of a job that is admitted with it.
type flavor struct {
	labels      map[string]string
	tolerations []policy.Toleration
}

// A queueSet is the queues of Kueue that are captured, or nil.
type queueSet struct {
	objects  []unstructured.Unstructured
	flavors  map[string]flavor
	ofQueue  map[string][]string // names of flavors by ClusterQueue
	clusters map[string]string   // ClusterQueue by "namespace/name" of a LocalQueue
	classes  map[string]bool
}

// readQueues sets the queues of the cluster, without those that cannot be simulated.
func (c *source) readQueues() {
	switch {
	case len(c.o.Queued) == 0 && len(c.o.Queues) == 0:
		return
	case c.o.History != nil:
		c.out.Left = append(c.out.Left, "queues of Kueue: jobs start when they did")
		return
	}
	q := &queueSet{flavors: map[string]flavor{}, ofQueue: map[string][]string{}, clusters: map[string]string{}, classes: map[string]bool{}}
	for _, k := range queueKinds {
		of := slices.DeleteFunc(slices.Clone(c.o.Queues), func(u unstructured.Unstructured) bool { return u.GetKind() != k.kind })
		slices.SortFunc(of, func(a, b unstructured.Unstructured) int {
			return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
		})
		for i := range of {
			if q.add(c, &of[i]) {
				q.objects = append(q.objects, of[i])
			}
		}
	}
	if len(q.ofQueue) == 0 || len(q.clusters) == 0 {
		c.leave(len(c.o.Queued), "jobs' waits for quota: queues of Kueue that admit jobs cannot be read, so that jobs start at once")
		return
	}
	if err := q.check(c); err != nil {
		c.leave(len(c.o.Queued), "jobs' waits for quota, so that they start at once: the queues of Kueue are not simulated: %s", c.complaint(err))
		return
	}
	c.queues = q
}

// add adds an object. It returns false for a ClusterQueue that admits nothing because one of its
// flavors is missing.
func (q *queueSet) add(c *source, u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case kindFlavor:
		var f flavor
		f.labels, _, _ = unstructured.NestedStringMap(u.Object, "spec", "nodeLabels")
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "tolerations")
		for _, x := range list {
			var t corev1.Toleration
			if m, ok := x.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &t) == nil {
				f.tolerations = append(f.tolerations, policy.Toleration{Key: t.Key, Value: t.Value,
					Exists: t.Operator == corev1.TolerationOpExists, Effect: v1alpha1.Effect(t.Effect)})
			}
		}
		q.flavors[u.GetName()] = f
	case kindClusterQueue:
		var names []string
		eachFlavor(u.Object, func(x map[string]any) {
			name, _ := x["name"].(string)
			names = append(names, name)
		})
		if slices.ContainsFunc(names, func(name string) bool { _, known := q.flavors[name]; return !known }) {
			c.leave(1, "ClusterQueues that admit nothing, since one of their ResourceFlavors does not exist")
			return false
		}
		q.ofQueue[u.GetName()] = names
	case kindLocalQueue:
		q.clusters[u.GetNamespace()+"/"+u.GetName()], _, _ = unstructured.NestedString(u.Object, "spec", "clusterQueue")
	case kindPriority:
		q.classes[u.GetName()] = true
	}
	return true
}

// eachFlavor calls f with the quotas of each flavor of a ClusterQueue or Cohort.
func eachFlavor(object map[string]any, f func(map[string]any)) {
	spec, _ := object["spec"].(map[string]any)
	groups, _ := spec["resourceGroups"].([]any)
	for _, g := range groups {
		group, _ := g.(map[string]any)
		flavors, _ := group["flavors"].([]any)
		for _, x := range flavors {
			if of, ok := x.(map[string]any); ok {
				f(of)
			}
		}
	}
}

// check parses the queues as sim does.
func (q *queueSet) check(c *source) error {
	var b bytes.Buffer
	b.WriteString("apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: alone}\nspec: {duration: 1h}\n")
	for _, o := range q.manifests(c) {
		b.WriteString("---\n")
		if err := manifest.Write(&b, o); err != nil {
			return err
		}
	}
	_, err := scenarios.Parse("queues", b.Bytes())
	return err
}

// manifests returns the objects as they are written: with the fields that a run depends on.
func (q *queueSet) manifests(c *source) (out []any) {
	if q == nil {
		return nil
	}
	for i := range q.objects {
		u := q.objects[i].DeepCopy()
		meta := map[string]any{"name": c.names.ofKueue(u.GetKind(), u.GetName())}
		if u.GetNamespace() != "" {
			meta["namespace"] = c.names.namespace(u.GetNamespace())
		}
		m := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": meta}
		if u.GetKind() == kindPriority {
			m["value"] = u.Object["value"]
		}
		spec, _ := u.Object["spec"].(map[string]any)
		maps.DeleteFunc(spec, func(field string, _ any) bool { return !slices.Contains(fieldsOf(u.GetKind()), field) })
		if len(spec) > 0 {
			m["spec"] = spec
		}
		c.restateQueue(m, spec)
		out = append(out, m)
	}
	return out
}

// restateQueue replaces names in an object of Kueue, and the node labels for Spot and on-demand of
// other systems by Karpenter's.
func (c *source) restateQueue(m, spec map[string]any) {
	name := func(kind, field string) {
		if v, ok := spec[field].(string); ok {
			spec[field] = c.names.ofKueue(kind, v)
		}
	}
	name(kindCohort, "cohortName")
	name(kindCohort, "cohort")
	name(kindCohort, "parentName")
	name(kindCohort, "parent")
	name(kindClusterQueue, "clusterQueue")
	eachFlavor(m, func(x map[string]any) {
		if v, ok := x["name"].(string); ok {
			x["name"] = c.names.ofKueue(kindFlavor, v)
		}
	})
	if labels, ok := spec["nodeLabels"].(map[string]any); ok {
		of := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			value := fmt.Sprint(labels[key])
			if capacity, ok := c.capacity(key, value); ok {
				of[keyCapacity] = capacity
				continue
			}
			of[c.names.key(key)] = c.names.value(key, value)
		}
		spec["nodeLabels"] = of
	}
	for _, field := range []string{"nodeTaints", "tolerations"} {
		list, _ := spec[field].([]any)
		for _, x := range list {
			if t, ok := x.(map[string]any); ok {
				key, _ := t["key"].(string)
				if value, stated := t["value"].(string); stated {
					t["value"] = c.names.value(key, value)
				}
				if key != "" {
					t["key"] = c.names.key(key)
				}
			}
		}
	}
	if of, ok := spec["namespaceSelector"].(map[string]any); ok && c.names.on {
		var s metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(of, &s) == nil {
			c.names.hideSelector(&s)
			spec["namespaceSelector"] = &s
		}
	}
}

// ofKueue replaces the name of an object of Kueue. It keeps that of the LocalQueue of jobs that name
// none.
func (n *names) ofKueue(kind, name string) string {
	if kind == kindLocalQueue && name == "default" {
		return name
	}
	return n.of(strings.ToLower(kind), name)
}

// keys returns the keys of node labels that pods or flavors of queues require.
func (c *source) keys() (keys []string) {
	for i := range c.s.Templates {
		keys = append(keys, asked(&c.s.Templates[i])...)
	}
	if c.queues != nil {
		for _, name := range slices.Sorted(maps.Keys(c.queues.flavors)) {
			keys = slices.AppendSeq(keys, maps.Keys(c.queues.flavors[name].labels))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// queueLabels returns the labels of a job that put it into its queue.
func (c *source) queueLabels(q Queued) map[string]string {
	labels := map[string]string{labelQueue: c.names.ofKueue(kindLocalQueue, q.Queue)}
	if c.queues != nil && c.queues.classes[q.Priority] {
		labels[labelPriority] = c.names.ofKueue(kindPriority, q.Priority)
	} else if q.Priority != "" {
		c.leave(1, "WorkloadPriorityClasses of jobs that are not there: these jobs have the priority of their pods")
	}
	return labels
}

// unadmitted returns the template of the pods of an admitted job without what Kueue added to it: the
// node labels and tolerations of the flavors of its queue. Otherwise the job could only be admitted
// with the same flavors again.
func (c *source) unadmitted(t *policy.Template, namespace string, q Queued) *policy.Template {
	if c.queues == nil {
		return t
	}
	out := *t
	out.NodeSelector, out.Tolerations = slices.Clone(t.NodeSelector), slices.Clone(t.Tolerations)
	for _, name := range c.queues.ofQueue[c.queues.clusters[namespace+"/"+q.Queue]] {
		f := c.queues.flavors[name]
		added := !slices.ContainsFunc(f.tolerations, func(x policy.Toleration) bool { return !slices.Contains(t.Tolerations, x) })
		for key, value := range f.labels {
			v, has := policy.FindLabel(t.NodeSelector, key)
			added = added && has && v == value
		}
		if !added {
			continue
		}
		out.NodeSelector = slices.DeleteFunc(out.NodeSelector, func(l policy.Label) bool { _, of := f.labels[l.Key]; return of })
		out.Tolerations = slices.DeleteFunc(out.Tolerations, func(x policy.Toleration) bool { return slices.Contains(f.tolerations, x) })
	}
	if len(out.NodeSelector)+len(out.Tolerations) < len(t.NodeSelector)+len(t.Tolerations) {
		c.admitted++
	}
	return &out
}
