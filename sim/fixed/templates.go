package fixed

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A templateTable contains the templates that pods share.
type templateTable struct {
	cluster *Cluster
	owners  *owners
	users   map[string]int // number of pods by claim

	all      []policy.Template
	peers    []*policy.Selector // by template; see Cluster.peersOf
	extended [][]placement.Amount
	byObject map[*corev1.Pod]policy.TemplateID
	byText   map[string]policy.TemplateID

	resources []corev1.ResourceName // extended resources, by number
	errs      []error
	notes     map[string][]string // names of pods, by note
}

func (c *Cluster) templates(o *owners) *templateTable {
	t := &templateTable{cluster: c, owners: o, users: map[string]int{}, byObject: map[*corev1.Pod]policy.TemplateID{},
		byText: map[string]policy.TemplateID{}, notes: map[string][]string{}}
	for i := range c.pods {
		p := c.pods[i].object
		for k := range p.Spec.Volumes {
			if v := p.Spec.Volumes[k].PersistentVolumeClaim; v != nil {
				t.users[namespaceOf(p)+"/"+v.ClaimName]++
			}
		}
	}
	return t
}

// number returns the number of an extended resource. It adds the resource if it is new.
func (t *templateTable) number(name corev1.ResourceName) int {
	if i := slices.Index(t.resources, name); i >= 0 {
		return i
	}
	t.resources = append(t.resources, name)
	return len(t.resources) - 1
}

// of returns the template of a pod. Pods that the scheduler treats alike share a template.
func (t *templateTable) of(p *pod) policy.TemplateID {
	if id, known := t.byObject[p.object]; known {
		return id
	}
	x, extended := t.read(p)
	peers, err := t.cluster.peersOf(t.owners, p.object, x.Labels)
	if err != nil {
		t.errs = append(t.errs, p.problem(nil, "%v", err))
	}
	text, err := json.Marshal([]any{x, extended, peers})
	if err != nil {
		panic(fmt.Sprintf("fixed: writing the template of %s: %v", p.name, err))
	}
	id, known := t.byText[string(text)]
	if !known {
		id = policy.TemplateID(len(t.all))
		t.byText[string(text)] = id
		x.ID = id
		t.all, t.peers, t.extended = append(t.all, x), append(t.peers, peers), append(t.extended, extended)
	}
	t.byObject[p.object] = id
	return id
}

// read reads the template of a pod and its requests for extended resources. The template's ID is
// not set.
func (t *templateTable) read(p *pod) (policy.Template, []placement.Amount) {
	o := p.object
	x := policy.Template{Workload: policy.None, Namespace: namespaceOf(o)}
	fail := func(path []string, format string, args ...any) {
		t.errs = append(t.errs, p.problem(path, format, args...))
	}
	reader := kube.Reader{
		Fail:       fail,
		Priority:   func(class string) (kube.Priority, error) { return t.priority(p, class), nil },
		Claim:      func(name string) policy.Volume { return t.volume(o, name) },
		Namespaces: t.namespaces,
	}
	spec := &o.Spec
	by := metav1.GetControllerOfNoCopy(o)
	ofDaemonSet := by != nil && by.Kind == kindDaemonSet
	if ofDaemonSet && spec.NodeName != "" {
		spec = kube.Unpinned(spec) // otherwise, each node would have a template
	}
	if len(spec.Containers) == 0 {
		fail([]string{"spec", "containers"}, "must not be empty")
	}
	reader.Template(&x, kube.SharedLabels(o.Labels), nativeOnly(spec))
	x.PriorityClass = "" // only its value matters
	if ofDaemonSet {
		x.Tolerations = append(x.Tolerations, kube.DaemonTolerations()...)
	}
	if len(spec.ResourceClaims) > 0 {
		t.note("devices of resource claims are not looked at", p)
	}
	requests := kube.Requests(spec)
	var extended []placement.Amount
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		switch q := requests[name]; {
		case native(name):
		case q.Sign() < 0 || tooMuch(name, q):
			fail([]string{"spec", "containers"}, "%s of %s is not from 0 to %s", name, q.String(), most(name).String())
		case q.Sign() > 0:
			extended = append(extended, placement.Amount{Resource: t.number(name), Quantity: q.Value()})
		}
	}
	for i := range t.cluster.pdbs {
		if b := &t.cluster.pdbs[i]; b.Namespace == x.Namespace && b.Selector.Matches(x.Labels) {
			x.PDBs = append(x.PDBs, b.ID)
		}
	}
	return x, extended
}

