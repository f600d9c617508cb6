package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/live/gpubudget"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A workloadKey identifies a controller of pods.
type workloadKey struct {
	name string // "namespace/name"
	kind policy.WorkloadKind
}

// An ownerRef is the owner of a ReplicaSet. The zero value is an unknown owner. deployment is empty
// for a ReplicaSet without an owner, which is its own workload.
type ownerRef struct {
	deployment string // "namespace/name"
	uid        string
}

// A workload is a controller of pods, or the part of one that is known from its pods.
type workload struct {
	key workloadKey
	id  policy.WorkloadID

	// known reports whether its object exists. The following fields come from the object.
	known       bool
	annotations map[string]string
	replicas    int32
	spec        *corev1.PodTemplateSpec
	claims      []corev1.PersistentVolumeClaim
	deadline    policy.Time
	work        time.Duration
	suspended   bool
	pausedBy    string // the GPUBudget for which Spotter suspended it
	uid         types.UID
	gang        int32 // see policy.Template.Gang

	// declared is the template in the object: always for a DaemonSet, for other kinds only while
	// they have no pods. It is nil until it is read.
	declared *template

	// last is the last pod whose template was read, and like its template. last is nil if a source
	// of templates has changed since.
	last *corev1.Pod
	like *template

	pods, ready int32 // counts in the pod table
	waiting     bool  // its declared template must be read again
}

// key returns "namespace/name" of an object, or only the name if it has no namespace.
func key(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// A workloadTable contains the controllers of pods. Pods are marked to be read again if a change of
// their controller may affect their template.
type workloadTable struct {
	pods   *podSlots
	faults *faultLog

	byKey    map[workloadKey]*workload
	replicas map[string]ownerRef // owner of each ReplicaSet, by its name
	list     []*workload         // by WorkloadID
	shifted  bool                // identifiers must be assigned again
}

// get returns the entry of a workload. It creates the entry if necessary.
func (t *workloadTable) get(k workloadKey) *workload {
	w := t.byKey[k]
	if w == nil {
		w = &workload{key: k, waiting: true}
		t.byKey[k] = w
		t.shifted = true
	}
	return w
}

// describe updates the properties of a workload that all kinds have in common. Its pods are marked
// to be read again if its annotations have changed.
func (t *workloadTable) describe(k workloadKey, meta *metav1.ObjectMeta, spec *corev1.PodTemplateSpec,
	replicas *int32) *workload {
	w := t.get(k)
	if a := relevant(meta.Annotations); !w.known || !maps.Equal(a, w.annotations) {
		w.known, w.annotations = true, a
		t.pods.touchWhere(func(x *podEntry) bool { return x.workload == w })
	}
	w.spec, w.waiting, w.last, w.uid = spec, true, nil, meta.UID
	w.replicas = ptr.Deref(replicas, 1)
	return w
}

// relevant returns the annotations of a workload that also apply to its pods.
func relevant(all map[string]string) map[string]string {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(k, _ string) bool {
		return !strings.HasPrefix(k, kube.OwnPrefix) && !strings.HasPrefix(k, "spotvortex.io/") &&
			!strings.HasPrefix(k, "cluster-autoscaler.kubernetes.io/") && k != kube.AnnotationDoNotDisrupt
	})
	return some
}

// forget handles the deletion of the object of a workload. Its pods may remain for a while.
func (t *workloadTable) forget(k workloadKey) {
	w := t.byKey[k]
	if w == nil {
		return
	}
	w.known, w.annotations, w.spec, w.claims, w.replicas, w.waiting, w.last = false, nil, nil, nil, 0, true, nil
	t.pods.touchWhere(func(x *podEntry) bool { return x.workload == w })
}

// forgets returns a function that handles the deletion of an object of a kind.
func forgets[T metav1.Object](t *workloadTable, kind policy.WorkloadKind) func(T) {
	return func(x T) { t.forget(workloadKey{key(x), kind}) }
}

func (t *workloadTable) setDeployment(d *appsv1.Deployment) {
	t.describe(workloadKey{key(d), policy.KindDeployment}, &d.ObjectMeta, &d.Spec.Template, d.Spec.Replicas)
}

func (t *workloadTable) setStatefulSet(s *appsv1.StatefulSet) {
	w := t.describe(workloadKey{key(s), policy.KindStatefulSet}, &s.ObjectMeta, &s.Spec.Template, s.Spec.Replicas)
	w.claims = s.Spec.VolumeClaimTemplates
}

