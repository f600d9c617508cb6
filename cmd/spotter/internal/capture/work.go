package capture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A load is a workload, or equal bare pods together.
type load struct {
	name string // "namespace/name"
	kind policy.WorkloadKind
	t    *policy.Template
	w    *policy.Workload // nil for bare pods
	pods int32            // number of captured pods
	away int32            // number of pods on nodes that are not captured

	// protected maps the values of do-not-disrupt annotations to the number of pods.
	protected map[string]int32

	// starts are the times of its pods from being bound to being ready.
	starts []time.Duration

	past *past // nil without a history

	// written is its name in the scenario, and room is how many more of its pods may be placed on
	// the nodes with which the scenario starts.
	written string
	room    int32
}

// A workWriter writes workloads, each with a unique name.
type workWriter struct {
	*source
	nodes *poolSet
	pods  podWriter

	// taken are the names in use, and pdbs are the PodDisruptionBudgets that select one of the
	// workloads.
	taken map[string]bool
	pdbs  map[policy.PDBID]bool

	// ofTemplate is indexed by policy.TemplateID. then maps a keyThen to the loads of a history.
	ofTemplate []*load
	then       map[string][]*load
}

// loads returns all workloads and bare pods, ascending by name.
func (c *workWriter) loads() []*load {
	byTemplate := make([]load, len(c.s.Templates))
	for i := range c.s.Pods {
		p := &c.s.Pods[i]
		if p.Phase == policy.PodGone {
			continue
		}
		x := &byTemplate[p.Template]
		if !c.nodes.in(p.Node) {
			x.away++
			continue
		}
		x.pods++
		x.protect(c.protection(p), 1)
		if p.ReadySince > p.Bound && p.Bound > 0 {
			x.starts = append(x.starts, p.ReadySince.Sub(p.Bound))
		}
	}
	var all []*load
	bare := map[string]*load{}
	owned := make([]*load, len(c.s.Workloads))
	c.ofTemplate = make([]*load, len(c.s.Templates))
	for i := range c.s.Templates {
		t, x := &c.s.Templates[i], &byTemplate[i]
		x.t = t
		if t.Workload >= 0 {
			w := &c.s.Workloads[t.Workload]
			owned[w.ID] = owned[w.ID].join(x)
			owned[w.ID].name, owned[w.ID].kind, owned[w.ID].w = w.Name, w.Kind, w
			c.ofTemplate[i] = owned[w.ID]
			continue
		}
		key := alike(t)
		if bare[key] == nil {
			x.name, x.kind = t.Name, policy.KindBare
			bare[key] = x
			all = append(all, x)
		} else {
			bare[key].join(x)
		}
		c.ofTemplate[i] = bare[key]
	}
	for _, x := range owned {
		if x != nil {
			all = append(all, x)
		}
	}
	if c.o.History != nil {
		return c.withPast(all)
	}
	slices.SortStableFunc(all, byName)
	return all
}

func byName(a, b *load) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind)) }

// join adds y to x, which may be nil. The template with the most pods represents all.
func (x *load) join(y *load) *load {
	if x == nil {
		return y
	}
	if y.pods > x.pods {
		x.t = y.t
	}
	x.pods, x.away, x.starts = x.pods+y.pods, x.away+y.away, append(x.starts, y.starts...)
	for value, n := range y.protected {
		x.protect(value, n)
	}
	return x
}

// protect counts n pods with a value of do-not-disrupt.
func (x *load) protect(value string, n int32) {
	if value == "" {
		return
	}
	if x.protected == nil {
		x.protected = map[string]int32{}
	}
	x.protected[value] += n
}

// protection returns the do-not-disrupt annotation of a pod, or empty if it is not protected.
func (c *source) protection(p *policy.Pod) string {
	value, stated := c.o.DoNotDisrupt[p.Name]
	switch protects, _, err := kube.DoNotDisrupt(value); {
	case err == nil && protects:
		return value
	case !stated && p.DoNotDisrupt:
		return "true"
	}
	return ""
}

// alike returns a key that is equal for bare pods that differ only in their names.
func alike(t *policy.Template) string {
	same := *t
	same.ID, same.Name = 0, t.Namespace
	text, err := json.Marshal(&same)
	if err != nil {
		panic(fmt.Sprintf("capture: template %s: %v", t.Name, err))
	}
	return string(text)
}

// workloads returns the manifests of all workloads.
func (c *workWriter) workloads() []any {
	var out []any
	bare := 0
	for _, x := range c.loads() {
		if m := c.manifestOf(x); m != nil {
			if x.kind == policy.KindBare && !x.t.DaemonSet && x.past == nil {
				bare += int(x.pods)
			}
			out = append(out, m)
		}
	}
	if c.admitted > 0 {
		c.assume("node selectors and tolerations of %d admitted jobs are Kueue's where a flavor of their queue has the same",
			c.admitted)
	}
	if bare > 0 {
		c.assume("%d pods without a controller are Deployments, which recreate a lost pod", bare)
	}
	c.out.Workloads = len(out)
	return out
}

