package screen

import (
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/eval/timeline"
)

// tally summarises a decision, such as "2 drains, 3 holds".
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

// toggleHolds includes decisions that held something back in the list, or excludes them. It returns
// a message.
func (m *Model) toggleHolds() string {
	if m.selection.holds = !m.selection.holds; m.selection.holds {
		return "decisions with holds: what was left alone, and why"
	}
	return "decisions without holds: what was changed"
}

// sortNodes shows the nodes as a table in an order, or as the grid. It returns a message.
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

// choose moves the selection of the focused pane and updates an open inspector.
func (m *Model) choose(dx, dy int) {
	l := m.layout()
	m.play.pane(m.port.pane, m.port.focus).move(l.size(m.port.pane, m.port.focus), dx, dy, &m.selection)
	if x := m.port.subject(); x != nil && x.pane == m.port.pane {
		m.port.back()
		m.inspect()
	}
}

// inspect opens the inspector for the selected item of the focused pane, or for the subject that
// follows the inspected one.
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

// selected returns the selected item of the focused pane. Without a selection it selects the first
// item.
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

// goBack closes the inspector or the full screen, or clears the filter or the selection, whichever
// comes first.
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
