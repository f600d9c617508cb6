package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// youngFor is how much longer than its pool's consolidateAfter a node counts as
// nominated: nominations live in the memory of Karpenter only.
const youngFor = 30 * time.Second

// readNodes reads the slots that have changed.
func (o *Observer) readNodes() {
	for i := range o.nodes {
		if n := &o.nodes[i]; n.ReclaimAt != 0 && o.now.Sub(n.ReclaimAt) > o.cfg.NoticeMax {
			o.touchNode(int32(i)) // it may have been a false alarm
		}
	}
	for _, i := range o.reread {
		o.nodeX[i].dirty = false
		o.read(i)
		o.meet(i)
	}
	o.reread = o.reread[:0]
}

// read makes the entry of slot i in the table of nodes.
func (o *Observer) read(i int32) {
	e := &o.nodeX[i]
	n := policy.Node{ID: policy.NodeID(i), Pool: policy.None, Market: policy.None}
	if e.object == nil && e.machine == nil {
		o.nodes[i] = n
		return
	}
	if e.machine != nil {
		o.readMachine(&n, e)
	}
	if e.object != nil {
		o.readObject(&n, e)
	}
	o.readNotice(&n, e)
	o.nodes[i] = n
}

// meet counts what the entry of slot i shows to have happened.
func (o *Observer) meet(i int32) {
	e, n := &o.nodeX[i], &o.nodes[i]
	if n.Phase == policy.NodeGone {
		return
	}
	o.countLaunch(e, n)
	if n.ReclaimAt != 0 {
		o.countReclaim(e, n, n.NoticeAt)
	}
}

// readMachine fills n with what its backend knows.
func (o *Observer) readMachine(n *policy.Node, e *nodeEntry) {
	m, s := e.machine, o.view
	n.Name, n.Token, n.Bid, n.ActedBy, n.AtGroupMin = m.Name, m.Token, m.Bid, m.ActedBy, m.AtGroupMin
	n.Launched = o.clamp(m.Launched)
	n.Phase = policy.NodeLaunching
	if m.Phase == policy.NodeDeleting || e.leaving {
		n.Phase = policy.NodeDeleting
	}
	n.Pool = o.poolID(m.Pool)
	n.Market = o.listed(o.book.Lookup(m.Market))
	n.Labels, n.Taints, n.Allocatable = m.Labels, m.Taints, m.Allocatable
	if n.Market == policy.None {
		return
	}
	market := &s.Markets[n.Market]
	t := &s.Types[market.Type]
	if n.Allocatable == (policy.Resources{}) {
		n.Allocatable = t.Allocatable
	}
	n.VolumesMax, n.GPUResource = t.VolumesMax, t.GPUResource
	if n.Pool == policy.None {
		return
	}
	p := &o.pools[n.Pool].pool
	if n.Labels == nil {
		n.Labels = o.share(placement.NodeLabels(s.Types, s.Zones, p, market))
	}
	if n.Taints == nil {
		n.Taints = p.Taints
	}
}

// readObject fills n with what the Node object says, which counts before what its
// backend expected.
func (o *Observer) readObject(n *policy.Node, e *nodeEntry) {
	obj := e.object
	n.Name, n.Labels = obj.Name, o.share(nodeLabels(obj))
	if n.Pool == policy.None {
		n.Pool = o.poolOf(obj)
	}
	if n.Market == policy.None {
		n.Market = o.marketOf(n, obj)
	}
	n.Registered = o.clamp(policy.TimeOf(obj.CreationTimestamp.Time))
	n.Launched = cmp.Or(n.Launched, n.Registered)
	n.DoNotDisrupt = obj.Annotations[kube.AnnotationDoNotDisrupt] == "true"
	o.readSize(n, obj)
	m := marksOf(obj)
	n.ActedBy = firstActor(m.actor, n.ActedBy)
	n.Taints = taintsOf(obj, n.ActedBy)
	o.readReady(n, e)
	if obj.DeletionTimestamp != nil {
		n.Deleting = o.deletedAt(obj)
	}
	switch {
	case n.Phase == policy.NodeDeleting: // as its backend says
	case n.Initialized == 0 && obj.DeletionTimestamp == nil:
		n.Phase = policy.NodeRegistered
	case m.draining:
		n.Phase = policy.NodeDraining
	default:
		n.Phase = policy.NodeInitialized
	}
}

// deletedAt returns when an object that is being deleted was asked to go.
func (o *Observer) deletedAt(x metav1.Object) policy.Time {
	grace := time.Duration(ptr.Deref(x.GetDeletionGracePeriodSeconds(), 0)) * time.Second
	return o.clamp(policy.TimeOf(x.GetDeletionTimestamp().Add(-grace)))
}

// firstActor returns a, or b where a is nobody or a person: a cordon of which a
// backend knows the maker is not a person's.
func firstActor(a, b policy.Actor) policy.Actor {
	if a == policy.ActorNone || a == policy.ActorPerson && b != policy.ActorNone {
		return b
	}
	return a
}

