package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A podTable receives pods and converts them to the pods of snapshots.
type podTable struct {
	clock      *snapshotClock
	wakes      wakeQueue
	faults     *faultLog
	slots      *podSlots
	nodes      *nodeSlots
	volumes    *volumeTable
	workloads  *workloadTable
	templates  *templateTable
	namespaces *namespaceTable
	endings    *endingTable
	held       *claimTable

	// over contains the UIDs of pods that have ended but whose objects still exist, by name.
	over map[string]string // UID

	// expiring contains the slots of pods that may not be disrupted before an instant.
	expiring map[int32]bool
}

// set adds or updates a pod.
func (pt *podTable) set(p *corev1.Pod) {
	name := key(p)
	i, known := pt.slots.byName[name]
	if known && pt.slots.entries[i].object.UID != p.UID {
		pt.end(i, pt.slots.entries[i].object, true) // an earlier pod with the same name
		known = false
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		pt.finish(i, known, p)
		return
	}
	delete(pt.over, name)
	if !known {
		if n := len(pt.slots.free); n > 0 {
			i, pt.slots.free = pt.slots.free[n-1], pt.slots.free[:n-1]
		} else {
			i = int32(len(pt.slots.pods))
			pt.slots.pods = append(pt.slots.pods, policy.Pod{})
			pt.slots.entries = append(pt.slots.entries, podEntry{})
		}
		pt.slots.entries[i] = podEntry{dirty: pt.slots.entries[i].dirty}
		pt.slots.byName[name] = i
	}
	x := &pt.slots.entries[i]
	x.object, x.node = p, p.Spec.NodeName
	x.claims = hasClaims(p)
	if stuck := isStuck(p); stuck != x.stuck {
		if x.stuck = stuck; stuck {
			pt.wakes.wake(backend.WakeUnschedulable)
		}
	}
	pt.slots.touch(i)
}

// finish handles a pod that has succeeded or failed.
func (pt *podTable) finish(i int32, known bool, p *corev1.Pod) {
	name := key(p)
	if pt.over[name] == string(p.UID) {
		return
	}
	pt.over[name] = string(p.UID)
	if known {
		pt.slots.entries[i].object = p
		pt.end(i, p, false)
		return
	}
	// The pod ended before the observer started, or before it was first observed.
	w, _ := pt.workloads.owner(p)
	pt.endings.note(p, pt.templates.of(p, w, pt.held.of(p, nil)), false)
}

func (pt *podTable) drop(p *corev1.Pod) {
	name := key(p)
	if pt.over[name] == string(p.UID) {
		delete(pt.over, name)
		return
	}
	if i, known := pt.slots.byName[name]; known && pt.slots.entries[i].object.UID == p.UID {
		pt.end(i, p, true)
	}
}

