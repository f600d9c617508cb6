package cluster

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A nodeTable holds the nodes in slots: those that have a Node object, and those
// that only a backend knows.
type nodeTable struct {
	nodes  []policy.Node
	nodeX  []nodeEntry
	free   []int32
	reread []int32 // slots to be read again

	byName     map[string]int32 // of the Node object
	byInstance map[string]int32 // the last part of the provider ID
	byMachine  map[machineKey]int32

	// early are notices of machines that nothing else is known of yet.
	early []backend.Notice

	// taken are the names of nodes that the provider took, with when; their pods
	// may be deleted later.
	taken map[string]policy.Time

	labels map[string][]policy.Label // equal lists are one

	// lives are those of the last snapshot by slot, reported those that had ended by then,
	// and departed those that have ended since.
	lives              []Life
	reported, departed []Gone

	// heard is when what is being taken in of the API server came.
	heard policy.Time
}

func (t *nodeTable) init() {
	t.byName, t.byInstance, t.byMachine = map[string]int32{}, map[string]int32{}, map[machineKey]int32{}
	t.taken, t.labels = map[string]policy.Time{}, map[string][]policy.Label{}
}

// A machineKey names a machine of a backend.
type machineKey struct{ backend, name string }

// A nodeEntry is what a slot of the table of nodes is made of. It is empty when
// there is neither object nor machine.
type nodeEntry struct {
	object  *corev1.Node
	key     machineKey
	machine *backend.Machine

	dirty   bool
	initial bool // it was there when the observer began

	// launched and met say that its launch and its reclaim were counted.
	launched, met bool

	// noticeAt, reclaimAt and source are of the warning that came of it, zero without;
	// recommended is when a recommendation came, and actor who drains it because of one.
	noticeAt, reclaimAt, recommended policy.Time
	source                           string
	actor                            policy.Actor

	// marked is when a taint that announces a reclaim was first seen, where the
	// taint does not say.
	marked policy.Time

	// initialized is since when it is known to take pods; 0 before it does.
	initialized policy.Time

	leaving  bool // its object is being deleted
	unpriced bool // the last snapshot had no market of it

	// life and was are of its Life, seen says that a snapshot had it, and gone is when its
	// Node object went where its machine is still there.
	life, was string
	seen      bool
	gone      policy.Time
}

