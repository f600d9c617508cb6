package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A template contains the common properties of pods, and counts the references to it.
type template struct {
	t        policy.Template
	key      string
	workload *workload // nil for pods that no controller would recreate
	refs     int
}

// A templateTable contains the distinct templates, each as long as it has references.
type templateTable struct {
	faults     *faultLog
	nodes      *nodeSlots
	volumes    *volumeTable
	priorities *priorityTable
	namespaces *namespaceTable

	byKey   map[string]*template
	list    []policy.Template // shared by snapshots and never modified
	shifted bool              // identifiers must be assigned again
}

// keep returns the template of pods of w that equals t, and adds a reference to it.
func (tt *templateTable) keep(t *policy.Template, w *workload) *template {
	text, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("cluster: template %s: %v", t.Name, err))
	}
	if w != nil {
		text = append(text, byte('0'+w.key.kind))
	}
	x := tt.byKey[string(text)]
	if x == nil {
		x = &template{t: *t, key: string(text), workload: w}
		tt.byKey[x.key] = x
		tt.shifted = true
	}
	x.workload = w
	x.refs++
	return x
}

// release removes a reference from x, which may be nil.
func (tt *templateTable) release(x *template) {
	if x == nil {
		return
	}
	if x.refs--; x.refs == 0 {
		delete(tt.byKey, x.key)
		tt.shifted = true
	}
}

// of returns the template of a pod, and adds a reference to it. If the pod is like the last pod of
// its workload that was read, it reuses that pod's template. h contains the devices that the pod
// holds; nil if its specification is complete.
func (tt *templateTable) of(p *corev1.Pod, w *workload, h *holding) *template {
	t := policy.Template{Name: key(p), Namespace: p.Namespace}
	var of map[string]string
	mirror := p.Annotations[corev1.MirrorPodAnnotationKey] != ""
	switch {
	case w != nil && w.key.kind == policy.KindDaemonSet && w.spec != nil:
		if w.declared == nil || w.waiting {
			tt.declare(w)
		}
		w.declared.refs++
		return w.declared
	case w != nil:
		t.Name, of = w.key.name, w.annotations
		t.DaemonSet = w.key.kind == policy.KindDaemonSet
	case mirror:
		t.Name, t.DaemonSet = p.Namespace+"/"+strings.TrimSuffix(p.Name, "-"+p.Spec.NodeName), true
	}
	alone := w == nil || hasClaims(p) || h != nil
	if !alone && w.last != nil && w.like.refs > 0 && alike(p, w.last) {
		w.like.refs++
		return w.like
	}
	x := tt.read(t, of, mirror, p, w, h)
	if !alone {
		w.last, w.like = p, x
	}
	return x
}

// alike reports whether two pods of a workload have the same template, provided that no other
// source of the template has changed.
func alike(p, q *corev1.Pod) bool {
	a, b := p.Spec, q.Spec
	a.NodeName, b.NodeName = "", ""
	return maps.Equal(kube.SharedLabels(p.Labels), kube.SharedLabels(q.Labels)) &&
		maps.Equal(relevant(p.Annotations), relevant(q.Annotations)) && reflect.DeepEqual(&a, &b)
}

// read reads a template whose name and kind are set in t.
func (tt *templateTable) read(t policy.Template, of map[string]string, mirror bool, p *corev1.Pod, w *workload,
	h *holding) *template {
	spec := &p.Spec
	if t.DaemonSet {
		spec = kube.Unpinned(spec)
	}
	tt.readTemplate(&t, kube.SharedLabels(p.Labels), spec, p, w)
	if h != nil {
		t.Devices, t.Uncounted = h.uses, h.unknown
	}
	if mirror {
		tt.pin(&t, p.Spec.NodeName)
	}
	a := tt.faults.annotations(t.Name, of, p.Annotations)
	finishTemplate(&t, a, w)
	return tt.keep(&t, w)
}

