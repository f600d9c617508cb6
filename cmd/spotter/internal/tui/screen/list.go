package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Listed is the message that there are runs to choose from. Choose is called with the index of the
// run that the viewer chooses; [Opened] or [Unopened] follows.
type Listed struct {
	Rows   []Listing
	Choose func(row int)
}

// Unopened is the message that the run that was chosen last cannot be shown.
type Unopened struct{ Err error }

// Noted is a message for the last line.
type Noted string

// A Listing is a run in the list.
type Listing struct {
	Scenario, Policy string
	Seed             uint64
	From             policy.Time

	// Savings are net, and Share is their share of the on-demand bill. Failed reports that the run
	// has neither.
	Savings policy.Money
	Share   float64
	Failed  bool

	OutageMinutes, Incidents int64
	Longest                  time.Duration

	// SpotMinutes is the part of OutageMinutes that Spot caused.
	SpotMinutes int64
}

// An order is an order of listed runs.
type order int

const (
	asGiven order = iota
	byOutage
	bySavings

	orderCount int = iota
)

// String describes the order.
func (o order) String() string {
	return [...]string{"as in the file", "longest outage first", "least saved first"}[o]
}

// A listPage is the page from which a run is chosen.
type listPage struct {
	open   bool
	rows   []Listing
	choose func(int)

	// shown are the indexes of the rows that match the filter, in order; at is the index in shown
	// of the selected row.
	shown  []int
	at     int
	filter string
	order  order
}

// list shows other runs to choose from.
func (l *listPage) list(msg Listed) {
	*l = listPage{open: true, rows: msg.Rows, choose: msg.Choose}
	l.gather()
}

// gather determines the rows to show, and keeps the selection if it is still shown.
func (l *listPage) gather() {
	selected := -1
	if l.at < len(l.shown) {
		selected = l.shown[l.at]
	}
	l.shown = l.shown[:0]
	words := strings.Fields(l.filter)
	for i := range l.rows {
		r := &l.rows[i]
		text := strings.ToLower(fmt.Sprintf("%s %s seed=%d %s", r.Scenario, r.Policy, r.Seed, draw.Date(r.From)))
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			l.shown = append(l.shown, i)
		}
	}
	slices.SortStableFunc(l.shown, func(i, j int) int {
		a, b := &l.rows[i], &l.rows[j]
		switch l.order {
		case byOutage:
			return cmp.Or(cmp.Compare(b.Longest, a.Longest), cmp.Compare(b.OutageMinutes, a.OutageMinutes))
		case bySavings:
			return cmp.Compare(a.Share, b.Share)
		}
		return 0
	})
	l.at = max(slices.Index(l.shown, selected), 0)
}

// press handles the keys while the page is open on a screen of height lines. It returns the message
// to show.
func (l *listPage) press(k tea.KeyMsg, height int, loaded bool) string {
	switch {
	case key.Matches(k, keyUp):
		l.move(-1)
	case key.Matches(k, keyDown):
		l.move(1)
	case key.Matches(k, keyPage):
		l.move(height / 2)
	case key.Matches(k, keyPageUp):
		l.move(-height / 2)
	case key.Matches(k, keyBegin):
		l.at = 0
	case key.Matches(k, keyEnd):
		l.move(len(l.shown))
	case key.Matches(k, keySort):
		l.order = (l.order + 1) % order(orderCount)
		l.gather()
		l.at = 0
		return "runs: " + l.order.String()
	case key.Matches(k, keyInspect):
		return l.watch()
	case key.Matches(k, keyBack) && l.filter != "":
		l.setFilter("")
	case key.Matches(k, keyBack, keyRuns) && loaded:
		l.open = false
	}
	return ""
}

func (l *listPage) move(by int) { l.at = max(min(l.at+by, len(l.shown)-1), 0) }

func (l *listPage) setFilter(text string) {
	l.filter = strings.ToLower(strings.TrimSpace(text))
	l.gather()
}

// watch requests the selected run. It returns the message to show until the run is open.
func (l *listPage) watch() string {
	if len(l.shown) == 0 {
		return ""
	}
	i := l.shown[l.at]
	l.open = false
	l.choose(i)
	return fmt.Sprintf("opening %s, seed %d…", l.rows[i].Scenario, l.rows[i].Seed)
}

// page returns the position of the list on the screen.
func (v *viewport) page() rect {
	return rect{0, headerHeight, v.width, max(v.height-headerHeight-footerHeight, 0)}
}

// pick selects the row at x, y of the screen, or requests its run if it is already selected. It
// returns the message to show.
func (l *listPage) pick(at rect, x, y int) string {
	in := inside(at)
	row, ok := l.table().RowAt(in.h, y-in.y)
	switch {
	case !in.holds(x, y) || !ok:
	case row == l.at:
		return l.watch()
	default:
		l.at = row
	}
	return ""
}

func (l *listPage) table() draw.Table {
	t := draw.Table{Selected: l.at, Empty: nothingHas(l.filter), Columns: []draw.Column{{Title: "Scenario", Min: 12,
		Middle: true}, {Title: "From", Rank: 3}, {Title: "Seed", Right: true},
		{Title: "Policy", Min: 12, Middle: true}, {Title: "Net savings", Right: true, Rank: 2}, {Title: "%",
			Right: true}, {Title: "Outage min", Right: true}, {Title: "from Spot", Right: true, Rank: 2}, {Title: "in", Right: true, Rank: 4},
		{Title: "Longest", Right: true, Rank: 1}}}
	for _, i := range l.shown {
		r := &l.rows[i]
		row := []draw.Field{{Text: r.Scenario}, {Text: draw.Date(r.From)}, {Text: fmt.Sprint(r.Seed)}, {Text: r.Policy}}
		if r.Failed {
			t.Rows = append(t.Rows, append(row, draw.Field{Text: "failed", Ink: draw.Bad}))
			continue
		}
		out := draw.Muted
		if r.OutageMinutes > 0 || r.Incidents > 0 {
			out = draw.Bad
		}
		t.Rows = append(t.Rows, append(row, draw.Field{Text: figures.DollarChange(r.Savings.Float()), Ink: gain(r.Savings)},
			draw.Field{Text: atMostAll(r.Share), Ink: gain(r.Savings)},
			draw.Field{Text: figures.Integer(r.OutageMinutes), Ink: out}, draw.Field{Text: figures.Integer(r.SpotMinutes),
				Ink: out}, draw.Field{Text: figures.Integer(r.Incidents), Ink: out}, draw.Field{Text: figures.Duration(r.Longest), Ink: out}))
	}
	return t
}

// draw draws the page.
func (l *listPage) draw(c draw.Canvas) {
	status := fmt.Sprintf("%d of %d · %s", len(l.shown), len(l.rows), l.order)
	if l.filter != "" {
		status += " /" + l.filter
	}
	l.table().Draw(draw.Box{Title: "Runs", Focused: true, Right: status}.Frame(c))
}
