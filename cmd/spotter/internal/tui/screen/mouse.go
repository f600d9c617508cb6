package screen

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// point handles the mouse: a click focuses and selects, a click on a selected item inspects it, a
// click on the timeline seeks, and the wheel moves the selection of the pane under it.
func (m *Model) point(e tea.MouseMsg) {
	if m.list.open && !m.help.open && !m.port.small() {
		m.prompt.note = m.list.point(e, m.port.page())
		return
	}
	if e.Action == tea.MouseActionRelease || m.play.shown() == nil || m.help.open || m.port.small() {
		return
	}
	l := m.layout()
	switch {
	case e.Button == tea.MouseButtonWheelUp:
		m.wheel(&l, e.X, e.Y, -1)
	case e.Button == tea.MouseButtonWheelDown:
		m.wheel(&l, e.X, e.Y, 1)
	case e.Button != tea.MouseButtonLeft:
	case l.scrub.holds(e.X, e.Y):
		m.play.seek(m.play.scrubBar().TimeAt(l.scrub.w, e.X-l.scrub.x))
	case e.Action != tea.MouseActionPress:
	case l.story.holds(e.X, e.Y):
		m.prompt.note = m.jumps.toStory()
	case l.tabs.holds(e.X, e.Y):
		if p, ok := tabAt(e.X); ok {
			m.port.pane = p
		}
	default:
		m.click(&l, e.X, e.Y)
	}
}

// point handles the mouse while runs are listed on page. It returns the message to show.
func (l *listPage) point(e tea.MouseMsg, page rect) string {
	switch {
	case e.Button == tea.MouseButtonWheelUp:
		l.move(-1)
	case e.Button == tea.MouseButtonWheelDown:
		l.move(1)
	case e.Button == tea.MouseButtonLeft && e.Action == tea.MouseActionPress:
		return l.pick(page, e.X, e.Y)
	}
	return ""
}

func (m *Model) wheel(l *layout, x, y, by int) {
	switch a := l.areaAt(x, y); {
	case l.scrub.holds(x, y):
		m.play.seek(m.play.time().Add(time.Duration(by) * time.Hour))
	case l.side.holds(x, y):
		m.inspector.scrollBy(3*by, l.side)
	case a != nil:
		m.port.pane, m.port.focus = a.pane, a.run
		m.choose(0, by)
	}
}

// click focuses a pane and selects the item under the mouse.
func (m *Model) click(l *layout, x, y int) {
	a := l.areaAt(x, y)
	if a == nil {
		return
	}
	m.port.pane, m.port.focus = a.pane, a.run
	decisions := &m.play.shown().decisionPane
	before, entry := m.selection.chosen[a.pane], decisions.entry
	in := inside(a.rect)
	h := m.play.pane(a.pane, a.run).pick(rect{0, 0, in.w, in.h}, x-in.x, y-in.y, &m.selection)
	switch {
	case h.timed:
		m.play.seek(h.at)
	case h.selected && m.selection.chosen[a.pane] == before && decisions.entry == entry:
		m.inspect()
	}
}
