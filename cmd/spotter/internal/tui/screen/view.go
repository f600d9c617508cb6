package screen

import (
	"github.com/charmbracelet/bubbles/key"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
)

// View draws the screen.
func (m *Model) View() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	c := draw.New(m.width, m.height)
	m.draw(c)
	return c.Render(m.theme)
}

// Plain draws the screen as text without any escape sequence.
func (m *Model) Plain() string {
	c := draw.New(m.width, m.height)
	m.draw(c)
	return c.Plain()
}

func (m *Model) small() bool { return m.width < widthMin || m.height < heightMin }

func (m *Model) draw(c draw.Canvas) {
	if m.small() {
		draw.Message{Title: "too small", Text: "this screen is too small: Spotter needs 60 columns and 15 lines"}.Draw(c)
		return
	}
	l := arrange(m.shape())
	m.drawHeader(on(c, l.header))
	m.drawFooter(on(c, l.footer))
	if len(m.shows) == 0 {
		draw.Message{Title: "loading " + m.title, Text: "reading prices and preparing the world"}.Draw(on(c, l.body))
	} else {
		m.drawTabs(on(c, l.tabs))
		for i := range l.areas {
			m.drawPane(c, &l.areas[i])
		}
		m.drawInspector(c, l.side)
		m.scrubBar().Draw(on(c, l.scrub))
	}
	if m.help {
		m.drawHelp(c)
	}
}

// on returns the part of c at r.
func on(c draw.Canvas, r rect) draw.Canvas { return c.Sub(r.x, r.y, r.w, r.h) }

// shape is what the layout depends on now.
func (m *Model) shape() shape {
	s := shape{w: m.width, h: m.height, pane: m.pane, run: m.focus, both: m.beside(), zoom: m.zoom, inspecting: len(m.inspected) > 0}
	if x := m.shown(); x != nil {
		s.workloads, s.budgets = len(x.workloads), len(x.budgets)
	}
	if s.both {
		s.first = m.focus / 2 * 2
		if s.first+1 == len(m.shows) {
			s.first--
		}
	}
	return s
}

// inside is what the border of a pane leaves.
func inside(r rect) rect { return rect{r.x + 1, r.y + 1, max(r.w-2, 0), max(r.h-2, 0)} }

// paneSize is the room that a pane of the run with the focus has now.
func (m *Model) paneSize(p Pane) rect {
	l := arrange(m.shape())
	for _, a := range l.areas {
		if a.pane == p && a.run == m.focus {
			return inside(a.rect)
		}
	}
	return inside(l.body)
}

// drawTabs names the panes of which only one is shown.
func (m *Model) drawTabs(c draw.Canvas) {
	if c.Height() == 0 {
		return
	}
	for p := range Pane(paneCount) {
		x, label := tab(p)
		style := draw.Style{Ink: draw.Muted}
		if p == m.pane {
			style = draw.Style{Ink: draw.Accent, Attr: draw.Bold | draw.Reverse}
		}
		c.Text(x, 0, label, style)
	}
}

// tab returns where the tab of a pane begins, and what it says.
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

// drawPane draws a pane in its box.
func (m *Model) drawPane(c draw.Canvas, a *area) {
	s := m.shows[a.run]
	b := draw.Box{Key: '1' + rune(a.pane), Title: m.titleOf(s, a.pane), Right: m.statusOf(s, a.pane),
		Focused: a.pane == m.pane && a.run == m.focus && len(m.inspected) == 0}
	in := b.Frame(on(c, a.rect))
	charts, table := m.parts(a.pane, rect{0, 0, in.Width(), in.Height()})
	switch a.pane {
	case Nodes:
		s.grid.Draw(in)
		return
	case Decisions:
		s.log.Draw(in)
		return
	case Markets:
		s.drawMarket(on(in, charts))
	case Savings:
		m.savingsChart().Draw(on(in, charts))
	}
	m.table(s, a.pane).Draw(on(in, table))
}

// bothCharts is the height from which on prices and hazard are both drawn.
const bothCharts = 16

