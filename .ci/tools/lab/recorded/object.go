package recorded

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object is a recorded workload with what scheduling reads of its manifest.
type object struct {
	shape
	kind, namespace, name string

	pod      corev1.PodTemplateSpec
	selector *metav1.LabelSelector
	claims   []corev1.PersistentVolumeClaim

	// changes are the replicas of a service; one and none for a DaemonSet and
	// a CronJob, which is there or not.
	changes []change

	// releases are when a Job was created; those of a CronJob follow from when
	// it was there with which schedule.
	releases                 []release
	schedules                []schedule
	parallelism, completions *int32
	work                     time.Duration
}

// A schedule is the specification of a CronJob from an instant on; nil when it
// was deleted.
type schedule struct {
	at   time.Duration
	spec *batchv1.CronJobSpec
}

func (x *object) id() string { return x.kind + " " + x.namespace + "/" + x.name }

// hours returns the pod-hours of the window.
func (x *object) hours() float64 {
	h := podHours(x.changes, 0, horizon)
	for _, r := range x.releases {
		h += float64(float64(r.count) * x.work.Hours())
	}
	return h
}

// clip keeps what happens in the window, and reports whether anything does.
func (x *object) clip(from, length time.Duration) bool {
	if x.kind != "Job" {
		x.changes = clipped(x.changes, from, length)
		return x.changes != nil
	}
	var kept []release
	for _, r := range x.releases {
		if r.at >= from && r.at < from+length {
			kept = append(kept, release{r.at - from, r.count})
		}
	}
	x.releases = kept
	return kept != nil
}

// A simkube reads events one after the other.
type simkube struct {
	r     *recording
	file  string
	first int64 // Unix seconds of the first event

	places map[string]int // of an object in r.objects
	extra  map[string]map[string]any
	lives  map[string][]life
	bare   map[string]barePod

	skipped map[string]map[string]bool // names of what is left out, by why

	// The names of workloads of which something is assumed or left out.
	defaulted, chosen, classless, retemplated map[string]bool
}

// A barePod is a pod that no other object owns.
type barePod struct {
	at   time.Duration
	spec corev1.PodSpec
}

func note(set *map[string]bool, id string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[id] = true
}

func (k *simkube) skip(why, id string) {
	set := k.skipped[why]
	note(&set, id)
	k.skipped[why] = set
}

// decode reads the specification of o.
func decode[T any](o *simkubeObject) (*T, error) {
	v := new(T)
	if len(o.Spec) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(o.Spec, v); err != nil {
		return nil, fmt.Errorf("%s %s/%s: spec: %w", o.Kind, o.Metadata.Namespace, o.Metadata.Name, err)
	}
	return v, nil
}

// apply takes in that o was created or changed.
func (k *simkube) apply(at time.Duration, o *simkubeObject) error {
	if o.Kind == "" || o.Metadata.Name == "" {
		return fmt.Errorf("an object has no kind or no name")
	}
	if o.Metadata.Namespace == "" {
		o.Metadata.Namespace = "default"
	}
	id := o.Kind + " " + o.Metadata.Namespace + "/" + o.Metadata.Name
	if len(o.Metadata.Owners) > 0 {
		k.skip("objects of kind "+o.Kind+" that another object owns", id)
		return nil
	}
	switch o.APIVersion + " " + o.Kind {
	case "apps/v1 Deployment", "apps/v1 ReplicaSet":
		spec, err := decode[appsv1.DeploymentSpec](o)
		if err != nil {
			return err
		}
		x := k.object("Deployment", o)
		x.selector = spec.Selector
		k.template(x, &spec.Template)
		return k.replicas(x, at, spec.Replicas)
	case "apps/v1 StatefulSet":
		spec, err := decode[appsv1.StatefulSetSpec](o)
		if err != nil {
			return err
		}
		x := k.object("StatefulSet", o)
		x.selector, x.claims = spec.Selector, spec.VolumeClaimTemplates
		k.template(x, &spec.Template)
		return k.replicas(x, at, spec.Replicas)
	case "apps/v1 DaemonSet":
		spec, err := decode[appsv1.DaemonSetSpec](o)
		if err != nil {
			return err
		}
		x := k.object("DaemonSet", o)
		x.selector = spec.Selector
		k.template(x, &spec.Template)
		return k.replicas(x, at, nil)
	case "batch/v1 Job", "batch/v1 CronJob":
		return k.applyJob(at, o)
	case "v1 Pod":
		spec, err := decode[corev1.PodSpec](o)
		if _, there := k.bare[id]; err == nil && !there {
			k.bare[id] = barePod{at, *spec}
		}
		return err
	case "policy/v1 PodDisruptionBudget", "scheduling.k8s.io/v1 PriorityClass":
		return k.applyExtra(id, o)
	}
	k.skip("objects of kind "+o.Kind+", which are no workloads", id)
	return nil
}

