package screen

import (
	"strings"

	"github.com/charmbracelet/bubbles/help"
	"github.com/charmbracelet/bubbles/key"
	pager "github.com/charmbracelet/bubbles/viewport"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
)

// A helpPage is the page of all keys. It covers the screen except for the last line.
type helpPage struct {
	open bool
	view pager.Model
}

func newHelpPage() helpPage {
	h := helpPage{view: pager.New(0, 0)}
	h.view.KeyMap = pager.KeyMap{Up: keyUp, Down: keyDown, PageUp: keyPageUp, PageDown: keyPage}
	return h
}

// toggle opens the page at its start, or closes it.
func (h *helpPage) toggle() {
	h.open = !h.open
	h.view.GotoTop()
}

// press handles the keys while the page is open.
func (h *helpPage) press(k tea.KeyMsg) {
	if key.Matches(k, keyBack) {
		h.open = false
	}
	h.view, _ = h.view.Update(k)
}

// fit lays out the keys for a screen of w columns and height lines.
func (h *helpPage) fit(t *draw.Theme, w, height int) {
	h.view.Width, h.view.Height = w, max(height-footerHeight, 0)
	h.view.SetContent(lipgloss.NewStyle().PaddingLeft(1).Render(keyColumns(t, w-1)))
	h.view.SetYOffset(h.view.YOffset) // limits the offset to the number of lines
}

// helpIn returns the view of keys in the colours of a theme.
func helpIn(t *draw.Theme) help.Model {
	h := help.New()
	keyStyle, muted := t.Style(draw.Style{Ink: draw.Accent, Attr: draw.Bold}), t.Style(draw.Style{Ink: draw.Muted})
	h.Styles = help.Styles{FullKey: keyStyle, ShortKey: keyStyle, ShortDesc: muted, Ellipsis: muted}
	h.ShortSeparator = "  "
	return h
}

// keyColumns renders all keys in as many columns as fit in w columns of text.
func keyColumns(t *draw.Theme, w int) string {
	h, title := helpIn(t), t.Style(draw.Style{Ink: draw.Title, Attr: draw.Bold})
	var parts []string
	for _, g := range append(groups(), more...) {
		parts = append(parts, title.Render(g.title)+"\n"+h.FullHelpView([][]key.Binding{g.keys})+"\n")
	}
	var page string
	for _, columns := range [][][]string{{parts[:1], parts[1:3], parts[3:]}, {parts[:1], parts[1:]}, {parts}} {
		var all []string
		for _, c := range columns {
			all = append(all, lipgloss.NewStyle().PaddingRight(3).Render(strings.Join(c, "\n")))
		}
		if page = lipgloss.JoinHorizontal(lipgloss.Top, all...); lipgloss.Width(page) <= w {
			break
		}
	}
	return page
}
