package draw

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// cells returns what the grid of n draws for it alone, in cells of w columns.
func cells(n timeline.Node, w int) string {
	c := New(w, 1)
	Grid{Now: wednesday}.drawNode(c, n, false)
	return c.Render(Plain)
}

// TestNodeCells holds what a cell says of a node, without any colour.
func TestNodeCells(t *testing.T) {
	up := timeline.Node{Phase: policy.NodeInitialized, CPU: 480, Memory: 300, GPU: -1}
	with := func(change func(*timeline.Node)) timeline.Node { n := up; change(&n); return n }
	for _, c := range []struct {
		name            string
		node            timeline.Node
		one, two, three string
	}{
		{name: "half full", node: up, one: "▄", two: "▄ ", three: "▄▄ "},
		{name: "the fullest resource counts", node: with(func(n *timeline.Node) { n.GPU = 1000 }), one: "█", two: "█ ", three: "██ "},
		{name: "nearly empty", node: with(func(n *timeline.Node) { n.CPU, n.Memory = 1, 0 }), one: "▁", two: "▁ ", three: "▁▁ "},
		{name: "empty", node: with(func(n *timeline.Node) { n.CPU, n.Memory = 0, 0 }), one: "·", two: "· ", three: "·· "},
		{name: "launching", node: with(func(n *timeline.Node) { n.Phase, n.CPU, n.Memory = policy.NodeLaunching, 0, 0 }),
			one: "+", two: "·+", three: "·+ "},
		{name: "joining", node: with(func(n *timeline.Node) { n.Phase = policy.NodeRegistered }), one: "~", two: "▄~", three: "▄~ "},
		{name: "draining", node: with(func(n *timeline.Node) { n.Phase = policy.NodeDraining }), one: "d", two: "▄d", three: "▄d "},
		{name: "deleting", node: with(func(n *timeline.Node) { n.Phase = policy.NodeDeleting }), one: "x", two: "▄x", three: "▄x "},
		{name: "advised", node: with(func(n *timeline.Node) { n.Recommended = true }), one: "r", two: "▄r", three: "▄r "},
		{name: "notice", node: with(func(n *timeline.Node) { n.Notice = wednesday.Add(42 * time.Second) }), one: "!", two: "!▄", three: "!42"},
		{name: "a notice counts more than a drain", node: with(func(n *timeline.Node) {
			n.Phase, n.Notice = policy.NodeDraining, wednesday.Add(3*time.Minute)
		}), one: "!", two: "!▄", three: "!3m"},
		{name: "a notice that has run out", node: with(func(n *timeline.Node) { n.Notice = wednesday.Add(-time.Second) }),
			one: "!", two: "!▄", three: "!0s"},
	} {
		for w, want := range map[int]string{1: c.one, 2: c.two, 3: c.three} {
			if got := cells(c.node, w); got != want {
				t.Errorf("%s: %d columns are %q, want %q", c.name, w, got, want)
			}
		}
	}
}

// TestGridOrder shows that nodes stand by pool, spot before on-demand, then by
// market, those of no pool last, and that the lines say how many there are.
func TestGridOrder(t *testing.T) {
	g := Grid{
		Pools:   []string{"first", "second"},
		Markets: []GridMarket{{Type: "od", Zone: "a"}, {Type: "sp1", Zone: "a", Spot: true}, {Type: "sp2", Zone: "b", Spot: true}},
	}
	for i, at := range [][2]int32{{1, 2}, {0, 0}, {-1, 1}, {0, 2}, {0, 1}, {0, 2}} {
		g.Nodes = append(g.Nodes, timeline.Node{
			Name: fmt.Sprint(i), Pool: at[0], Market: at[1], Spot: at[1] > 0, Phase: policy.NodeInitialized, GPU: -1,
		})
	}
	if got, want := g.look(50, 20).order, []int32{4, 3, 5, 1, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("the nodes stand as %v, want %v", got, want)
	}
	text := strings.Split(render(g, 50, 20, Plain), "\n")
	for y, want := range []string{"6 nodes · 5 spot · 1 on-demand", "first 4 nodes · 3 spot · 1 on-demand", "S sp1",
		"S sp2", "O od", "second 1 node ", "S sp2", "no pool 1 node "} {
		if !strings.HasPrefix(text[y], want) {
			t.Errorf("line %d is %q, want %q", y, text[y], want)
		}
	}
}

