package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A nodeSlots contains nodes in slots, each with its sources, and finds them by each of their
// names. It contains both nodes with a Node object and machines that only a backend knows.
type nodeSlots struct {
	clock *snapshotClock

	nodes   []policy.Node
	entries []nodeEntry
	free    []int32
	reread  []int32 // slots to be read again

	byName     map[string]int32 // by name of the Node object
	byInstance map[string]int32 // by the last part of the provider ID
	byMachine  map[machineKey]int32
}

func newNodeSlots(c *snapshotClock) *nodeSlots {
	return &nodeSlots{clock: c, byName: map[string]int32{}, byInstance: map[string]int32{},
		byMachine: map[machineKey]int32{}}
}

// A machineKey identifies a machine of a backend.
type machineKey struct{ backend, name string }

// A nodeEntry contains the sources of a slot of the node table. The slot is free if both object and
// machine are nil.
type nodeEntry struct {
	object  *corev1.Node
	key     machineKey
	machine *backend.Machine

	dirty   bool
	initial bool // the node existed when the observer started

	// launched and met report whether the launch and the reclaim were counted.
	launched, met bool

	// noticeAt, reclaimAt and source describe the notice; zero without a notice. recommended is the
	// time of a rebalance recommendation. actor is the controller that drains the node because of
	// either.
	noticeAt, reclaimAt, recommended policy.Time
	source                           string
	actor                            policy.Actor

	// marked is the time at which a taint that announces a reclaim was first observed, if the taint
	// does not contain it.
	marked policy.Time

	// initialized is the time since which the node is known to accept pods; 0 before it does.
	initialized policy.Time

	leaving  bool // the Node object was deleted
	unpriced bool // the last snapshot had no market for the node

	// life and was are Key and Was of the node's Life. seen reports whether a snapshot contained
	// the node. gone is the time of the deletion of its Node object if the machine still exists.
	life, was string
	seen      bool
	gone      policy.Time
}

// instanceOf returns the last part of a provider ID, which identifies the instance.
func instanceOf(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// slot returns a free slot.
func (s *nodeSlots) slot() int32 {
	var i int32
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = int32(len(s.nodes))
		s.nodes = append(s.nodes, policy.Node{})
		s.entries = append(s.entries, nodeEntry{})
	}
	s.entries[i] = nodeEntry{initial: !s.clock.started, dirty: s.entries[i].dirty}
	return i
}

// touch marks a slot to be read again.
func (s *nodeSlots) touch(i int32) {
	if !s.entries[i].dirty {
		s.entries[i].dirty = true
		s.reread = append(s.reread, i)
	}
}

// touchAll marks all slots to be read again.
func (s *nodeSlots) touchAll() {
	for i := range s.entries {
		s.touch(int32(i))
	}
}

// empty frees slot i.
func (s *nodeSlots) empty(i int32) {
	s.entries[i] = nodeEntry{dirty: s.entries[i].dirty}
	s.touch(i)
	s.free = append(s.free, i)
}

// machineSlot returns the slot of the reported machine that belongs to the Node object with a name
// and instance, and whether there is one.
func (s *nodeSlots) machineSlot(name, instance string) (int32, bool) {
	if i, ok := s.byInstance[instance]; ok && instance != "" && s.entries[i].object == nil {
		return i, true
	}
	for i := range s.entries {
		if e := &s.entries[i]; e.machine != nil && e.object == nil && e.machine.Node == name {
			return int32(i), true
		}
	}
	return 0, false
}

// slotOf returns the slot of the Node object that belongs to m, and whether there is one.
func (s *nodeSlots) slotOf(m *backend.Machine) (int32, bool) {
	if m.Node != "" {
		if i, ok := s.byName[m.Node]; ok {
			return i, true
		}
	}
	if id := instanceOf(m.ProviderID); id != "" {
		if i, ok := s.byInstance[id]; ok && s.entries[i].object != nil {
			return i, true
		}
	}
	return 0, false
}

// noticed returns the slot of the machine that a notice names, and whether there is one.
func (s *nodeSlots) noticed(machine string) (int32, bool) {
	if machine == "" {
		return 0, false
	}
	if i, ok := s.byName[machine]; ok {
		return i, true
	}
	i, ok := s.byInstance[instanceOf(machine)]
	return i, ok
}

// promised returns the node with a name, or the machine with that name that has not joined yet: a
// provisioner may nominate machines for pods before they are nodes. It returns None if there is
// neither.
func (s *nodeSlots) promised(name string) policy.NodeID {
	if name == "" {
		return policy.None
	}
	if i, ok := s.byName[name]; ok {
		return policy.NodeID(i)
	}
	for i := range s.entries {
		if e := &s.entries[i]; e.machine != nil && e.object == nil && e.machine.Name == name {
			return policy.NodeID(i)
		}
	}
	return policy.None
}
