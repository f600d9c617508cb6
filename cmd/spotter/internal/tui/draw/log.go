package draw

import (
	"strconv"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A LogEntry is one entry of a decision, or several equal entries of the same step.
type LogEntry struct {
	At    policy.Time
	Entry timeline.Entry

	// First is the index of the first entry among those passed to Group, and Count is the number of
	// entries. Before and After are the sums of their hourly costs.
	First, Count  int
	Before, After policy.Money
}

// Group joins adjacent entries of one instant with the same verb, pool, market and reason. at and
// entries have the same length and are ascending by time.
func Group(at []policy.Time, entries []timeline.Entry) []LogEntry {
	var out []LogEntry
	for i, e := range entries {
		if n := len(out); n > 0 && out[n-1].At == at[i] && alike(out[n-1].Entry, e) {
			l := &out[n-1]
			l.Count++
			l.Before, l.After = l.Before+e.Why.Before, l.After+e.Why.After
			continue
		}
		out = append(out, LogEntry{At: at[i], Entry: e, First: i, Count: 1, Before: e.Why.Before, After: e.Why.After})
	}
	return out
}

// alike reports whether two entries differ only in their subjects. Steers are never alike, since
// each is about a different pool.
func alike(a, b timeline.Entry) bool {
	return a.Verb == b.Verb && a.Verb != timeline.Steer && a.Pool == b.Pool && a.Market == b.Market &&
		a.Why.Reason == b.Why.Reason
}

// verbInk returns the ink of a verb.
func verbInk(v timeline.Verb) Ink {
	switch v {
	case timeline.Steer, timeline.Rank:
		return Accent
	case timeline.Launch:
		return Launching
	case timeline.Drain:
		return Draining
	case timeline.Gate, timeline.Pause:
		return Warn
	case timeline.Evict:
		return Bad
	default:
		return Muted
	}
}

// Subject returns the subject of the entry, such as "12 nodes of general" for an entry that
// combines several.
func (l LogEntry) Subject() string {
	e := l.Entry
	switch {
	case l.Count > 1:
		s := strconv.Itoa(l.Count) + " " + things(e.Verb)
		if e.Verb == timeline.Launch && e.Market != "" {
			return s + " in " + e.Market
		}
		if e.Pool != "" {
			s += " of " + e.Pool
		}
		return s
	case e.Verb == timeline.Launch && e.Market != "":
		return e.Market
	case e.Subject != "":
		return e.Subject
	default:
		return e.Pool
	}
}

// things returns the plural noun for the subjects of a verb.
func things(v timeline.Verb) string {
	switch v {
	case timeline.Launch, timeline.Drain, timeline.Rank:
		return "nodes"
	case timeline.Evict:
		return "pods"
	case timeline.Gate, timeline.Pause:
		return "workloads"
	case timeline.Hold:
		return "holds"
	default:
		return "entries"
	}
}

// A Log shows decisions, ascending by time. Those later than Now are dimmed: they are known because
// the simulation is ahead of the time shown.
type Log struct {
	Entries  []LogEntry
	Now      policy.Time
	Selected int // index in Entries, or -1; always visible
	Empty    string
}

// noteMin is the height from which the last line explains the selected entry.
const noteMin = 6

// Draw fills c.
func (l Log) Draw(c Canvas) {
	rows, note := c.Cut(l.rows(c.h))
	l.table().Draw(rows)
	if note.h > 0 {
		note.Text(1, 0, Cut(l.note(), note.w-1), ink(Muted))
	}
}

// rows returns the number of lines for the table out of h lines.
func (l Log) rows(h int) int {
	if h >= noteMin && l.note() != "" {
		return h - 1
	}
	return h
}

// RowAt returns the index in Entries of the entry drawn at line y on a canvas of h lines. It
// returns false if no entry is drawn there.
func (l Log) RowAt(h, y int) (int, bool) {
	if h = l.rows(h); y >= h {
		return 0, false
	}
	return l.table().RowAt(h, y)
}

// note explains the selected entry: its verb, and dollars in brackets.
func (l Log) note() string {
	if l.Selected < 0 || l.Selected >= len(l.Entries) {
		return ""
	}
	e := &l.Entries[l.Selected]
	text := e.Entry.Verb.String() + ": " + Meaning(e.Entry.Verb)
	switch {
	case e.Before == 0 && e.After == 0:
	case e.Entry.Verb == timeline.Rank:
		text += " · ($): once empty"
	case e.Entry.Verb == timeline.Hold:
		text += " · ($): the change not made"
	}
	return text
}

// Meaning explains a verb.
func Meaning(v timeline.Verb) string {
	return [...]string{
		timeline.Steer:  "how much of a pool runs on Spot, and where",
		timeline.Launch: "buys nodes",
		timeline.Drain:  "empties a node and terminates it",
		timeline.Rank:   "whose pods go first on scale-down",
		timeline.Gate:   "keeps new pods out while a budget is spent",
		timeline.Pause:  "suspends a job while a budget is spent",
		timeline.Evict:  "moves a pod off its node",
		timeline.Hold:   "leaves something as it is",
	}[v]
}

func (l Log) table() Table {
	t := Table{Selected: l.Selected, Empty: l.Empty, Columns: []Column{
		{Title: "Time (UTC)"},
		{Title: "Does"},
		{Title: "What", Middle: true, Min: 20, Max: 44},
		{Title: "Reason", Max: 18, Rank: 2},
		{Title: "$/h", Right: true, Rank: 1},
		{Title: "Before → after", Rank: 4},
		{Title: "Why", Min: 24, Rank: 3},
		{Title: "Runner-up", Min: 16, Max: 36, Rank: 5},
	}}
	for i, e := range l.Entries {
		if l.Now != 0 && e.At > l.Now {
			t.Dimmed++
		}
		f := e.fields()
		if i > 0 && e.At == l.Entries[i-1].At {
			f[0].Ink = Muted
		}
		t.Rows = append(t.Rows, f)
	}
	return t
}

// why returns the detail and the reason of an entry. The more important one is first, which for a
// rank is the reason.
func (l LogEntry) why() string {
	e := l.Entry
	first, second := e.Detail, e.Why.Text
	if e.Verb == timeline.Rank {
		first, second = second, first
	}
	if first == "" || second == "" {
		return first + second
	}
	return first + " · " + second
}

func (l LogEntry) fields() []Field {
	e := l.Entry
	change, costs := Field{Text: figures.Unknown, Ink: Muted}, ""
	if l.Before != 0 || l.After != 0 {
		d := l.After - l.Before
		change = Field{Text: figures.DollarChange(d.Float()), Ink: Good}
		if d > 0 {
			change.Ink = Warn
		}
		if e.Verb == timeline.Hold || e.Verb == timeline.Rank { // the change was not made, or not yet
			change = Field{Text: "(" + change.Text + ")", Ink: Muted}
		}
		costs = Price(l.Before) + " → " + Price(l.After)
	}
	what := Field{Text: l.Subject()}
	if what.Text == "" { // the entry is about the whole cluster, so show its reason
		what = Field{Text: e.Why.Text, Ink: Muted}
	}
	why := l.why()
	if l.Count > 1 && why != "" {
		why = "e.g. " + why // the text of the first entry
	}
	return []Field{
		{Text: Day(l.At)},
		{Text: e.Verb.String(), Ink: verbInk(e.Verb), Bold: true},
		what,
		{Text: string(e.Why.Reason), Ink: Muted},
		change,
		{Text: costs, Ink: Muted},
		{Text: why, Ink: Muted},
		{Text: e.Why.RunnerUp, Ink: Muted},
	}
}
