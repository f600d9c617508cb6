package fixed

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/scheduler"
)

// A run schedules the pods of a cluster.
type run struct {
	*Cluster
	*scheduler.Scheduler
	space     *placement.Space
	templates *templateTable

	// pods are the pods in the order of the input, followed by the missing pods of workloads and
	// the pods of DaemonSets. The following slices are indexed by pod.
	pods      []policy.Pod
	inputs    []pod
	placed    []placedAs
	recreated []bool // whether its workload creates it again after a preemption

	daemons []daemonSet
	pinned  map[policy.PodID]policy.NodeID // the nodes of pods of DaemonSets that do not fit there

	clock     policy.Time // binding time of the last bound pod
	victims   []policy.PodID
	preempted []string
}

// placedAs is the role of a pod in the run.
type placedAs uint8

const (
	waiting   placedAs = iota
	running            // on its node from the start
	elsewhere          // on a node that is not in the input
	others             // another scheduler places it
	gated
	daemon // of a DaemonSet, on its node or pending for it
	gone   // preempted, and no workload creates it again
)

// Schedule binds the pods that have no node, in the order of kube-scheduler's queue: by priority,
// then by age, then in the order of the input. A pod that fits no node may preempt others. Pods
// that could not be placed are tried again while something changes that may help.
func (c *Cluster) Schedule() (*Result, error) {
	if len(c.nodes) == 0 {
		return nil, errors.New("there is no Node among the objects")
	}
	owners := c.ownersOf()
	inputs := slices.Clone(c.pods)
	for _, w := range c.workloads {
		inputs = append(inputs, owners.missing(w)...)
	}
	r := &run{Cluster: c, inputs: inputs, templates: c.templates(owners), pinned: map[policy.PodID]policy.NodeID{}}
	r.add()
	r.addDaemons()
	if len(r.templates.errs) > 0 {
		return nil, scenarios.InOrder(r.templates.errs)
	}
	if len(r.pods) == 0 {
		return nil, errors.New("there is no pod and no workload among the objects")
	}
	r.open()
	r.bindDaemons()
	for pending := r.queue(); len(pending) > 0; {
		was := len(pending)
		pending = r.pass(pending)
		if len(r.victims) == 0 && len(pending) == was {
			break
		}
		pending = append(pending, r.endVictims()...)
		r.sortQueue(pending)
	}
	return r.result(), nil
}

// add adds the pods of the input.
func (r *run) add() {
	byName := map[string]policy.NodeID{}
	for i := range r.nodes {
		byName[r.nodes[i].Name] = policy.NodeID(i)
	}
	for i := range r.inputs {
		p := &r.inputs[i]
		spec := &p.object.Spec
		x := policy.Pod{ID: policy.PodID(i), Name: namespaceOf(p.object) + "/" + p.name, Template: r.templates.of(p),
			Phase: policy.PodPending,
			Node:  policy.None, Nominated: policy.None, VolumeZone: policy.None}
		n, known := byName[spec.NodeName]
		as := waiting
		switch {
		case spec.NodeName != "" && known:
			as, x.Node, x.Phase = running, n, policy.PodReady
			if p.object.DeletionTimestamp != nil {
				x.Phase = policy.PodTerminating
			}
			if at := p.object.Status.StartTime; at != nil {
				x.Bound = policy.TimeOf(at.Time)
			}
			r.clock = max(r.clock, x.Bound)
		case spec.NodeName != "":
			as = elsewhere
			r.templates.note("on nodes that are not given", p)
		case spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName:
			as = others
			r.templates.note("left to the scheduler "+spec.SchedulerName, p)
		case len(spec.SchedulingGates) > 0:
			as = gated
		}
		owner := r.templates.owners.of(p.object)
		r.pods, r.placed = append(r.pods, x), append(r.placed, as)
		r.recreated = append(r.recreated, owner != nil && owner.kind != kindDaemonSet || owner == nil && controlled(p.object))
	}
}

