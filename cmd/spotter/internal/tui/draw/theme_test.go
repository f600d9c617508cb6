package draw

import (
	"strings"
	"testing"

	"github.com/lucasb-eyer/go-colorful"
	"github.com/muesli/termenv"
)

// contrastMin is the minimum contrast of text with its background that WCAG 2 requires at level
// AAA.
const contrastMin = 7

// contrast is the ratio of the luminances of two colours as WCAG 2 defines it.
func contrast(a, b uint32) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(rgb uint32) float64 {
	channel := func(shift int) float64 { return float64(rgb>>shift&0xff) / 255 }
	r, g, b := colorful.Color{R: channel(16), G: channel(8), B: channel(0)}.LinearRgb()
	return 0.2126*r + 0.7152*g + 0.0722*b
}

// TestHighContrast: every ink of the high-contrast theme has the contrast with its background
// that WCAG 2 requires at level AAA, and some of the usual inks do not.
func TestHighContrast(t *testing.T) {
	for dark, ground := range map[bool]uint32{true: 0, false: 0xffffff} {
		shades, usual, low := lightContrast, light, 0
		if dark {
			shades, usual = nightContrast, night
		}
		for i := Own + 1; i < inks; i++ {
			if i == Alarm || i == AlarmInk || i == Stripe || i == Chosen {
				continue
			}
			if got := contrast(shades[i].rgb, ground); got < contrastMin {
				t.Errorf("dark %v: ink %d has a contrast of %.1f", dark, i, got)
			}
			if contrast(usual[i].rgb, ground) < contrastMin {
				low++
			}
		}
		if got := contrast(shades[AlarmInk].rgb, shades[Alarm].rgb); got < contrastMin {
			t.Errorf("dark %v: an alarm has a contrast of %.1f", dark, got)
		}
		if got := contrast(ground, shades[Chosen].rgb); dark && contrast(0xffffff, shades[Chosen].rgb) < contrastMin ||
			!dark && contrast(0, shades[Chosen].rgb) < contrastMin {
			t.Errorf("dark %v: what is chosen has a contrast of %.1f with its surroundings alone", dark, got)
		}
		if low == 0 {
			t.Errorf("dark %v: the usual theme needs no other", dark)
		}
	}
	if got := contrast(0, 0xffffff); got < 20.9 || got > 21.1 {
		t.Errorf("black and white have a contrast of %v, want 21", got)
	}
}

// TestAs keeps how many colours the terminal has, whatever theme is chosen.
func TestAs(t *testing.T) {
	for _, p := range []termenv.Profile{termenv.Ascii, termenv.ANSI, termenv.ANSI256, termenv.TrueColor} {
		for _, name := range Themes {
			theme := NewTheme(p, true).As(name)
			if theme.profile != p || theme.dark != (name != "light") {
				t.Errorf("%s of profile %d: profile %d, dark %v", name, p, theme.profile, theme.dark)
			}
			if p == termenv.Ascii && theme.fore[Good] != "" {
				t.Errorf("%s has colours where there are none", name)
			}
		}
	}
	if Plain.As("light") != Plain {
		t.Error("plain text has a theme")
	}
}

// TestBlankColumns: a column takes no space while no row has anything in it.
func TestBlankColumns(t *testing.T) {
	table := Table{Selected: -1, Columns: []Column{{Title: "A"}, {Title: ""}, {Title: "Empty"}, {Title: "None"}, {Title: "B"}},
		Rows: [][]Field{{{Text: "a"}, {Text: " "}, {}, {Text: "–"}, {Text: "b"}}, {{Text: "a"}}}}
	if got, want := render(table, 20, 3, Plain), " A  B\n a  b\n a"; trimmed(got) != want {
		t.Errorf("it is drawn as\n%s\nwant\n%s", got, want)
	}
	table.Rows[1] = []Field{{Text: "a"}, {}, {Text: "x"}}
	if got, want := render(table, 20, 3, Plain), " A  Empty  B\n a         b\n a  x"; trimmed(got) != want {
		t.Errorf("it is drawn as\n%s\nwant\n%s", got, want)
	}
}

// trimmed is a text without the blanks at the ends of its lines.
func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
