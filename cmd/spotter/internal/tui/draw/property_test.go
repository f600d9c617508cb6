package draw

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
)

// words are texts as they come from files and clusters of others: names, and
// whatever else a text may hold.
var words = rapid.OneOf(
	rapid.StringMatching(`[a-z0-9./-]{0,40}`),
	rapid.String(),
	rapid.SampledFrom([]string{"", "日本語のノード", "a\x1b[31mred", "line\nbreak\ttab", "🇩🇪🇫🇷", "👩‍👩‍👧", "e\u0301\u0301",
		"\u1100\u1161", "\u200b\u202e", "\xff\xfe", "ｶﾞ"}),
)

var instants = rapid.OneOf(
	rapid.Map(rapid.IntRange(-200, 400), func(h int) policy.Time { return monday.Add(time.Duration(h) * time.Hour) }),
	rapid.Map(rapid.Int64Range(0, 1<<45), func(ms int64) policy.Time { return policy.Time(ms) }),
)

var amounts = rapid.Map(rapid.Int64Range(-1, 1<<50), func(m int64) policy.Money { return policy.Money(m) })

var values = rapid.OneOf(rapid.Float64Range(-2, 5), rapid.Float64(),
	rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e-9, 0.096}))

func slice[T any](g *rapid.Generator[T], most int) *rapid.Generator[[]T] {
	return rapid.SliceOfN(g, 0, most)
}

var nodes = rapid.Custom(func(t *rapid.T) timeline.Node {
	return timeline.Node{
		Name: words.Draw(t, "name"), Pool: rapid.Int32Range(-1, 4).Draw(t, "pool"), Market: rapid.Int32Range(-1, 9).Draw(t, "market"),
		Phase: policy.NodePhase(rapid.IntRange(0, 5).Draw(t, "phase")), Spot: rapid.Bool().Draw(t, "spot"), Since: instants.Draw(t, "since"),
		CPU: rapid.Int16().Draw(t, "cpu"), Memory: rapid.Int16().Draw(t, "memory"), GPU: rapid.Int16().Draw(t, "gpu"),
		Notice: rapid.OneOf(rapid.Just(policy.Time(0)), instants).Draw(t, "notice"), Recommended: rapid.Bool().Draw(t, "advised"),
	}
})

var grids = rapid.Custom(func(t *rapid.T) Grid {
	g := Grid{Pools: slice(words, 4).Draw(t, "pools"), Nodes: slice(nodes, 80).Draw(t, "nodes"), Now: instants.Draw(t, "now")}
	g.Markets = slice(rapid.Custom(func(t *rapid.T) GridMarket {
		return GridMarket{words.Draw(t, "type"), words.Draw(t, "zone"), rapid.Bool().Draw(t, "spot"), amounts.Draw(t, "price")}
	}), 9).Draw(t, "markets")
	if len(g.Nodes) > 0 && rapid.Bool().Draw(t, "select") {
		g.Selected = rapid.SampledFrom(g.Nodes).Draw(t, "selected").Name
	}
	return g
})

var charts = rapid.Custom(func(t *rapid.T) Chart {
	ch := Chart{
		From: instants.Draw(t, "from"), To: instants.Draw(t, "to"), Now: instants.Draw(t, "now"), Until: instants.Draw(t, "until"),
		Unit: Unit(rapid.IntRange(0, 4).Draw(t, "unit")), Log: rapid.Bool().Draw(t, "log"), Zero: rapid.Bool().Draw(t,
			"zero"), Empty: words.Draw(t, "empty"),
	}
	ch.Series = slice(rapid.Custom(func(t *rapid.T) Series {
		return Series{
			Name: words.Draw(t, "name"), Short: words.Draw(t, "short"), Key: rapid.SampledFrom([]rune{0, 'A', 'B', '語',
				'\x1b'}).Draw(t, "key"), Ink: SeriesInk(rapid.IntRange(-2, 9).Draw(t, "ink")),
			At: slice(instants, 9).Draw(t, "at"), Value: slice(values, 9).Draw(t, "value"),
			Straight: rapid.Bool().Draw(t, "straight"),
		}
	}), 5).Draw(t, "series")
	ch.Levels = slice(rapid.Custom(func(t *rapid.T) Level {
		return Level{words.Draw(t, "name"), words.Draw(t, "short"), values.Draw(t, "value"), Good, rapid.Bool().Draw(t, "end")}
	}), 3).Draw(t, "levels")
	ch.Marks = slice(rapid.Custom(func(t *rapid.T) Mark {
		return Mark{instants.Draw(t, "at"), rapid.Rune().Draw(t, "glyph"), Bad}
	}), 3).Draw(t, "marks")
	return ch
})

