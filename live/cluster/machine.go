package cluster

import (
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

var _ backend.Sink = (*Observer)(nil)

// SetMachine takes in what a backend knows of a machine.
func (o *Observer) SetMachine(from string, m backend.Machine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := machineKey{from, m.Name}
	i, known := o.byMachine[key]
	j, hasNode := o.nodeSlot(&m)
	switch {
	case known && hasNode && j != i && o.nodeX[i].object == nil:
		o.nodeX[i].machine = &m
		o.adopt(j, i)
		i = j
	case !known && hasNode:
		i = j
	case !known:
		i = o.slot()
	}
	e := &o.nodeX[i]
	if e.machine != nil && e.key != key {
		delete(o.byMachine, e.key) // the newest that lays claim to the node has it
	}
	if e.machine == nil {
		e.rename(m.Name)
	}
	e.key, e.machine = key, &m
	o.byMachine[key] = i
	if id := instanceOf(m.ProviderID); id != "" {
		o.byInstance[id] = i
	}
	o.touchNode(i)
	o.takeEarly(i)
}

// nodeSlot returns the slot of the Node object that m says is its.
func (o *Observer) nodeSlot(m *backend.Machine) (int32, bool) {
	if m.Node != "" {
		if i, ok := o.byName[m.Node]; ok {
			return i, true
		}
	}
	if id := instanceOf(m.ProviderID); id != "" {
		if i, ok := o.byInstance[id]; ok && o.nodeX[i].object != nil {
			return i, true
		}
	}
	return 0, false
}

// DropMachine takes in that a machine is no more. Its Node object may stay for a
// while.
func (o *Observer) DropMachine(from, name string) {
	at := policy.TimeOf(o.cfg.Clock.Now())
	o.mu.Lock()
	defer o.mu.Unlock()
	i, known := o.byMachine[machineKey{from, name}]
	if !known {
		return
	}
	delete(o.byMachine, machineKey{from, name})
	e := &o.nodeX[i]
	if e.object != nil {
		e.key, e.machine = machineKey{}, nil
		o.touchNode(i)
		return
	}
	if id := instanceOf(e.machine.ProviderID); id != "" && o.byInstance[id] == i {
		delete(o.byInstance, id)
	}
	o.read(i)
	if e.reclaimAt != 0 { // taken before it joined
		o.loseNode(i)
	}
	o.depart(i, at)
	o.empty(i)
}

// earlyMax is how many notices of unknown machines are kept.
const earlyMax = 1000

// Notice takes in a warning. One of a machine that nothing is known of is kept until
// something is.
func (o *Observer) Notice(n backend.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i, ok := o.noticed(n.Machine); ok {
		o.warn(i, n)
		return
	}
	now := policy.TimeOf(o.cfg.Clock.Now())
	o.early = append(slices.DeleteFunc(o.early, func(x backend.Notice) bool { return now.Sub(max(x.At, x.ReclaimAt)) > o.cfg.NoticeMax }), n)
	if len(o.early) > earlyMax {
		o.early = o.early[1:]
	}
}

// noticed returns the slot of the machine that a notice names.
func (o *Observer) noticed(machine string) (int32, bool) {
	if machine == "" {
		return 0, false
	}
	if i, ok := o.byName[machine]; ok {
		return i, true
	}
	i, ok := o.byInstance[instanceOf(machine)]
	return i, ok
}

// takeEarly gives the node in slot i the notices that came before it.
func (o *Observer) takeEarly(i int32) {
	o.early = slices.DeleteFunc(o.early, func(n backend.Notice) bool {
		j, ok := o.noticed(n.Machine)
		if ok = ok && j == i; ok {
			o.warn(i, n)
		}
		return ok
	})
}

// warn notes a warning. Of two the earlier end counts, and the same one reported twice
// is one.
func (o *Observer) warn(i int32, n backend.Notice) {
	e := &o.nodeX[i]
	at := o.clamp(n.At)
	if at == 0 {
		at = policy.TimeOf(o.cfg.Clock.Now())
	}
	switch {
	case n.ActedBy != policy.ActorNone:
		e.actor = n.ActedBy
	case n.Unclaimed && e.actor != policy.ActorNone:
		e.actor = policy.ActorNone
		o.Wake(wakeNotice)
	}
	switch {
	case n.ReclaimAt == 0 && e.recommended == 0:
		e.recommended = at
		o.Wake(wakeRebalance)
	case n.ReclaimAt != 0 && (e.reclaimAt == 0 || n.ReclaimAt < e.reclaimAt):
		if e.noticeAt == 0 {
			e.noticeAt = at
		}
		e.reclaimAt, e.source = n.ReclaimAt, n.Source
		o.Wake(wakeNotice)
	}
	o.touchNode(i)
}
