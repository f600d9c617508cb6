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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A template is what pods have in common, and how many have it.
type template struct {
	t        policy.Template
	key      string
	workload *workload // nil for pods that no controller would make anew
	refs     int
}

// A templateTable holds the distinct templates by what they say.
type templateTable struct {
	byKey map[string]*template

	// shifted says that the set of templates, workloads or disruption budgets has
	// changed, so that identifiers are to be given anew.
	shifted bool

	// list and work are as snapshots show them: shared and never written.
	list  []policy.Template
	work  []*workload
	order []*pdb
}

func (t *templateTable) init() { t.byKey, t.shifted = map[string]*template{}, true }

// keep returns the template that says what t says of pods of w, with one reference
// more.
func (o *Observer) keep(t *policy.Template, w *workload) *template {
	text, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("cluster: template %s: %v", t.Name, err))
	}
	if w != nil {
		text = append(text, byte('0'+w.key.kind))
	}
	x := o.byKey[string(text)]
	if x == nil {
		x = &template{t: *t, key: string(text), workload: w}
		o.byKey[x.key] = x
		o.shifted = true
	}
	x.workload = w
	x.refs++
	return x
}

// letGo takes a reference from x, which may be nil.
func (o *Observer) letGo(x *template) {
	if x == nil {
		return
	}
	if x.refs--; x.refs == 0 {
		delete(o.byKey, x.key)
		o.shifted = true
	}
}

// labelsOfOne are the labels that tell one pod from its siblings. They are left out
// of templates, or every pod would have one of its own.
var labelsOfOne = []string{
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index",
}

// templateOf returns the template of a pod, with one reference more. That of the pod of
// its workload that was read last is taken where the two are alike.
func (o *Observer) templateOf(p *corev1.Pod, w *workload) *template {
	t := policy.Template{Name: key(p), Namespace: p.Namespace}
	var of map[string]string
	mirror := p.Annotations[corev1.MirrorPodAnnotationKey] != ""
	switch {
	case w != nil && w.key.kind == policy.KindDaemonSet && w.spec != nil:
		if w.declared == nil || w.waiting {
			o.declare(w)
		}
		w.declared.refs++
		return w.declared
	case w != nil:
		t.Name, of = w.key.name, w.annotations
		t.DaemonSet = w.key.kind == policy.KindDaemonSet
	case mirror:
		t.Name, t.DaemonSet = p.Namespace+"/"+strings.TrimSuffix(p.Name, "-"+p.Spec.NodeName), true
	}
	alone := w == nil || hasClaims(p)
	if !alone && w.last != nil && w.like.refs > 0 && alike(p, w.last) {
		w.like.refs++
		return w.like
	}
	x := o.newTemplate(t, of, mirror, p, w)
	if !alone {
		w.last, w.like = p, x
	}
	return x
}

// alike reports whether two pods of a workload have the same template, as long as nothing
// else changes that it is read from.
func alike(p, q *corev1.Pod) bool {
	a, b := p.Spec, q.Spec
	a.NodeName, b.NodeName = "", ""
	return maps.Equal(p.Labels, q.Labels) && maps.Equal(relevant(p.Annotations), relevant(q.Annotations)) && reflect.DeepEqual(&a, &b)
}

// newTemplate reads a template of which the name and the kind are known.
func (o *Observer) newTemplate(t policy.Template, of map[string]string, mirror bool, p *corev1.Pod, w *workload) *template {
	plain := p.Labels
	if slices.ContainsFunc(labelsOfOne, func(l string) bool { _, has := plain[l]; return has }) {
		plain = maps.Clone(plain)
		maps.DeleteFunc(plain, func(l, _ string) bool { return slices.Contains(labelsOfOne, l) })
	}
	spec := &p.Spec
	if t.DaemonSet {
		spec = unpinned(spec)
	}
	o.readTemplate(&t, plain, spec, p, w)
	if mirror {
		o.pin(&t, p.Spec.NodeName)
	}
	a := o.annotationsOf(t.Name, of, p.Annotations)
	o.finish(&t, a, w)
	return o.keep(&t, w)
}

// declares reports whether the template that the object of w states is to be in the
// table: beside pods it would stand for none of them, but what a DaemonSet puts on
// new nodes counts whatever it has now.
func (w *workload) declares() bool {
	return w.spec != nil && (w.pods == 0 || w.key.kind == policy.KindDaemonSet)
}

// declare reads the template that the object of w states.
func (o *Observer) declare(w *workload) {
	w.waiting = false
	before := w.declared
	w.declared = nil
	if w.declares() {
		namespace, _, _ := strings.Cut(w.key.name, "/")
		t := policy.Template{Name: w.key.name, Namespace: namespace, DaemonSet: w.key.kind == policy.KindDaemonSet}
		o.readTemplate(&t, w.spec.Labels, &w.spec.Spec, nil, w)
		for i := range w.claims {
			t.Volumes = append(t.Volumes, kube.Volume(&w.claims[i].Spec))
		}
		if t.DaemonSet {
			t.Tolerations = append(t.Tolerations, kube.DaemonTolerations()...)
		}
		o.finish(&t, o.annotationsOf(t.Name, w.annotations, w.spec.Annotations), w)
		w.declared = o.keep(&t, w)
	}
	o.letGo(before)
}

// finish fills in what annotations say.
func (o *Observer) finish(t *policy.Template, a *kube.Annotations, w *workload) {
	a.Fill(t)
	if w != nil && w.key.kind == policy.KindJob {
		t.Duration = a.Duration(time.Second, kube.AnnotationDuration)
		t.Checkpoint = a.Duration(time.Second, kube.AnnotationCheckpoint)
		t.Gang = w.gang
	}
}