func (k *simkube) applyJob(at time.Duration, o *simkubeObject) error {
	if o.Kind == "CronJob" {
		spec, err := decode[batchv1.CronJobSpec](o)
		if err != nil {
			return err
		}
		if _, err := cronInstants(spec, k.first, 0, 0); err != nil {
			return fmt.Errorf("CronJob %s/%s: %w", o.Metadata.Namespace, o.Metadata.Name, err)
		}
		x := k.object("CronJob", o)
		k.job(x, &spec.JobTemplate.Spec)
		x.schedules = append(x.schedules, schedule{at, spec})
		return k.replicas(x, at, nil)
	}
	spec, err := decode[batchv1.JobSpec](o)
	if err != nil {
		return err
	}
	x := k.object("Job", o)
	k.job(x, spec)
	suspended := spec.Suspend != nil && *spec.Suspend
	if n := len(x.changes); !suspended && (n == 0 || x.changes[n-1].pods == 0) {
		x.releases = append(x.releases, release{at, 1})
	}
	return k.replicas(x, at, nil)
}

func (k *simkube) job(x *object, spec *batchv1.JobSpec) {
	x.parallelism, x.completions = spec.Parallelism, spec.Completions
	k.template(x, &spec.Template)
}

// applyExtra keeps a PodDisruptionBudget or PriorityClass as it is.
func (k *simkube) applyExtra(id string, o *simkubeObject) error {
	m := map[string]any{
		"apiVersion": o.APIVersion, "kind": o.Kind,
		"metadata": map[string]any{"name": o.Metadata.Name, "namespace": o.Metadata.Namespace},
	}
	if o.Kind == "PriorityClass" {
		m["metadata"] = map[string]any{"name": o.Metadata.Name}
		if o.Value == nil {
			return fmt.Errorf("PriorityClass %s: it has no value", o.Metadata.Name)
		}
		m["value"], m["globalDefault"] = int64(*o.Value), o.GlobalDefault
		if o.PreemptionPolicy != "" {
			m["preemptionPolicy"] = o.PreemptionPolicy
		}
	} else {
		spec, err := plainJSON(o.Spec)
		if err != nil {
			return fmt.Errorf("%s: spec: %w", id, err)
		}
		m["spec"] = spec
	}
	k.extra[id] = m
	return nil
}

// object returns the entry of o, a new one when it was not seen before.
func (k *simkube) object(kind string, o *simkubeObject) *object {
	x := object{kind: kind, namespace: o.Metadata.Namespace, name: o.Metadata.Name}
	i, seen := k.places[x.id()]
	if !seen {
		i = len(k.r.objects)
		k.places[x.id()] = i
		k.r.objects = append(k.r.objects, x)
	}
	return &k.r.objects[i]
}

// replicas notes how many pods x wants from at on; one when nothing says.
func (k *simkube) replicas(x *object, at time.Duration, want *int32) error {
	n := 1
	if want != nil {
		n = int(*want)
	}
	if n < 0 || n > replicasMost {
		return fmt.Errorf("%s: spec.replicas: %d is not from 0 to %d", x.id(), n, replicasMost)
	}
	if len(x.pod.Spec.Containers) == 0 {
		return fmt.Errorf("%s: its pod template has no containers", x.id())
	}
	x.change(at, n)
	return nil
}

func (x *object) change(at time.Duration, n int) {
	if last := len(x.changes) - 1; last >= 0 && x.changes[last].at == at {
		x.changes[last].pods = n
		return
	}
	x.changes = append(x.changes, change{at, n})
}

// remove takes in that o was deleted.
func (k *simkube) remove(at time.Duration, o *simkubeObject) {
	kind := o.Kind
	if kind == "ReplicaSet" {
		kind = "Deployment"
	}
	id := kind + " " + cmp.Or(o.Metadata.Namespace, "default") + "/" + o.Metadata.Name
	if p, bare := k.bare[id]; bare && len(o.Metadata.Owners) == 0 {
		k.endPod(id, p, at)
		delete(k.bare, id)
	}
	if i, known := k.places[id]; known && len(o.Metadata.Owners) == 0 {
		x := &k.r.objects[i]
		x.change(at, 0)
		if x.kind == "CronJob" {
			x.schedules = append(x.schedules, schedule{at, nil})
		}
	}
}

// endPod makes a pod that nothing owns a task, or a service when it would be
// started again after its end. A pod that was not deleted is ended by 0.
func (k *simkube) endPod(id string, p barePod, deleted time.Duration) {
	t := corev1.PodTemplateSpec{Spec: p.spec}
	k.reduce(id, &t)
	s := shapeOf(&t.Spec)
	if p.spec.RestartPolicy != corev1.RestartPolicyNever && p.spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		changes := []change{{p.at, 1}}
		if deleted > p.at {
			changes = append(changes, change{deleted, 0})
		}
		k.r.services = append(k.r.services, service{shape: s, class: classNormal, changes: changes})
		return
	}
	work, ended := workOf(k.lives[lifeID("v1.Pod", id)])
	if ended == 0 && deleted > p.at {
		work = deleted - p.at
	}
	k.r.tasks = append(k.r.tasks, task{shape: s, class: classNormal, at: p.at, work: work, count: 1})
}

// lifeID turns "Pod default/web" into "v1.Pod default/web", the name under which
// lives are kept.
func lifeID(gvk, id string) string {
	for i := range id {
		if id[i] == ' ' {
			return gvk + id[i:]
		}
	}
	return gvk
}

