package screen

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// point does what the mouse says: a click takes the focus and selects, one more
// on what is selected inspects it, a click on the bar of the run goes there, and
// the wheel moves what is under it.
func (m *Model) point(e tea.MouseMsg) {
	if e.Action == tea.MouseActionRelease || len(m.shows) == 0 || m.help || m.small() {
		return
	}
	l := arrange(m.shape())
	switch {
	case e.Button == tea.MouseButtonWheelUp:
		m.wheel(&l, e.X, e.Y, -1)
	case e.Button == tea.MouseButtonWheelDown:
		m.wheel(&l, e.X, e.Y, 1)
	case e.Button != tea.MouseButtonLeft:
	case l.scrub.holds(e.X, e.Y):
		m.seek(m.scrubBar().TimeAt(l.scrub.w, e.X-l.scrub.x))
	case e.Action != tea.MouseActionPress:
	case l.tabs.holds(e.X, e.Y):
		if p, ok := tabAt(e.X); ok {
			m.pane = p
		}
	default:
		m.click(&l, e.X, e.Y)
	}
}

func (m *Model) wheel(l *layout, x, y, by int) {
	if l.scrub.holds(x, y) {
		m.seek(m.at().Add(time.Duration(by) * time.Hour))
		return
	}
	if l.side.holds(x, y) {
		m.scroll = min(max(m.scroll+3*by, 0), m.scrollMax())
		return
	}
	for _, a := range l.areas {
		if a.holds(x, y) {
			m.pane, m.focus = a.pane, a.run
			m.choose(0, by)
		}
	}
}

// click focuses a pane and selects what is under the mouse.
func (m *Model) click(l *layout, x, y int) {
	for _, a := range l.areas {
		if !a.holds(x, y) {
			continue
		}
		m.pane, m.focus = a.pane, a.run
		before, entry := m.chosen[a.pane], m.shown().entry
		if m.pick(&a, x, y) && m.chosen[a.pane] == before && (a.pane != Decisions || m.shown().entry == entry) {
			m.inspect()
		}
		return
	}
}

// pick selects what stands at x, y of the screen and reports whether there is
// anything.
func (m *Model) pick(a *area, x, y int) bool {
	s := m.shows[a.run]
	in := inside(a.rect)
	x, y = x-in.x, y-in.y
	if a.pane == Nodes {
		i, ok := s.grid.NodeAt(in.w, in.h, x, y)
		if ok {
			m.chosen[Nodes] = s.grid.Nodes[i].Name
		}
		return ok
	}
	if a.pane == Decisions {
		i, ok := s.log.RowAt(in.h, y)
		if ok {
			s.entry = s.entries[s.log.Entries[i].First]
		}
		return ok
	}
	charts, table := m.parts(a.pane, in)
	if !table.holds(in.x+x, in.y+y) {
		return m.pickTime(a.pane, s, charts, in.x+x, in.y+y)
	}
	row, ok := m.table(s, a.pane).RowAt(table.h, in.y+y-table.y)
	if !ok {
		return false
	}
	switch a.pane {
	case Markets:
		m.chosen[Markets] = s.markets[s.marketIDs[row]].Name
	case Savings:
		m.chosen[Savings] = m.shows[row].Name
	case Workloads:
		m.chosen[Workloads] = s.workloads[s.workloadIDs[row]].Name
	case Budgets:
		m.chosen[Budgets] = s.budgets[s.budgetIDs[row]].Name
	}
	return true
}

// pickTime goes to the time that was clicked in a chart. Nothing is selected.
func (m *Model) pickTime(p Pane, s *show, charts rect, x, y int) bool {
	if !charts.holds(x, y) {
		return false
	}
	c := s.prices
	if p == Savings {
		c = m.savingsChart()
	}
	if t, ok := c.TimeAt(charts.w, charts.h, x-charts.x); ok {
		m.seek(t)
	}
	return false
}
