package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// ours is the simulator's scheduler on the cluster of a state.
type ours struct {
	*scheduler.Scheduler
	space     *placement.Space
	templates []policy.Template
	nodes     []policy.Node
	pods      []policy.Pod
	budgets   []policy.PDB
	zones     []string
	nodeIDs   map[string]policy.NodeID
	podIDs    map[string]policy.PodID
}

func newOurs(st *state) (*ours, error) {
	o := &ours{nodeIDs: map[string]policy.NodeID{}, podIDs: map[string]policy.PodID{},
		zones: []string{"zone-a", "zone-b", "zone-c"}}
	c := converter{st: st, byText: map[string]policy.TemplateID{}, users: map[string]int{}}
	for i := range st.Pods {
		for _, name := range claimsOf(&st.Pods[i]) {
			c.users[st.Pods[i].Namespace+"/"+name]++
		}
	}
	for i := range st.Pods {
		if err := c.addPod(o, &st.Pods[i]); err != nil {
			return nil, err
		}
	}
	c.addBudgets(o)
	o.space = placement.New(o.templates, o.zones)
	for i := range st.Nodes {
		o.nodeIDs[st.Nodes[i].Name] = policy.NodeID(i)
		o.nodes = append(o.nodes, nodeOf(policy.NodeID(i), &st.Nodes[i], st))
		o.space.SetNode(&o.nodes[i])
	}
	o.Scheduler = scheduler.New(o.space, o.templates, c.peers)
	for i := range st.Pods {
		if n := st.Pods[i].Spec.NodeName; n != "" {
			o.pods[i].Node, o.pods[i].Phase = o.nodeIDs[n], policy.PodReady
			o.pods[i].Bound = policy.TimeOf(st.Pods[i].Status.StartTime.Time)
			o.space.Bind(&o.pods[i], o.pods[i].Node)
		}
	}
	for i := range o.nodes {
		o.Changed(policy.NodeID(i))
	}
	return o, nil
}

// A converter reads a state as the simulator's data.
type converter struct {
	st     *state
	byText map[string]policy.TemplateID
	users  map[string]int // pods by claim
	owners []*corev1.Pod  // by template: one of its pods
}

// addPod appends a pod, and its template if no pod before had it.
func (c *converter) addPod(o *ours, p *corev1.Pod) error {
	spec := p.Spec.DeepCopy()
	spec.NodeName = ""
	for i := range spec.Volumes {
		if v := spec.Volumes[i].PersistentVolumeClaim; v != nil && c.users[p.Namespace+"/"+v.ClaimName] == 1 {
			v.ClaimName = "own"
		}
	}
	text, err := json.Marshal([]any{p.Namespace, p.Labels, p.OwnerReferences, spec})
	if err != nil {
		return err
	}
	id, known := c.byText[string(text)]
	if !known {
		id = policy.TemplateID(len(o.templates))
		c.byText[string(text)] = id
		t := policy.Template{ID: id, Workload: policy.None, Name: p.Namespace + "/" + p.Name, Namespace: p.Namespace}
		var failed error
		reader := kube.Reader{
			Fail: func(at []string, format string, args ...any) {
				failed = fmt.Errorf("%v: %s", at, fmt.Sprintf(format, args...))
			},
			Claim:      func(name string) policy.Volume { return c.volume(p, name) },
			Namespaces: c.namespaces,
		}
		if reader.Template(&t, p.Labels, &p.Spec); failed != nil {
			return fmt.Errorf("reading pod %s: %w", key(p), failed)
		}
		o.templates, c.owners = append(o.templates, t), append(c.owners, p)
	}
	o.podIDs[key(p)] = policy.PodID(len(o.pods))
	o.pods = append(o.pods, policy.Pod{
		ID: policy.PodID(len(o.pods)), Name: key(p), Template: id, Phase: policy.PodPending,
		Node: policy.None, Nominated: policy.None, VolumeZone: c.volumeZone(o, p),
	})
	return nil
}

func (c *converter) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	for i := range c.st.Claims {
		if x := &c.st.Claims[i]; x.Namespace == namespace && x.Name == name {
			return x
		}
	}
	return nil
}

func (c *converter) volume(p *corev1.Pod, name string) policy.Volume {
	v := kube.Volume(&c.claim(p.Namespace, name).Spec)
	if c.users[p.Namespace+"/"+name] > 1 {
		v.Claim = name
	}
	return v
}

// volumeZone returns the zone of the volumes that are bound already.
func (c *converter) volumeZone(o *ours, p *corev1.Pod) policy.ZoneID {
	for _, name := range claimsOf(p) {
		bound := c.claim(p.Namespace, name).Spec.VolumeName
		for i := range c.st.Volumes {
			if c.st.Volumes[i].Name == bound {
				if zone := zoneOf(&c.st.Volumes[i]); zone != "" {
					return policy.ZoneID(slices.Index(o.zones, zone))
				}
			}
		}
	}
	return policy.None
}

func (c *converter) namespaces(s *metav1.LabelSelector) (names []string, err error) {
	selector, err := kube.Selector(s)
	for i := range c.st.Namespaces {
		if selector.Matches(kube.Labels(c.st.Namespaces[i].Labels)) {
			names = append(names, c.st.Namespaces[i].Name)
		}
	}
	return names, err
}

func (c *converter) addBudgets(o *ours) {
	for i := range c.st.Budgets {
		b := &c.st.Budgets[i]
		selector, _ := kube.Selector(b.Spec.Selector)
		o.budgets = append(o.budgets, policy.PDB{ID: policy.PDBID(i), Namespace: b.Namespace, Selector: selector,
			Allowed: b.Status.DisruptionsAllowed})
		for k := range o.templates {
			if t := &o.templates[k]; t.Namespace == b.Namespace && len(t.Labels) > 0 && selector.Matches(t.Labels) {
				t.PDBs = append(t.PDBs, policy.PDBID(i))
			}
		}
	}
}

