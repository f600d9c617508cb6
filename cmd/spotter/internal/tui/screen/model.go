package screen

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
)

// Opened is the message that there are runs to show.
type Opened struct {
	// Runs are the requested runs, in that order; at least one.
	Runs []Run

	// Baseline is the on-demand run in the same weather against which savings are computed; nil if
	// there is no baseline.
	Baseline *timeline.Timeline

	// Live reports that the run is the record of a controller that still writes it. The record is
	// shown at its end, and [Grown] brings the additions.
	Live bool

	// Title is the title of the runs. If empty, the title of the screen is kept.
	Title string

	// AtStory starts playback shortly before the story, once the runs have ended, and not at their
	// start.
	AtStory bool
}

// Bounded is the message that the oracle has determined a lower bound on the cost of any policy.
type Bounded struct{ Cost policy.Money }

// Failed is the message that there is nothing to show. It ends the program.
type Failed struct{ Err error }

// A tick is the message that time has passed.
type tick time.Time

// A Model is the whole screen. It passes messages to the parts that they concern. It is not safe
// for concurrent use.
type Model struct {
	title string
	theme *draw.Theme

	play      playback
	port      viewport
	selection selection
	inspector inspector
	prompt    prompt
	help      helpPage
	list      listPage
	jumps     jumps

	// failed is the reason why there is nothing to show.
	failed error
}

// New returns a screen with a title that waits for runs.
func New(title string, theme *draw.Theme) *Model {
	m := &Model{title: title, theme: theme, prompt: newPrompt(), help: newHelpPage()}
	m.play = playback{clock: clock{playing: true, speed: usualSpeed}, port: &m.port}
	m.jumps = jumps{play: &m.play, selection: &m.selection, last: tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'o'}}}
	return m
}

// Err returns the reason why there was nothing to show, and the errors of failed runs.
func (m *Model) Err() error {
	if err := m.play.err(); err != nil {
		return errors.Join(m.failed, err)
	}
	return m.failed
}

// Init returns no command: the first message contains the size of the screen.
func (m *Model) Init() tea.Cmd { return nil }

// Update processes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.port.width, m.port.height = msg.Width, msg.Height
	case Opened:
		m.open(&msg)
	case Listed:
		m.list.list(msg)
	case Unopened:
		m.list.open, m.prompt.note = true, msg.Err.Error()
	case Noted:
		m.prompt.note = string(msg)
	case Bounded:
		m.play.bound = msg.Cost
		m.play.look() // the runs have ended, so update what depends on that together with the bound
		if m.play.awaits {
			m.play.beginAtStory()
		}
	case Grown:
		m.play.grow(msg)
	case Looked:
		m.play.live.at, m.play.live.trouble = msg.At, msg.Err
	case Failed:
		m.failed = msg.Err
		return m, tea.Quit
	case tick:
		if m.play.passed(time.Time(msg)) {
			m.prompt.note = m.jumps.toStory()
		}
	case tea.KeyMsg:
		m.touched()
		if cmd := m.pressAll(msg); cmd != nil {
			return m, cmd
		}
	case tea.MouseMsg:
		if msg.Action == tea.MouseActionPress {
			m.touched()
		}
		m.point(msg)
	default:
		return m, nil
	}
	m.refresh()
	return m, m.play.next()
}

// open shows other runs.
func (m *Model) open(o *Opened) {
	if o.Title != "" {
		m.title = o.Title
	}
	m.selection, m.port.inspected, m.prompt.note = selection{}, nil, ""
	m.play.open(o)
}

// touched records that the viewer has used the keys or the mouse.
func (m *Model) touched() {
	m.prompt.greeted = true
	m.play.dismiss()
}

// refresh updates the screen to the time shown.
func (m *Model) refresh() {
	m.play.refresh(&m.selection)
	m.inspector.know(m.port.subject(), &m.play, m.layout().side)
	if m.help.open {
		m.help.fit(m.theme, m.port.width, m.port.height)
	}
}

// pressAll handles the keys of a message. Keys that arrive at once, as over a slow connection, are
// one message. Pasted text is accepted only by an open prompt.
func (m *Model) pressAll(k tea.KeyMsg) tea.Cmd {
	if k.Type != tea.KeyRunes || len(k.Runes) < 2 {
		return m.press(k)
	}
	if k.Paste {
		if m.prompt.asked != nothing {
			return m.answer(k)
		}
		return nil
	}
	for _, r := range k.Runes {
		if cmd := m.press(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: k.Alt}); cmd != nil {
			return cmd
		}
	}
	return nil
}

// press handles a key. It returns a command only to quit.
func (m *Model) press(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyCtrlC {
		return tea.Quit
	}
	if m.prompt.asked != nothing {
		return m.answer(k)
	}
	m.prompt.note = ""
	if m.jumps.prefix != 0 {
		m.prompt.note = m.jumps.complete(k)
		return nil
	}
	switch {
	case key.Matches(k, keyQuit):
		return tea.Quit
	case key.Matches(k, keyHelp):
		m.help.toggle()
	case m.help.open:
		m.help.press(k)
	case m.list.open && key.Matches(k, keyFilter):
		m.prompt.ask(forRuns, m.list.filter)
	case m.list.open:
		m.prompt.note = m.list.press(k, m.port.height, m.play.shown() != nil)
	case key.Matches(k, keyRuns):
		if m.list.open = len(m.list.rows) > 0; !m.list.open {
			m.prompt.note = "there are no other runs; spotter tui results.json has those of spotter eval"
		}
	case m.play.shown() == nil:
	case key.Matches(k, keyPane):
		m.port.pane = Pane(k.Runes[0] - '1')
	default:
		for _, s := range slices.Concat(timeKeys(), screenKeys(), paneKeys()) {
			if s.do != nil && key.Matches(k, s.Binding) {
				s.do(m)
				break
			}
		}
	}
	return nil
}

// answer handles the keys while a prompt is open. A filter takes effect while it is typed. It
// returns a command only to quit.
func (m *Model) answer(k tea.KeyMsg) tea.Cmd {
	asked := m.prompt.asked
	text, done := m.prompt.answer(k)
	switch {
	case asked == forRuns:
		m.list.setFilter(text)
	case asked == forFilter:
		m.setFilter(text)
	case !done || strings.TrimSpace(text) == "":
	case asked == forCommand:
		var cmd tea.Cmd
		m.prompt.note, cmd = m.command(text)
		return cmd
	default:
		m.prompt.note = m.play.seekText(text)
	}
	return nil
}

// setFilter filters the focused pane.
func (m *Model) setFilter(text string) {
	m.selection.filters[m.port.pane] = strings.ToLower(strings.TrimSpace(text))
}
