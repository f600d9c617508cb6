package draw

import (
	"image/color"
	"math"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// A Depth is how many colours a terminal shows.
type Depth uint8

// The depths. Plain writes no escape sequence at all; Mono has bold, underline
// and reverse video only, as NO_COLOR asks.
const (
	Plain Depth = iota
	Mono
	Colours16
	Colours256
	TrueColour
)

// A Theme is how the inks look on one kind of terminal. It is made once and
// never changes.
type Theme struct {
	depth Depth
	dark  bool

	// fore and back are the parameters of the escape sequence that selects an
	// ink, each with a semicolon in front; empty for the terminal's own.
	fore, back [inks]string
}

var plain = NewTheme(Plain, true)

// NewTheme returns the theme of a terminal with that many colours, whose own
// background is dark or light.
func NewTheme(depth Depth, dark bool) *Theme {
	if dark {
		return newTheme(depth, dark, &night)
	}
	return newTheme(depth, dark, &light)
}

func newTheme(depth Depth, dark bool, shades *[inks]shade) *Theme {
	t := &Theme{depth: depth, dark: dark}
	if depth < Colours16 {
		return t
	}
	for i := Own + 1; i < inks; i++ {
		t.fore[i], t.back[i] = parameters(shades[i], depth)
	}
	return t
}

// Themes are the names of the themes.
var Themes = []string{"dark", "light", "high-contrast"}

// As returns the theme of a name for the same terminal. That of high contrast is for the
// background of t.
func (t *Theme) As(name string) *Theme {
	switch name {
	case "dark", "light":
		return NewTheme(t.depth, name == "dark")
	}
	shades := contrasted(t.dark)
	return newTheme(t.depth, t.dark, &shades)
}

// contrastMin is the least contrast of text with its background that WCAG 2 asks for at
// level AAA.
const contrastMin = 7

// contrasted returns the shades of high contrast: those of the usual theme, each lighter
// or darker until it has contrastMin with a black or white background.
func contrasted(dark bool) [inks]shade {
	all, ground, end := light, uint32(0xffffff), uint32(0)
	if dark {
		all, ground, end = night, 0, 0xffffff
	}
	for i := Own + 1; i < inks; i++ {
		s := &all[i]
		switch i {
		case Alarm, AlarmInk, Stripe, Chosen: // backgrounds, and what stands on one of them
			continue
		case Muted, Faint:
			s.rgb, s.of = blend(s.rgb, end, 10), -1 // among sixteen colours grey is near both
		case Spot2, Spot3: // shades of age would be pale
			*s = all[Spot1]
		case OnDemand2, OnDemand3:
			*s = all[OnDemand1]
		}
		for k := 1; contrast(s.rgb, ground) < contrastMin; k++ {
			s.rgb = blend(s.rgb, end, k)
		}
		if dark && s.of > 0 && s.of < 8 {
			s.of += 8
		}
	}
	all[Alarm], all[AlarmInk] = shade{0x8b0000, 1}, shade{0xffffff, 15}
	all[Stripe], all[Chosen] = shade{ground, -1}, shade{blend(ground, 0x0040a0, 16), 4}
	if !dark {
		all[Chosen] = shade{0xffe680, 11}
	}
	return all
}

// blend returns a colour k twentieths of the way to another.
func blend(from, to uint32, k int) uint32 {
	var out uint32
	for shift := 0; shift <= 16; shift += 8 {
		a, b := int(from>>shift&0xff), int(to>>shift&0xff)
		out |= uint32(a+(b-a)*min(k, 20)/20) << shift
	}
	return out
}

// contrast is the ratio of the luminances of two colours as WCAG 2 defines it.
func contrast(a, b uint32) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(rgb uint32) float64 {
	linear := func(shift int) float64 {
		c := float64(rgb>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

// A shade is one ink on one kind of background: red, green and blue, and the
// number 0 to 15 among sixteen colours, -1 for the terminal's own.
type shade struct {
	rgb uint32
	of  int8
}

func parameters(s shade, depth Depth) (fore, back string) {
	r, g, b := uint8(s.rgb>>16), uint8(s.rgb>>8), uint8(s.rgb)
	switch depth {
	case TrueColour:
		rgb := strconv.Itoa(int(r)) + ";" + strconv.Itoa(int(g)) + ";" + strconv.Itoa(int(b))
		return ";38;2;" + rgb, ";48;2;" + rgb
	case Colours256:
		n := strconv.Itoa(int(ansi.Convert256(color.RGBA{r, g, b, 255})))
		return ";38;5;" + n, ";48;5;" + n
	}
	switch {
	case s.of < 0:
		return "", ""
	case s.of < 8:
		return ";" + strconv.Itoa(30+int(s.of)), ";" + strconv.Itoa(40+int(s.of))
	default:
		return ";" + strconv.Itoa(82+int(s.of)), ";" + strconv.Itoa(92+int(s.of))
	}
}

// shown returns the style a cell is written in: a blank needs no ink, and what
// the terminal cannot show is the terminal's own.
func (t *Theme) shown(l cell) Style {
	s := l.style
	if t.depth == Plain {
		return Style{}
	}
	if s.Attr&Selected != 0 {
		s.Attr &^= Selected
		switch {
		case t.depth >= Colours256:
			s.Ground = Chosen
			if s.Ink == Muted || s.Ink == Faint {
				s.Ink = Own
			}
		case l.r < 0x2581 || l.r > 0x2590:
			// One reverse line, not a patchwork; blocks would say the contrary.
			s = Style{Attr: s.Attr | Reverse}
		}
	}
	if (l.r == 0 || l.r == ' ') && s.Attr&(Reverse|Underline) == 0 {
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

// change writes the sequence that turns style from into style to.
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
	if to.Attr&Underline != 0 {
		b.WriteString(";4")
	}
	if to.Attr&Reverse != 0 {
		b.WriteString(";7")
	}
	b.WriteString(t.fore[to.Ink])
	b.WriteString(t.back[to.Ground])
	b.WriteByte('m')
}

// night and light are the inks on a dark and on a light background. Spot is
// teal and on-demand violet, which people who see no red or green still tell
// apart; red and amber are kept for what needs a look.
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
