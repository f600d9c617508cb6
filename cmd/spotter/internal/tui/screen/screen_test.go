package screen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/test/golden"
)

// A scene is what a viewer does before the next look at the screen.
type scene struct {
	name string
	do   func(v *viewer)
}

func pressing(names ...string) func(*viewer) {
	return func(v *viewer) { v.t.Helper(); v.press(names...) }
}

// visit is the session of a viewer: each scene continues from the one before.
var visit = []scene{
	{"start", func(v *viewer) { v.wait(2 * time.Second) }},
	{"pause on Wednesday at two", pressing("space", "t", "wed 14:00", "enter")},
	{"the next reclaim", pressing("g", "r")},
	{"inspect it", pressing("1", "enter")},
	{"the other policy", pressing("esc", "tab")},
	{"filter its markets", pressing("2", "/", "r6i 1c", "enter")},
	{"its workloads", pressing("4")},
	{"its decisions", pressing("5", "down")},
	{"why one was taken", pressing("enter")},
	{"nodes by age", pressing("esc", "s")},
	{"savings", pressing("s", "s", "s", "3", "z")},
	{"a command", pressing(":", "th")},
	{"both", pressing("esc", "z", "b", "1")},
	{"help", pressing("?")},
}

// sizes are those at which scenes are shown: the largest shows fewer, for it
// repeats what the others say.
var sizes = []struct {
	w, h  int
	names string
}{
	{80, 24, ""},
	{120, 40, ""},
	{200, 60, "start, inspect it, both"},
}

// TestScreens compares what a visit shows at three sizes with what was read and
// found right.
func TestScreens(t *testing.T) {
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%dx%d", size.w, size.h), func(t *testing.T) {
			v := sit(t, size.w, size.h)
			var b strings.Builder
			for _, s := range visit {
				s.do(v)
				if size.names == "" || strings.Contains(size.names, s.name) {
					fmt.Fprintf(&b, "== %s\n%s\n", s.name, v.View())
				}
			}
			golden.Hold(t, "testdata/screens/"+fmt.Sprintf("%dx%d.txt", size.w, size.h), b.String())
			if v.press("?", "q"); !v.left {
				t.Error("q does not end it")
			}
		})
	}
}

// TestResize goes through sizes while the same moment is shown: what is shown does
// not depend on the sizes before.
func TestResize(t *testing.T) {
	v := sit(t, 80, 24)
	v.press("space", "t", "wed 14:00", "enter")
	before := v.View()
	for _, size := range [][2]int{{200, 60}, {61, 15}, {20, 5}, {0, 0}, {250, 80}, {120, 40}, {80, 24}} {
		v.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		fills(t, v, size[0], size[1])
	}
	if v.View() != before {
		t.Errorf("the screen is not what it was:\n%s\nwas\n%s", v.View(), before)
	}
	v.send(tea.WindowSizeMsg{Width: widthMin - 1, Height: 24})
	if !strings.Contains(v.View(), "too small") {
		t.Errorf("a screen that is too small says:\n%s", v.View())
	}
}

// TestComeBack goes far away in time and comes back to the same moment.
func TestComeBack(t *testing.T) {
	v := sit(t, 120, 40)
	v.press("space", "t", "tue 09:00", "enter")
	first := v.View()
	v.press("$", "0", "L", "H", "H", "b", "b", "tab", "g", "r", "tab", "t", "tue 09:00", "enter", "esc", "esc", "2", "esc", "4", "esc", "1")
	if v.View() != first {
		t.Errorf("the same moment looks different when it is come back to:\n%s\nwas\n%s", v.View(), first)
	}
}

// fills checks that a screen has exactly as many lines and columns as it should.
func fills(t tester, v *viewer, w, h int) {
	t.Helper()
	if w == 0 || h == 0 {
		if v.View() != "" {
			t.Fatalf("a screen of %d by %d shows %q", w, h, v.View())
		}
		return
	}
	lines := strings.Split(v.View(), "\n")
	if len(lines) != h {
		t.Fatalf("a screen of %d by %d has %d lines", w, h, len(lines))
	}
	for i, line := range lines {
		if draw.Width(line) != w {
			t.Fatalf("line %d of a screen of %d by %d takes %d columns: %q", i+1, w, h, draw.Width(line), line)
		}
	}
}

// TestViewIsPure draws every screen of the visit twice: drawing changes nothing.
func TestViewIsPure(t *testing.T) {
	v := sit(t, 120, 40)
	for _, s := range visit {
		s.do(v)
		if first := v.View(); v.View() != first {
			t.Errorf("%s: drawn twice it differs", s.name)
		}
	}
}
