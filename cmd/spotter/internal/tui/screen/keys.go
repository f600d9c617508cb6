package screen

import (
	"cmp"
	"strings"

	"github.com/charmbracelet/bubbles/key"
)

// A keyMap holds all keys. It is never changed.
type keyMap struct {
	play, faster, slower                           key.Binding
	nextEvent, lastEvent, nextDecision, lastDecide key.Binding
	hour, hourBack, day, dayBack                   key.Binding
	begin, end, goTo, jump, jumpBack               key.Binding
	outage, reclaim, notice, decision, story       key.Binding // after jump or jumpBack
	start                                          key.Binding // likewise, the start or the end
	again, againBack                               key.Binding

	run, both, pane, panes, zoom, command  key.Binding
	up, down, next, previous, page, pageUp key.Binding
	inspect, back, filter, holds           key.Binding
	help, quit, runs, sort                 key.Binding
}

// labels are how the help writes keys that are not letters.
var labels = map[string]string{" ": "space", "right": "→", "left": "←", "up": "↑", "down": "↓",
	"shift+right": "shift+→", "shift+left": "shift+←", "pgdown": "pgdn"}

// bind binds keys, all of which the help names.
func bind(does string, keys ...string) key.Binding {
	var names []string
	for _, k := range keys {
		names = append(names, cmp.Or(labels[k], k))
	}
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(strings.Join(names, "/"), does))
}

// then binds keys that come after another one.
func then(does string, keys ...string) key.Binding {
	b := bind(does, keys...)
	b.SetHelp("  "+b.Help().Key, does)
	return b
}

var keys = keyMap{
	play:         bind("play, pause", " "),
	faster:       bind("faster", "+", "="),
	slower:       bind("slower", "-", "_"),
	nextEvent:    bind("next event", "right"),
	lastEvent:    bind("event before", "left"),
	nextDecision: bind("next decision", "]", "shift+right"),
	lastDecide:   bind("decision before", "[", "shift+left"),
	hour:         bind("an hour on", "l"),
	hourBack:     bind("an hour back", "h"),
	day:          bind("a day on", "L"),
	dayBack:      bind("a day back", "H"),
	begin:        bind("the start", "0", "home"),
	end:          bind("the end", "$", "end"),
	goTo:         bind("go to a time", "t"),
	jump:         bind("next o, r, n, d or s:", "g"),
	jumpBack:     bind("the one before, likewise", "G"),

	outage:   then("outage", "o", "O"),
	reclaim:  then("reclaim", "r", "R"),
	notice:   then("notice", "n", "N"),
	decision: then("decision that moves", "d", "D"),
	story:    then("the story", "s", "S"),
	start:    then("the start, the end", "g", "G"),

	again:     bind("the same jump again", "n"),
	againBack: bind("the same back", "N"),

	run:      bind("other policy", "tab"),
	both:     bind("two side by side", "b"),
	pane:     bind("focus a pane", "1", "2", "3", "4", "5", "6"),
	panes:    bind("focus the next pane", "shift+tab"),
	zoom:     bind("full screen", "z"),
	command:  bind("a command, tab completes", ":"),
	up:       bind("up", "up", "k"),
	down:     bind("down", "down", "j"),
	next:     bind("next", "."),
	previous: bind("previous", ","),
	page:     bind("a page down", "pgdown", "ctrl+f"),
	pageUp:   bind("a page up", "pgup", "ctrl+b"),
	inspect:  bind("inspect", "enter"),
	back:     bind("back", "esc"),
	filter:   bind("filter", "/"),
	holds:    bind("all decisions, holds too", "a"),
	runs:     bind("runs of a results file", "r"),
	sort:     bind("sort nodes, or listed runs", "s"),
	help:     bind("help", "?"),
	quit:     bind("quit", "q", "ctrl+c"),
}

// hints are keys and what they do in a word or two, for one line of help.
func hints(pairs ...string) []key.Binding {
	var all []key.Binding
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, key.NewBinding(key.WithKeys(pairs[i]), key.WithHelp(pairs[i], pairs[i+1])))
	}
	return all
}

// The keys of the last line: usually, until the first one is pressed, and while runs are
// listed or the help is open. Those at the end go first where it is short.
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

// groups are all keys, in the order of the help.
func (k *keyMap) groups() []group {
	pane := k.pane
	pane.SetHelp("1-6", pane.Help().Desc)
	return []group{
		{"Time", []key.Binding{k.play, k.faster, k.slower, k.nextEvent, k.lastEvent, k.nextDecision, k.lastDecide,
			k.hour, k.hourBack, k.day, k.dayBack, k.begin, k.end, k.goTo, k.jump, k.jumpBack, k.outage, k.reclaim, k.notice, k.decision, k.story,
			k.start, k.again, k.againBack}},
		{"Screen", []key.Binding{k.command, k.run, k.both, pane, k.panes, k.zoom, k.runs, k.help, k.quit}},
		{"Pane", []key.Binding{k.up, k.down, k.previous, k.next, k.pageUp, k.page, k.inspect, k.back, k.filter, k.sort,
			k.holds}},
	}
}

// more is what the help says of the mouse, and of times.
var more = []group{
	{"Mouse", hints("click", "select a row; again: inspect", "on a bar", "go to that time", "wheel",
		"move; on the bar: hours")},
	{"Times to type after t", hints("wed 14:00", "that day of the run", "14:00", "the day shown", "+36h -90m",
		"from the time shown",
		"2026-01-07", "or RFC 3339")},
}
