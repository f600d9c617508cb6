package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A nodeTable receives nodes from the API server and from backends, and notices, and converts them
// to the nodes of snapshots.
type nodeTable struct {
	cfg        *Config
	clock      *snapshotClock
	wakes      wakeQueue
	slots      *nodeSlots
	reader     *nodeReader
	experience *experience
	lives      *lifeTable
	pods       *podSlots

	// early contains notices of machines that are not known yet.
	early []backend.Notice
}

// set adds or updates a Node object.
func (t *nodeTable) set(obj *corev1.Node) {
	i, known := t.slots.byName[obj.Name]
	if known && t.slots.entries[i].object.UID != obj.UID {
		t.drop(t.slots.entries[i].object) // an earlier node with the same name
		known = false
	}
	instance := instanceOf(obj.Spec.ProviderID)
	if !known {
		i, known = t.slots.machineSlot(obj.Name, instance)
		if !known {
			i = t.slots.slot()
		}
		t.slots.byName[obj.Name] = i
		t.pods.touchWhere(func(x *podEntry) bool { return x.node == obj.Name })
	}
	if instance != "" {
		if j, other := t.slots.byInstance[instance]; other && j != i && t.slots.entries[j].object == nil {
			t.adopt(i, j)
		}
		t.slots.byInstance[instance] = i
	}
	e := &t.slots.entries[i]
	if e.object == nil {
		e.gone = 0 // the machine has joined the cluster again
	}
	e.object = obj
	if e.life == "" {
		e.life = obj.Name
	}
	t.slots.touch(i)
	t.takeEarly(i)
	t.wakeFor(e)
}

// adopt moves the machine in slot j to slot i, which contains its Node object, and frees slot j.
func (t *nodeTable) adopt(i, j int32) {
	to, from := &t.slots.entries[i], &t.slots.entries[j]
	to.key, to.machine = from.key, from.machine
	to.launched, to.met = to.launched || from.launched, to.met || from.met
	to.rename(from.life)
	to.seen = to.seen || from.seen
	if to.reclaimAt == 0 {
		to.noticeAt, to.reclaimAt, to.source = from.noticeAt, from.reclaimAt, from.source
	}
	if to.recommended == 0 {
		to.recommended = from.recommended
	}
	t.slots.byMachine[to.key] = i
	if id := instanceOf(to.machine.ProviderID); id != "" {
		t.slots.byInstance[id] = i
	}
	*from = nodeEntry{dirty: from.dirty}
	t.slots.touch(i)
	t.slots.touch(j)
	t.slots.free = append(t.slots.free, j)
}

// drop handles the deletion of a Node object. If its machine still exists, it is being terminated.
func (t *nodeTable) drop(obj *corev1.Node) {
	i, known := t.slots.byName[obj.Name]
	if !known || t.slots.entries[i].object.UID != obj.UID {
		return
	}
	t.read(i)
	t.lose(i)
	delete(t.slots.byName, obj.Name)
	e := &t.slots.entries[i]
	if e.machine == nil {
		delete(t.slots.byInstance, instanceOf(obj.Spec.ProviderID))
		t.lives.depart(i, t.clock.heard)
		t.slots.empty(i)
	} else {
		e.object, e.initialized = nil, 0
		e.leaving, e.gone = true, t.clock.heard
		t.slots.touch(i)
	}
	t.pods.touchWhere(func(x *podEntry) bool { return x.node == obj.Name })
}

// lose records that the node in slot i no longer exists. It counts as reclaimed if it ended under a
// notice, or if it had stopped reporting and no controller had requested its end: a cloud
// controller deletes a Node object only after the kubelet has stopped.
func (t *nodeTable) lose(i int32) {
	e, n := &t.slots.entries[i], &t.slots.nodes[i]
	now := t.clock.wall()
	unasked := n.ActedBy == policy.ActorNone && n.Phase >= policy.NodeRegistered && n.Phase < policy.NodeDeleting
	if n.ReclaimAt != 0 || unasked && n.NotReady {
		t.experience.countReclaim(e, n, now)
		t.experience.take(n.Name, now)
	}
	if n.ReclaimAt != 0 || unasked {
		t.wakes.wake(backend.WakeLost)
	}
}

// wakeFor requests a step if new marks on a node announce its end.
func (t *nodeTable) wakeFor(e *nodeEntry) {
	m := t.cfg.marksOf(e.object)
	if m.ReclaimLead != 0 && e.marked == 0 && e.reclaimAt == 0 {
		t.wakes.wake(backend.WakeNotice)
	} else if m.Recommended && e.recommended == 0 {
		t.wakes.wake(backend.WakeRebalance)
	}
	now := t.clock.wall()
	if m.ReclaimLead != 0 && e.marked == 0 {
		e.marked = now
	}
	if m.Recommended && e.recommended == 0 {
		e.recommended = now
	}
}

// readAll reads the slots that were marked to be read again.
func (t *nodeTable) readAll() {
	t.reader.trim(len(t.slots.nodes))
	for i := range t.slots.nodes {
		if n := &t.slots.nodes[i]; n.ReclaimAt != 0 && t.clock.now.Sub(n.ReclaimAt) > t.cfg.NoticeMax {
			t.slots.touch(int32(i)) // it may have been a false alarm
		}
	}
	for _, i := range t.slots.reread {
		t.slots.entries[i].dirty = false
		t.read(i)
		t.meet(i)
	}
	t.slots.reread = t.slots.reread[:0]
}

// read converts slot i to a node of snapshots.
func (t *nodeTable) read(i int32) {
	e := &t.slots.entries[i]
	n := policy.Node{ID: policy.NodeID(i), Pool: policy.None, Market: policy.None}
	if e.object == nil && e.machine == nil {
		t.slots.nodes[i] = n
		return
	}
	if e.machine != nil {
		t.reader.readMachine(&n, e)
	}
	if e.object != nil {
		t.reader.readObject(&n, e)
	}
	t.reader.readNotice(&n, e)
	t.slots.nodes[i] = n
}

// meet counts the launch and the reclaim of the node in slot i.
func (t *nodeTable) meet(i int32) {
	e, n := &t.slots.entries[i], &t.slots.nodes[i]
	if n.Phase == policy.NodeGone {
		return
	}
	t.experience.countLaunch(e, n)
	if n.ReclaimAt != 0 {
		t.experience.countReclaim(e, n, n.NoticeAt)
	}
}

// fill copies the nodes to s, and sets the fields that depend on pods.
func (t *nodeTable) fill(s *policy.Snapshot) {
	s.Nodes = slices.Clone(t.slots.nodes)
	busy := make([]bool, len(s.Nodes))
	for i := range t.pods.pods {
		if p := &t.pods.pods[i]; p.Phase != policy.PodGone && p.Node != policy.None &&
			!t.pods.entries[i].template.t.DaemonSet {
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

// fillUsed sets the used resources of the pools.
func (t *nodeTable) fillUsed(s *policy.Snapshot) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone || n.Pool == policy.None {
			continue
		}
		size := n.Allocatable
		if n.Market != policy.None {
			size = s.Types[s.Markets[n.Market].Type].Capacity
		} else if e := &t.slots.entries[i]; e.object != nil && len(e.object.Status.Capacity) > 0 {
			size, _ = kube.NodeResources(e.object.Status.Capacity)
		}
		s.Pools[n.Pool].Used = s.Pools[n.Pool].Used.Plus(size)
	}
}