// TestMoveVisitsAll walks over a grid: to the right it comes by every node, and
// down and up again it comes back.
func TestMoveVisitsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := fixtureGrid(rapid.IntRange(1, 200).Draw(t, "nodes"), rapid.IntRange(1, 9).Draw(t, "markets"))
		w, h := rapid.IntRange(20, 120).Draw(t, "w"), rapid.IntRange(3, 30).Draw(t, "h")
		seen := map[int]bool{}
		at := g.Move(w, h, 0, 0)
		for !seen[at] {
			seen[at] = true
			g.Selected = g.Nodes[at].Name
			at = g.Move(w, h, 1, 0)
		}
		if len(seen) != len(g.Nodes) {
			t.Fatalf("came by %d of %d nodes", len(seen), len(g.Nodes))
		}
		g.Selected = g.Nodes[g.Move(w, h, -len(g.Nodes), 0)].Name
		first := g.Selected
		g.Selected = g.Nodes[g.Move(w, h, 0, 5)].Name
		if g.Selected = g.Nodes[g.Move(w, h, 0, -5)].Name; g.Selected != first {
			t.Fatalf("down and up again is %s, want %s", g.Selected, first)
		}
	})
}

// TestGroup joins what is alike and nothing else; sums and counts stay.
func TestGroup(t *testing.T) {
	drain := func(node, pool string, reason policy.Reason) timeline.Entry {
		return timeline.Entry{Verb: timeline.Drain, Subject: node, Pool: pool, Why: policy.Why{Reason: reason, Before: 30, After: 10}}
	}
	steer := timeline.Entry{Verb: timeline.Steer, Subject: "p", Pool: "p", Why: policy.Why{Reason: "cheaper"}}
	entries := []timeline.Entry{drain("a", "p", "cheaper"), drain("b", "p", "cheaper"), drain("c", "q", "cheaper"),
		drain("d", "q", "notice"), drain("e", "q", "notice"), steer, steer}
	at := []policy.Time{monday, monday, monday, monday, sunday, sunday, sunday}
	var got []string
	for _, l := range Group(at, entries) {
		got = append(got, fmt.Sprintf("%d+%d %s %d>%d", l.First, l.Count, l.Subject(), l.Before, l.After))
	}
	want := []string{"0+2 2 nodes of p 60>20", "2+1 c 30>10", "3+1 d 30>10", "4+1 e 30>10", "5+1 p 0>0", "6+1 p 0>0"}
	if !slices.Equal(got, want) {
		t.Errorf("grouped as %q, want %q", got, want)
	}
}

// plotOf returns the plot of a chart of one series, without axes and names.
func plotOf(ch Chart, w, h int) []string {
	c := New(w, h)
	low, high, _ := ch.bounds()
	ch.drawSeries(c, scaleOf(low, high, ch.Log, h*4))
	return strings.Split(c.Render(Plain), "\n")
}