// instanceOf returns the last part of a provider ID, which names the instance.
func instanceOf(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// slot returns an empty slot.
func (o *Observer) slot() int32 {
	var i int32
	if n := len(o.free); n > 0 {
		i, o.free = o.free[n-1], o.free[:n-1]
	} else {
		i = int32(len(o.nodes))
		o.nodes = append(o.nodes, policy.Node{})
		o.nodeX = append(o.nodeX, nodeEntry{})
	}
	o.nodeX[i] = nodeEntry{initial: !o.started, dirty: o.nodeX[i].dirty}
	return i
}

// touchNode says that a slot is to be read again.
func (o *Observer) touchNode(i int32) {
	if !o.nodeX[i].dirty {
		o.nodeX[i].dirty = true
		o.reread = append(o.reread, i)
	}
}

func (o *Observer) dirtyNodes() {
	for i := range o.nodeX {
		o.touchNode(int32(i))
	}
}

// setNode takes in a Node object.
func (o *Observer) setNode(obj *corev1.Node) {
	i, known := o.byName[obj.Name]
	if known && o.nodeX[i].object.UID != obj.UID {
		o.dropNode(o.nodeX[i].object) // another of the same name
		known = false
	}
	instance := instanceOf(obj.Spec.ProviderID)
	if !known {
		i, known = o.machineSlot(obj.Name, instance)
		if !known {
			i = o.slot()
		}
		o.byName[obj.Name] = i
		o.dirtyPods(func(x *podEntry) bool { return x.node == obj.Name })
	}
	if instance != "" {
		if j, other := o.byInstance[instance]; other && j != i && o.nodeX[j].object == nil {
			o.adopt(i, j)
		}
		o.byInstance[instance] = i
	}
	e := &o.nodeX[i]
	if e.object == nil {
		e.gone = 0 // its machine is back in the cluster
	}
	e.object = obj
	if e.life == "" {
		e.life = obj.Name
	}
	o.touchNode(i)
	o.takeEarly(i)
	o.wakeFor(e)
}

// machineSlot returns the slot of the machine that the Node object of that name is
// of, if a backend has reported it.
func (o *Observer) machineSlot(name, instance string) (int32, bool) {
	if i, ok := o.byInstance[instance]; ok && instance != "" && o.nodeX[i].object == nil {
		return i, true
	}
	for i := range o.nodeX {
		if e := &o.nodeX[i]; e.machine != nil && e.object == nil && e.machine.Node == name {
			return int32(i), true
		}
	}
	return 0, false
}

// adopt moves the machine in slot j to slot i, where its Node object is, and
// empties slot j.
func (o *Observer) adopt(i, j int32) {
	to, from := &o.nodeX[i], &o.nodeX[j]
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
	o.byMachine[to.key] = i
	if id := instanceOf(to.machine.ProviderID); id != "" {
		o.byInstance[id] = i
	}
	*from = nodeEntry{dirty: from.dirty}
	o.touchNode(i)
	o.touchNode(j)
	o.free = append(o.free, j)
}

// dropNode takes in that a Node object is gone. A machine that is still there is on
// its way out.
func (o *Observer) dropNode(obj *corev1.Node) {
	i, known := o.byName[obj.Name]
	if !known || o.nodeX[i].object.UID != obj.UID {
		return
	}
	o.read(i)
	o.loseNode(i)
	delete(o.byName, obj.Name)
	e := &o.nodeX[i]
	if e.machine == nil {
		delete(o.byInstance, instanceOf(obj.Spec.ProviderID))
		o.depart(i, o.heard)
		o.empty(i)
	} else {
		e.object, e.initialized = nil, 0
		e.leaving, e.gone = true, o.heard
		o.touchNode(i)
	}
	o.dirtyPods(func(x *podEntry) bool { return x.node == obj.Name })
}

func (o *Observer) empty(i int32) {
	o.nodeX[i] = nodeEntry{dirty: o.nodeX[i].dirty}
	o.touchNode(i)
	o.free = append(o.free, i)
}

// loseNode notes that the node in slot i is gone. It went to the provider where it
// went under a notice, or had fallen silent and nobody had asked for its end: who
// deletes a Node object of a cloud makes sure that the kubelet is dead.
func (o *Observer) loseNode(i int32) {
	e, n := &o.nodeX[i], &o.nodes[i]
	now := policy.TimeOf(o.cfg.Clock.Now())
	unasked := n.ActedBy == policy.ActorNone && n.Phase >= policy.NodeRegistered && n.Phase < policy.NodeDeleting
	if n.ReclaimAt != 0 || unasked && n.NotReady {
		o.countReclaim(e, n, now)
		o.take(n.Name, now)
	}
	if n.ReclaimAt != 0 || unasked {
		o.Wake(wakeLost)
	}
}

// take notes that the provider took a node.
func (o *Observer) take(name string, now policy.Time) {
	o.taken[name] = now
	if len(o.taken) > takenMax {
		maps.DeleteFunc(o.taken, func(_ string, at policy.Time) bool { return now.Sub(at) > o.cfg.NoticeMax })
	}
}

// takenMax is how many names of nodes that were taken are kept before old ones are
// dropped.
const takenMax = 1000

// countReclaim puts the loss of a node into the experience of its market, once.
func (o *Observer) countReclaim(e *nodeEntry, n *policy.Node, at policy.Time) {
	if e.met || n.Market == policy.None || !o.isSpot(n.Market) {
		return
	}
	e.met = true
	m := &o.view.Markets[n.Market]
	if e.initial && m.Experience.Reclaimed >= at {
		return // it was counted before the restart
	}
	o.book.Meet(backend.Event{Kind: backend.MetReclaim, Pool: o.poolName(n.Pool), Market: m.Name, At: o.clamp(at)})
}

// countLaunch puts a node that we were given into the experience of its market,
// once. What was there when the observer began counts only when it is younger than
// the experience that was kept.
func (o *Observer) countLaunch(e *nodeEntry, n *policy.Node) {
	if e.launched || n.Market == policy.None || e.object == nil && e.machine.ProviderID == "" {
		return
	}
	e.launched = true
	m := &o.view.Markets[n.Market]
	if e.initial && (m.Experience.At == 0 || n.Launched <= m.Experience.At) {
		return
	}
	o.book.Meet(backend.Event{Kind: backend.MetLaunch, Pool: o.poolName(n.Pool), Market: m.Name, At: n.Launched})
}

func (o *Observer) isSpot(m policy.MarketID) bool {
	return int(m) < len(o.view.Markets) && o.view.Markets[m].Capacity == policy.Spot
}
