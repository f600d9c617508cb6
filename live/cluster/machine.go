package cluster

import (
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// setMachine updates a machine from the report of a backend.
func (t *nodeTable) setMachine(from string, m backend.Machine) {
	key := machineKey{from, m.Name}
	i, known := t.slots.byMachine[key]
	j, hasNode := t.slots.slotOf(&m)
	switch {
	case known && hasNode && j != i && t.slots.entries[i].object == nil:
		t.slots.entries[i].machine = &m
		t.adopt(j, i)
		i = j
	case !known && hasNode:
		i = j
	case !known:
		i = t.slots.slot()
	}
	e := &t.slots.entries[i]
	if e.machine != nil && e.key != key {
		delete(t.slots.byMachine, e.key) // the latest machine that claims the node is assigned to it
	}
	if e.machine == nil {
		e.rename(m.Name)
	}
	e.key, e.machine = key, &m
	t.slots.byMachine[key] = i
	if id := instanceOf(m.ProviderID); id != "" {
		t.slots.byInstance[id] = i
	}
	t.slots.touch(i)
	t.takeEarly(i)
}

// dropMachine handles the end of a machine. Its Node object may remain for a while.
func (t *nodeTable) dropMachine(from, name string, at policy.Time) {
	i, known := t.slots.byMachine[machineKey{from, name}]
	if !known {
		return
	}
	delete(t.slots.byMachine, machineKey{from, name})
	e := &t.slots.entries[i]
	if e.object != nil {
		e.key, e.machine = machineKey{}, nil
		t.slots.touch(i)
		return
	}
	if id := instanceOf(e.machine.ProviderID); id != "" && t.slots.byInstance[id] == i {
		delete(t.slots.byInstance, id)
	}
	t.read(i)
	if e.reclaimAt != 0 { // it was reclaimed before it joined
		t.lose(i)
	}
	t.lives.depart(i, at)
	t.slots.empty(i)
}

// earlyMax is the maximum number of notices that are kept for unknown machines.
const earlyMax = 1000

// notice handles a notice. A notice of an unknown machine is kept until the machine is known.
func (t *nodeTable) notice(n backend.Notice) {
	if i, ok := t.slots.noticed(n.Machine); ok {
		t.warn(i, n)
		return
	}
	now := t.clock.wall()
	t.early = append(slices.DeleteFunc(t.early, func(x backend.Notice) bool {
		return now.Sub(max(x.At,
			x.ReclaimAt)) > t.cfg.NoticeMax
	}), n)
	if len(t.early) > earlyMax {
		t.early = t.early[1:]
	}
}

// takeEarly applies the notices that arrived before the node in slot i.
func (t *nodeTable) takeEarly(i int32) {
	t.early = slices.DeleteFunc(t.early, func(n backend.Notice) bool {
		j, ok := t.slots.noticed(n.Machine)
		if ok = ok && j == i; ok {
			t.warn(i, n)
		}
		return ok
	})
}

// warn records a notice of the node in slot i. The earlier reclaim time of two notices counts, and
// repeated notices count once.
func (t *nodeTable) warn(i int32, n backend.Notice) {
	e := &t.slots.entries[i]
	at := t.clock.clamp(n.At)
	if at == 0 {
		at = t.clock.wall()
	}
	switch {
	case n.ActedBy != policy.ActorNone:
		e.actor = n.ActedBy
	case n.Unclaimed && e.actor != policy.ActorNone:
		e.actor = policy.ActorNone
		t.wakes.wake(backend.WakeNotice)
	}
	switch {
	case n.ReclaimAt == 0 && e.recommended == 0:
		e.recommended = at
		t.wakes.wake(backend.WakeRebalance)
	case n.ReclaimAt != 0 && (e.reclaimAt == 0 || n.ReclaimAt < e.reclaimAt):
		if e.noticeAt == 0 {
			e.noticeAt = at
		}
		e.reclaimAt, e.source = n.ReclaimAt, n.Source
		t.wakes.wake(backend.WakeNotice)
	}
	t.slots.touch(i)
}