var meters = rapid.Custom(func(t *rapid.T) *Meter {
	return &Meter{values.Draw(t, "value"), values.Draw(t, "tick"), values.Draw(t, "whole"), Good}
})

var tables = rapid.Custom(func(t *rapid.T) Table {
	selected := rapid.IntRange(-1, 30).Draw(t, "selected")
	if rapid.Bool().Draw(t, "plain") {
		cols := slice(rapid.Custom(func(t *rapid.T) Column {
			least := rapid.IntRange(0, 20).Draw(t, "min")
			return Column{Title: words.Draw(t, "title"), Right: rapid.Bool().Draw(t, "right"), Middle: rapid.Bool().Draw(t, "middle"),
				Min: least, Max: least + rapid.IntRange(0, 20).Draw(t, "more"), Rank: rapid.IntRange(0, 5).Draw(t, "rank")}
		}), 9).Draw(t, "columns")
		row := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Field {
			return Field{Text: words.Draw(t, "text"), Bold: rapid.Bool().Draw(t, "bold"),
				Bar: rapid.OneOf(rapid.Just[*Meter](nil), meters).Draw(t, "bar")}
		}), len(cols), len(cols))
		return Table{Columns: cols, Rows: slice(row, 30).Draw(t, "rows"), Selected: selected, Empty: words.Draw(t, "empty")}
	}
	var at []policy.Time
	entries := slice(rapid.Custom(func(t *rapid.T) timeline.Entry {
		return timeline.Entry{
			Verb: timeline.Verb(rapid.IntRange(0, int(timeline.Hold)).Draw(t, "verb")), Subject: words.Draw(t,
				"subject"), Pool: words.Draw(t, "pool"), Market: words.Draw(t, "market"),
			Why: policy.Why{Reason: "cheaper", Text: words.Draw(t, "text"), Before: amounts.Draw(t, "before"),
				After: amounts.Draw(t, "after"), RunnerUp: words.Draw(t, "second")},
		}
	}), 30).Draw(t, "entries")
	for range entries {
		at = append(at, instants.Draw(t, "at"))
	}
	return Log{Entries: Group(at, entries), Now: wednesday, Selected: selected}.table()
})

var panels = rapid.Custom(func(t *rapid.T) Widget {
	sections := slice(rapid.Custom(func(t *rapid.T) Section {
		return Section{words.Draw(t, "title"), slice(rapid.Custom(func(t *rapid.T) Item {
			i := Item{Key: words.Draw(t, "key"), Value: words.Draw(t, "value")}
			if rapid.Bool().Draw(t, "bar") {
				i.Bar = meters.Draw(t, "meter")
			}
			return i
		}), 5).Draw(t, "items")}
	}), 4).Draw(t, "sections")
	return Panel{sections, rapid.IntRange(-2, 20).Draw(t, "scroll")}
})

var lines = rapid.Custom(func(t *rapid.T) Widget {
	parts := slice(rapid.Map(words, func(s string) Part { return Say(s, Muted) }), 4)
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return Bar{parts.Draw(t, "left"), parts.Draw(t, "right"), parts.Draw(t, "more")}
	case 1:
		return Message{words.Draw(t, "title"), words.Draw(t, "text")}
	case 2:
		return Scrub{WarmUp: instants.Draw(t, "warm-up"), From: instants.Draw(t, "from"), To: instants.Draw(t, "to"),
			Now: instants.Draw(t, "now"), Until: instants.Draw(t, "until"),
			Marks: []Mark{{instants.Draw(t, "mark"), 'x', Bad}}, Outages: [][2]policy.Time{{instants.Draw(t, "begin"), instants.Draw(t, "end")}}}
	default:
		return popped{words.Draw(t, "title"), rapid.IntRange(-1, 30).Draw(t, "x"), rapid.IntRange(-1, 90).Draw(t, "w"),
			rapid.IntRange(-1, 30).Draw(t, "h"), tables.Draw(t, "table")}
	}
})

