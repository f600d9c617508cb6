package screen

import (
	"cmp"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
)

// A shortcut is one or several keys and their action while no prompt is open. The action is nil if
// the keys are handled elsewhere, such as those after g or G.
type shortcut struct {
	key.Binding
	do func(*Model)
}

// labels are the names of keys in the help that are not letters.
var labels = map[string]string{" ": "space", "right": "→", "left": "←", "up": "↑", "down": "↓",
	"shift+right": "shift+→", "shift+left": "shift+←", "pgdown": "pgdn"}

// bind returns a binding of keys, all of which the help names.
func bind(does string, keys ...string) key.Binding {
	var names []string
	for _, k := range keys {
		names = append(names, cmp.Or(labels[k], k))
	}
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(strings.Join(names, "/"), does))
}

// then returns a binding of keys that follow another key.
func then(does string, keys ...string) key.Binding {
	b := bind(does, keys...)
	b.SetHelp("  "+b.Help().Key, does)
	return b
}

// Keys with a meaning in several places, or after g or G.
var (
	keyBegin   = bind("the start", "0", "home")
	keyEnd     = bind("the end", "$", "end")
	keyUp      = bind("up", "up", "k")
	keyDown    = bind("down", "down", "j")
	keyPage    = bind("a page down", "pgdown", "ctrl+f")
	keyPageUp  = bind("a page up", "pgup", "ctrl+b")
	keyInspect = bind("inspect", "enter")
	keyBack    = bind("back", "esc")
	keyFilter  = bind("filter", "/")
	keySort    = bind("sort nodes, or listed runs", "s")
	keyPane    = key.NewBinding(key.WithKeys("1", "2", "3", "4", "5", "6"), key.WithHelp("1-6", "focus a pane"))
	keyRuns    = bind("runs of a results file", "r")
	keyHelp    = bind("help", "?")
	keyQuit    = bind("quit", "q", "ctrl+c")

	keyOutage   = then("outage", "o", "O")
	keyReclaim  = then("reclaim", "r", "R")
	keyNotice   = then("notice", "n", "N")
	keyDecision = then("decision that moves", "d", "D")
	keyStory    = then("the story", "s", "S")
	keyStart    = then("the start, the end", "g", "G")
)

// timeKeys returns the keys that move or control the clock.
func timeKeys() []shortcut {
	seek := func(by time.Duration) func(*Model) {
		return func(m *Model) { m.play.seek(m.play.time().Add(by)) }
	}
	event := func(by int) func(*Model) {
		return func(m *Model) { m.prompt.note = m.jumps.step(by, "event") }
	}
	decision := func(by int) func(*Model) {
		return func(m *Model) { m.prompt.note = m.play.stepDecision(by, "decision", m.selection.stepped()...) }
	}
	return []shortcut{
		{bind("play, pause", " "), func(m *Model) { m.play.playOrPause() }},
		{bind("faster", "+", "="), func(m *Model) { m.play.clock.faster(1) }},
		{bind("slower", "-", "_"), func(m *Model) { m.play.clock.faster(-1) }},
		{bind("next event", "right"), event(1)},
		{bind("event before", "left"), event(-1)},
		{bind("next decision", "]", "shift+right"), decision(1)},
		{bind("decision before", "[", "shift+left"), decision(-1)},
		{bind("an hour on", "l"), seek(time.Hour)},
		{bind("an hour back", "h"), seek(-time.Hour)},
		{bind("a day on", "L"), seek(24 * time.Hour)},
		{bind("a day back", "H"), seek(-24 * time.Hour)},
		{keyBegin, func(m *Model) { m.play.seek(m.play.shown().from) }},
		{keyEnd, func(m *Model) { m.play.seek(m.play.shown().to) }},
		{bind("go to a time", "t"), func(m *Model) { m.prompt.ask(forMoment, "") }},
		{bind("next o, r, n, d or s:", "g"), func(m *Model) { m.prompt.note = m.jumps.begin('g') }},
		{bind("the one before, likewise", "G"), func(m *Model) { m.prompt.note = m.jumps.begin('G') }},
		{keyOutage, nil}, {keyReclaim, nil}, {keyNotice, nil}, {keyDecision, nil}, {keyStory, nil}, {keyStart, nil},
		{bind("the same jump again", "n"), func(m *Model) { m.prompt.note = m.jumps.again('g') }},
		{bind("the same back", "N"), func(m *Model) { m.prompt.note = m.jumps.again('G') }},
	}
}

