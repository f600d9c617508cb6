package draw

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// A Theme is the appearance of the inks on one kind of terminal. It is immutable.
type Theme struct {
	profile  termenv.Profile
	dark     bool
	renderer *lipgloss.Renderer

	// codes are the colours of the inks in the notation of lipgloss. fore and back are the
	// parameters of the escape sequences that select them, each preceded by a semicolon. All are
	// empty for the terminal's default colour.
	codes, fore, back [inks]string
}

// Plain writes no escape sequences.
var Plain = &Theme{profile: termenv.Ascii, renderer: rendererOf(termenv.Ascii)}

// NewTheme returns the theme for a terminal with a colour profile and a dark or light background.
// [termenv.Ascii] has only bold and reverse video, as NO_COLOR requires.
func NewTheme(p termenv.Profile, dark bool) *Theme {
	if dark {
		return newTheme(p, dark, &night)
	}
	return newTheme(p, dark, &light)
}

func newTheme(p termenv.Profile, dark bool, shades *[inks]shade) *Theme {
	// lipgloss drops bold and reverse video together with the colours, so a terminal without
	// colours has the profile of sixteen colours and no codes.
	t := &Theme{profile: p, dark: dark, renderer: rendererOf(min(p, termenv.ANSI))}
	for i := Own + 1; i < inks; i++ {
		if code := shades[i].code(p); code != "" {
			c := p.Color(code)
			t.codes[i], t.fore[i], t.back[i] = code, ";"+c.Sequence(false), ";"+c.Sequence(true)
		}
	}
	return t
}

func rendererOf(p termenv.Profile) *lipgloss.Renderer {
	r := lipgloss.NewRenderer(io.Discard)
	r.SetColorProfile(p)
	return r
}

// Themes are the names of the themes.
var Themes = []string{"dark", "light", "high-contrast"}

// As returns the theme with a name for the same terminal. The high-contrast theme is for the
// background of t.
func (t *Theme) As(name string) *Theme {
	switch {
	case t == Plain:
		return t
	case name == "dark", name == "light":
		return NewTheme(t.profile, name == "dark")
	case t.dark:
		return newTheme(t.profile, t.dark, &nightContrast)
	}
	return newTheme(t.profile, t.dark, &lightContrast)
}

// Style returns s for text that is drawn by lipgloss and not on a [Canvas].
func (t *Theme) Style(s Style) lipgloss.Style {
	l := t.renderer.NewStyle().Bold(s.Attr&Bold != 0).Reverse(s.Attr&Reverse != 0)
	if code := t.codes[s.Ink]; code != "" {
		l = l.Foreground(lipgloss.Color(code))
	}
	if code := t.codes[s.Ground]; code != "" {
		l = l.Background(lipgloss.Color(code))
	}
	return l
}

// A shade is one ink on one kind of background: its RGB value, and its number from 0 to 15 among
// sixteen colours, or -1 for the terminal's default.
type shade struct {
	rgb uint32
	of  int8
}

// code returns the colour in the notation of lipgloss, or empty for the terminal's default.
func (s shade) code(p termenv.Profile) string {
	switch {
	case p == termenv.Ascii, p == termenv.ANSI && s.of < 0:
		return ""
	case p == termenv.ANSI:
		return strconv.Itoa(int(s.of))
	}
	return fmt.Sprintf("#%06x", s.rgb)
}

// shown returns the style in which a cell is written. A blank needs no ink, and colours that the
// terminal cannot show are replaced by its default.
func (t *Theme) shown(l cell) Style {
	s := l.style
	if t == Plain {
		return Style{}
	}
	if s.Attr&Selected != 0 {
		s.Attr &^= Selected
		switch {
		case t.profile <= termenv.ANSI256:
			s.Ground = Chosen
			if s.Ink == Muted || s.Ink == Faint {
				s.Ink = Own
			}
		case l.r < 0x2581 || l.r > 0x2590:
			// one reverse line; reversed blocks would show the opposite value
			s = Style{Attr: s.Attr | Reverse}
		}
	}
	if (l.r == 0 || l.r == ' ') && s.Attr&Reverse == 0 {
		s.Ink, s.Attr = Own, 0
	}
	if t.fore[s.Ink] == "" {
		s.Ink = Own
	}
	if t.back[s.Ground] == "" {
		s.Ground = Own
	}
	return s
}

// change writes the escape sequence that changes the style from from to to.
func (t *Theme) change(b *strings.Builder, from, to Style) {
	switch {
	case from == to:
		return
	case to == Style{}:
		b.WriteString("\x1b[m")
		return
	}
	b.WriteString("\x1b[0")
	if to.Attr&Bold != 0 {
		b.WriteString(";1")
	}
	if to.Attr&Reverse != 0 {
		b.WriteString(";7")
	}
	b.WriteString(t.fore[to.Ink])
	b.WriteString(t.back[to.Ground])
	b.WriteByte('m')
}

