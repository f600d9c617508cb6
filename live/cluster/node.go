package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A nodeReader converts nodes to their form in snapshots. It changes no table.
type nodeReader struct {
	cfg     *Config
	clock   *snapshotClock
	markets *marketView
	pools   *poolTable
	limits  *volumeLimits

	labels map[string][]policy.Label // interned lists of labels
}

// readMachine sets the fields of n that its backend knows.
func (r *nodeReader) readMachine(n *policy.Node, e *nodeEntry) {
	m, s := e.machine, r.markets.view
	n.Name, n.Token, n.Bid, n.ActedBy, n.AtGroupMin = m.Name, m.Token, m.Bid, m.ActedBy, m.AtGroupMin
	n.Launched = r.clock.clamp(m.Launched)
	n.Phase = policy.NodeLaunching
	if m.Phase == policy.NodeDeleting || e.leaving {
		n.Phase = policy.NodeDeleting
	}
	n.Pool = r.pools.id(m.Pool)
	n.Market = r.markets.listed(r.markets.book.Lookup(m.Market))
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
	p := &r.pools.valid[n.Pool].pool
	if n.Labels == nil {
		n.Labels = r.share(placement.NodeLabels(s.Types, s.Zones, p, market))
	}
	if n.Taints == nil {
		n.Taints = p.Taints
	}
}

// readObject sets the fields of n from the Node object, which takes precedence over the
// expectations of the backend.
func (r *nodeReader) readObject(n *policy.Node, e *nodeEntry) {
	obj := e.object
	n.Name, n.Labels = obj.Name, r.share(nodeLabels(obj))
	if n.Pool == policy.None {
		n.Pool = r.pools.of(obj)
	}
	if n.Market == policy.None {
		n.Market = r.marketOf(n, obj)
	}
	n.Registered = r.clock.clamp(policy.TimeOf(obj.CreationTimestamp.Time))
	n.Launched = cmp.Or(n.Launched, n.Registered)
	n.DoNotDisrupt = obj.Annotations[kube.AnnotationDoNotDisrupt] == "true" ||
		v1alpha1.PauseOf(obj.Annotations).At(r.clock.now)
	r.readSize(n, obj)
	m := MarksOf(obj)
	n.ActedBy = firstActor(m.Actor, n.ActedBy)
	n.Taints = taintsOf(obj, n.ActedBy)
	r.readReady(n, e)
	if obj.DeletionTimestamp != nil {
		n.Deleting = r.clock.deletedAt(obj)
	}
	switch {
	case n.Phase == policy.NodeDeleting: // reported by the backend
	case n.Initialized == 0 && obj.DeletionTimestamp == nil:
		n.Phase = policy.NodeRegistered
	case m.Draining:
		n.Phase = policy.NodeDraining
	default:
		n.Phase = policy.NodeInitialized
	}
}

// firstActor returns a, or b if a is ActorNone, or if a is ActorPerson and b is another actor: if a
// backend knows the controller behind a cordon, the cordon is not a person's.
func firstActor(a, b policy.Actor) policy.Actor {
	if a == policy.ActorNone || a == policy.ActorPerson && b != policy.ActorNone {
		return b
	}
	return a
}

// readSize sets the allocatable resources and the volume limit of n.
func (r *nodeReader) readSize(n *policy.Node, obj *corev1.Node) {
	size, gpu := kube.NodeResources(obj.Status.Allocatable)
	if size.CPU > 0 {
		n.Allocatable, n.GPUResource = size, gpu
	}
	if n.Market != policy.None {
		s := r.markets.view
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
	if limit := r.limits.byNode[obj.Name]; limit > 0 {
		n.VolumesMax = limit
	}
	if n.VolumesMax == 0 {
		n.VolumesMax = volumesMaxUnknown
	}
}

// volumesMaxUnknown is the volume limit of a node that does not publish one: the lowest limit of
// common instances.
const volumesMaxUnknown = 24

// readReady sets whether the node accepts pods, and since when.
func (r *nodeReader) readReady(n *policy.Node, e *nodeEntry) {
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
			e.initialized = max(n.Registered, r.clock.clamp(policy.TimeOf(ready.LastTransitionTime.Time)))
			if ready.Status != corev1.ConditionTrue {
				e.initialized = max(1, n.Registered)
			}
		}
	}
	n.Initialized = e.initialized
	n.NotReady = n.Initialized != 0 && (ready == nil || ready.Status != corev1.ConditionTrue)
}

// bootMax is the time after joining within which a kubelet first reports that it is not ready.
const bootMax = 10 * time.Second

// wasReady reports whether a node that is not ready was ready before: its kubelet has stopped
// reporting, or the condition changed long after the node joined and so had another value before.
func wasReady(n *corev1.Node, c *corev1.NodeCondition) bool {
	return c.Status == corev1.ConditionUnknown || c.LastTransitionTime.Sub(n.CreationTimestamp.Time) > bootMax
}

func readyCondition(n *corev1.Node) *corev1.NodeCondition {
	if i := slices.IndexFunc(n.Status.Conditions,
		func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }); i >= 0 {
		return &n.Status.Conditions[i]
	}
	return nil
}