// controlled reports whether the pod has a controller that would create it again.
func controlled(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller && o.Kind != kindDaemonSet && o.Kind != "Node"
	})
}

// open creates the space and the scheduler, with the running pods.
func (r *run) open() {
	t := r.templates
	var zones []string
	for i := range r.inputs {
		zone := r.zoneOf(r.inputs[i].object)
		if zone == "" {
			continue
		}
		at := slices.Index(zones, zone)
		if at < 0 {
			at, zones = len(zones), append(zones, zone)
		}
		r.pods[i].VolumeZone = policy.ZoneID(at)
	}
	for i := range r.nodes {
		if zone, has := r.nodes[i].Label(corev1.LabelTopologyZone); has && !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
	}
	for i := range r.nodes {
		for _, name := range slices.Sorted(maps.Keys(r.nodes[i].extended)) {
			t.number(name)
		}
	}
	r.space = placement.New(t.all, zones)
	for i := range t.all {
		r.space.RequestExtended(policy.TemplateID(i), t.extended[i])
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		r.space.SetNode(&n.Node)
		offers := make([]int64, len(t.resources))
		for name, q := range n.extended {
			offers[t.number(name)] = q.Value()
		}
		r.space.OfferExtended(n.ID, offers)
	}
	r.Scheduler = scheduler.New(r.space, t.all, t.peer)
	for i := range r.pods {
		if p := &r.pods[i]; r.placed[i] == running {
			r.space.Bind(p, p.Node)
		}
	}
	for i := range r.nodes {
		r.Changed(policy.NodeID(i))
	}
	r.allowDisruptions()
}

// allowDisruptions computes the allowed disruptions of the PodDisruptionBudgets whose status does
// not contain them.
func (r *run) allowDisruptions() {
	for i := range r.pdbs {
		b := &r.pdbs[i]
		if b.Expected > 0 {
			continue
		}
		for k := range r.pods {
			if !slices.Contains(r.templates.all[r.pods[k].Template].PDBs, b.ID) {
				continue
			}
			b.Expected++
			if r.placed[k] == running {
				b.Healthy++
			}
		}
		b.Desired = b.Required(b.Expected)
		b.Allowed = max(0, b.Healthy-b.Desired)
	}
}

func (r *run) queue() (ids []policy.PodID) {
	for i := range r.pods {
		if r.placed[i] == waiting {
			ids = append(ids, policy.PodID(i))
		}
	}
	r.sortQueue(ids)
	return ids
}

func (r *run) sortQueue(ids []policy.PodID) {
	slices.SortStableFunc(ids, func(a, b policy.PodID) int {
		x, y := r.inputs[a].object, r.inputs[b].object
		return cmp.Or(cmp.Compare(r.templateOf(b).Priority, r.templateOf(a).Priority),
			x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(a, b))
	})
}

func (r *run) templateOf(id policy.PodID) *policy.Template {
	return &r.templates.all[r.pods[id].Template]
}

// pass tries pods once, in order, and returns those without a node. After one of several
// interchangeable pods could not be placed, the others are not tried.
func (r *run) pass(pending []policy.PodID) (rest []policy.PodID) {
	failed, stays := map[policy.TemplateID]bool{}, map[policy.TemplateID]bool{}
	for _, id := range pending {
		p := &r.pods[id]
		alike := p.VolumeZone == policy.None && r.Nominated(id) == policy.None
		if !failed[p.Template] || !alike {
			if n, ok := r.Pick(p); ok {
				r.bind(id, n)
				continue
			}
			failed[p.Template] = failed[p.Template] || alike
		}
		rest = append(rest, id)
		if !stays[p.Template] || !alike {
			stays[p.Template] = !r.preempt(p) && alike
		}
	}
	return rest
}

func (r *run) bind(id policy.PodID, n policy.NodeID) {
	p := &r.pods[id]
	r.Withdraw(id)
	r.clock++
	p.Node, p.Phase, p.Bound = n, policy.PodReady, r.clock
	r.space.Bind(p, n)
	r.Changed(n)
	r.fixZone(p)
}