// TestChartLines draws a step, a gap and a straight line and compares the dots.
func TestChartLines(t *testing.T) {
	at := []policy.Time{0, 25, 50, 75}
	for _, c := range []struct {
		name string
		s    Series
		want []string
	}{
		{"steps", Series{At: at, Value: []float64{0, 1, 1, 0}}, []string{"  ⡏⠉⠉⠉⡇ ", "⣀⣀⡇   ⣇⣀"}},
		{"a gap", Series{At: at, Value: []float64{0, math.NaN(), 1, 1}}, []string{"    ⠉⠉⠉⠉", "⣀⣀⡀     "}},
		{"straight", Series{At: at, Value: []float64{0, 1, 1, 0}, Straight: true}, []string{" ⢠⠋⠉⠱⡀  ", "⣠⠃   ⠱⡀ "}},
		{"a letter at the end", Series{Key: 'K', At: at[:2], Value: []float64{1, 0}}, []string{"⠉⠉⡇     ", "  ⣇⣀⣀⣀⣀K"}},
	} {
		ch := Chart{Series: []Series{c.s}, From: 0, To: 100}
		if got := plotOf(ch, 8, 2); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestChartKeepsToWhatIsKnown shows that nothing after Until is drawn: neither
// the line nor marks.
func TestChartKeepsToWhatIsKnown(t *testing.T) {
	ch := fixturePrices(1, 300)
	ch.Marks = []Mark{{At: sunday.Add(-time.Hour), Glyph: '▼', Ink: Bad}}
	later := render(ch, 100, 12, Plain)
	for i := range ch.Series[0].At {
		if ch.Series[0].At[i] > ch.Until {
			ch.Series[0].Value[i] = 99
		}
	}
	if got := render(ch, 100, 12, Plain); got != later {
		t.Errorf("values after Until change the chart:\n%s\n%s", later, got)
	}
	if strings.Contains(later, "▼") {
		t.Error("a mark after Until is drawn")
	}
	ch.Until = 0
	if got := render(ch, 100, 12, Plain); !strings.Contains(got, "▼") {
		t.Error("a mark is missing where all is known")
	}
}

// TestAxes holds labels of axes: they fit, and say what the values are.
func TestAxes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-50_000, 50_000).Draw(t, "low")
		if low > 0 {
			low += 1e-6
		}
		high := low + rapid.Float64Range(0.0005, 90_000).Draw(t, "span")
		s := scaleOf(low, high, rapid.Bool().Draw(t, "log"), 40)
		values, step := s.ticks(5)
		if len(values) == 0 {
			t.Fatal("no ticks")
		}
		for i, v := range values {
			if y := s.y(v); y < 0 || y >= 40 {
				t.Fatalf("the tick %v is outside", v)
			}
			if i > 0 && v <= values[i-1] {
				t.Fatalf("ticks fall: %v", values)
			}
			for u := UnitPrice; u <= UnitCount; u++ {
				if text := u.label(v, step); u != UnitPercent && Width(text) > 7 {
					t.Fatalf("the label %q is too wide", text)
				}
			}
		}
	})
	for _, c := range []struct {
		unit    Unit
		v, step float64
		want    string
	}{
		{UnitPrice, 0.025, 0.005, "$0.025"}, {UnitPrice, 0.1, 0.1, "$0.10"}, {UnitDollars, -1500, 500,
			"−$1,500"}, {UnitDollars, 12_500, 2_500, "$12.5k"},
		{UnitPercent, 0.05, 0.05, "5%"}, {UnitPercent, 0.025, 0.025, "2.5%"}, {UnitCount, 40, 20, "40"},
	} {
		if got := c.unit.label(c.v, c.step); got != c.want {
			t.Errorf("%v is %q, want %q", c.v, got, c.want)
		}
	}
}

// TestTimeAt shows that a click on a column goes to an instant that is drawn
// there.
func TestTimeAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.IntRange(2, 200).Draw(t, "w")
		x := rapid.IntRange(0, w-1).Draw(t, "x")
		s := fixtureScrub()
		if got := column(s.TimeAt(w, x), s.begin(), s.To, w); got != x {
			t.Fatalf("column %d of %d goes to column %d", x, w, got)
		}
		if s.TimeAt(w, -3) != s.WarmUp || s.TimeAt(w, w+3) != s.To {
			t.Fatal("beside the bar are not its ends")
		}
	})
	ch := fixtureSavings()
	l := ch.look(100, 14)
	if at, ok := ch.TimeAt(100, 14, l.left+5); !ok || column(at, ch.From, ch.To, l.w) != 5 {
		t.Errorf("column 5 of the plot is at %v", at)
	}
	if _, ok := ch.TimeAt(100, 14, 2); ok {
		t.Error("there is a time on the axis of values")
	}
}

// TestTableLeavesOut drops columns by rank, never those of rank 0, and cuts
// names in the middle.
func TestTableLeavesOut(t *testing.T) {
	wide, narrow := render(fixtureMarkets(0), 110, 16, Plain), render(fixtureMarkets(0), 30, 16, Plain)
	for _, title := range []string{"Market", "Zone", "$/h", "of on-demand", "Nodes"} {
		if !strings.Contains(wide, title) {
			t.Errorf("%q is missing in 110 columns", title)
		}
		if want := title == "Market" || title == "Zone" || title == "$/h"; strings.Contains(narrow, title) != want {
			t.Errorf("%q in 30 columns: %t, want %t", title, !want, want)
		}
	}
	got := render(Table{Columns: fixtureWorkloads().Columns[:1], Rows: [][]Field{{{Text: "shop/search-indexer-blue"}}}}, 20, 3, Plain)
	if !strings.Contains(got, "shop/") || !strings.Contains(got, "…") || !strings.Contains(got, "blue") {
		t.Errorf("both ends of the name should stay:\n%s", got)
	}
}

