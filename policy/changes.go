package policy

import "iter"

// A Changes tells who reads one snapshot of an observer after the other which slots of
// Nodes and Pods changed in between, so that few have to be read again. The zero value is
// that of an observer without snapshots. It serves one goroutine at a time. Types and Markets
// are the same in all snapshots of an observer, but for what the market says of itself.
type Changes struct {
	serial  uint32 // of the last snapshot
	nodes   slotSerials[NodeID]
	pods    slotSerials[PodID]
	counts  PoolCounts
	held    poolsHeld
	noticed SlotSet[NodeID] // under notice
	pending SlotSet[PodID]
}

// slotSerials are the serials of the first snapshots that held slots as they are now.
type slotSerials[ID ~int32] struct {
	of     []uint32
	blocks []uint32 // the greatest of each blockSize slots
}

const blockSize = 64

// NoteNode says that the next snapshot is the first that holds the slot of n as it is.
func (c *Changes) NoteNode(n NodeID) { c.nodes.note(int(n), c.serial+1) }

// NotePod says the same of a pod.
func (c *Changes) NotePod(p PodID) { c.pods.note(int(p), c.serial+1) }

func (x *slotSerials[ID]) note(i int, serial uint32) {
	x.grow(i+1, serial)
	x.of[i], x.blocks[i/blockSize] = serial, serial
}

// grow makes room for n slots. Those that are added are new in the snapshot serial.
func (x *slotSerials[ID]) grow(n int, serial uint32) {
	for i := len(x.of); i < n; i++ {
		if i%blockSize == 0 {
			x.blocks = append(x.blocks, serial)
		}
		x.of, x.blocks[i/blockSize] = append(x.of, serial), serial
	}
}

// since lists those of n slots that changed after the snapshot serial.
func (x *slotSerials[ID]) since(serial uint32, n int) Cursor[ID] {
	return Cursor[ID]{of: x.of, blocks: x.blocks, serial: serial, n: n}
}

// Publish makes s, whose tables are complete, the next snapshot.
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

// A changesOf is a snapshot among those of its observer. It is that of the tables which
// it was published with: a view with other tables has no changes.
type changesOf struct {
	Mark
	nodes *Node
	pods  *Pod
}

// A Mark names a snapshot of an observer. The zero Mark names none.
type Mark struct {
	of     *Changes
	serial uint32
}

// Mark returns that of s: the zero Mark where nothing is known of what changed.
func (s *Snapshot) Mark() Mark {
	x := &s.changes
	if x.of == nil || x.of.serial != x.serial || len(s.Nodes) == 0 || len(s.Pods) == 0 || x.nodes != &s.Nodes[0] ||
		x.pods != &s.Pods[0] {
		return Mark{}
	}
	return x.Mark
}

// Whole returns s as a snapshot of which it is not known what changed, so that all of it is read.
func (s *Snapshot) Whole() Snapshot {
	whole := *s
	whole.changes = changesOf{}
	return whole
}

// Follows reports whether it is known which slots changed since the snapshot of m. Slots
// that were added since count as changed.
func (s *Snapshot) Follows(m Mark) bool { return m.of != nil && s.Mark().of == m.of }

// UnderNotice lists the nodes that the provider takes back, ascending, where that is known.
func (s *Snapshot) UnderNotice() (list []NodeID, known bool) {
	if m := s.Mark(); m.of != nil {
		return m.of.noticed.All(), true
	}
	return nil, false
}

// Pending lists the pods in phase PodPending, ascending.
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

// NodesSince lists the nodes that may have changed since the snapshot of m, ascending: all
// where that is not known.
func (s *Snapshot) NodesSince(m Mark) Cursor[NodeID] {
	if !s.Follows(m) {
		return Cursor[NodeID]{n: len(s.Nodes)}
	}
	return m.of.nodes.since(m.serial, len(s.Nodes))
}

// PodsSince lists the pods that may have changed since the snapshot of m, ascending: all
// where that is not known.
func (s *Snapshot) PodsSince(m Mark) Cursor[PodID] {
	if !s.Follows(m) {
		return Cursor[PodID]{n: len(s.Pods)}
	}
	return m.of.pods.since(m.serial, len(s.Pods))
}

// A Cursor lists slots: ID is one after each call of Next that says that there is one more.
type Cursor[ID ~int32] struct {
	ID ID

	of, blocks []uint32 // none where all are listed
	serial     uint32
	next, n    int
}

// Next advances to the next slot.
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

// A SlotSet keeps the slots for which something holds. The zero value holds none.
type SlotSet[ID ~int32] struct{ list, spare []ID }

// All returns the slots, ascending. The list is valid until the next Read.
func (x *SlotSet[ID]) All() []ID { return x.list }

// Read asks again whether it holds for the slots of c: those that changed since the last Read,
// or all.
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