func (t *workloadTable) setDaemonSet(d *appsv1.DaemonSet) {
	none := int32(0)
	w := t.describe(workloadKey{key(d), policy.KindDaemonSet}, &d.ObjectMeta, &d.Spec.Template, &none)
	// Its pods take their template from the object.
	t.pods.touchWhere(func(x *podEntry) bool { return x.workload == w })
}

// setReplicaSet records the Deployment of a ReplicaSet. A ReplicaSet without one is its own
// workload, and is scaled and rolled out like a Deployment.
func (t *workloadTable) setReplicaSet(r *appsv1.ReplicaSet) {
	name := key(r)
	ref := ownerRef{uid: string(r.UID)}
	if c := metav1.GetControllerOf(r); c != nil && c.Kind == "Deployment" && isName(c.Name) {
		ref.deployment = r.Namespace + "/" + c.Name
	}
	if t.replicas[name] != ref {
		t.replicas[name] = ref
		t.pods.touchWhere(func(x *podEntry) bool { return x.set == name })
	}
	if ref.deployment == "" {
		t.describe(workloadKey{name, policy.KindDeployment}, &r.ObjectMeta, &r.Spec.Template, r.Spec.Replicas)
	}
}

func (t *workloadTable) dropReplicaSet(r *appsv1.ReplicaSet) {
	name := key(r)
	if t.replicas[name].uid != string(r.UID) {
		return
	}
	if t.replicas[name].deployment == "" {
		t.forget(workloadKey{name, policy.KindDeployment})
	}
	delete(t.replicas, name)
}

// setJob updates a Job. Its remaining work is the product of its remaining completions and the
// annotated duration of one. A finished Job is removed.
func (t *workloadTable) setJob(j *batchv1.Job) {
	if over(j) {
		t.forget(workloadKey{key(j), policy.KindJob})
		return
	}
	w := t.describe(workloadKey{key(j), policy.KindJob}, &j.ObjectMeta, &j.Spec.Template, j.Spec.Parallelism)
	left := max(0, ptr.Deref(j.Spec.Completions, w.replicas)-j.Status.Succeeded) // a work queue has one item for each pod
	w.gang, w.replicas = kube.Gang(j), min(w.replicas, left)
	w.pausedBy = j.Annotations[gpubudget.PausedBy]
	if w.suspended = ptr.Deref(j.Spec.Suspend, false); w.suspended {
		w.replicas = 0
	}
	a := t.faults.annotations(key(j), w.annotations, j.Spec.Template.Annotations)
	w.work = time.Duration(left) * a.Duration(time.Second, kube.AnnotationDuration)
	begin := j.CreationTimestamp.Time
	limit := a.Duration(time.Second, kube.AnnotationDeadline)
	if limit == 0 && j.Spec.ActiveDeadlineSeconds != nil {
		limit = time.Duration(*j.Spec.ActiveDeadlineSeconds) * time.Second
		if j.Status.StartTime != nil {
			begin = j.Status.StartTime.Time
		}
	}
	w.deadline = 0
	if limit > 0 && left > 0 {
		w.deadline = policy.TimeOf(begin).Add(limit)
	}
}

// over reports whether a Job has completed or failed.
func over(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// owner returns the workload of a pod and the name of the ReplicaSet between them. The workload is
// nil if no controller would recreate the pod.
func (t *workloadTable) owner(p *corev1.Pod) (*workload, string) {
	c := metav1.GetControllerOfNoCopy(p)
	if c == nil {
		return nil, ""
	}
	if !isName(c.Name) {
		t.faults.warn("namespace "+p.Namespace,
			"pods in it have an owner whose name no object can have, and count as bare pods")
		return nil, ""
	}
	name := p.Namespace + "/" + c.Name
	switch c.Kind {
	case "ReplicaSet":
		k := workloadKey{name, policy.KindDeployment}
		if d := t.replicas[name].deployment; d != "" {
			k.name = d
		}
		return t.get(k), name
	case "Job":
		return t.get(workloadKey{name, policy.KindJob}), ""
	case "DaemonSet":
		return t.get(workloadKey{name, policy.KindDaemonSet}), ""
	case "Node": // a static pod, which its kubelet creates
		return nil, ""
	}
	// A StatefulSet or an unknown controller, which is assumed to treat its pods with the same
	// care.
	return t.get(workloadKey{name, policy.KindStatefulSet}), ""
}

// isName reports whether s is a valid name of an object. Every client that may create pods can set
// owner references, which the API server does not check.
func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return 0 < len(s) && len(s) <= 253
}

// redeclare marks the templates in workload objects to be read again.
func (t *workloadTable) redeclare() {
	for _, w := range t.byKey {
		w.waiting, w.last = true, nil
	}
}