// readSize fills in what pods may use.
func (o *Observer) readSize(n *policy.Node, obj *corev1.Node) {
	size, gpu := kube.NodeResources(obj.Status.Allocatable)
	if size.CPU > 0 {
		n.Allocatable, n.GPUResource = size, gpu
	}
	if n.Market != policy.None {
		s := o.view
		t := &s.Types[s.Markets[n.Market].Type]
		if size.CPU <= 0 {
			n.Allocatable, n.GPUResource = t.Allocatable, t.GPUResource
		}
		n.VolumesMax = t.VolumesMax
	}
	for k, q := range obj.Status.Allocatable {
		if strings.HasPrefix(string(k), "attachable-volumes-") {
			n.VolumesMax = int32(q.Value())
		}
	}
	if limit := o.csi[obj.Name]; limit > 0 {
		n.VolumesMax = limit
	}
	if n.VolumesMax == 0 {
		n.VolumesMax = volumesMaxUnknown
	}
}

// volumesMaxUnknown stands for the number of volumes of a node of which nobody says
// how many it takes: the least of what common instances do.
const volumesMaxUnknown = 24

// readReady fills in whether and since when the node takes pods.
func (o *Observer) readReady(n *policy.Node, e *nodeEntry) {
	obj := e.object
	ready := readyCondition(obj)
	_, karpenters := obj.Labels[labelKarpenterPool]
	waiting := slices.ContainsFunc(obj.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == taintUninitialized || t.Key == taintUnregistered
	})
	if e.initialized == 0 {
		switch {
		case karpenters && obj.Labels[labelKarpenterReady] != "true", waiting, ready == nil:
		case ready.Status == corev1.ConditionTrue, wasReady(obj, ready), karpenters:
			e.initialized = max(n.Registered, o.clamp(policy.TimeOf(ready.LastTransitionTime.Time)))
			if ready.Status != corev1.ConditionTrue {
				e.initialized = max(1, n.Registered)
			}
		}
	}
	n.Initialized = e.initialized
	n.NotReady = n.Initialized != 0 && (ready == nil || ready.Status != corev1.ConditionTrue)
}

// bootMax is how long after it joins a kubelet says that it is not ready yet.
const bootMax = 10 * time.Second

// wasReady reports whether a node that is not ready has been: a kubelet that fell
// silent did speak before, and a condition that changed long after the node joined
// had another value.
func wasReady(n *corev1.Node, c *corev1.NodeCondition) bool {
	return c.Status == corev1.ConditionUnknown || c.LastTransitionTime.Sub(n.CreationTimestamp.Time) > bootMax
}

func readyCondition(n *corev1.Node) *corev1.NodeCondition {
	if i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }); i >= 0 {
		return &n.Status.Conditions[i]
	}
	return nil
}

// readNotice fills in what was announced. An announced end that has long passed
// while the node works on was a false alarm.
func (o *Observer) readNotice(n *policy.Node, e *nodeEntry) {
	at, reclaim := e.noticeAt, e.reclaimAt
	if e.object != nil {
		m := marksOf(e.object)
		if m.reclaimLead != 0 {
			marked := cmp.Or(m.markedAt, e.marked, o.now)
			if end := marked.Add(m.reclaimLead); reclaim == 0 || end < reclaim {
				reclaim = end
			}
			if at == 0 || marked < at {
				at = marked
			}
		}
	}
	if reclaim != 0 && o.now.Sub(reclaim) > o.cfg.NoticeMax && n.Phase == policy.NodeInitialized && !n.NotReady {
		at, reclaim = 0, 0
	}
	if reclaim != 0 {
		n.NoticeAt, n.ReclaimAt = max(1, o.clamp(at)), reclaim
	}
	n.Recommended = o.clamp(e.recommended)
	if e.object == nil || reclaim == 0 && n.Recommended == 0 {
		return
	}
	// Managed node groups drain by themselves, and so does who read the notice for
	// us: a cordon is then theirs.
	actor := e.actor
	if _, managed := e.object.Labels[labelNodeGroup]; managed && actor == policy.ActorNone && n.ActedBy == policy.ActorPerson {
		actor = policy.ActorEKS
	}
	n.ActedBy = firstActor(n.ActedBy, actor)
	if n.ActedBy == actor && actor != policy.ActorNone && e.object.Spec.Unschedulable && n.Phase == policy.NodeInitialized {
		n.Phase = policy.NodeDraining
	}
}

// nodeLabels returns the labels of n but for its host name where that is the name of
// the node, which they stand for anyway: so that nodes that differ in nothing else
// have one list.
func nodeLabels(n *corev1.Node) []policy.Label {
	all := kube.Labels(n.Labels)
	return slices.DeleteFunc(all, func(l policy.Label) bool { return l.Key == corev1.LabelHostname && l.Value == n.Name })
}