// drawMarket draws prices, and the hazard below where there is room for both.
func (s *show) drawMarket(c draw.Canvas) {
	if c.Height() < bothCharts {
		s.prices.Draw(c)
		return
	}
	price, hazard := c.Cut(c.Height() * 3 / 5)
	title, price := price.Cut(1)
	title.Text(1, 0, "Price per node-hour, × a reclaim", draw.Style{Ink: draw.Muted})
	s.prices.Draw(price)
	title, hazard = hazard.Cut(1)
	title.Text(1, 0, "Forecast hazard: part of the nodes taken within a month", draw.Style{Ink: draw.Muted})
	s.hazards.Draw(hazard)
}

// parts cuts a pane into its charts and its table.
func (m *Model) parts(p Pane, in rect) (charts, table rect) {
	switch p {
	case Markets:
		if in.h < 9 {
			return rect{}, in
		}
		return in.cut(in.h - max(3, min(in.h*2/5, 14)))
	case Savings:
		rows := len(m.all()) + 1
		if in.h < rows+4 {
			return rect{}, in
		}
		table, charts = in.cut(rows)
		return charts, table
	}
	return rect{}, in
}

// table is the table of a pane.
func (m *Model) table(s *show, p Pane) draw.Table {
	var t draw.Table
	row := m.selected(s, p)
	switch p {
	case Markets:
		t = draw.Markets(s.lists.markets, row)
	case Workloads:
		t = draw.Workloads(s.lists.workloads, row)
	case Budgets:
		t = draw.Budgets(s.lists.budgets, row)
	case Savings:
		t = m.savingsTable(row)
	}
	switch {
	case m.filters[p] != "":
		t.Empty = nothingHas(m.filters[p])
	case p == Budgets:
		t.Empty = "this world has no budgets"
	}
	return t
}

// drawHelp draws all keys over the screen.
func (m *Model) drawHelp(c draw.Canvas) {
	h := m.helpPage()
	w := min(c.Width()-2, 150)
	title, lines := "Keys", h.Lines(w-2)
	if lines > c.Height()-4 {
		title += ", ↑ ↓ for more"
	}
	in := draw.Popup(c, title, w, min(lines+2, c.Height()-2))
	h.Scroll = min(m.helpScroll, max(h.Lines(in.Width())-in.Height(), 0))
	h.Draw(in)
}

func (m *Model) helpPage() draw.Help {
	var h draw.Help
	for _, g := range keys.groups() {
		k := draw.KeyGroup{Title: g.title}
		for _, b := range g.keys {
			k.Keys = append(k.Keys, hint(b))
		}
		h.Groups = append(h.Groups, k)
	}
	mouse := []draw.Key{{Keys: "click", What: "select; again: inspect"}, {Keys: "on a bar", What: "go to that time"},
		{Keys: "wheel", What: "move; on the bar: hours"}}
	times := []draw.Key{{Keys: "wed 14:00", What: "that day of the run"}, {Keys: "14:00", What: "the day shown"},
		{Keys: "+36h -90m", What: "from the time shown"}, {Keys: "2026-01-07", What: "or RFC 3339"}}
	h.Groups = append(h.Groups, draw.KeyGroup{Title: "Mouse", Keys: mouse}, draw.KeyGroup{Title: "Times to type after t", Keys: times})
	return h
}

func hint(b key.Binding) draw.Key { return draw.Key{Keys: b.Help().Key, What: b.Help().Desc} }

// scrubBar is the bar of the whole run.
func (m *Model) scrubBar() draw.Scrub {
	s := m.shown()
	b := draw.Scrub{WarmUp: s.warmup, From: s.from, To: s.to, Now: m.at(), Until: m.limit()}
	for _, t := range s.moved {
		b.Marks = append(b.Marks, draw.Mark{At: t, Glyph: '·', Ink: draw.Muted})
	}
	for _, r := range s.reclaims {
		b.Marks = append(b.Marks, draw.Mark{At: r.at, Glyph: '×', Ink: draw.Warn})
	}
	for _, o := range s.outages {
		to := o.to
		if to == 0 {
			to = s.until
		}
		if to <= s.from {
			continue // nothing counts before
		}
		b.Outages = append(b.Outages, [2]policy.Time{o.from, to})
		b.Marks = append(b.Marks, draw.Mark{At: o.from, Glyph: '!', Ink: draw.Bad})
	}
	return b
}
