package cluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A podTable holds the pods that have not ended, in slots.
type podTable struct {
	pods     []policy.Pod
	podX     []podEntry
	freePods []int32
	rereadP  []int32 // slots to be read again
	podsRead bool    // some were read; before, all are to be
	podOf    map[string]int32

	// over are the pods that have ended and whose objects are still there, by name.
	over map[string]string // UID

	// expiring are the slots of pods that may not be disrupted until an instant.
	expiring map[int32]bool
}

func (t *podTable) init() {
	t.podOf, t.over, t.expiring = map[string]int32{}, map[string]string{}, map[int32]bool{}
}

// A podEntry is what a slot of the table of pods is made of; the object is nil in an
// empty one.
type podEntry struct {
	object   *corev1.Pod
	dirty    bool
	template *template
	workload *workload // nil without one
	set      string    // the ReplicaSet between
	node     string    // the name of the node that it is bound to
	claims   bool      // it has volumes by claim
	ready    bool      // it counts as ready for its workload
	stuck    bool      // the scheduler found no place
	until    policy.Time
}

// setPod takes in a pod.
func (o *Observer) setPod(p *corev1.Pod) {
	name := key(p)
	i, known := o.podOf[name]
	if known && o.podX[i].object.UID != p.UID {
		o.endPod(i, o.podX[i].object, true) // another of the same name
		known = false
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		o.finishPod(i, known, p)
		return
	}
	delete(o.over, name)
	if !known {
		if n := len(o.freePods); n > 0 {
			i, o.freePods = o.freePods[n-1], o.freePods[:n-1]
		} else {
			i = int32(len(o.pods))
			o.pods = append(o.pods, policy.Pod{})
			o.podX = append(o.podX, podEntry{})
		}
		o.podX[i] = podEntry{dirty: o.podX[i].dirty}
		o.podOf[name] = i
	}
	x := &o.podX[i]
	x.object, x.node = p, p.Spec.NodeName
	x.claims = hasClaims(p)
	if stuck := isStuck(p); stuck != x.stuck {
		if x.stuck = stuck; stuck {
			o.Wake(wakeUnschedulable)
		}
	}
	o.touchPod(i)
}

// finishPod takes in a pod that has done its work or failed.
func (o *Observer) finishPod(i int32, known bool, p *corev1.Pod) {
	name := key(p)
	if o.over[name] == string(p.UID) {
		return
	}
	o.over[name] = string(p.UID)
	if known {
		o.podX[i].object = p
		o.endPod(i, p, false)
		return
	}
	// It ended before the observer began, or between two looks at it.
	w, _ := o.owner(p)
	o.noteEnd(p, o.templateOf(p, w), false)
}

func (o *Observer) dropPod(p *corev1.Pod) {
	name := key(p)
	if o.over[name] == string(p.UID) {
		delete(o.over, name)
		return
	}
	if i, known := o.podOf[name]; known && o.podX[i].object.UID == p.UID {
		o.endPod(i, p, true)
	}
}

// endPod takes the pod in slot i out of the table and notes how it ended.
func (o *Observer) endPod(i int32, p *corev1.Pod, deleted bool) {
	x := &o.podX[i]
	t := x.template
	if t == nil { // it was never read
		w, _ := o.owner(p)
		t = o.templateOf(p, w)
	}
	x.template = nil // its reference is the end's now
	o.noteEnd(p, t, deleted)
	o.count(x, nil, false)
	o.podX[i] = podEntry{dirty: x.dirty}
	o.pods[i] = policy.Pod{ID: policy.PodID(i), Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
	delete(o.podOf, key(p))
	o.freePods = append(o.freePods, i)
}

func (o *Observer) touchPod(i int32) {
	if x := &o.podX[i]; !x.dirty {
		x.dirty = true
		o.rereadP = append(o.rereadP, i)
	}
}

// dirtyPods says that the pods that pick picks are to be read again.
func (o *Observer) dirtyPods(pick func(*podEntry) bool) {
	if !o.podsRead {
		return
	}
	for i := range o.podX {
		if x := &o.podX[i]; x.object != nil && pick(x) {
			o.touchPod(int32(i))
		}
	}
}

// readPods reads the slots that have changed.
func (o *Observer) readPods() {
	for i := range o.expiring {
		if o.podX[i].until <= o.now {
			delete(o.expiring, i)
			o.touchPod(i)
		}
	}
	o.readSlots(o.rereadP)
	o.rereadP = o.rereadP[:0]
}

func (o *Observer) readSlots(slots []int32) {
	for _, i := range slots {
		o.podX[i].dirty = false
		if o.podX[i].object != nil {
			o.readPod(i)
		}
	}
}

// readPod makes the entry of slot i in the table of pods.
func (o *Observer) readPod(i int32) {
	x := &o.podX[i]
	p := x.object
	w, set := o.owner(p)
	t := o.templateOf(p, w)
	o.letGo(x.template)
	x.template, x.set = t, set
	n := policy.Pod{
		ID: policy.PodID(i), Name: key(p), Template: t.t.ID, Node: policy.None, Nominated: policy.None, VolumeZone: o.volumeZone(p),
		Gated: len(p.Spec.SchedulingGates) > 0, Created: o.clamp(policy.TimeOf(p.CreationTimestamp.Time)),
	}
	o.readState(&n, p)
	if n.Phase == policy.PodPending {
		n.Nominated = o.promised(p.Status.NominatedNodeName)
	}
	if n.DoNotDisrupt, x.until = o.undisturbed(p, w); x.until != 0 {
		o.expiring[i] = true
	}
	n.DeletionCost, n.DeletionCostFixed = drain.Cost(p)
	o.pods[i] = n
	o.count(x, w, n.Phase == policy.PodReady)
}

// promised returns the node of that name, or the machine that is to become one: who
// buys nodes for pods may say so before they are there.
func (o *Observer) promised(name string) policy.NodeID {
	if name == "" {
		return policy.None
	}
	if i, ok := o.byName[name]; ok {
		return policy.NodeID(i)
	}
	for i := range o.nodeX {
		if e := &o.nodeX[i]; e.machine != nil && e.object == nil && e.machine.Name == name {
			return policy.NodeID(i)
		}
	}
	return policy.None
}

// readState fills in where the pod stands in its life. One whose node is gone is on
// its way out.
func (o *Observer) readState(n *policy.Pod, p *corev1.Pod) {
	n.Phase = policy.PodPending
	if p.Spec.NodeName != "" {
		at, ok := o.byName[p.Spec.NodeName]
		n.Bound = o.clamp(boundAt(p))
		n.Phase = policy.PodTerminating
		if ok {
			n.Node, n.Phase = policy.NodeID(at), policy.PodStarting
		}
		if c := condition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
			n.ReadySince = o.clamp(policy.TimeOf(c.LastTransitionTime.Time))
			if ok {
				n.Phase = policy.PodReady
			}
		}
	}
	if p.DeletionTimestamp != nil {
		n.Phase, n.Deleting = policy.PodTerminating, max(1, o.deletedAt(p))
	}
}