// TestPanelScrolls shows all lines of a panel, page by page.
func TestPanelScrolls(t *testing.T) {
	p := fixturePanel()
	n := p.Lines(34)
	whole := strings.Split(render(p, 34, n, Plain), "\n")
	if last := whole[n-1]; !strings.Contains(last, "notice: taken in 2m") {
		t.Errorf("the last of %d lines is %q", n, last)
	}
	p.Scroll = n - 5
	if got := strings.Split(render(p, 34, 5, Plain), "\n"); !slices.Equal(got, whole[n-5:]) {
		t.Errorf("scrolled to the end:\n%s", strings.Join(got, "\n"))
	}
	p.Scroll = 2
	if got := render(p, 34, 5, Plain); !strings.Contains(got, fmt.Sprintf("… %d more lines below", n-2-4)) {
		t.Errorf("what is below is not told:\n%s", got)
	}
}

// TestFormats holds how amounts and times read everywhere.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{figures.Dollars(12.3), "$12.30"}, {figures.Dollars(-0.005), "−$0.01"}, {figures.Dollars(999.999),
			"$1,000"}, {figures.Dollars(-1234567), "−$1,234,567"},
		{figures.DollarChange(2), "+$2.00"}, {figures.DollarChange(0), "$0.00"}, {figures.DollarChange(-0.004),
			"$0.00"}, {figures.DollarChange(-0.006), "−$0.01"}, {Price(policy.NoPrice), figures.Unknown}, {Price(0), "$0.00"}, {Price(policy.Dollars(0.0312)), "$0.0312"}, {PerHour(policy.Dollars(1.5)), "$1.50/h"},
		{figures.RoughShare(0.834), "83%"}, {figures.RoughShare(0.004), "0.4%"}, {figures.RoughShare(math.NaN()),
			figures.Unknown}, {figures.RoughShare(1), "100%"},
		{Day(wednesday), "Wed 6 14:05"}, {Date(wednesday), "Wed 6 Mar 14:05"}, {Date(0),
			figures.Unknown}, {DaySecond(wednesday.Add(7 * time.Second)), "Wed 6 14:05:07"}, {Day(0), figures.Unknown},
		{figures.Duration(42 * time.Second), "42s"}, {figures.Duration(3*time.Hour + 12*time.Minute),
			"3h12m"}, {figures.Duration(52 * time.Hour), "2d4h"}, {figures.Duration(-time.Minute), "−1m"}, {figures.Integer(-1234567), "−1,234,567"}, {figures.Integer(100), "100"},
		{CutMiddle("ip-10-0-3-17.ec2.internal", 12), "ip-10-…ernal"}, {Cut("abcdef", 4), "abc…"}, {Cut("日本語", 4), "日…"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestLogNote explains the selected entry in the last line, which is not a row. Dollars in
// brackets are those of a change that was not made, or not yet.
func TestLogNote(t *testing.T) {
	l := Log{Selected: 0, Entries: []LogEntry{{At: monday, Count: 1, Before: 30, After: 10,
		Entry: timeline.Entry{Verb: timeline.Rank, Subject: "a"}}}}
	for verb, want := range map[timeline.Verb]string{timeline.Rank: "($): once empty",
		timeline.Hold: "($): the change not made", timeline.Drain: "empties a node"} {
		l.Entries[0].Entry.Verb = verb
		last := strings.Split(render(l, 70, noteMin, Plain), "\n")[noteMin-1]
		if !strings.Contains(last, verb.String()+": "+Meaning(verb)) || !strings.Contains(last, want) {
			t.Errorf("the last line of %v is %q", verb, last)
		}
	}
	if _, ok := l.RowAt(noteMin, noteMin-1); ok {
		t.Error("the explanation is a row")
	}
	if i, ok := l.RowAt(noteMin, 1); !ok || i != 0 {
		t.Errorf("the first row is %d, %v", i, ok)
	}
}
