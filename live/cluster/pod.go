package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A podTable takes in pods, and makes the pods of snapshots of them.
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

	// over are the pods that have ended and whose objects are still there, by name.
	over map[string]string // UID

	// expiring are the slots of pods that may not be disrupted until an instant.
	expiring map[int32]bool
}

// set takes in a pod.
func (pt *podTable) set(p *corev1.Pod) {
	name := key(p)
	i, known := pt.slots.byName[name]
	if known && pt.slots.entries[i].object.UID != p.UID {
		pt.end(i, pt.slots.entries[i].object, true) // another of the same name
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

// finish takes in a pod that has done its work or failed.
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
	// It ended before the observer began, or between two looks at it.
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

// end takes the pod in slot i out of the table and notes how it ended.
func (pt *podTable) end(i int32, p *corev1.Pod, deleted bool) {
	x := &pt.slots.entries[i]
	t := x.template
	if t == nil { // it was never read
		w, _ := pt.workloads.owner(p)
		t = pt.templates.of(p, w, pt.held.of(p, nil))
	}
	x.template = nil // its reference is the end's now
	pt.endings.note(p, t, deleted)
	pt.count(x, nil, false)
	pt.slots.entries[i] = podEntry{dirty: x.dirty}
	pt.slots.pods[i] = policy.Pod{ID: policy.PodID(i), Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
	delete(pt.slots.byName, key(p))
	pt.slots.free = append(pt.slots.free, i)
}

// readAll reads the slots that have changed.
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

// readSome reads the newest of the slots that have changed, and reports whether there are
// many more.
func (pt *podTable) readSome() bool {
	s := pt.slots
	s.read = true
	n := min(len(s.reread), podsAtOnce)
	pt.readSlots(s.reread[len(s.reread)-n:])
	s.reread = s.reread[:len(s.reread)-n]
	return len(s.reread) > podsAtOnce
}

// podsAtOnce is how many pods are read while the lock is held: some milliseconds.
const podsAtOnce = 500

func (pt *podTable) readSlots(slots []int32) {
	for _, i := range slots {
		pt.slots.entries[i].dirty = false
		if pt.slots.entries[i].object != nil {
			pt.readPod(i)
		}
	}
}

// readPod makes the entry of slot i in the table of pods.
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

// readState fills in the phase of the pod. A pod whose node is gone is ending.
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

// count takes the pod of x from the counts of the workload that it was counted for,
// and adds it to those of w.
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

// boundAt returns when a pod was given its node.
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

// isStuck reports whether the scheduler found no place for a pod.
func isStuck(p *corev1.Pod) bool {
	c := condition(p, corev1.PodScheduled)
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 &&
		c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// undisturbed reports whether a pod or its namespace asks not to be disrupted now, and until
// when where it says so.
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
