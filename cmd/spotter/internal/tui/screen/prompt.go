package screen

import (
	"strings"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
)

// A question is what the viewer is typing an answer to.
type question int

const (
	nothing question = iota
	forMoment
	forFilter
	forRuns
	forCommand
)

// A prompt is the last line of the screen: what is being typed, or what the last
// key had to say.
type prompt struct {
	asked  question
	input  textinput.Model
	before string // the answer that stood before the question

	note string

	// greeted says that the viewer has done something, and needs no greeting.
	greeted bool
}

func newPrompt() prompt {
	input := textinput.New()
	input.Prompt = ""
	input.CharLimit = 80
	input.ShowSuggestions = true
	return prompt{input: input}
}

// ask asks for an answer, which is text until another is typed. Tab completes it to one
// of the suggestions.
func (p *prompt) ask(q question, text string, suggestions ...string) {
	p.asked, p.before = q, text
	p.input.SetSuggestions(suggestions)
	p.input.SetValue(text)
	p.input.CursorEnd()
	p.input.Focus()
}

// answer takes a key and returns what the answer is now: that before on escape.
// It reports whether it is the last word.
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

// draw shows what is typed for the pane with the focus, what there is to say, or keys:
// those of the list where it is on the screen.
func (p *prompt) draw(c draw.Canvas, pane Pane, listed bool) {
	switch {
	case p.asked != nothing:
		p.drawAnswer(c, pane)
	case p.note != "":
		c.Text(0, 0, " "+draw.Cut(p.note, max(c.Width()-1, 0)), draw.Style{Ink: draw.Accent, Attr: draw.Bold})
	case listed:
		listHints.Draw(c)
	case !p.greeted:
		x := c.Text(0, 0, " New here? ", draw.Style{Ink: draw.Accent, Attr: draw.Reverse | draw.Bold})
		greeting.Draw(c.Sub(x, 0, max(c.Width()-x, 0), 1))
	default:
		hints.Draw(c)
	}
}

// suggestion is what tab completes to, empty without one: the input has no valid place
// among no suggestions after a key that goes back.
func (p *prompt) suggestion() string {
	if len(p.input.MatchedSuggestions()) == 0 {
		return ""
	}
	return p.input.CurrentSuggestion()
}

func (p *prompt) drawAnswer(c draw.Canvas, pane Pane) {
	label, example := " go to: ", "wed 14:00, +36h, 2026-01-07"
	switch p.asked {
	case forFilter:
		label, example = " filter "+strings.ToLower(pane.String())+": ", filterHint(pane)
	case forRuns:
		label, example = " filter runs: ", "scenario, policy, seed=7"
	case forCommand:
		label, example = " :", "go wed 14:00, sort age, theme light, pane markets; tab completes"
	}
	x := c.Text(0, 0, label, draw.Style{Ink: draw.Accent, Attr: draw.Bold})
	text := []rune(p.input.Value())
	at := min(p.input.Position(), len(text))
	width := c.Width() - x - 1
	if at > width && width > 0 { // the cursor stays in sight
		text, at = text[at-width:], width
	}
	end := c.Text(x, 0, string(text), draw.Style{Ink: draw.Title})
	if s := []rune(p.suggestion()); at == len(text) && len(s) > len(p.input.Value()) && len(text) > 0 {
		c.Text(end, 0, string(s[len([]rune(p.input.Value())):]), draw.Style{Ink: draw.Muted})
		text = append(text, s[len([]rune(p.input.Value())):]...)
	}
	under := " "
	if at < len(text) {
		under = string(text[at])
	}
	c.Text(x+draw.Width(string(text[:at])), 0, under, draw.Style{Attr: draw.Reverse})
	if len(p.input.Value()) == 0 {
		c.Text(x+2, 0, example, draw.Style{Ink: draw.Muted})
	}
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

// greeting are the keys to begin with, shown until the first one is pressed.
var greeting = draw.Hints{{Keys: "→", What: "next event"}, {Keys: "g o", What: "next outage"}, {Keys: "tab", What: "other policy"}, {Keys: "?", What: "all keys"},
	{Keys: "enter", What: "why"}, {Keys: "g s", What: "the story"}, {Keys: "space", What: "pause, play"}, {Keys: "b", What: "side by side"}}

// hints are the keys of the last line; those at its end go first where it is short.
var hints = draw.Hints{{Keys: "space", What: "play"}, {Keys: "?", What: "help"}, {Keys: "q", What: "quit"}, {Keys: "←→", What: "event"}, {Keys: "g", What: "jump"},
	{Keys: "tab", What: "policy"}, {Keys: "enter", What: "inspect"}, {Keys: "/", What: "filter"}, {Keys: "t", What: "time"}, {Keys: ":", What: "command"}, {Keys: "b", What: "both"}, {Keys: "z", What: "zoom"},
	{Keys: "+-", What: "speed"}, {Keys: "[ ]", What: "decision"}, {Keys: "1-6", What: "pane"}}
