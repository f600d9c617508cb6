package screen

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
)

// A command is a command that the viewer can type after a colon.
type command struct {
	name string

	// choices are the words of which one must follow. Without choices, a text may follow if
	// takesText is true, otherwise nothing.
	choices   []string
	takesText bool

	// do executes the command with the choice or the text. It returns a message, and a tea command
	// only to quit.
	do func(rest string) (string, tea.Cmd)
}

// commands returns all commands, in alphabetical order.
func (m *Model) commands() []command {
	events := []string{"outage", "reclaim", "notice", "decision"}
	panes, orders, policies := make([]string, paneCount), make([]string, len(nodeOrders)), make([]string,
		len(m.play.shows))
	for i := range panes {
		panes[i] = strings.ToLower(Pane(i).String())
	}
	for i := range orders {
		orders[i] = nodeOrders[i].name
	}
	for i, s := range m.play.shows {
		policies[i] = s.Name
	}
	return []command{
		{name: "back", choices: events, do: m.jumping("G")},
		{name: "both", do: m.pressing("b")},
		{name: "filter", takesText: true, do: quietly(m.setFilter)},
		{name: "go", takesText: true, do: func(text string) (string, tea.Cmd) { return m.play.seekText(text), nil }},
		{name: "help", do: m.pressing("?")},
		{name: "holds", do: m.pressing("a")},
		{name: "next", choices: events, do: m.jumping("g")},
		{name: "pane", choices: panes, do: quietly(func(name string) { m.port.pane = Pane(slices.Index(panes, name)) })},
		{name: "play", do: m.pressing(" ")},
		{name: "policy", choices: policies, do: quietly(func(name string) { m.port.focus = slices.Index(policies, name) })},
		{name: "quit", do: m.pressing("q")},
		{name: "runs", do: m.pressing("r")},
		{name: "sort", choices: orders, do: func(name string) (string, tea.Cmd) {
			return m.sortNodes(nodeOrder(slices.Index(orders, name))), nil
		}},
		{name: "story", do: m.pressing("g", "s")},
		{name: "theme", choices: draw.Themes, do: quietly(func(name string) { m.theme = m.theme.As(name) })},
		{name: "zoom", do: m.pressing("z")},
	}
}

// quietly returns the action of a command without a message.
func quietly(do func(string)) func(string) (string, tea.Cmd) {
	return func(rest string) (string, tea.Cmd) { do(rest); return "", nil }
}

// pressing returns the action of pressing keys, each a letter.
func (m *Model) pressing(letters ...string) func(string) (string, tea.Cmd) {
	return func(string) (note string, cmd tea.Cmd) {
		for _, k := range letters {
			cmd = m.press(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)})
		}
		return m.prompt.note, cmd
	}
}

// jumping returns the action of a jump to an event. The key is the first letter of the event's
// name.
func (m *Model) jumping(prefix string) func(string) (string, tea.Cmd) {
	return func(event string) (string, tea.Cmd) { return m.pressing(prefix, event[:1])(event) }
}

// suggestions returns all inputs that are valid after the colon.
func (m *Model) suggestions() []string {
	var all []string
	for _, c := range m.commands() {
		if len(c.choices) == 0 {
			all = append(all, c.name)
		}
		for _, word := range c.choices {
			all = append(all, c.name+" "+word)
		}
	}
	return all
}

// command executes the input after the colon. Words may be abbreviated if they remain unambiguous.
func (m *Model) command(text string) (string, tea.Cmd) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	all := m.commands()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	name, err := complete(word, names)
	if err != nil {
		return err.Error(), nil
	}
	c := all[slices.Index(names, name)]
	switch {
	case len(c.choices) > 0:
		if rest, err = complete(rest, c.choices); err != nil {
			return name + ": " + err.Error(), nil
		}
	case rest != "" && !c.takesText:
		return fmt.Sprintf("%s: nothing may follow, not %q", name, rest), nil
	}
	return c.do(rest)
}

// complete returns the matching word: an equal word, or the only word that starts with the input.
func complete(word string, words []string) (string, error) {
	if slices.Contains(words, word) {
		return word, nil
	}
	var begin []string
	for _, w := range words {
		if strings.HasPrefix(strings.ToLower(w), strings.ToLower(word)) {
			begin = append(begin, w)
		}
	}
	switch {
	case word == "":
		return "", fmt.Errorf("give one of %s", strings.Join(words, ", "))
	case len(begin) == 0:
		return "", fmt.Errorf("no %q; give one of %s", word, strings.Join(words, ", "))
	case len(begin) > 1:
		return "", fmt.Errorf("%q may be %s", word, strings.Join(begin, ", "))
	}
	return begin[0], nil
}
