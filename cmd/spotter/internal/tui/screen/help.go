package screen

import (
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
)

// A helpPage is the page of all keys, and how far it is scrolled.
type helpPage struct {
	open   bool
	scroll int
}

// toggle opens the page at its begin, or closes it.
func (h *helpPage) toggle() { *h = helpPage{open: !h.open} }

// press handles the keys while the page is on a screen of so many lines.
func (h *helpPage) press(k tea.KeyMsg, height int) {
	switch {
	case key.Matches(k, keys.back):
		h.open = false
	case key.Matches(k, keys.up):
		h.scroll--
	case key.Matches(k, keys.down):
		h.scroll++
	case key.Matches(k, keys.page):
		h.scroll += height / 2
	case key.Matches(k, keys.pageUp):
		h.scroll -= height / 2
	}
	h.scroll = max(h.scroll, 0)
}

// draw draws all keys over the screen.
func (h *helpPage) draw(c draw.Canvas) {
	p := keyHelp()
	w := min(c.Width()-2, 150)
	title, lines := "Keys", p.Lines(w-2)
	if lines > c.Height()-4 {
		title += ", ↑ ↓ for more"
	}
	in := draw.Popup(c, title, w, min(lines+2, c.Height()-2))
	p.Scroll = min(h.scroll, max(p.Lines(in.Width())-in.Height(), 0))
	p.Draw(in)
}

// keyHelp says what keys and the mouse do.
func keyHelp() draw.Help {
	var h draw.Help
	for _, g := range keys.groups() {
		k := draw.KeyGroup{Title: g.title}
		for _, b := range g.keys {
			k.Keys = append(k.Keys, draw.Key{Keys: b.Help().Key, What: b.Help().Desc})
		}
		h.Groups = append(h.Groups, k)
	}
	mouse := []draw.Key{{Keys: "click", What: "select a row; again: inspect"}, {Keys: "on a bar", What: "go to that time"},
		{Keys: "wheel", What: "move; on the bar: hours"}}
	times := []draw.Key{{Keys: "wed 14:00", What: "that day of the run"}, {Keys: "14:00", What: "the day shown"},
		{Keys: "+36h -90m", What: "from the time shown"}, {Keys: "2026-01-07", What: "or RFC 3339"}}
	h.Groups = append(h.Groups, draw.KeyGroup{Title: "Mouse", Keys: mouse}, draw.KeyGroup{Title: "Times to type after t", Keys: times})
	return h
}
