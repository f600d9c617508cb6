package screen

import (
	"github.com/charmbracelet/bubbles/key"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
)

// View draws the screen.
func (m *Model) View() string {
	var shown []key.Binding
	w, h := m.port.width, m.port.height
	switch {
	case w <= 0 || h <= 0:
		return ""
	case m.port.small():
		c := draw.New(w, h)
		draw.Message{Title: "too small", Text: "this screen is too small: Spotter needs 60 columns and 15 lines"}.Draw(c)
		return c.Render(m.theme)
	case m.help.open:
		return m.help.view.View() + "\n" + m.prompt.view(m.theme, w, m.port.pane, helpHints)
	case m.list.open:
		shown = listHints
	}
	c := draw.New(w, h-footerHeight)
	m.draw(c)
	return c.Render(m.theme) + "\n" + m.prompt.view(m.theme, w, m.port.pane, shown)
}

// draw draws everything except the last line.
func (m *Model) draw(c draw.Canvas) {
	l := m.layout()
	before := "loading…"
	if m.list.open {
		before = "choose a run: it is simulated again, in its weather"
	}
	(&header{&m.play, m.title, before}).draw(on(c, l.header))
	if m.list.open {
		m.list.draw(on(c, m.port.page()))
	} else if m.play.shown() == nil {
		draw.Message{Title: "loading " + m.title, Text: "reading prices and preparing the scenario"}.Draw(on(c, l.body))
	} else {
		drawStory(on(c, l.story), m.play.storyLine())
		drawTabs(on(c, l.tabs), m.port.pane)
		for i := range l.areas {
			m.drawPane(c, &l.areas[i])
		}
		if m.port.inspecting() && l.side.h > 0 {
			m.inspector.draw(on(c, l.side))
		}
		m.play.scrubBar().Draw(on(c, l.scrub))
	}
}

// layout returns the current layout.
func (m *Model) layout() layout { return m.port.layout(m.play.shown(), m.play.storyLine() != "") }

// on returns the part of c at r.
func on(c draw.Canvas, r rect) draw.Canvas { return c.Sub(r.x, r.y, r.w, r.h) }

// drawStory draws the line with the story.
func drawStory(c draw.Canvas, text string) {
	if c.Height() > 0 {
		at := c.Text(0, 0, " story ", draw.Style{Ink: draw.Accent, Attr: draw.Bold | draw.Reverse}) + 1
		c.Text(at, 0, draw.Cut(text, max(c.Width()-at, 0)), draw.Style{Ink: draw.Title})
	}
}

// drawTabs draws the names of the panes, of which only one is shown.
func drawTabs(c draw.Canvas, shown Pane) {
	if c.Height() == 0 {
		return
	}
	for p := range Pane(paneCount) {
		x, label := tab(p)
		style := draw.Style{Ink: draw.Muted}
		if p == shown {
			style = draw.Style{Ink: draw.Accent, Attr: draw.Bold | draw.Reverse}
		}
		c.Text(x, 0, label, style)
	}
}

// tab returns the column at which the tab of a pane starts, and its label.
func tab(p Pane) (x int, label string) {
	for q := range p {
		x += len(q.String()) + 4
	}
	return x, " " + string('1'+rune(p)) + " " + p.String() + " "
}

func tabAt(x int) (Pane, bool) {
	for p := range Pane(paneCount) {
		if from, label := tab(p); x >= from && x < from+len(label) {
			return p, true
		}
	}
	return 0, false
}

// pane returns a pane of one of the runs.
func (p *playback) pane(of Pane, run int) pane {
	s := p.shows[run]
	return [...]pane{&s.nodePane, &s.marketPane, &savingsPane{&p.comparison, p.shown()},
		&s.workloadPane, &s.decisionPane, &s.gpuBudgetPane}[of]
}

// drawPane draws a pane in its box. The title includes the policy if two runs are side by side.
func (m *Model) drawPane(c draw.Canvas, a *area) {
	b := draw.Box{Key: '1' + rune(a.pane), Title: a.pane.String(), Focused: a.pane == m.port.pane &&
		a.run == m.port.focus && !m.port.inspecting()}
	switch {
	case a.pane != Savings && m.port.sideBySide():
		b.Title += " · " + m.play.shows[a.run].Name
	case a.pane == Savings && m.play.baseline == nil:
		b.Title = "Costs"
	}
	m.play.pane(a.pane, a.run).draw(on(c, a.rect), b, &m.selection)
}