// nativeOnly returns a copy of a specification without requests for extended resources. These are
// counted separately, since a policy.Template has only one kind of accelerator.
func nativeOnly(of *corev1.PodSpec) *corev1.PodSpec {
	s := of.DeepCopy()
	lists := []corev1.ResourceList{s.Overhead}
	add := func(r *corev1.ResourceRequirements) { lists = append(lists, r.Requests, r.Limits) }
	for i := range s.InitContainers {
		add(&s.InitContainers[i].Resources)
	}
	for i := range s.Containers {
		add(&s.Containers[i].Resources)
	}
	if s.Resources != nil {
		add(s.Resources)
	}
	for _, l := range lists {
		maps.DeleteFunc(l, func(name corev1.ResourceName, _ resource.Quantity) bool { return !native(name) })
	}
	return s
}

// priority returns the priority class of a pod. If the class is not in the input, the value that
// the API server wrote into the pod is used.
func (t *templateTable) priority(p *pod, class string) kube.Priority {
	found, known := t.cluster.classes[class]
	switch {
	case class == "":
		return t.cluster.defaultClass
	case known:
		return found
	case p.object.Spec.Priority != nil:
		return kube.Priority{Name: class, Value: *p.object.Spec.Priority}
	}
	t.note(fmt.Sprintf("PriorityClass %s is not given, and its pods have the priority 0", class), p)
	return kube.Priority{Name: class}
}

// volume returns the volume of a claim. The claim is named only if several pods use it.
func (t *templateTable) volume(p *corev1.Pod, name string) policy.Volume {
	key := namespaceOf(p) + "/" + name
	v := policy.Volume{Zonal: true}
	if c := t.cluster.claims[key]; c != nil {
		v = kube.Volume(&c.Spec)
	}
	if t.users[key] > 1 {
		v.Claim = name
	}
	return v
}

// zoneOf returns the zone of the first bound zonal volume of a pod, or "" without one.
func (c *Cluster) zoneOf(p *corev1.Pod) string {
	for i := range p.Spec.Volumes {
		v := p.Spec.Volumes[i].PersistentVolumeClaim
		if v == nil {
			continue
		}
		if claim := c.claims[namespaceOf(p)+"/"+v.ClaimName]; claim != nil && c.zones[claim.Spec.VolumeName] != "" {
			return c.zones[claim.Spec.VolumeName]
		}
	}
	return ""
}

// namespaces returns the names of the namespaces that s selects. A namespace that is not in the
// input only has the label of its name.
func (t *templateTable) namespaces(s *metav1.LabelSelector) (names []string, err error) {
	selector, err := kube.Selector(s)
	labels := map[string]map[string]string{}
	for i := range t.cluster.pods {
		labels[namespaceOf(t.cluster.pods[i].object)] = nil
	}
	for _, n := range t.cluster.namespaces {
		labels[n.Name] = n.Labels
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		own := map[string]string{corev1.LabelMetadataName: name}
		maps.Copy(own, labels[name])
		if selector.Matches(kube.Labels(own)) {
			names = append(names, name)
		}
	}
	return names, err
}

func (t *templateTable) note(what string, p *pod) {
	t.notes[what] = append(t.notes[what], namespaceOf(p.object)+"/"+p.name)
}

// peer reports whether the default constraints spread pods of x over those of u; see scheduler.New.
func (t *templateTable) peer(x, u *policy.Template) bool {
	s := t.peers[x.ID]
	return s != nil && x.Namespace == u.Namespace && s.Matches(u.Labels)
}