// night and light are the inks on a dark and on a light background. Spot is teal and on-demand
// violet, which people with red-green colour blindness can distinguish; red and amber are reserved
// for what needs attention.
var night = [inks]shade{
	Muted: {0x949494, 7}, Faint: {0x4e4e4e, 8}, Title: {0xeeeeee, 15}, Accent: {0x58a6ff, 12},
	Good: {0x3fb950, 2}, Warn: {0xe3b341, 3}, Bad: {0xff6b62, 9},
	Spot: {0x2dd4a8, 2}, OnDemand: {0xb9a0ff, 5},
	Launching: {0x56d4dd, 6}, Draining: {0xe3b341, 11}, Leaving: {0x8a8a8a, 8}, Notice: {0xff6b62, 9},
	Alarm: {0xb3261e, 1}, AlarmInk: {0xffffff, 15},
	Now: {0xeeeeee, 15}, Stripe: {0x262626, -1}, Chosen: {0x1d4a7a, 4},
	Spot0: {0x8ff0d2, 10}, Spot1: {0x2dd4a8, 2}, Spot2: {0x1fa483, 2}, Spot3: {0x187a63, 2},
	OnDemand0: {0xdccfff, 13}, OnDemand1: {0xb9a0ff, 5}, OnDemand2: {0x8f74dc, 5}, OnDemand3: {0x6c55ad, 5},
	Series0: {0x58a6ff, 12}, Series1: {0xf0883e, 3}, Series2: {0x3fb950, 10}, Series3: {0xf778ba, 13},
	Series4: {0xe3c55a, 11}, Series5: {0x39c5cf, 14}, Series6: {0xbc8cff, 5}, Series7: {0xa8a8a8, 7},
}

var light = [inks]shade{
	Muted: {0x626262, 8}, Faint: {0xb2b2b2, 7}, Title: {0x1c1c1c, 0}, Accent: {0x0969da, 4},
	Good: {0x1a7f37, 2}, Warn: {0x9a6700, 3}, Bad: {0xcf222e, 1},
	Spot: {0x04785c, 2}, OnDemand: {0x6639ba, 5},
	Launching: {0x0e7490, 6}, Draining: {0x9a6700, 3}, Leaving: {0x6c6c6c, 8}, Notice: {0xcf222e, 1},
	Alarm: {0xcf222e, 1}, AlarmInk: {0xffffff, 15},
	Now: {0x1c1c1c, 0}, Stripe: {0xe4e4e4, -1}, Chosen: {0xbfdcff, 12},
	Spot0: {0x005c45, 2}, Spot1: {0x04785c, 2}, Spot2: {0x2f9c80, 2}, Spot3: {0x6dbfa9, 10},
	OnDemand0: {0x4c1d95, 5}, OnDemand1: {0x6639ba, 5}, OnDemand2: {0x8f6dd3, 5}, OnDemand3: {0xb6a0e2, 13},
	Series0: {0x0969da, 4}, Series1: {0xbc4c00, 1}, Series2: {0x1a7f37, 2}, Series3: {0xbf3989, 5},
	Series4: {0x9a6700, 3}, Series5: {0x0e7490, 6}, Series6: {0x8250df, 13}, Series7: {0x585858, 8},
}

// nightContrast and lightContrast are the inks of high contrast: those of night and light, each
// lighter or darker until it has the contrast with black or white that WCAG 2 requires at level
// AAA. Older nodes are not paler.
var nightContrast = [inks]shade{
	Muted: {0xc9c9c9, -1}, Faint: {0xa6a6a6, -1}, Title: {0xeeeeee, 15}, Accent: {0x58a6ff, 12},
	Good: {0x3fb950, 10}, Warn: {0xe3b341, 11}, Bad: {0xff6b62, 9},
	Spot: {0x2dd4a8, 10}, OnDemand: {0xb9a0ff, 13},
	Launching: {0x56d4dd, 14}, Draining: {0xe3b341, 11}, Leaving: {0x9a9a9a, 8}, Notice: {0xff6b62, 9},
	Alarm: {0x8b0000, 1}, AlarmInk: {0xffffff, 15},
	Now: {0xeeeeee, 15}, Stripe: {0x000000, -1}, Chosen: {0x003380, 4},
	Spot0: {0x8ff0d2, 10}, Spot1: {0x2dd4a8, 10}, Spot2: {0x2dd4a8, 10}, Spot3: {0x2dd4a8, 10},
	OnDemand0: {0xdccfff, 13}, OnDemand1: {0xb9a0ff, 13}, OnDemand2: {0xb9a0ff, 13}, OnDemand3: {0xb9a0ff, 13},
	Series0: {0x58a6ff, 12}, Series1: {0xf0883e, 11}, Series2: {0x3fb950, 10}, Series3: {0xf778ba, 13},
	Series4: {0xe3c55a, 11}, Series5: {0x39c5cf, 14}, Series6: {0xbc8cff, 13}, Series7: {0xa8a8a8, 15},
}

var lightContrast = [inks]shade{
	Muted: {0x313131, -1}, Faint: {0x595959, -1}, Title: {0x1c1c1c, 0}, Accent: {0x084da0, 4},
	Good: {0x145d29, 2}, Warn: {0x724c00, 3}, Bad: {0x981a22, 1},
	Spot: {0x045844, 2}, OnDemand: {0x6639ba, 5},
	Launching: {0x0c556a, 6}, Draining: {0x724c00, 3}, Leaving: {0x505050, 8}, Notice: {0x981a22, 1},
	Alarm: {0x8b0000, 1}, AlarmInk: {0xffffff, 15},
	Now: {0x1c1c1c, 0}, Stripe: {0xffffff, -1}, Chosen: {0xffe680, 11},
	Spot0: {0x005c45, 2}, Spot1: {0x045844, 2}, Spot2: {0x045844, 2}, Spot3: {0x045844, 2},
	OnDemand0: {0x4c1d95, 5}, OnDemand1: {0x6639ba, 5}, OnDemand2: {0x6639ba, 5}, OnDemand3: {0x6639ba, 5},
	Series0: {0x084da0, 4}, Series1: {0x8a3900, 1}, Series2: {0x145d29, 2}, Series3: {0x8c2b65, 5},
	Series4: {0x724c00, 3}, Series5: {0x0c556a, 6}, Series6: {0x603ba3, 13}, Series7: {0x585858, 8},
}