// end removes the pod in slot i from the table and records its end.
func (pt *podTable) end(i int32, p *corev1.Pod, deleted bool) {
	x := &pt.slots.entries[i]
	t := x.template
	if t == nil { // it was never read
		w, _ := pt.workloads.owner(p)
		t = pt.templates.of(p, w, pt.held.of(p, nil))
	}
	x.template = nil // the reference now belongs to the recorded end
	pt.endings.note(p, t, deleted)
	pt.count(x, nil, false)
	pt.slots.entries[i] = podEntry{dirty: x.dirty}
	pt.slots.pods[i] = policy.Pod{ID: policy.PodID(i), Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
	delete(pt.slots.byName, key(p))
	pt.slots.free = append(pt.slots.free, i)
}

// readAll reads the slots that were marked to be read again.
func (pt *podTable) readAll() {
	for i := range pt.expiring {
		if pt.slots.entries[i].until <= pt.clock.now {
			delete(pt.expiring, i)
			pt.slots.touch(i)
		}
	}
	pt.readSlots(pt.slots.reread)
	pt.slots.reread = pt.slots.reread[:0]
}

// readSome reads the slots that were marked last, and reports whether many remain.
func (pt *podTable) readSome() bool {
	s := pt.slots
	s.read = true
	n := min(len(s.reread), podsAtOnce)
	pt.readSlots(s.reread[len(s.reread)-n:])
	s.reread = s.reread[:len(s.reread)-n]
	return len(s.reread) > podsAtOnce
}

// podsAtOnce is the number of pods that are read while the lock is held, which takes some
// milliseconds.
const podsAtOnce = 500

func (pt *podTable) readSlots(slots []int32) {
	for _, i := range slots {
		pt.slots.entries[i].dirty = false
		if pt.slots.entries[i].object != nil {
			pt.readPod(i)
		}
	}
}

// readPod converts slot i to a pod of snapshots.
func (pt *podTable) readPod(i int32) {
	x := &pt.slots.entries[i]
	p := x.object
	w, set := pt.workloads.owner(p)
	x.holding = pt.held.of(p, x.holding)
	t := pt.templates.of(p, w, x.holding)
	pt.templates.release(x.template)
	x.template, x.set = t, set
	n := policy.Pod{
		ID: policy.PodID(i), Name: key(p), UID: string(p.UID), Template: t.t.ID, Node: policy.None, Nominated: policy.None, VolumeZone: pt.volumes.zoneOf(p),
		Gated: len(p.Spec.SchedulingGates) > 0, Created: pt.clock.clamp(policy.TimeOf(p.CreationTimestamp.Time)),
	}
	pt.readState(&n, p)
	if n.Phase == policy.PodPending {
		n.Nominated = pt.nodes.promised(p.Status.NominatedNodeName)
	}
	if n.DoNotDisrupt, x.until = pt.undisturbed(p, w); x.until != 0 {
		pt.expiring[i] = true
	}
	n.DeletionCost, n.DeletionCostFixed = drain.Cost(p)
	pt.slots.pods[i] = n
	pt.count(x, w, n.Phase == policy.PodReady)
}

// readState sets the phase of the pod. A pod whose node no longer exists is terminating.
func (pt *podTable) readState(n *policy.Pod, p *corev1.Pod) {
	n.Phase = policy.PodPending
	if p.Spec.NodeName != "" {
		at, ok := pt.nodes.byName[p.Spec.NodeName]
		n.Bound = pt.clock.clamp(boundAt(p))
		n.Phase = policy.PodTerminating
		if ok {
			n.Node, n.Phase = policy.NodeID(at), policy.PodStarting
		}
		if c := condition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
			n.ReadySince = pt.clock.clamp(policy.TimeOf(c.LastTransitionTime.Time))
			if ok {
				n.Phase = policy.PodReady
			}
		}
	}
	if p.DeletionTimestamp != nil {
		n.Phase, n.Deleting = policy.PodTerminating, max(1, pt.clock.deletedAt(p))
	}
}

// count removes the pod of x from the counts of its previous workload and adds it to those of w. w
// may be nil.
func (pt *podTable) count(x *podEntry, w *workload, ready bool) {
	if x.workload != w {
		if x.workload != nil {
			x.workload.pods--
		}
		if w != nil {
			w.pods++
		}
	}
	if x.ready && x.workload != nil {
		x.workload.ready--
	}
	if ready && w != nil {
		w.ready++
	}
	x.workload, x.ready = w, ready
}

// boundAt returns the time at which a pod was bound to its node.
func boundAt(p *corev1.Pod) policy.Time {
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue &&
		!c.LastTransitionTime.IsZero() {
		return policy.TimeOf(c.LastTransitionTime.Time)
	}
	return policy.TimeOf(ptr.Deref(p.Status.StartTime, p.CreationTimestamp).Time)
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// isStuck reports whether the scheduler found no node for a pod.
func isStuck(p *corev1.Pod) bool {
	c := condition(p, corev1.PodScheduled)
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 &&
		c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// undisturbed reports whether a pod or its namespace must not be disrupted now, and until when; 0
// if there is no end.
func (pt *podTable) undisturbed(p *corev1.Pod, w *workload) (bool, policy.Time) {
	if pause := pt.namespaces.paused[p.Namespace]; pause.At(pt.clock.now) {
		return true, pause.Until
	}
	v, has := p.Annotations[kube.AnnotationDoNotDisrupt]
	if !has && w != nil {
		v = w.annotations[kube.AnnotationDoNotDisrupt]
	}
	protects, lasts, err := kube.DoNotDisrupt(v)
	if err != nil {
		pt.faults.warn(key(p), kube.AnnotationDoNotDisrupt+": "+err.Error())
	}
	if lasts == 0 || p.Status.StartTime == nil {
		return protects, 0
	}
	until := policy.TimeOf(p.Status.StartTime.Time).Add(lasts)
	if until <= pt.clock.now {
		return false, 0
	}
	return true, until
}
