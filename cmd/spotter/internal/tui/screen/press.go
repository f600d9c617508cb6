package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/eval/timeline"
)

// pressTime handles the keys that move or drive the clock.
func (m *Model) pressTime(k tea.KeyMsg) bool {
	p := &m.play
	now := p.time()
	switch {
	case key.Matches(k, keys.play):
		p.playOrPause()
	case key.Matches(k, keys.faster):
		p.clock.faster(1)
	case key.Matches(k, keys.slower):
		p.clock.faster(-1)
	case key.Matches(k, keys.nextEvent):
		m.prompt.note = m.jumps.step(1, "event")
	case key.Matches(k, keys.lastEvent):
		m.prompt.note = m.jumps.step(-1, "event")
	case key.Matches(k, keys.nextDecision):
		m.prompt.note = p.stepDecision(1, "decision", m.selection.stepped()...)
	case key.Matches(k, keys.lastDecide):
		m.prompt.note = p.stepDecision(-1, "decision", m.selection.stepped()...)
	case key.Matches(k, keys.hour):
		p.seek(now.Add(time.Hour))
	case key.Matches(k, keys.hourBack):
		p.seek(now.Add(-time.Hour))
	case key.Matches(k, keys.day):
		p.seek(now.Add(24 * time.Hour))
	case key.Matches(k, keys.dayBack):
		p.seek(now.Add(-24 * time.Hour))
	case key.Matches(k, keys.begin):
		p.seek(p.shown().from)
	case key.Matches(k, keys.end):
		p.seek(p.shown().to)
	case key.Matches(k, keys.goTo):
		m.prompt.ask(forMoment, "")
	case key.Matches(k, keys.jump), key.Matches(k, keys.jumpBack):
		m.prompt.note = m.jumps.begin(k)
	case key.Matches(k, keys.again), key.Matches(k, keys.againBack):
		m.prompt.note = m.jumps.again(key.Matches(k, keys.againBack))
	default:
		return false
	}
	return true
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

// pressPane handles the keys that the focused pane or the inspector gets.
func (m *Model) pressPane(k tea.KeyMsg) bool {
	page := max(m.port.height/2, 1)
	switch {
	case key.Matches(k, keys.up):
		m.scrollOrMove(-1)
	case key.Matches(k, keys.down):
		m.scrollOrMove(1)
	case key.Matches(k, keys.page):
		m.scrollOrMove(page)
	case key.Matches(k, keys.pageUp):
		m.scrollOrMove(-page)
	case key.Matches(k, keys.next):
		m.choose(1, 0)
	case key.Matches(k, keys.previous):
		m.choose(-1, 0)
	case key.Matches(k, keys.inspect):
		m.inspect()
	case key.Matches(k, keys.back):
		m.goBack()
	case key.Matches(k, keys.filter):
		m.prompt.ask(forFilter, m.selection.filters[m.port.pane])
	case key.Matches(k, keys.sort):
		m.prompt.note = m.sortNodes((m.selection.order + 1) % nodeOrder(len(nodeOrders)))
	case key.Matches(k, keys.holds):
		m.prompt.note = m.toggleHolds()
	default:
		return false
	}
	return true
}

// toggleHolds lists what was held back among the decisions, or leaves it out. It returns
// what there is to say.
func (m *Model) toggleHolds() string {
	if m.selection.holds = !m.selection.holds; m.selection.holds {
		return "decisions with holds: what was left alone, and why"
	}
	return "decisions without holds: what was changed"
}

// sortNodes shows the nodes as a table in an order, or as the grid. It returns what
// there is to say.
func (m *Model) sortNodes(by nodeOrder) string {
	m.selection.order, m.port.pane = by, Nodes
	return "nodes " + nodeOrders[by].does
}

// scrollOrMove scrolls the inspector, or moves the selection of the pane.
func (m *Model) scrollOrMove(lines int) {
	if m.port.inspecting() {
		m.inspector.scrollBy(lines, m.layout().side)
		return
	}
	m.choose(0, lines)
}

// choose moves the selection of the focused pane and has an open inspector follow.
func (m *Model) choose(dx, dy int) {
	l := m.layout()
	m.play.pane(m.port.pane, m.port.focus).move(l.size(m.port.pane, m.port.focus), dx, dy, &m.selection)
	if x := m.port.subject(); x != nil && x.pane == m.port.pane {
		m.port.back()
		m.inspect()
	}
}

// inspect opens the inspector on what is selected in the focused pane, or on what
// comes behind what is inspected.
func (m *Model) inspect() {
	var to subject
	if x := m.port.subject(); x != nil {
		var ok bool
		if to, ok = m.inspector.facts(&m.play).onward(x); !ok {
			m.prompt.note = "there is nothing further to look at from here"
			return
		}
	} else if to = m.selected(); to.name == "" {
		m.prompt.note = "select something first, with ↑ ↓ or the mouse"
		return
	}
	m.port.inspected = append(m.port.inspected, to)
	m.inspector.scroll = 0
}

// selected is what is selected in the focused pane; where nothing is, the first
// of what it shows is.
func (m *Model) selected() subject {
	p := m.port.pane
	if p == Decisions {
		return m.play.shown().decisionPane.subject()
	}
	if m.selection.chosen[p] == "" {
		m.choose(0, 0)
	}
	return subject{pane: p, name: m.selection.chosen[p]}
}

// goBack leaves the inspector, the full screen, or the filter, whichever is there.
func (m *Model) goBack() {
	p, decisions := m.port.pane, &m.play.shown().decisionPane
	switch {
	case m.port.inspecting():
		m.port.back()
		m.inspector.scroll = 0
	case m.port.zoom:
		m.port.zoom = false
	case m.selection.filters[p] != "":
		m.selection.filters[p] = ""
	case decisions.entry != follow:
		decisions.entry = follow
	default:
		m.selection.chosen[p] = ""
	}
}
