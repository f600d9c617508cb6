package policy

import "iter"

// A Changes tracks which slots of Nodes and Pods change between the snapshots of one observer, so
// that consumers that read every snapshot need to read only those again. The zero value is the
// Changes of an observer without snapshots. Only one goroutine at a time may use it. Types and
// Markets are the same in all snapshots of an observer, except for the state of the markets.
type Changes struct {
	serial  uint32 // of the last snapshot
	nodes   slotSerials[NodeID]
	pods    slotSerials[PodID]
	counts  PoolCounts
	held    poolsHeld
	noticed SlotSet[NodeID] // nodes under notice
	pending SlotSet[PodID]
}

// slotSerials contains, for each slot, the serial of the first snapshot with its present content.
type slotSerials[ID ~int32] struct {
	of     []uint32
	blocks []uint32 // maximum of each blockSize slots
}

const blockSize = 64

// NoteNode records that the slot of n differs in the next snapshot.
func (c *Changes) NoteNode(n NodeID) { c.nodes.note(int(n), c.serial+1) }

// NotePod records that the slot of p differs in the next snapshot.
func (c *Changes) NotePod(p PodID) { c.pods.note(int(p), c.serial+1) }

func (x *slotSerials[ID]) note(i int, serial uint32) {
	x.grow(i+1, serial)
	x.of[i], x.blocks[i/blockSize] = serial, serial
}

// grow extends x to n slots. Added slots are new in the snapshot with the given serial.
func (x *slotSerials[ID]) grow(n int, serial uint32) {
	for i := len(x.of); i < n; i++ {
		if i%blockSize == 0 {
			x.blocks = append(x.blocks, serial)
		}
		x.of, x.blocks[i/blockSize] = append(x.of, serial), serial
	}
}

// since returns the slots among the first n that changed after the snapshot with the given serial.
func (x *slotSerials[ID]) since(serial uint32, n int) Cursor[ID] {
	return Cursor[ID]{of: x.of, blocks: x.blocks, serial: serial, n: n}
}

// Publish makes s the next snapshot. Its tables must be complete.
func (c *Changes) Publish(s *Snapshot) {
	c.serial++
	c.nodes.grow(len(s.Nodes), c.serial)
	c.pods.grow(len(s.Pods), c.serial)
	changed := c.nodes.since(c.serial-1, len(s.Nodes))
	c.noticed.Read(changed, func(n NodeID) bool { return s.Nodes[n].ReclaimAt != 0 })
	for changed.Next() {
		c.counts.Read(changed.ID, &s.Nodes[changed.ID])
		c.held.read(s, changed.ID)
	}
	c.pending.Read(c.pods.since(c.serial-1, len(s.Pods)), func(p PodID) bool { return s.Pods[p].Phase == PodPending })
	s.changes = changesOf{Mark: Mark{c, c.serial}}
	if len(s.Nodes) > 0 {
		s.changes.nodes = &s.Nodes[0]
	}
	if len(s.Pods) > 0 {
		s.changes.pods = &s.Pods[0]
	}
}

// A changesOf identifies a snapshot of an observer. It applies only to the tables with which the
// snapshot was published: a view with other tables has no changes.
type changesOf struct {
	Mark
	nodes *Node
	pods  *Pod
}

// A Mark identifies a snapshot of an observer. The zero Mark identifies no snapshot.
type Mark struct {
	of     *Changes
	serial uint32
}

// Mark returns the mark of s; the zero Mark if the changes of s are unknown.
func (s *Snapshot) Mark() Mark {
	x := &s.changes
	if x.of == nil || x.of.serial != x.serial || len(s.Nodes) == 0 || len(s.Pods) == 0 || x.nodes != &s.Nodes[0] ||
		x.pods != &s.Pods[0] {
		return Mark{}
	}
	return x.Mark
}

// Whole returns s as a snapshot without known changes, so that consumers read all of it.
func (s *Snapshot) Whole() Snapshot {
	whole := *s
	whole.changes = changesOf{}
	return whole
}

// Follows reports whether the slots that changed since the snapshot of m are known. Slots that were
// added since count as changed.
func (s *Snapshot) Follows(m Mark) bool { return m.of != nil && s.Mark().of == m.of }

// UnderNotice returns the nodes under notice in ascending order, and whether they are known.
func (s *Snapshot) UnderNotice() (list []NodeID, known bool) {
	if m := s.Mark(); m.of != nil {
		return m.of.noticed.All(), true
	}
	return nil, false
}

// Pending iterates over the pods in phase PodPending in ascending order.
func (s *Snapshot) Pending() iter.Seq[*Pod] {
	return func(yield func(*Pod) bool) {
		if m := s.Mark(); m.of != nil {
			for _, id := range m.of.pending.All() {
				if !yield(&s.Pods[id]) {
					return
				}
			}
			return
		}
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Phase == PodPending && !yield(p) {
				return
			}
		}
	}
}

// NodesSince returns the nodes that may have changed since the snapshot of m, in ascending order:
// all nodes if the changes are unknown.
func (s *Snapshot) NodesSince(m Mark) Cursor[NodeID] {
	if !s.Follows(m) {
		return Cursor[NodeID]{n: len(s.Nodes)}
	}
	return m.of.nodes.since(m.serial, len(s.Nodes))
}

// PodsSince returns the pods that may have changed since the snapshot of m, in ascending order: all
// pods if the changes are unknown.
func (s *Snapshot) PodsSince(m Mark) Cursor[PodID] {
	if !s.Follows(m) {
		return Cursor[PodID]{n: len(s.Pods)}
	}
	return m.of.pods.since(m.serial, len(s.Pods))
}

// A Cursor iterates over slots: ID is the current slot after each call of Next that returns true.
type Cursor[ID ~int32] struct {
	ID ID

	of, blocks []uint32 // nil if all slots are listed
	serial     uint32
	next, n    int
}

// Next advances to the next slot and reports whether there is one.
func (c *Cursor[ID]) Next() bool {
	for ; c.next < c.n; c.next++ {
		if c.of == nil {
			break
		}
		if c.next%blockSize == 0 && c.blocks[c.next/blockSize] <= c.serial {
			c.next += blockSize - 1
			continue
		}
		if c.of[c.next] > c.serial {
			break
		}
	}
	c.ID = ID(c.next)
	c.next++
	return int(c.ID) < c.n
}

// A SlotSet is the set of slots for which a condition holds. The zero value is the empty set.
type SlotSet[ID ~int32] struct{ list, spare []ID }

// All returns the slots in ascending order. The result is valid until the next Read.
func (x *SlotSet[ID]) All() []ID { return x.list }

// Read evaluates the condition again for the slots of c, which must be those that changed since the
// last Read, or all slots.
func (x *SlotSet[ID]) Read(c Cursor[ID], holds func(ID) bool) {
	list, next := x.list, x.spare[:0]
	if c.of == nil {
		list = nil
	}
	for c.Next() {
		for len(list) > 0 && list[0] < c.ID {
			next, list = append(next, list[0]), list[1:]
		}
		if len(list) > 0 && list[0] == c.ID {
			list = list[1:]
		}
		if holds(c.ID) {
			next = append(next, c.ID)
		}
	}
	next = append(next, list...)
	x.list, x.spare = next, x.list
}