// share returns the list that stands for all that are equal to labels.
func (o *Observer) share(labels []policy.Label) []policy.Label {
	var key strings.Builder
	for _, l := range labels {
		key.WriteString(l.Key)
		key.WriteByte('=')
		key.WriteString(l.Value)
		key.WriteByte(',')
	}
	if one, ok := o.nodeTable.labels[key.String()]; ok {
		return one
	}
	if len(o.nodeTable.labels) > 4*len(o.nodes)+64 {
		clear(o.nodeTable.labels) // those in use come again
	}
	o.nodeTable.labels[key.String()] = labels
	return labels
}

// taintsOf returns the taints of n, ascending, with who put each there. A cordon
// is one even before Kubernetes has made it so.
func taintsOf(n *corev1.Node, actor policy.Actor) []policy.Taint {
	var all []policy.Taint
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		owner := ownerOf(t.Key)
		if t.Key == corev1.TaintNodeUnschedulable {
			owner = actor
		}
		all = append(all, policy.Taint{Key: t.Key, Value: t.Value, Effect: v1alpha1.Effect(t.Effect), Owner: owner})
	}
	if n.Spec.Unschedulable && !slices.ContainsFunc(all, func(t policy.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }) {
		all = append(all, policy.Taint{Key: corev1.TaintNodeUnschedulable, Effect: policy.NoSchedule, Owner: actor})
	}
	slices.SortFunc(all, func(a, b policy.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
	})
	return all
}

// marketOf returns the market of a node by its labels.
func (o *Observer) marketOf(n *policy.Node, obj *corev1.Node) policy.MarketID {
	kind, region, zone := soldAs(obj)
	if kind == "" {
		return policy.None
	}
	capacity, _ := o.cfg.Capacity.Resolve(obj.Labels)
	return o.listed(o.book.Find(o.provider(n, obj), region, zone, kind, capacity))
}

// soldAs returns what the labels of a node say of its market; empty what they do not.
func soldAs(n *corev1.Node) (kind, region, zone string) {
	l := n.Labels
	return cmp.Or(l[corev1.LabelInstanceTypeStable], l[corev1.LabelInstanceType]),
		cmp.Or(l[corev1.LabelTopologyRegion], l[corev1.LabelFailureDomainBetaRegion]),
		cmp.Or(l[corev1.LabelTopologyZone], l[corev1.LabelFailureDomainBetaZone], l["topology.k8s.aws/zone-id"])
}

// whyUnpriced says of a node why its market is not known.
func (o *Observer) whyUnpriced(n *policy.Node, obj *corev1.Node) string {
	kind, region, zone := soldAs(obj)
	for _, x := range [...]struct{ value, label string }{{kind, corev1.LabelInstanceTypeStable}, {zone, corev1.LabelTopologyZone}} {
		if x.value == "" {
			return fmt.Sprintf("node %s has no label %s", n.Name, x.label)
		}
	}
	capacity, _ := o.cfg.Capacity.Resolve(obj.Labels)
	where := zone
	if region != "" {
		where += " of " + region
	}
	return fmt.Sprintf("of node %s, which is %s %s in zone %s, no source of prices tells, nor the catalog of %s",
		n.Name, capacity, kind, where, o.provider(n, obj))
}

// listed returns m, or None while no snapshot has the market.
func (o *Observer) listed(m policy.MarketID) policy.MarketID {
	if int(m) >= len(o.view.Markets) {
		return policy.None
	}
	return m
}

// provider returns who sells a node.
func (o *Observer) provider(n *policy.Node, obj *corev1.Node) string {
	scheme, _, _ := strings.Cut(obj.Spec.ProviderID, ":")
	switch scheme {
	case "aws", "azure":
		return scheme
	case "gce":
		return "gcp"
	}
	if n.Pool != policy.None && o.pools[n.Pool].object.Spec.Backend.Rackspace != nil {
		return policy.Rackspace
	}
	return o.cfg.Provider
}

// fillNodes copies the table of nodes, with what depends on the time and on pods.
func (o *Observer) fillNodes(s *policy.Snapshot) {
	s.Nodes = slices.Clone(o.nodes)
	busy := make([]bool, len(s.Nodes))
	for i := range o.pods {
		if p := &o.pods[i]; p.Phase != policy.PodGone && p.Node != policy.None && !o.podX[i].template.t.DaemonSet {
			busy[p.Node] = true
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone {
			continue
		}
		if n.Deleting != 0 && n.Phase == policy.NodeDraining && !busy[i] {
			n.Phase = policy.NodeDeleting
		}
	}
}

// nominate marks the nodes of Karpenter that are so young that it may have promised them
// to pods, as of s.Now, which has to be final.
func (o *Observer) nominate(s *policy.Snapshot) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone || n.Phase > policy.NodeInitialized || n.Pool == policy.None {
			continue
		}
		p := &o.pools[n.Pool].pool
		since := cmp.Or(n.Registered, n.Launched)
		if p.Provisioner == policy.ProvisionerKarpenter && since != 0 && s.Now.Sub(since) < p.ConsolidateAfter+youngFor {
			n.Nominated = s.Now
		}
	}
}