// count takes the pod of x from the counts of the workload that it was counted for,
// and adds it to those of w.
func (o *Observer) count(x *podEntry, w *workload, ready bool) {
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
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
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

// undisturbed reports whether a pod asks not to be disrupted now, and until when
// where it says so.
func (o *Observer) undisturbed(p *corev1.Pod, w *workload) (bool, policy.Time) {
	v, has := p.Annotations[kube.AnnotationDoNotDisrupt]
	if !has && w != nil {
		v = w.annotations[kube.AnnotationDoNotDisrupt]
	}
	if yes, err := strconv.ParseBool(v); err == nil || v == "" {
		return yes, 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		o.complain(key(p), kube.AnnotationDoNotDisrupt+": "+strconv.Quote(v)+" is neither true nor false nor a duration such as 4h")
		return false, 0
	}
	until := policy.TimeOf(ptr.Deref(p.Status.StartTime, p.CreationTimestamp).Time).Add(d)
	if until <= o.now {
		return false, 0
	}
	return true, until
}

// An ending is a pod that ended, until a snapshot reports it.
type ending struct {
	pod      policy.EndedPod
	template *template
}

// noteEnd notes the end of a pod; the reference to t is the note's.
func (o *Observer) noteEnd(p *corev1.Pod, t *template, deleted bool) {
	e := policy.EndedPod{Name: key(p), Node: p.Spec.NodeName, Cause: o.causeOf(p, deleted)}
	e.End = policy.TimeOf(o.cfg.Clock.Now())
	if p.Spec.NodeName != "" {
		e.Start = o.clamp(boundAt(p))
	}
	if !deleted {
		if at := finishedAt(p); at != 0 {
			e.End = max(e.Start, o.clamp(at))
		}
	}
	o.ended = append(o.ended, ending{e, t})
	if extra := len(o.ended) - o.cfg.EndedMax; extra > 0 {
		for _, old := range o.ended[:extra] {
			o.letGo(old.template)
		}
		o.ended = append(o.ended[:0], o.ended[extra:]...)
	}
}

// finishedAt returns when the last container of a pod ended, 0 when none says.
func finishedAt(p *corev1.Pod) policy.Time {
	var last policy.Time
	for i := range p.Status.ContainerStatuses {
		if t := p.Status.ContainerStatuses[i].State.Terminated; t != nil && !t.FinishedAt.IsZero() {
			last = max(last, policy.TimeOf(t.FinishedAt.Time))
		}
	}
	return last
}

// causeOf returns why a pod ended, as far as it and its node tell.
func (o *Observer) causeOf(p *corev1.Pod, deleted bool) policy.EndCause {
	_, taken := o.taken[p.Spec.NodeName]
	if i, ok := o.byName[p.Spec.NodeName]; ok && o.nodes[i].ReclaimAt != 0 {
		taken = taken || o.nodes[i].ReclaimAt <= policy.TimeOf(o.cfg.Clock.Now())
	}
	if p.Status.Phase == corev1.PodSucceeded {
		return policy.EndFinished
	}
	if c := condition(p, "DisruptionTarget"); c != nil && c.Status == corev1.ConditionTrue {
		switch c.Reason {
		case corev1.PodReasonPreemptionByScheduler:
			return policy.EndPreempted
		case "EvictionByEvictionAPI":
			return policy.EndEvicted
		}
		if taken || c.Reason == "DeletionByPodGC" {
			return policy.EndReclaimed
		}
		return policy.EndEvicted
	}
	switch {
	case taken:
		return policy.EndReclaimed
	case !deleted: // it failed by itself
		return policy.EndUnknown
	}
	if w, _ := o.owner(p); w != nil {
		return policy.EndScaled
	}
	return policy.EndUnknown
}

// fillEnded reports the pods that ended since the last snapshot.
func (o *Observer) fillEnded(s *policy.Snapshot) {
	for _, e := range o.ended {
		e.pod.Template = e.template.t.ID
		s.Ended = append(s.Ended, e.pod)
		o.letGo(e.template)
	}
	o.ended = o.ended[:0]
}
