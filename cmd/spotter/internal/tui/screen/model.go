package screen

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
)

// Opened is the message that there are runs to show.
type Opened struct {
	// Runs are those asked for, in that order; at least one.
	Runs []Run

	// Baseline is the run of on-demand in the same weather, which savings are
	// against; nil without one.
	Baseline *timeline.Timeline

	// Live says that the run is the record of a controller, which goes on: it is
	// shown at its end, and [Grown] brings what came.
	Live bool
}

// Bounded is the message that the oracle has found what no policy costs less than.
type Bounded struct{ Cost policy.Money }

// Failed is the message that there is nothing to show. It ends the program.
type Failed struct{ Err error }

// A tick is the message that time has passed.
type tick time.Time

// A Model is the whole screen. It is used by one goroutine.
type Model struct {
	title         string
	theme         *draw.Theme
	width, height int

	// shows are empty until runs are opened. baseline is one of them, or one of its
	// own, or nil.
	shows    []*show
	baseline *show
	savings  []line

	// bound is what no policy costs less than, 0 while that is not known.
	bound policy.Money

	// failed is why there is nothing to show.
	failed error

	// live is what is known of a record that goes on.
	live live

	clock   clock
	ticking bool

	// focus is the run and pane the one that keys are for. chosen is what is
	// selected in each pane but the decisions, by name.
	focus      int
	pane       Pane
	both, zoom bool
	holds      bool // decisions that held something back are listed too
	chosen     [paneCount]string
	filters    [paneCount]string

	// inspected are the subjects looked at, the last one on the screen from line
	// scroll on.
	inspected []subject
	scroll    int

	// known and panel are the title and the rest of what is known of it.
	known string
	panel draw.Panel

	help       bool
	helpScroll int

	asked  question
	input  textinput.Model
	before string // the filter that stood before the question

	// prefix is the key that the next one completes, 0 without; note is what the
	// last key had to say.
	prefix rune
	note   string
}

// New returns the screen of what is called title while it is being opened.
func New(title string, theme *draw.Theme) *Model {
	input := textinput.New()
	input.Prompt = ""
	input.CharLimit = 80
	return &Model{title: title, theme: theme, clock: clock{playing: true, speed: usualSpeed}, input: input}
}

// Err returns why there was nothing to show, or how runs have failed.
func (m *Model) Err() error {
	err := m.failed
	for _, s := range m.all() {
		if s.err != nil {
			err = errors.Join(err, fmt.Errorf("policy %s: %w", s.Name, s.err))
		}
	}
	return err
}

// all are the runs and the baseline, each once.
func (m *Model) all() []*show {
	if m.baseline == nil || m.isShown(m.baseline) {
		return m.shows
	}
	return append(append([]*show{}, m.shows...), m.baseline)
}

func (m *Model) isShown(s *show) bool { return slices.Contains(m.shows, s) }

// shown is the run that has the focus, nil while nothing is open.
func (m *Model) shown() *show {
	if len(m.shows) == 0 {
		return nil
	}
	return m.shows[m.focus]
}

// Init asks for nothing: the first message brings the size of the screen.
func (m *Model) Init() tea.Cmd { return nil }

// Update changes the screen by one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case Opened:
		m.open(msg)
	case Bounded:
		m.bound = msg.Cost
	case Grown:
		m.grow(msg)
	case Looked:
		m.live.at, m.live.trouble = msg.At, msg.Err
	case Failed:
		m.failed = msg.Err
		return m, tea.Quit
	case tick:
		m.ticking = false
		m.passed(time.Time(msg))
	case tea.KeyMsg:
		if cmd := m.pressAll(msg); cmd != nil {
			return m, cmd
		}
	case tea.MouseMsg:
		m.point(msg)
	default:
		return m, nil
	}
	m.refresh()
	return m, m.next()
}

func (m *Model) open(o Opened) {
	m.shows, m.baseline, m.focus = nil, nil, 0
	for _, r := range o.Runs {
		s := newShow(r)
		m.shows = append(m.shows, s)
		if o.Baseline == r.Timeline {
			m.baseline = s
		}
	}
	if o.Baseline != nil && m.baseline == nil {
		m.baseline = newShow(Run{Name: "on-demand", Timeline: o.Baseline})
	}
	m.clock.now = m.shows[0].from
	if o.Live {
		m.live.on, m.clock.playing = true, false
		m.clock.now = m.shows[0].to
	}
	m.measure()
}