// finish ends what is left when the events are over and says what was assumed.
func (k *simkube) finish() {
	for _, id := range slices.Sorted(maps.Keys(k.bare)) {
		k.endPod(id, k.bare[id], 0)
	}
	for _, id := range slices.Sorted(maps.Keys(k.extra)) {
		k.r.extra = append(k.r.extra, k.extra[id])
	}
	unknown := 0
	for i := range k.r.objects {
		x := &k.r.objects[i]
		if x.kind != "Job" && x.kind != "CronJob" {
			continue
		}
		gvk := "batch/v1." + x.kind
		work, ended := workOf(k.lives[lifeID(gvk, x.id())])
		if x.work = work; ended == 0 {
			unknown++
		}
		k.classes(x)
	}
	for i := range k.r.objects {
		k.classes(&k.r.objects[i])
	}
	k.report(unknown)
}

// classes drops the priority classes that the trace does not hold: their value
// is then known only where the pod itself has it.
func (k *simkube) classes(x *object) {
	s := &x.pod.Spec
	if c := s.PriorityClassName; c != "" && c != "system-cluster-critical" && c != "system-node-critical" &&
		k.extra["PriorityClass default/"+c] == nil {
		note(&k.classless, x.id())
		s.PriorityClassName = ""
	}
	if s.PriorityClassName != "" {
		s.Priority = nil // a class says it
	}
}

func (k *simkube) report(unknown int) {
	r := k.r
	r.assume("Of each manifest what scheduling reads is kept: labels, requests, tolerations, affinity between pods, spread, priority, grace, claims. What the containers run is not.")
	r.assume("After the last event everything stays as it is.")
	passing := 0
	for i := range r.objects {
		if x := &r.objects[i]; x.kind == "DaemonSet" && len(x.changes) > 1 {
			passing++
		}
	}
	if passing > 0 {
		r.assume("DaemonSets that came or went (%d) are there throughout.", passing)
	}
	if n := len(k.defaulted); n > 0 {
		r.assume("A container without requests gets %s CPU and %s; workloads with such: %d.", defaultCPU, defaultMemory, n)
	}
	if n := len(k.retemplated); n > 0 {
		r.assume("Where a pod template changed (%d workloads) the last one holds throughout.", n)
	}
	if unknown > 0 {
		r.assume("A pod of a job runs for %s where the trace has none that ended; such jobs: %d.", offset(defaultWork),
			unknown)
	}
	if n := len(r.tasks); n > 0 {
		r.assume("Pods that nothing owns (%d) are Jobs. One whose end was not recorded runs until it was deleted, else for %s.", n, offset(defaultWork))
	}
	r.leave(len(k.chosen), "choices of nodes (selector or affinity), which name labels of the recorded cluster")
	r.leave(len(k.classless), "names of priority classes that the trace does not hold")
	for _, why := range slices.Sorted(maps.Keys(k.skipped)) {
		r.leave(len(k.skipped[why]), why)
	}
}

// cronReleases turns the CronJobs into Jobs with the releases of the window,
// which goes from begin to end.
func (r *recording) cronReleases(begin, end time.Duration) error {
	for i := range r.objects {
		x := &r.objects[i]
		if x.kind != "CronJob" {
			continue
		}
		for n, s := range x.schedules {
			until := end
			if n+1 < len(x.schedules) {
				until = min(end, x.schedules[n+1].at)
			}
			from := max(begin, s.at)
			if s.spec == nil || s.spec.Suspend != nil && *s.spec.Suspend || from >= until {
				continue
			}
			all, err := cronInstants(s.spec, r.origin.Unix(), from, until)
			if err != nil {
				return fmt.Errorf("CronJob %s/%s: %w", x.namespace, x.name, err)
			}
			x.releases = append(x.releases, all...)
		}
		x.kind = "Job"
	}
	return nil
}

// acceleratorNames are the extended resources that a node type can offer.
var acceleratorNames = []corev1.ResourceName{"amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi",
	"nvidia.com/gpu"}

// shapeOf returns what a pod requests, counted as the scheduler does except for sidecars.
func shapeOf(s *corev1.PodSpec) shape {
	of := func(list corev1.ResourceList) shape {
		x := shape{cpu: list.Cpu().MilliValue(), memory: int64(math.Ceil(float64(list.Memory().Value()) / (1 << 20)))}
		for _, name := range acceleratorNames {
			q := list[name]
			x.gpu += q.Value()
		}
		return x
	}
	var total shape
	for i := range s.Containers {
		x := of(s.Containers[i].Resources.Requests)
		total = shape{total.cpu + x.cpu, total.memory + x.memory, total.gpu + x.gpu}
	}
	for i := range s.InitContainers {
		x := of(s.InitContainers[i].Resources.Requests)
		total = shape{max(total.cpu, x.cpu), max(total.memory, x.memory), max(total.gpu, x.gpu)}
	}
	x := of(s.Overhead)
	return shape{total.cpu + x.cpu, total.memory + x.memory, total.gpu}
}
