package screen

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
)

// A question is what the viewer is typing an answer to.
type question int

const (
	nothing question = iota
	forMoment
	forFilter
)

// ask opens the line in which an answer is typed.
func (m *Model) ask(q question) {
	m.asked = q
	m.before = m.filters[m.pane]
	m.input.SetValue("")
	if q == forFilter {
		m.input.SetValue(m.before)
		m.input.CursorEnd()
	}
	m.input.Focus()
}

// answer handles the keys while something is typed. A filter works while it is
// typed; escape brings back the one before.
func (m *Model) answer(k tea.KeyMsg) {
	switch k.Type {
	case tea.KeyEsc:
		if m.asked == forFilter {
			m.filters[m.pane] = m.before
		}
		m.asked = nothing
	case tea.KeyEnter:
		if m.asked == forMoment {
			m.goTo(m.input.Value())
		}
		m.asked = nothing
	default:
		m.input, _ = m.input.Update(k)
		if m.asked == forFilter {
			m.filters[m.pane] = strings.ToLower(strings.TrimSpace(m.input.Value()))
		}
	}
}

// goTo brings the clock to what the viewer wrote.
func (m *Model) goTo(text string) {
	s := m.shown()
	if strings.TrimSpace(text) == "" {
		return
	}
	t, err := parseMoment(text, s.from, m.at())
	switch {
	case err != nil:
		m.note = err.Error()
	case t < s.warmup || t > s.to:
		m.note = text + " is outside " + draw.Date(s.warmup) + " to " + draw.Date(s.to) + s.to.Std().Format(" 2006")
	default:
		m.seek(t)
	}
}