// readNotice sets the notice of n. If the node still works long after its announced reclaim, the
// notice was a false alarm.
func (r *nodeReader) readNotice(n *policy.Node, e *nodeEntry) {
	at, reclaim := e.noticeAt, e.reclaimAt
	if e.object != nil {
		m := MarksOf(e.object)
		if m.ReclaimLead != 0 {
			marked := cmp.Or(m.MarkedAt, e.marked, r.clock.now)
			if end := marked.Add(m.ReclaimLead); reclaim == 0 || end < reclaim {
				reclaim = end
			}
			if at == 0 || marked < at {
				at = marked
			}
		}
	}
	if reclaim != 0 && r.clock.now.Sub(reclaim) > r.cfg.NoticeMax && n.Phase == policy.NodeInitialized && !n.NotReady {
		at, reclaim = 0, 0
	}
	if reclaim != 0 {
		n.NoticeAt, n.ReclaimAt = max(1, r.clock.clamp(at)), reclaim
	}
	n.Recommended = r.clock.clamp(e.recommended)
	if e.object == nil || reclaim == 0 && n.Recommended == 0 {
		return
	}
	// Managed node groups drain nodes themselves, and so does a controller that reads notices for
	// Spotter. A cordon is then attributed to them.
	actor := e.actor
	if _, managed := e.object.Labels[labelNodeGroup]; managed && actor == policy.ActorNone &&
		n.ActedBy == policy.ActorPerson {
		actor = policy.ActorEKS
	}
	n.ActedBy = firstActor(n.ActedBy, actor)
	if n.ActedBy == actor && actor != policy.ActorNone && e.object.Spec.Unschedulable &&
		n.Phase == policy.NodeInitialized {
		n.Phase = policy.NodeDraining
	}
}

// nodeLabels returns the labels of n. It omits the host name if that is the name of the node, which
// implies the label, so that otherwise equal nodes share one list. Labels of instance types have
// the names of the catalog, as in [catalogLabels].
func nodeLabels(n *corev1.Node) []policy.Label {
	all := kube.Labels(n.Labels)
	for i := range all {
		all[i].Key = kube.InstanceLabel(all[i].Key)
	}
	slices.SortFunc(all, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
	all = slices.CompactFunc(all, func(a, b policy.Label) bool { return a.Key == b.Key })
	return slices.DeleteFunc(all, func(l policy.Label) bool { return l.Key == corev1.LabelHostname && l.Value == n.Name })
}

// share returns the interned list that equals labels.
func (r *nodeReader) share(labels []policy.Label) []policy.Label {
	var key strings.Builder
	for _, l := range labels {
		key.WriteString(l.Key)
		key.WriteByte('=')
		key.WriteString(l.Value)
		key.WriteByte(',')
	}
	if one, ok := r.labels[key.String()]; ok {
		return one
	}
	r.labels[key.String()] = labels
	return labels
}

// trim clears the interned lists when there are many more than nodes. Lists in use are interned
// again.
func (r *nodeReader) trim(nodes int) {
	if len(r.labels) > 4*nodes+64 {
		clear(r.labels)
	}
}

// taintsOf returns the taints of n, ascending, with the owner of each. It adds the taint of a
// cordon if Kubernetes has not set it yet.
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
	if n.Spec.Unschedulable &&
		!slices.ContainsFunc(all, func(t policy.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }) {
		all = append(all, policy.Taint{Key: corev1.TaintNodeUnschedulable, Effect: policy.NoSchedule, Owner: actor})
	}
	slices.SortFunc(all, func(a, b policy.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Value, b.Value))
	})
	return all
}

// marketOf returns the market of a node according to its labels; None if it is not known.
func (r *nodeReader) marketOf(n *policy.Node, obj *corev1.Node) policy.MarketID {
	kind, region, zone := SoldAs(obj)
	if kind == "" {
		return policy.None
	}
	capacity, _ := r.cfg.Capacity.Resolve(obj.Labels)
	return r.markets.listed(r.markets.book.Find(r.provider(n, obj), region, zone, kind, capacity))
}

// SoldAs returns the instance type, region and zone in the labels of a node, as markets name them;
// empty where a label is missing.
func SoldAs(n *corev1.Node) (kind, region, zone string) {
	l := n.Labels
	region = cmp.Or(l[corev1.LabelTopologyRegion], l[corev1.LabelFailureDomainBetaRegion])
	zone = cmp.Or(l[corev1.LabelTopologyZone], l[corev1.LabelFailureDomainBetaZone], l["topology.k8s.aws/zone-id"])
	provider, _, _ := strings.Cut(n.Spec.ProviderID, ":")
	return cmp.Or(l[corev1.LabelInstanceTypeStable], l[corev1.LabelInstanceType]), region,
		kube.MarketZone(provider, region, zone)
}

// whyUnpriced returns the reason that the market of a node is not known.
func (r *nodeReader) whyUnpriced(n *policy.Node, obj *corev1.Node) string {
	kind, region, zone := SoldAs(obj)
	for _, x := range [...]struct{ value, label string }{{kind, corev1.LabelInstanceTypeStable},
		{zone, corev1.LabelTopologyZone}} {
		if x.value == "" {
			return fmt.Sprintf("node %s has no label %s", n.Name, x.label)
		}
	}
	capacity, _ := r.cfg.Capacity.Resolve(obj.Labels)
	where := zone
	if region != "" {
		where += " of " + region
	}
	return fmt.Sprintf("node %s is %s %s in zone %s, for which neither a price source nor the catalog of %s has a price",
		n.Name, capacity, kind, where, r.provider(n, obj))
}

// provider returns the provider of a node.
func (r *nodeReader) provider(n *policy.Node, obj *corev1.Node) string {
	scheme, _, _ := strings.Cut(obj.Spec.ProviderID, ":")
	switch scheme {
	case "aws", "azure":
		return scheme
	case "gce":
		return "gcp"
	}
	if n.Pool != policy.None && r.pools.valid[n.Pool].object.Spec.Backend.Rackspace != nil {
		return policy.Rackspace
	}
	return r.cfg.Provider
}