// passed lets the clock go on and looks how far the runs have come.
func (m *Model) passed(t time.Time) {
	news := false
	for _, s := range m.all() {
		news = s.look() || news
	}
	if news {
		m.measure()
	}
	s := m.shown()
	if s == nil {
		return
	}
	m.clock.advance(t, m.limit())
	if m.clock.now >= s.to {
		m.clock.playing = false
	}
}

// limit is the last instant that can be shown.
func (m *Model) limit() policy.Time {
	limit := m.shown().until
	if m.beside() {
		for _, s := range m.pair() {
			limit = min(limit, s.until)
		}
	}
	return limit
}

// at is the instant on the screen: the shown time, or the last one simulated.
func (m *Model) at() policy.Time {
	return min(m.clock.now, max(m.limit(), m.shown().warmup))
}

// next returns the command that brings the next tick, nil while nothing moves.
func (m *Model) next() tea.Cmd {
	if m.ticking || len(m.shows) == 0 {
		return nil
	}
	wait := frameTime
	if !m.clock.playing {
		moving := false
		for _, s := range m.all() {
			moving = moving || !s.done
		}
		if !moving {
			return nil
		}
		wait = waitTime
	}
	m.ticking = true
	return tea.Tick(wait, func(t time.Time) tea.Msg { return tick(t) })
}

// beside reports whether two runs are shown side by side.
func (m *Model) beside() bool {
	return m.both && len(m.shows) > 1 && m.width >= widthBoth && len(m.inspected) == 0
}

// pair are the runs shown side by side: that with the focus and its neighbour.
func (m *Model) pair() []*show {
	first := m.focus / 2 * 2
	if first+1 == len(m.shows) {
		first--
	}
	return m.shows[first : first+2]
}

// visible are the runs of which something is on the screen.
func (m *Model) visible() []*show {
	if m.beside() {
		return m.pair()
	}
	if s := m.shown(); s != nil {
		return []*show{s}
	}
	return nil
}

// refresh brings what is on the screen to the shown time. The costs of all runs
// are on it.
func (m *Model) refresh() {
	for _, s := range m.all() {
		s.at(m.at())
	}
	for _, s := range m.visible() {
		s.list(m)
	}
	m.know()
	m.scroll = min(m.scroll, m.scrollMax())
}

// pressAll does what keys say: those that came at once, as over a slow line, are
// one message. Text that was pasted is for a question and nothing else.
func (m *Model) pressAll(k tea.KeyMsg) tea.Cmd {
	if k.Type != tea.KeyRunes || len(k.Runes) < 2 {
		return m.press(k)
	}
	if k.Paste {
		if m.asked != nothing {
			m.answer(k)
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

// press does what a key says. It returns a command only to quit.
func (m *Model) press(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyCtrlC {
		return tea.Quit
	}
	if m.asked != nothing {
		m.answer(k)
		return nil
	}
	m.note = ""
	if m.prefix != 0 {
		m.jump(k)
		return nil
	}
	switch {
	case key.Matches(k, keys.quit):
		return tea.Quit
	case key.Matches(k, keys.help):
		m.help, m.helpScroll = !m.help, 0
	case m.help:
		m.pressHelp(k)
	case len(m.shows) == 0:
	case m.pressTime(k), m.pressScreen(k), m.pressPane(k):
	}
	return nil
}

// pressHelp handles the keys while the help is on the screen.
func (m *Model) pressHelp(k tea.KeyMsg) {
	switch {
	case key.Matches(k, keys.back):
		m.help = false
	case key.Matches(k, keys.up):
		m.helpScroll--
	case key.Matches(k, keys.down):
		m.helpScroll++
	case key.Matches(k, keys.page):
		m.helpScroll += m.height / 2
	case key.Matches(k, keys.pageUp):
		m.helpScroll -= m.height / 2
	}
	m.helpScroll = max(m.helpScroll, 0)
}