// manifestOf returns the manifest of a load, or nil if it requires no pods.
func (c *workWriter) manifestOf(x *load) any {
	n := x.pods
	if x.w != nil && x.kind != policy.KindJob {
		n = max(0, x.w.Replicas-x.away)
	}
	if x.past != nil {
		n = x.past.first
	} else if x.away > 0 && !x.t.DaemonSet {
		c.leave(int(x.away), "pods on nodes that are not captured")
	}
	x.room = c.startRoom(x, n)
	switch {
	case x.kind == policy.KindDaemonSet || x.t.DaemonSet:
		m, pod := c.parts(x, "DaemonSet")
		c.out.Pods += int(x.pods)
		return &appsv1.DaemonSet{TypeMeta: apps("DaemonSet"), ObjectMeta: m,
			Spec: appsv1.DaemonSetSpec{Selector: c.own(x), Template: pod}}
	case x.kind == policy.KindJob && x.past != nil:
		return c.jobThen(x, x.past.job)
	case x.kind == policy.KindJob:
		return c.job(x)
	case n == 0 && x.past == nil:
		c.leave(1, "workloads that want no pods")
		return nil
	}
	c.out.Pods += int(n)
	if x.kind == policy.KindStatefulSet {
		m, pod := c.parts(x, "StatefulSet")
		_, name := split(m.Namespace + "/" + m.Name)
		return &appsv1.StatefulSet{TypeMeta: apps("StatefulSet"), ObjectMeta: m, Spec: appsv1.StatefulSetSpec{
			Replicas: &n, ServiceName: name, Selector: c.own(x), Template: pod, VolumeClaimTemplates: claims(x.t),
		}}
	}
	m, pod := c.parts(x, "Deployment")
	return &appsv1.Deployment{TypeMeta: apps("Deployment"), ObjectMeta: m,
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: c.own(x), Template: pod}}
}

func apps(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind} }

// job returns the remainder of a job: the completions that are still to be done.
func (c *workWriter) job(x *load) any {
	pods := x.w.Replicas - x.away
	queued, waits := c.o.Queued[x.name]
	if x.w.Suspended {
		pods = max(1, pods, queued.Pods)
	}
	if pods <= 0 {
		c.leave(1, "jobs that have all of their pods done")
		return nil
	}
	work := x.t.Duration
	if work == 0 {
		work = c.o.JobDuration
		c.assume("job %s, which does not say how long a completion takes, takes %v", c.names.qualified(x.name, "job"), work)
	}
	completions := pods
	if x.t.Duration > 0 && x.w.Work > 0 {
		completions = max(pods, int32((x.w.Work+work-1)/work))
	}
	namespace, _ := split(x.name)
	if waits && !x.w.Suspended {
		x.t = c.unadmitted(x.t, namespace, queued)
	}
	m, pod := c.parts(x, "Job")
	if waits {
		m.Labels, m.CreationTimestamp = c.queueLabels(queued), queued.Created
		maps.DeleteFunc(pod.Labels, func(key, _ string) bool { return strings.HasPrefix(key, groupKueue+"/") })
	}
	m.Annotations[kube.AnnotationDuration] = work.String()
	if x.t.Checkpoint > 0 {
		m.Annotations[kube.AnnotationCheckpoint] = x.t.Checkpoint.String()
	}
	if left := x.w.Deadline.Sub(c.s.Now); x.w.Deadline > 0 {
		m.Annotations[kube.AnnotationDeadline] = max(left, time.Second).Round(time.Second).String()
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	c.out.Pods += int(pods)
	if !x.w.Suspended {
		x.room = pods
	}
	spec := batchv1.JobSpec{Parallelism: &pods, Completions: &completions, Template: pod}
	if x.t.Gang > 1 && pods == completions {
		ranked := batchv1.IndexedCompletion // each job of a JobSet becomes a separate gang
		spec.CompletionMode = &ranked
	}
	if x.w.Suspended {
		spec.Suspend = &x.w.Suspended
	}
	return &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: m, Spec: spec}
}

// parts returns the metadata of a workload and the template of its pods.
func (c *workWriter) parts(x *load, kind string) (metav1.ObjectMeta, corev1.PodTemplateSpec) {
	namespace, name := split(c.names.qualified(x.name, "app"))
	for c.taken[namespace+"/"+name] { // two kinds may share a name, but a scenario identifies workloads by name alone
		name += "-" + strings.ToLower(kind)
	}
	c.taken[namespace+"/"+name] = true
	for _, id := range x.t.PDBs {
		c.pdbs[id] = true
	}
	x.written = namespace + "/" + name
	m := metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: ownAnnotations(x)}
	pod := corev1.PodTemplateSpec{Spec: c.pods.spec(x)}
	pod.Labels = c.labels(x)
	pod.Annotations = podAnnotations(x)
	return m, pod
}

func split(qualified string) (namespace, name string) {
	namespace, name, ok := strings.Cut(qualified, "/")
	if !ok {
		return metav1.NamespaceDefault, qualified
	}
	return namespace, name
}

// revisionLabels are the labels that distinguish the revisions of a workload.
var revisionLabels = []string{"pod-template-hash", "controller-revision-hash", "pod-template-generation"}

// labelWorkload is the label that is added to pods without labels.
const labelWorkload = "spotter.dev/workload"

// labels returns the labels of the pods of a load.
func (c *workWriter) labels(x *load) map[string]string {
	out := map[string]string{}
	for _, l := range x.t.Labels {
		out[c.names.key(l.Key)] = c.names.value(l.Key, l.Value)
	}
	if len(out) == 0 {
		_, name := split(c.names.qualified(x.name, "app"))
		out[labelWorkload] = name
	}
	return out
}

// own returns a selector of the pods of a load.
func (c *workWriter) own(x *load) *metav1.LabelSelector {
	all := c.labels(x)
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for k, v := range all {
		if !slices.Contains(revisionLabels, k) {
			s.MatchLabels[k] = v
		}
	}
	if len(s.MatchLabels) == 0 {
		s.MatchLabels = all
	}
	return s
}
