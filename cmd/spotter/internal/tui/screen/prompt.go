package screen

import (
	"strings"

	"github.com/charmbracelet/bubbles/cursor"
	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
)

// A question is what the viewer is asked to type.
type question int

const (
	nothing question = iota
	forMoment
	forFilter
	forRuns
	forCommand
)

// A prompt is the last line of the screen: the input, or the message of the last key.
type prompt struct {
	asked  question
	input  textinput.Model
	before string // value before the prompt was opened

	note string

	// greeted reports that the viewer has used a key, so that no greeting is shown.
	greeted bool
}

func newPrompt() prompt {
	input := textinput.New()
	input.Cursor.SetMode(cursor.CursorStatic)
	input.CharLimit = 80
	input.ShowSuggestions = true
	return prompt{input: input}
}

// ask prompts for an answer, which is text until the viewer edits it. Tab completes it to one of
// the suggestions.
func (p *prompt) ask(q question, text string, suggestions ...string) {
	p.asked, p.before = q, text
	p.input.SetSuggestions(suggestions)
	p.input.SetValue(text)
	p.input.CursorEnd()
	p.input.Focus()
}

// answer handles a key and returns the current answer, which is the previous value after escape. It
// reports whether the prompt has been closed.
func (p *prompt) answer(k tea.KeyMsg) (text string, done bool) {
	switch k.Type {
	case tea.KeyEsc:
		p.asked = nothing
		return p.before, true
	case tea.KeyEnter:
		p.asked = nothing
		return p.input.Value(), true
	}
	p.input, _ = p.input.Update(k)
	return p.input.Value(), false
}

// view returns the last line of the screen: the input for the focused pane, the message, or keys.
// If keys is nil, it shows the usual ones.
func (p *prompt) view(t *draw.Theme, w int, pane Pane, keys []key.Binding) string {
	var line string
	switch {
	case p.asked != nothing:
		line = p.answerView(t, w, pane)
	case p.note != "":
		line = t.Style(draw.Style{Ink: draw.Accent, Attr: draw.Bold}).Render(" " + draw.Cut(draw.Clean(p.note), w-1))
	default:
		h, before := helpIn(t), " "
		switch {
		case keys != nil:
		case p.greeted:
			keys = usualHints
		default:
			before = t.Style(draw.Style{Ink: draw.Accent, Attr: draw.Reverse | draw.Bold}).Render(" New here? ") + " "
			keys = greeting
		}
		h.Width = w - lipgloss.Width(before)
		line = before + h.ShortHelpView(keys)
	}
	return lipgloss.PlaceHorizontal(w, lipgloss.Left, ansi.Truncate(line, w, ""))
}

// answerView returns the prompt with the current input.
func (p *prompt) answerView(t *draw.Theme, w int, pane Pane) string {
	in := p.input
	in.Prompt, in.Placeholder = " go to: ", "wed 14:00, +36h, 2026-01-07"
	switch p.asked {
	case forFilter:
		in.Prompt, in.Placeholder = " filter "+strings.ToLower(pane.String())+": ", filterHint(pane)
	case forRuns:
		in.Prompt, in.Placeholder = " filter runs: ", "scenario, policy, seed=7"
	case forCommand:
		in.Prompt, in.Placeholder = " :", "go wed 14:00, sort age, theme light, pane markets; tab completes"
	}
	muted := t.Style(draw.Style{Ink: draw.Muted})
	in.PromptStyle, in.TextStyle = t.Style(draw.Style{Ink: draw.Accent,
		Attr: draw.Bold}), t.Style(draw.Style{Ink: draw.Title})
	in.PlaceholderStyle, in.CompletionStyle, in.Cursor.Style = muted, muted, t.Style(draw.Style{})
	if in.Value() != "" {
		in.Width = max(w-len(in.Prompt)-1, 1)
		in.SetCursor(in.Position()) // scrolls so that the cursor is visible
	}
	return in.View()
}

func filterHint(p Pane) string {
	switch p {
	case Nodes:
		return "name, market, pool, phase, spot, notice"
	case Markets:
		return "zone or type"
	case Decisions:
		return "verb, node, pool, reason"
	}
	return "name"
}
