package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
)

// pressTime handles the keys that move or drive the clock.
func (m *Model) pressTime(k tea.KeyMsg) bool {
	now := m.at()
	switch {
	case key.Matches(k, keys.play):
		m.playOrPause()
	case key.Matches(k, keys.faster):
		m.clock.faster(1)
	case key.Matches(k, keys.slower):
		m.clock.faster(-1)
	case key.Matches(k, keys.nextEvent):
		m.stepEvent(1, "event")
	case key.Matches(k, keys.lastEvent):
		m.stepEvent(-1, "event")
	case key.Matches(k, keys.nextDecision):
		m.stepDecision(1, "decision", m.stepped()...)
	case key.Matches(k, keys.lastDecide):
		m.stepDecision(-1, "decision", m.stepped()...)
	case key.Matches(k, keys.hour):
		m.seek(now.Add(time.Hour))
	case key.Matches(k, keys.hourBack):
		m.seek(now.Add(-time.Hour))
	case key.Matches(k, keys.day):
		m.seek(now.Add(24 * time.Hour))
	case key.Matches(k, keys.dayBack):
		m.seek(now.Add(-24 * time.Hour))
	case key.Matches(k, keys.begin):
		m.seek(m.shown().from)
	case key.Matches(k, keys.end):
		m.seek(m.shown().to)
	case key.Matches(k, keys.goTo):
		m.ask(forMoment)
	case key.Matches(k, keys.jump), key.Matches(k, keys.jumpBack):
		m.prefix = k.Runes[0]
		m.note = "o outage · r reclaim · d decision that moves something"
	default:
		return false
	}
	return true
}

func (m *Model) playOrPause() {
	s := m.shown()
	if !m.clock.playing && m.clock.now >= s.to {
		m.clock.now = s.from // from the end it begins again
	}
	m.clock.playing = !m.clock.playing
	m.clock.ticked = time.Time{}
}

// seek brings the clock to t. A time that is not simulated yet is shown as soon as
// it is; until then the screen follows the run there.
func (m *Model) seek(t policy.Time) {
	s := m.shown()
	m.clock.now = min(max(t, s.warmup), s.to)
	for _, x := range m.shows {
		x.entry = follow
	}
}

// stop brings the clock to t and pauses it there.
func (m *Model) stop(t policy.Time, note string) {
	m.clock.playing = false
	m.seek(t)
	m.note = note
}

// stepEvent goes to the next instant at which something happened, or the last one
// before; of one of the kinds if any are given, which are called what.
func (m *Model) stepEvent(by int, what string, kinds ...timeline.Kind) {
	s := m.shown()
	var (
		i  int
		ok bool
	)
	if by > 0 {
		i, ok = s.Timeline.NextEvent(m.at(), kinds...)
	} else {
		i, ok = s.Timeline.PreviousEvent(m.at(), kinds...)
	}
	if !ok {
		m.clock.playing = false
		m.note = m.none(by, what)
		return
	}
	e := s.Timeline.Event(i)
	if e.At > m.limit() {
		m.note = m.none(by, what)
		return
	}
	m.stop(e.At, draw.Day(e.At)+"  "+sentence(s, &e))
	m.follow(&e)
}

// none says that there is no such thing in that direction.
func (m *Model) none(by int, what string) string {
	switch {
	case by < 0:
		return "no " + what + " before"
	case m.shown().done:
		return "no " + what + " after this"
	}
	return "no " + what + " after this so far; simulating…"
}

// follow selects what an event is about, so that it can be inspected at once.
func (m *Model) follow(e *timeline.Event) {
	s := m.shown()
	switch {
	case s.workload(e.Subject) >= 0:
		m.chosen[Workloads] = e.Subject
	case e.Object != "" && s.workload(e.Object) >= 0:
		m.chosen[Workloads] = e.Object
	case e.Subject != "":
		m.chosen[Nodes] = e.Subject
	}
	if e.Object != "" && s.market(e.Object) >= 0 {
		m.chosen[Markets] = e.Object
	}
}

// stepped are the verbs of the decisions to step through, none for all.
func (m *Model) stepped() []timeline.Verb {
	if m.withHolds() {
		return nil
	}
	return acting
}

// stepDecision goes to the next decision with one of the verbs, or the one before.
func (m *Model) stepDecision(by int, what string, verbs ...timeline.Verb) {
	s := m.shown()
	var (
		i  int
		ok bool
	)
	if by > 0 {
		i, ok = s.Timeline.NextDecision(m.at(), verbs...)
	} else {
		i, ok = s.Timeline.PreviousDecision(m.at(), verbs...)
	}
	if !ok {
		m.note = m.none(by, what)
		return
	}
	d := s.Timeline.Decision(i)
	if d.At > m.limit() {
		m.note = m.none(by, what)
		return
	}
	m.stop(d.At, draw.Day(d.At)+"  decided: "+tally(&d))
}

// tally says what a decision does, as "2 drains, 3 holds".
func tally(d *timeline.Decision) string {
	var counts [timeline.Hold + 1]int
	for i := range d.Entries {
		counts[d.Entries[i].Verb]++
	}
	var parts []string
	for v, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, timeline.Verb(v)))
		}
	}
	return strings.Join(parts, ", ")
}

// jump completes g or G.
func (m *Model) jump(k tea.KeyMsg) {
	by := 1
	if m.prefix == 'G' {
		by = -1
	}
	m.prefix = 0
	switch {
	case key.Matches(k, keys.outage):
		m.stepEvent(by, "outage", timeline.OutageBegan)
	case key.Matches(k, keys.reclaim):
		m.stepEvent(by, "reclaim", timeline.Reclaimed)
	case key.Matches(k, keys.decision):
		m.stepDecision(by, "decision that moves something", moving...)
	case key.Matches(k, keys.jump):
		m.seek(m.shown().from)
	case key.Matches(k, keys.jumpBack):
		m.seek(m.shown().to)
	case key.Matches(k, keys.back):
	default:
		m.note = "after g or G comes o, r or d"
	}
}
