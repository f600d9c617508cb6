package screen

import (
	"slices"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
)

// pressScreen handles the keys that change what is on the screen.
func (m *Model) pressScreen(k tea.KeyMsg) bool {
	switch {
	case key.Matches(k, keys.run):
		m.focus = (m.focus + 1) % len(m.shows)
		if len(m.shows) == 1 {
			m.note = "there is only one run; choose more with --policies"
		}
	case key.Matches(k, keys.both):
		m.toggleBoth()
	case key.Matches(k, keys.pane):
		m.pane = Pane(k.Runes[0] - '1')
	case key.Matches(k, keys.panes):
		m.pane = (m.pane + 1) % Pane(paneCount)
	case key.Matches(k, keys.zoom):
		m.zoom = !m.zoom
	default:
		return false
	}
	return true
}

func (m *Model) toggleBoth() {
	switch {
	case len(m.shows) < 2:
		m.note = "there is only one run; choose more with --policies"
	case m.width < widthBoth:
		m.note = "two policies side by side need 100 columns; tab shows the other one"
	default:
		m.both = !m.both
		m.inspected = nil
	}
}

// pressPane handles the keys that the focused pane or the inspector gets.
func (m *Model) pressPane(k tea.KeyMsg) bool {
	page := max(m.height/2, 1)
	switch {
	case key.Matches(k, keys.up):
		m.move(0, -1)
	case key.Matches(k, keys.down):
		m.move(0, 1)
	case key.Matches(k, keys.page):
		m.move(0, page)
	case key.Matches(k, keys.pageUp):
		m.move(0, -page)
	case key.Matches(k, keys.next):
		m.choose(1, 0)
	case key.Matches(k, keys.previous):
		m.choose(-1, 0)
	case key.Matches(k, keys.inspect):
		m.inspect()
	case key.Matches(k, keys.back):
		m.goBack()
	case key.Matches(k, keys.filter):
		m.ask(forFilter)
	case key.Matches(k, keys.holds):
		m.holds = !m.holds
		m.note = "decisions without holds: what was changed"
		if m.holds {
			m.note = "decisions with holds: what was left alone, and why"
		}
	default:
		return false
	}
	return true
}

// move scrolls the inspector, or moves the selection of the pane.
func (m *Model) move(dx, dy int) {
	if len(m.inspected) > 0 {
		m.scroll = min(max(m.scroll+dy, 0), m.scrollMax())
		return
	}
	m.choose(dx, dy)
}

// choose moves the selection of the focused pane and has an open inspector follow.
func (m *Model) choose(dx, dy int) {
	s := m.shown()
	by := dx + dy
	switch m.pane {
	case Nodes:
		size := m.paneSize(Nodes)
		if i := s.grid.Move(size.w, size.h, dx, dy); i >= 0 && i < len(s.grid.Nodes) {
			m.chosen[Nodes] = s.grid.Nodes[i].Name
		}
	case Markets:
		m.chooseOf(by, len(s.marketIDs), func(i int) string { return s.markets[s.marketIDs[i]].Name })
	case Savings:
		m.chooseOf(by, len(m.shows), func(i int) string { return m.shows[i].Name })
	case Workloads:
		m.chooseOf(by, len(s.workloadIDs), func(i int) string { return s.workloads[s.workloadIDs[i]].Name })
	case Budgets:
		m.chooseOf(by, len(s.budgetIDs), func(i int) string { return s.budgets[s.budgetIDs[i]].Name })
	case Decisions:
		if n := len(s.log.Entries); n > 0 {
			to := min(max(s.log.Selected+by, 0), n-1)
			s.entry = s.entries[s.log.Entries[to].First]
		}
	}
	if len(m.inspected) > 0 && m.inspected[len(m.inspected)-1].pane == m.pane {
		m.inspected = m.inspected[:len(m.inspected)-1]
		m.inspect()
	}
}

// chooseOf moves the selection in a list of n names; without one yet it takes the
// first.
func (m *Model) chooseOf(by, n int, name func(int) string) {
	if n == 0 {
		return
	}
	at := 0
	if i := indexOf(m.chosen[m.pane], n, name); i >= 0 {
		at = min(max(i+by, 0), n-1)
	}
	m.chosen[m.pane] = name(at)
}

func indexOf(chosen string, n int, name func(int) string) int {
	if chosen == "" {
		return -1
	}
	for i := range n {
		if name(i) == chosen {
			return i
		}
	}
	return -1
}

// selected returns the row of a pane that is selected, -1 without one.
func (m *Model) selected(s *show, p Pane) int {
	switch p {
	case Markets:
		id := s.market(m.chosen[Markets])
		return slices.Index(s.marketIDs, id)
	case Savings:
		return slices.IndexFunc(m.shows, func(x *show) bool { return x.Name == m.chosen[Savings] })
	case Workloads:
		return slices.Index(s.workloadIDs, s.workload(m.chosen[Workloads]))
	case Budgets:
		return slices.Index(s.budgetIDs, s.budget(m.chosen[Budgets]))
	}
	return -1
}

// goBack leaves the inspector, the full screen, or the filter, whichever is there.
func (m *Model) goBack() {
	switch {
	case len(m.inspected) > 0:
		m.inspected = m.inspected[:len(m.inspected)-1]
		m.scroll = 0
	case m.zoom:
		m.zoom = false
	case m.filters[m.pane] != "":
		m.filters[m.pane] = ""
	case m.shown().entry != follow:
		m.shown().entry = follow
	default:
		m.chosen[m.pane] = ""
	}
}