// fixZone restricts the pods that share a claim with p, which has just been bound, to its zone.
func (r *run) fixZone(p *policy.Pod) {
	t, zone := r.templateOf(p.ID), r.space.Scoring().Zone(p.Node)
	for _, v := range t.Volumes {
		if !v.Zonal || v.Claim == "" {
			continue
		}
		for i := range r.pods {
			u := r.templateOf(policy.PodID(i))
			shares := u.Namespace == t.Namespace && slices.ContainsFunc(u.Volumes,
				func(w policy.Volume) bool { return w.Claim == v.Claim })
			if shares && r.pods[i].VolumeZone == policy.None {
				r.pods[i].VolumeZone = zone
			}
		}
	}
}

// preempt marks pods of lower priority for preemption if that makes room for p, and reports whether
// it does.
func (r *run) preempt(p *policy.Pod) bool {
	n, victims := r.Preempt(p, r.pods, r.pdbs)
	if n == policy.None {
		return false
	}
	r.Nominate(p, n, victims)
	for _, v := range victims {
		x := &r.pods[v]
		if x.Phase == policy.PodTerminating {
			continue
		}
		r.space.MarkTerminating(x, x.Node)
		x.Phase = policy.PodTerminating
		r.victims = append(r.victims, v)
	}
	r.Changed(n)
	return true
}

// endVictims removes the preempted pods, and returns those that their workloads create again.
func (r *run) endVictims() (again []policy.PodID) {
	for _, v := range r.victims {
		x := &r.pods[v]
		r.space.Unbind(x, x.Node)
		r.Changed(x.Node)
		r.preempted = append(r.preempted, x.Name)
		x.Node, x.Phase, r.placed[v] = policy.None, policy.PodGone, gone
		if r.recreated[v] {
			x.Phase, r.placed[v] = policy.PodPending, waiting
			again = append(again, v)
		}
	}
	r.victims = r.victims[:0]
	return again
}

// A daemonSet is a DaemonSet with the template of its pods, and the nodes that have one.
type daemonSet struct {
	*workload
	object   *corev1.Pod
	template policy.TemplateID
	has      map[policy.NodeID]bool
}

// addDaemons collects the DaemonSets, and the nodes on which they have pods.
func (r *run) addDaemons() {
	has := map[*workload]map[policy.NodeID]bool{}
	for i := range r.pods {
		if w := r.templates.owners.of(r.inputs[i].object); w != nil && w.kind == kindDaemonSet && r.placed[i] == running {
			if has[w] == nil {
				has[w] = map[policy.NodeID]bool{}
			}
			has[w][r.pods[i].Node] = true
		}
	}
	for _, w := range r.workloads {
		if w.kind == kindDaemonSet {
			object := w.pod()
			r.daemons = append(r.daemons, daemonSet{w, object, r.templates.of(&pod{w.name, object, w.problem}), has[w]})
		}
	}
}

// bindDaemons creates a pod of each DaemonSet for each suitable node that has none, before other
// pods are scheduled. A pod that does not fit its node stays pending.
func (r *run) bindDaemons() {
	for _, d := range r.daemons {
		for n := range r.nodes {
			id := policy.NodeID(n)
			if d.has[id] || r.space.Suits(d.template, r.nodes[n].Labels, r.nodes[n].Taints) != placement.OK {
				continue
			}
			p := policy.Pod{ID: policy.PodID(len(r.pods)), Name: d.namespace + "/" + d.name + "-" + r.nodes[n].Name,
				Template: d.template,
				Phase:    policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
			r.inputs = append(r.inputs, pod{d.name + "-" + r.nodes[n].Name, d.object, d.problem})
			r.pods, r.placed, r.recreated = append(r.pods, p), append(r.placed, daemon), append(r.recreated, false)
			if r.space.Check(&p, id) == placement.OK {
				r.bind(p.ID, id)
			} else {
				r.pinned[p.ID] = id
			}
		}
	}
}