// A popped is a widget over a field of wide runes, which it cuts in two.
type popped struct {
	title   string
	x, w, h int
	Widget
}

func (p popped) Draw(c Canvas) {
	for y := range c.Height() {
		c.Text(y%2, y, strings.Repeat("語", c.Width()), Style{Ink: Warn})
	}
	over := c.Sub(p.x, 1, p.w, p.h)
	over.Fill(0, Style{})
	p.Widget.Draw(Box{Title: p.title}.Frame(over))
}

// TestExactSize draws anything at any size: it has exactly the requested lines and columns, the
// same text in colour, and no control sequences.
func TestExactSize(t *testing.T) {
	theme := NewTheme(termenv.ANSI256, true)
	widgets := rapid.OneOf(
		rapid.Map(grids, func(g Grid) Widget { return g }), rapid.Map(charts, func(c Chart) Widget { return c }),
		rapid.Map(tables, func(t Table) Widget { return t }), panels, lines,
	)
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(0, 130).Draw(t, "w"), rapid.IntRange(0, 40).Draw(t, "h")
		wd := widgets.Draw(t, "widget")
		if rapid.Bool().Draw(t, "framed") {
			wd = framed{words.Draw(t, "title"), wd}
		}
		text := render(wd, w, h, Plain)
		if got := strings.Split(text, "\n"); len(got) != max(h, 1) {
			t.Fatalf("%d lines, want %d", len(got), h)
		}
		if strings.ContainsAny(text, "\x1b\r\t\x00\x7f") {
			t.Fatalf("%q has what a terminal acts on", text)
		}
		for y, line := range strings.Split(text, "\n") {
			if n := ansi.StringWidth(line); n != w && h > 0 {
				t.Fatalf("line %d is %d columns wide, want %d: %q", y, n, w, line)
			}
		}
		if got := ansi.Strip(render(wd, w, h, theme)); got != text {
			t.Fatalf("in colour the text is another:\n%s\n%s", got, text)
		}
	})
}

// A framed widget is drawn in a box.
type framed struct {
	title string
	Widget
}

func (f framed) Draw(c Canvas) {
	f.Widget.Draw(Box{Key: '1', Title: f.title, Right: f.title, Focused: true}.Frame(c))
}

// TestSelectedIsInSight selects anything: it can be clicked where it is drawn.
func TestSelectedIsInSight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(20, 130).Draw(t, "w"), rapid.IntRange(1, 40).Draw(t, "h")
		g := fixtureGrid(rapid.IntRange(1, 400).Draw(t, "nodes"), rapid.IntRange(1, 12).Draw(t, "markets"))
		want := rapid.IntRange(0, len(g.Nodes)-1).Draw(t, "node")
		g.Selected = g.Nodes[want].Name
		found := 0
		for y := range h {
			here := 0
			for x := range w {
				if i, ok := g.NodeAt(w, h, x, y); ok && i == want {
					here = 1
				}
			}
			found += here
		}
		if found != 1 {
			t.Fatalf("the selected node is on %d lines of %d", found, h)
		}
		rows := fixtureMarkets(rapid.IntRange(0, 13).Draw(t, "row"))
		found = 0
		for y := range h {
			if i, ok := rows.RowAt(h, y); ok && i == rows.Selected {
				found++
			}
		}
		if found != 1 {
			t.Fatalf("the selected row is on %d lines of %d", found, h)
		}
	})
}

// TestTexts holds what cutting and wrapping promise.
func TestTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := words.Draw(t, "s"), rapid.IntRange(1, 30).Draw(t, "w")
		for _, got := range []string{Cut(s, w), CutMiddle(s, w)} {
			if Width(got) > w {
				t.Fatalf("%q is wider than %d", got, w)
			}
			if Width(s) <= w && Clean(got) != Clean(s) {
				t.Fatalf("%q was cut to %q", s, got)
			}
		}
		w = max(w, 2) // a rune may take two columns
		lines := Wrap(s, w)
		for _, l := range lines {
			if Width(l) > w {
				t.Fatalf("the line %q is wider than %d", l, w)
			}
		}
		letters := func(s string) string { return strings.Join(strings.Fields(Clean(s)), "") }
		if got, want := letters(strings.Join(lines, "")), letters(strings.Join(strings.Fields(s), "")); got != want {
			t.Fatalf("wrapping made %q of %q", got, want)
		}
	})
}
