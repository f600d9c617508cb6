package draw

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"

	"github.com/spotter-dev/spotter/test/golden"
)

// A Widget is what can be drawn.
type Widget interface {
	// Draw fills the canvas, which is blank.
	Draw(c Canvas)
}

// A specimen is a widget and the sizes it is looked at in.
type specimen struct {
	widget Widget
	sizes  [][2]int
}

// specimens returns every widget with data that shows what it can show.
func specimens() map[string]specimen {
	grid := fixtureGrid(120, 9)
	for _, n := range grid.Nodes {
		if n.Phase == 3 && n.CPU > 500 {
			grid.Selected = n.Name
		}
	}
	log := fixturePrices(3, 100)
	log.Log = true
	return map[string]specimen{
		"grid":       {grid, [][2]int{{118, 16}, {78, 20}, {40, 10}}},
		"grid-few":   {fixtureGrid(9, 4), [][2]int{{110, 16}, {62, 16}}},
		"grid-2000":  {fixtureGrid(2000, 40), [][2]int{{80, 22}, {140, 50}}},
		"prices":     {fixturePrices(4, 500), [][2]int{{118, 16}, {70, 12}, {36, 8}}},
		"prices-log": {log, [][2]int{{80, 10}}},
		"hazard":     {fixtureHazard(), [][2]int{{118, 7}, {60, 5}}},
		"savings":    {fixtureSavings(), [][2]int{{100, 14}, {50, 10}}},
		"workloads":  {fixtureWorkloads(), [][2]int{{100, 7}, {60, 7}, {36, 5}}},
		"markets":    {fixtureMarkets(11), [][2]int{{100, 16}, {60, 9}, {36, 6}}},
		"log":        {fixtureLog(), [][2]int{{180, 14}, {100, 10}, {60, 8}}},
		"panel":      {fixturePanel(), [][2]int{{60, 20}, {34, 14}}},
		"scrub":      {fixtureScrub(), [][2]int{{118, 3}, {60, 2}, {40, 1}}},
		"message":    {Message{Title: "Too small", Text: "This needs 60 columns and 15 lines."}, [][2]int{{30, 6}}},
		"screen":     {screenful{1200}, [][2]int{{80, 24}, {120, 40}, {200, 60}}},
	}
}

// TestGolden holds the text of every widget at every size it is looked at in.
func TestGolden(t *testing.T) {
	for name, s := range specimens() {
		for _, size := range s.sizes {
			golden.Hold(t, fmt.Sprintf("testdata/%s-%dx%d.txt", name, size[0], size[1]), lineEnds(render(s.widget, size[0], size[1], Plain)))
		}
	}
}

// lineEnds marks the end of each line, so that blanks there show in the files.
func lineEnds(s string) string { return strings.ReplaceAll(s, "\n", "|\n") + "|\n" }

// TestColours shows that themes change colours and no text, and that a terminal
// gets only what it understands.
func TestColours(t *testing.T) {
	understood := map[termenv.Profile]*regexp.Regexp{
		termenv.Ascii:     regexp.MustCompile(`^(\x1b\[(0(;[17])+)?m)*$`),
		termenv.ANSI:      regexp.MustCompile(`^(\x1b\[(0(;[17]|;[349][0-7]|;10[0-7])+)?m)*$`),
		termenv.ANSI256:   regexp.MustCompile(`^(\x1b\[(0(;[17]|;[34]8;5;\d+)+)?m)*$`),
		termenv.TrueColor: regexp.MustCompile(`^(\x1b\[(0(;[17]|;[34]8;2;\d+;\d+;\d+)+)?m)*$`),
	}
	sequence := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, s := range specimens() {
		w, h := s.sizes[0][0], s.sizes[0][1]
		want := render(s.widget, w, h, Plain)
		if strings.Contains(want, "\x1b") {
			t.Errorf("%s: plain text has an escape sequence", name)
		}
		for p, pattern := range understood {
			for _, dark := range []bool{true, false} {
				got := render(s.widget, w, h, NewTheme(p, dark))
				if ansi.Strip(got) != want {
					t.Errorf("%s: the text differs with profile %d, dark %t", name, p, dark)
				}
				if all := strings.Join(sequence.FindAllString(got, -1), ""); !pattern.MatchString(all) {
					t.Errorf("%s: profile %d writes %q", name, p, all)
				} else if name == "screen" && all == "" {
					t.Errorf("profile %d writes no style at all", p)
				}
			}
		}
	}
}

// TestLinesStandAlone shows that no style reaches over the end of a line: lines
// are written one by one when only some have changed.
func TestLinesStandAlone(t *testing.T) {
	for _, line := range strings.Split(render(screenful{300}, 120, 40, NewTheme(termenv.TrueColor, true)), "\n") {
		if at := strings.LastIndex(line, "\x1b["); at >= 0 && !strings.HasPrefix(line[at:], "\x1b[m") {
			t.Errorf("the last sequence of %q is no reset", line)
		}
	}
}

// BenchmarkFrame draws and writes a screen of 2,000 nodes and two charts, as
// often as it must be done while time runs.
func BenchmarkFrame(b *testing.B) {
	g, prices, savings := fixtureGrid(2000, 60), fixturePrices(6, 2000), fixtureSavings()
	theme := NewTheme(termenv.TrueColor, true)
	b.ReportAllocs()
	for b.Loop() {
		c := New(200, 60)
		left, right := c.Split(120)
		g.Draw(Box{Title: "Nodes", Focused: true}.Frame(left))
		upper, lower := right.Cut(30)
		prices.Draw(Box{Title: "Prices"}.Frame(upper))
		savings.Draw(Box{Title: "Savings"}.Frame(lower))
		if c.Render(theme) == "" {
			b.Fatal("nothing was written")
		}
	}
}

// render draws a widget of exactly w columns and h lines.
func render(wd Widget, w, h int, t *Theme) string {
	c := New(w, h)
	wd.Draw(c)
	return c.Render(t)
}
