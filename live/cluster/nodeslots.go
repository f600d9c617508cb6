package cluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A nodeSlots holds the nodes in slots, each with what it is made of and found by each of
// its names: those that have a Node object, and those that only a backend knows.
type nodeSlots struct {
	clock *snapshotClock

	nodes   []policy.Node
	entries []nodeEntry
	free    []int32
	reread  []int32 // slots to be read again

	byName     map[string]int32 // of the Node object
	byInstance map[string]int32 // the last part of the provider ID
	byMachine  map[machineKey]int32
}

func newNodeSlots(c *snapshotClock) *nodeSlots {
	return &nodeSlots{clock: c, byName: map[string]int32{}, byInstance: map[string]int32{},
		byMachine: map[machineKey]int32{}}
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

	// noticeAt, reclaimAt and source are those of its warning, zero without one; recommended is the
	// time of a recommendation, and actor which controller drains it because of one.
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

// empty empties slot i.
func (s *nodeSlots) empty(i int32) {
	s.entries[i] = nodeEntry{dirty: s.entries[i].dirty}
	s.touch(i)
	s.free = append(s.free, i)
}

// machineSlot returns the slot of the machine that the Node object of that name is
// of, if a backend has reported it.
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

// slotOf returns the slot of the Node object that m says is its.
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

// noticed returns the slot of the machine that a notice names.
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

// promised returns the node of that name, or the machine that is to become one: who
// buys nodes for pods may say so before they are there.
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
