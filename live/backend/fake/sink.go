// Package fake has a sink for tests of backends: it keeps what they report.
package fake

import (
	"maps"
	"slices"
	"sync"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A Sink keeps what is reported to it. Its methods take the lock; the fields may be read
// while no caller reports.
type Sink struct {
	mu       sync.Mutex
	Machines map[string]backend.Machine // that are there, by name
	Dropped  map[string]int             // how often each machine was dropped
	Steers   map[string]policy.SteerState
	Notices  []backend.Notice
	Events   []backend.Event
	Wakes    []string
}

// NewSink returns a sink to which nothing was reported.
func NewSink() *Sink {
	return &Sink{Machines: map[string]backend.Machine{}, Dropped: map[string]int{}, Steers: map[string]policy.SteerState{}}
}

var _ backend.Sink = (*Sink)(nil)

func (s *Sink) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// SetMachine implements [backend.Sink].
func (s *Sink) SetMachine(_ string, m backend.Machine) { s.do(func() { s.Machines[m.Name] = m }) }

// DropMachine implements [backend.Sink].
func (s *Sink) DropMachine(_, name string) {
	s.do(func() {
		delete(s.Machines, name)
		s.Dropped[name]++
	})
}

// SetSteer implements [backend.Sink].
func (s *Sink) SetSteer(pool string, x policy.SteerState) { s.do(func() { s.Steers[pool] = x }) }

// Notice implements [backend.Sink].
func (s *Sink) Notice(n backend.Notice) { s.do(func() { s.Notices = append(s.Notices, n) }) }

// Meet implements [backend.Sink].
func (s *Sink) Meet(e backend.Event) { s.do(func() { s.Events = append(s.Events, e) }) }

// Wake implements [backend.Sink].
func (s *Sink) Wake(reason string) { s.do(func() { s.Wakes = append(s.Wakes, reason) }) }

// Met returns the markets of the events of a kind, in order.
func (s *Sink) Met(kind backend.EventKind) (markets []string) {
	s.do(func() {
		for _, e := range s.Events {
			if e.Kind == kind {
				markets = append(markets, e.Market)
			}
		}
	})
	return markets
}

// All returns the machines, ascending by name.
func (s *Sink) All() (all []backend.Machine) {
	s.do(func() {
		for _, name := range slices.Sorted(maps.Keys(s.Machines)) {
			all = append(all, s.Machines[name])
		}
	})
	return all
}

// Alive counts the machines that are there or on their way.
func (s *Sink) Alive() int {
	return len(slices.DeleteFunc(s.All(), func(m backend.Machine) bool { return m.Phase == policy.NodeDeleting }))
}

// Noticed returns the notices so far.
func (s *Sink) Noticed() (all []backend.Notice) {
	s.do(func() { all = slices.Clone(s.Notices) })
	return all
}

// Woken returns the reasons for which a step was requested.
func (s *Sink) Woken() (all []string) {
	s.do(func() { all = slices.Clone(s.Wakes) })
	return all
}