// declares reports whether the template in the object of w must be in the table. If w has pods, it
// would not describe any of them. The template of a DaemonSet is needed in any case, since it
// describes the pods on new nodes.
func (w *workload) declares() bool {
	return w.spec != nil && (w.pods == 0 || w.key.kind == policy.KindDaemonSet)
}

// declare reads the template in the object of w.
func (tt *templateTable) declare(w *workload) {
	w.waiting = false
	before := w.declared
	w.declared = nil
	if w.declares() {
		namespace, _, _ := strings.Cut(w.key.name, "/")
		t := policy.Template{Name: w.key.name, Namespace: namespace, DaemonSet: w.key.kind == policy.KindDaemonSet}
		tt.readTemplate(&t, w.spec.Labels, &w.spec.Spec, nil, w)
		for i := range w.claims {
			t.Volumes = append(t.Volumes, kube.Volume(&w.claims[i].Spec))
		}
		if t.DaemonSet {
			t.Tolerations = append(t.Tolerations, kube.DaemonTolerations()...)
		}
		finishTemplate(&t, tt.faults.annotations(t.Name, w.annotations, w.spec.Annotations), w)
		w.declared = tt.keep(&t, w)
	}
	tt.release(before)
}

// finishTemplate sets the fields of t that annotations determine.
func finishTemplate(t *policy.Template, a *kube.Annotations, w *workload) {
	a.Fill(t)
	t.CPUUse = kube.CPUUse(t, a.CPUUtilisation(), kube.CPUUtilisation)
	if w != nil && kube.Expendable(t, w.key.kind) {
		t.OutagePenalty = 0
	}
	if w != nil && w.key.kind == policy.KindJob {
		t.Duration = a.Duration(time.Second, kube.AnnotationDuration)
		t.Checkpoint = a.Duration(time.Second, kube.AnnotationCheckpoint)
		t.Gang = w.gang
	}
}

// readTemplate reads a specification. pod is nil if the specification is not that of a pod.
func (tt *templateTable) readTemplate(t *policy.Template, labels map[string]string, s *corev1.PodSpec,
	pod *corev1.Pod, w *workload) {
	r := kube.Reader{
		Fail: func(path []string, format string, args ...any) {
			tt.faults.warn(t.Name, strings.Join(path, ".")+": "+fmt.Sprintf(format, args...))
		},
		Warn:       func(format string, args ...any) { tt.faults.warn(t.Name, fmt.Sprintf(format, args...)) },
		Priority:   tt.priorities.get,
		Namespaces: tt.namespaces.selected,
		Claim: func(claim string) policy.Volume {
			own := pod != nil && w != nil && w.key.kind == policy.KindStatefulSet && strings.HasSuffix(claim, "-"+pod.Name)
			return tt.volumes.volume(t.Namespace, claim, own)
		},
	}
	r.Template(t, labels, s)
	catalogLabels(t)
}

// catalogLabels changes the keys of selected instance-type labels to those of the catalog, so that
// labels of EKS Auto Mode match instance types that have no node yet.
func catalogLabels(t *policy.Template) {
	for i := range t.NodeSelector {
		t.NodeSelector[i].Key = kube.InstanceLabel(t.NodeSelector[i].Key)
	}
	terms := slices.Clone(t.Affinity)
	for _, p := range t.Preferred {
		terms = append(terms, p.Term)
	}
	for _, term := range terms {
		for i := range term.Labels {
			term.Labels[i].Key = kube.InstanceLabel(term.Labels[i].Key)
		}
	}
}

// pin restricts static pods of the control plane to control-plane nodes, so that they are not
// expected on every node.
func (tt *templateTable) pin(t *policy.Template, node string) {
	const controlPlane = "node-role.kubernetes.io/control-plane"
	if i, ok := tt.nodes.byName[node]; ok {
		if v, is := tt.nodes.entries[i].object.Labels[controlPlane]; is {
			t.NodeSelector = append(t.NodeSelector, policy.Label{Key: controlPlane, Value: v})
			slices.SortFunc(t.NodeSelector, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
		}
	}
}
