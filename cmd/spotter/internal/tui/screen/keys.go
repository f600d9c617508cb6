package screen

import "github.com/charmbracelet/bubbles/key"

// A keyMap holds all keys. It is never changed.
type keyMap struct {
	play, faster, slower                           key.Binding
	nextEvent, lastEvent, nextDecision, lastDecide key.Binding
	hour, hourBack, day, dayBack                   key.Binding
	begin, end, goTo, jump, jumpBack               key.Binding
	outage, reclaim, notice, decision, story       key.Binding // after jump or jumpBack
	again, againBack                               key.Binding

	run, both, pane, panes, zoom           key.Binding
	up, down, next, previous, page, pageUp key.Binding
	inspect, back, filter, holds           key.Binding
	help, quit, runs, sort                 key.Binding
}

func bind(label, does string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(label, does))
}

var keys = keyMap{
	play:         bind("space", "play, pause", " "),
	faster:       bind("+", "faster", "+", "="),
	slower:       bind("-", "slower", "-", "_"),
	nextEvent:    bind("→", "next event", "right"),
	lastEvent:    bind("←", "event before", "left"),
	nextDecision: bind("]", "next decision", "]", "shift+right"),
	lastDecide:   bind("[", "decision before", "[", "shift+left"),
	hour:         bind("l", "an hour on", "l"),
	hourBack:     bind("h", "an hour back", "h"),
	day:          bind("L", "a day on", "L"),
	dayBack:      bind("H", "a day back", "H"),
	begin:        bind("0", "the begin", "0", "home"),
	end:          bind("$", "the end", "$", "end"),
	goTo:         bind("t", "go to a time", "t", ":"),
	jump:         bind("g", "next o, r, n, d or s:", "g"),
	jumpBack:     bind("G", "the one before, likewise", "G"),

	outage:   bind("  o", "outage", "o", "O"),
	reclaim:  bind("  r", "reclaim", "r", "R"),
	notice:   bind("  n", "notice", "n", "N"),
	decision: bind("  d", "decision that moves", "d", "D"),
	story:    bind("  s", "the story", "s", "S"),

	again:     bind("n", "the same jump again", "n"),
	againBack: bind("N", "the same back", "N"),

	run:      bind("tab", "other policy", "tab"),
	both:     bind("b", "two side by side", "b"),
	pane:     bind("1-6", "focus a pane", "1", "2", "3", "4", "5", "6"),
	panes:    bind("shift+tab", "focus the next pane", "shift+tab"),
	zoom:     bind("z", "full screen", "z"),
	up:       bind("↑", "up", "up", "k"),
	down:     bind("↓", "down", "down", "j"),
	next:     bind(".", "next", "."),
	previous: bind(",", "previous", ","),
	page:     bind("pgdn", "a page down", "pgdown", "ctrl+f"),
	pageUp:   bind("pgup", "a page up", "pgup", "ctrl+b"),
	inspect:  bind("enter", "inspect", "enter"),
	back:     bind("esc", "back", "esc"),
	filter:   bind("/", "filter", "/"),
	holds:    bind("a", "all decisions, holds too", "a"),
	runs:     bind("r", "runs of a results file", "r"),
	sort:     bind("s", "sort the runs listed", "s"),
	help:     bind("?", "help", "?"),
	quit:     bind("q", "quit", "q", "ctrl+c"),
}

// A group is a part of the help.
type group struct {
	title string
	keys  []key.Binding
}

// groups are all keys, in the order of the help.
func (k *keyMap) groups() []group {
	return []group{
		{"Time", []key.Binding{k.play, k.faster, k.slower, k.nextEvent, k.lastEvent, k.nextDecision, k.lastDecide,
			k.hour, k.hourBack, k.day, k.dayBack, k.begin, k.end, k.goTo, k.jump, k.jumpBack, k.outage, k.reclaim, k.notice, k.decision, k.story,
			k.again, k.againBack}},
		{"Screen", []key.Binding{k.run, k.both, k.pane, k.panes, k.zoom, k.runs, k.sort, k.help, k.quit}},
		{"Pane", []key.Binding{k.up, k.down, k.previous, k.next, k.pageUp, k.page, k.inspect, k.back, k.filter, k.holds}},
	}
}