// readTemplate reads a specification. pod is nil where it is not that of a pod.
func (o *Observer) readTemplate(t *policy.Template, labels map[string]string, s *corev1.PodSpec, pod *corev1.Pod, w *workload) {
	r := kube.Reader{
		Fail: func(path []string, format string, args ...any) {
			o.complain(t.Name, strings.Join(path, ".")+": "+fmt.Sprintf(format, args...))
		},
		Warn:       func(format string, args ...any) { o.complain(t.Name, fmt.Sprintf(format, args...)) },
		Priority:   o.priority,
		Namespaces: o.selected,
		Claim: func(claim string) policy.Volume {
			own := pod != nil && w != nil && w.key.kind == policy.KindStatefulSet && strings.HasSuffix(claim, "-"+pod.Name)
			return o.volumes.volume(t.Namespace, claim, own)
		},
	}
	r.Template(t, labels, s)
}

// unpinned returns s less the affinity to one node by name that its controller gives
// to each pod of a DaemonSet.
func unpinned(s *corev1.PodSpec) *corev1.PodSpec {
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil || s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return s
	}
	s = s.DeepCopy()
	n := s.Affinity.NodeAffinity
	var terms []corev1.NodeSelectorTerm
	for _, t := range n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		t.MatchFields = slices.DeleteFunc(t.MatchFields, func(f corev1.NodeSelectorRequirement) bool { return f.Key == metav1.ObjectNameField })
		if len(t.MatchFields)+len(t.MatchExpressions) > 0 {
			terms = append(terms, t)
		}
	}
	n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = terms
	if len(terms) == 0 {
		n.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	return s
}

// pin keeps the static pods of control planes from being expected on every node.
func (o *Observer) pin(t *policy.Template, node string) {
	const controlPlane = "node-role.kubernetes.io/control-plane"
	if i, ok := o.byName[node]; ok {
		if v, is := o.nodeX[i].object.Labels[controlPlane]; is {
			t.NodeSelector = append(t.NodeSelector, policy.Label{Key: controlPlane, Value: v})
			slices.SortFunc(t.NodeSelector, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
		}
	}
}

// priority returns the class of that name, the default for none. One that is not
// there gives nothing: the API server has written its value into the pod.
func (o *Observer) priority(class string) (kube.Priority, error) {
	if class == "" {
		return o.preset, nil
	}
	p, ok := o.priorities[class]
	if !ok {
		return kube.Priority{Name: class}, fmt.Errorf("no PriorityClass is called %q", class)
	}
	return p, nil
}

// selected returns the names of the namespaces that s selects, ascending.
func (o *Observer) selected(s *metav1.LabelSelector) ([]string, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, l := range o.namespaces {
		if selector.Matches(labels.Set(l)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// tabulate gives identifiers to templates, workloads and disruption budgets, in the
// order of their names, where one of the three has changed.
func (o *Observer) tabulate() {
	for _, w := range o.workloads {
		if w.waiting || (w.declared != nil) != w.declares() {
			o.declare(w)
		}
	}
	if !o.shifted {
		return
	}
	o.shifted = false
	o.orderWork()
	o.orderPDBs()
	all := slices.SortedFunc(maps.Values(o.byKey), func(a, b *template) int {
		return cmp.Or(strings.Compare(a.t.Name, b.t.Name), strings.Compare(a.key, b.key))
	})
	o.list = make([]policy.Template, len(all))
	for i, x := range all {
		x.t.ID, x.t.Workload = policy.TemplateID(i), policy.None
		if x.workload != nil {
			x.t.Workload = x.workload.id
		}
		x.t.PDBs = o.selecting(&x.t)
		o.list[i] = x.t
	}
	for i := range o.pods {
		if x := &o.podX[i]; x.template != nil {
			o.pods[i].Template = x.template.t.ID
		}
	}
}

// orderWork numbers the workloads. Those that have neither an object nor pods are
// forgotten.
func (o *Observer) orderWork() {
	o.work = o.work[:0]
	for k, w := range o.workloads {
		if !w.known && w.pods == 0 && !o.awaited(w) {
			delete(o.workloads, k)
			continue
		}
		o.work = append(o.work, w)
	}
	slices.SortFunc(o.work, func(a, b *workload) int {
		return cmp.Or(strings.Compare(a.key.name, b.key.name), cmp.Compare(a.key.kind, b.key.kind))
	})
	for i, w := range o.work {
		w.id = policy.WorkloadID(i)
	}
}

// awaited reports whether a pod that ended and was not yet reported of belonged to w.
func (o *Observer) awaited(w *workload) bool {
	return slices.ContainsFunc(o.ended, func(e ending) bool { return e.template != nil && e.template.workload == w })
}

// fillWork writes templates, workloads, disruption budgets and pods.
func (o *Observer) fillWork(s *policy.Snapshot) {
	s.Templates = o.list
	s.Workloads = make([]policy.Workload, 0, len(o.work))
	for _, w := range o.work {
		s.Workloads = append(s.Workloads, policy.Workload{
			ID: w.id, Name: w.key.name, Kind: w.key.kind, Replicas: w.replicas, Ready: w.ready,
			Deadline: w.deadline, Work: w.work, Suspended: w.suspended,
		})
		if x := &s.Workloads[w.id]; w.key.kind == policy.KindDaemonSet || !w.known {
			x.Replicas = w.pods
		}
	}
	s.PDBs = make([]policy.PDB, 0, len(o.order))
	for _, b := range o.order {
		s.PDBs = append(s.PDBs, b.pdb)
	}
	s.Pods = slices.Clone(o.pods)
}