// screenKeys returns the keys that change the layout of the screen.
func screenKeys() []shortcut {
	return []shortcut{
		{bind("a command, tab completes", ":"), func(m *Model) { m.prompt.ask(forCommand, "", m.suggestions()...) }},
		{bind("other policy", "tab"), func(m *Model) { m.prompt.note = m.port.otherRun() }},
		{bind("two side by side", "b"), func(m *Model) { m.prompt.note = m.port.toggleBoth() }},
		{keyPane, nil},
		{bind("focus the next pane", "shift+tab"), func(m *Model) { m.port.pane = (m.port.pane + 1) % Pane(paneCount) }},
		{bind("full screen", "z"), func(m *Model) { m.port.zoom = !m.port.zoom }},
		{keyRuns, nil}, {keyHelp, nil}, {keyQuit, nil},
	}
}

// paneKeys returns the keys for the focused pane or the inspector.
func paneKeys() []shortcut {
	page := func(m *Model) int { return max(m.port.height/2, 1) }
	return []shortcut{
		{keyUp, func(m *Model) { m.scrollOrMove(-1) }},
		{keyDown, func(m *Model) { m.scrollOrMove(1) }},
		{bind("previous", ","), func(m *Model) { m.choose(-1, 0) }},
		{bind("next", "."), func(m *Model) { m.choose(1, 0) }},
		{keyPageUp, func(m *Model) { m.scrollOrMove(-page(m)) }},
		{keyPage, func(m *Model) { m.scrollOrMove(page(m)) }},
		{keyInspect, (*Model).inspect},
		{keyBack, (*Model).goBack},
		{keyFilter, func(m *Model) { m.prompt.ask(forFilter, m.selection.filters[m.port.pane]) }},
		{keySort, func(m *Model) { m.prompt.note = m.sortNodes((m.selection.order + 1) % nodeOrder(len(nodeOrders))) }},
		{bind("all decisions, holds too", "a"), func(m *Model) { m.prompt.note = m.toggleHolds() }},
	}
}

// hints returns bindings of keys and short descriptions, for one line of help.
func hints(pairs ...string) []key.Binding {
	var all []key.Binding
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, key.NewBinding(key.WithKeys(pairs[i]), key.WithHelp(pairs[i], pairs[i+1])))
	}
	return all
}

// The keys in the last line: usually, until the first key is pressed, and while runs are listed or
// the help is open. Keys at the end are omitted first.
var (
	usualHints = hints("space", "play", "?", "help", "q", "quit", "←→", "event", "g", "jump", "tab", "policy", "enter",
		"inspect",
		"/", "filter", "t", "time", ":", "command", "b", "both", "z", "zoom", "+-", "speed", "[ ]", "decision", "1-6", "pane")
	greeting = hints("→", "next event", "g o", "next outage", "tab", "other policy", "?", "all keys",
		"enter", "why", "g s", "the story", "space", "pause, play", "b", "side by side")
	listHints = hints("enter", "watch", "↑↓", "choose", "/", "filter", "s", "sort", "?", "help", "q", "quit")
	helpHints = hints("↑↓", "scroll", "pgup pgdn", "a page", "esc", "back", "q", "quit")
)

// A group is a part of the help.
type group struct {
	title string
	keys  []key.Binding
}

func groupOf(title string, shortcuts []shortcut) group {
	g := group{title: title}
	for _, s := range shortcuts {
		g.keys = append(g.keys, s.Binding)
	}
	return g
}

// groups returns all keys, in the order of the help.
func groups() []group {
	return []group{groupOf("Time", timeKeys()), groupOf("Screen", screenKeys()), groupOf("Pane", paneKeys())}
}

// more is the help about the mouse and about times.
var more = []group{
	{"Mouse", hints("click", "select a row; again: inspect", "on a bar", "go to that time", "wheel",
		"move; on the bar: hours")},
	{"Times to type after t", hints("wed 14:00", "that day of the run", "14:00", "the day shown", "+36h -90m",
		"from the time shown",
		"2026-01-07", "or RFC 3339")},
}