// peers is what the default constraints spread pods of t over: see scheduler.New.
func (c *converter) peers(t, u *policy.Template) bool {
	if t.Namespace != u.Namespace {
		return false
	}
	var all []policy.Requirement
	for i := range c.st.Services {
		s := &c.st.Services[i]
		selector, _ := kube.Selector(&metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		if s.Namespace == t.Namespace && len(s.Spec.Selector) > 0 && selector.Matches(t.Labels) {
			all = append(all, selector.Requirements...)
		}
	}
	if owner := metav1.GetControllerOf(c.owners[t.ID]); owner != nil {
		all = append(all, c.ownerSelector(t.Namespace, owner).Requirements...)
	}
	selector := policy.Selector{Requirements: all}
	return selector.Matches(u.Labels)
}

func (c *converter) ownerSelector(namespace string, owner *metav1.OwnerReference) policy.Selector {
	var found *metav1.LabelSelector
	for i := range c.st.ReplicaSets {
		if x := &c.st.ReplicaSets[i]; owner.Kind == "ReplicaSet" && x.Namespace == namespace && x.Name == owner.Name {
			found = x.Spec.Selector
		}
	}
	for i := range c.st.StatefulSets {
		if x := &c.st.StatefulSets[i]; owner.Kind == "StatefulSet" && x.Namespace == namespace && x.Name == owner.Name {
			found = x.Spec.Selector
		}
	}
	selector, _ := kube.Selector(found)
	return selector
}

func nodeOf(id policy.NodeID, n *corev1.Node, st *state) policy.Node {
	node := policy.Node{ID: id, Name: n.Name, Pool: policy.None, Market: policy.None, Phase: policy.NodeInitialized,
		Labels: kube.Labels(n.Labels)}
	node.Allocatable, node.GPUResource = kube.NodeResources(n.Status.Allocatable)
	if n.Spec.Unschedulable {
		node.Phase = policy.NodeDraining
	}
	for _, t := range n.Spec.Taints {
		if t.Key != corev1.TaintNodeUnschedulable {
			node.Taints = append(node.Taints, policy.Taint{Key: t.Key, Value: t.Value, Effect: v1alpha1.Effect(t.Effect)})
		}
	}
	for i := range st.CSINodes {
		if x := &st.CSINodes[i]; x.Name == n.Name {
			node.VolumesMax = *x.Spec.Drivers[0].Allocatable.Count
		}
	}
	return node
}

// schedule chooses for a pod as the simulator does.
func (o *ours) schedule(name string) choice {
	p := &o.pods[o.podIDs[name]]
	var c choice
	for n := range o.nodes {
		if o.Fits(p, policy.NodeID(n)) {
			c.feasible = append(c.feasible, o.nodes[n].Name)
		}
	}
	slices.Sort(c.feasible)
	n, ok := o.Pick(p)
	if !ok {
		var victims []policy.PodID
		if n, victims = o.Preempt(p, o.pods, o.budgets); n != policy.None {
			c.nominated = o.nodes[n].Name
			for _, v := range victims {
				if o.pods[v].Phase != policy.PodTerminating {
					c.victims = append(c.victims, o.pods[v].Name)
				}
			}
			slices.Sort(c.victims)
		}
		return c
	}
	c.node, c.scores = o.nodes[n].Name, map[string]int64{}
	scores, most := o.Scores(), int64(0)
	for _, s := range scores {
		most = max(most, s.Score)
	}
	for _, s := range scores {
		c.scores[o.nodes[s.Node].Name] = s.Score - most
	}
	return c
}

// filters says for each node what the filters find, and whom it is kept for.
func (o *ours) filters(name string) string {
	var list []string
	for n := range o.nodes {
		text := o.nodes[n].Name + " " + o.space.Check(&o.pods[o.podIDs[name]], policy.NodeID(n)).String()
		for i := range o.pods {
			if o.Nominated(policy.PodID(i)) == policy.NodeID(n) {
				text += ", kept for " + o.pods[i].Name
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// nominate makes true what the real scheduler did.
func (o *ours) nominate(name, node string, victims []string) {
	var ids []policy.PodID
	for _, v := range victims {
		ids = append(ids, o.podIDs[v])
	}
	o.Nominate(&o.pods[o.podIDs[name]], o.nodeIDs[node], ids)
	for _, v := range victims {
		o.terminate(v)
	}
}

func (o *ours) terminate(name string) {
	p := &o.pods[o.podIDs[name]]
	o.space.MarkTerminating(p, p.Node)
	p.Phase = policy.PodTerminating
	o.Changed(p.Node)
}

func (o *ours) remove(name string) {
	p := &o.pods[o.podIDs[name]]
	o.Withdraw(p.ID)
	if p.Node != policy.None {
		o.space.Unbind(p, p.Node)
		o.Changed(p.Node)
	}
	p.Node, p.Phase = policy.None, policy.PodGone
}

func (o *ours) bind(name, node string, at policy.Time) {
	p := &o.pods[o.podIDs[name]]
	o.Withdraw(p.ID)
	p.Node, p.Phase, p.Bound = o.nodeIDs[node], policy.PodReady, at
	o.space.Bind(p, p.Node)
	o.Changed(p.Node)
}

func (o *ours) setNode(n *corev1.Node, st *state) {
	id := o.nodeIDs[n.Name]
	o.nodes[id] = nodeOf(id, n, st)
	o.space.SetNode(&o.nodes[id])
	o.Changed(id)
}
