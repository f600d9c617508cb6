package chart

import (
	"fmt"
	"image/color"
	"strings"
)

// A colour has an alpha channel that is not premultiplied.
type colour = color.NRGBA

// A Theme is a set of colours of a picture.
type Theme uint8

// The themes. Light and Dark use hues that can be distinguished with the common kinds of colour
// blindness. Page is for SVG inside an HTML page: its colours are custom properties, which the page
// sets to [Theme.Properties] of Light or Dark and may change at any time, and its title is not
// drawn. A PNG with theme Page has the colours of Light.
const (
	Light Theme = iota
	Dark
	Page
)

// A palette contains the colours of a theme.
type palette struct {
	paper, ink, faint, grid colour

	// series are the colours of series, in order. They follow Okabe and Ito (Color Universal
	// Design, 2008), with a contrast to paper of at least 3:1, as required for graphical objects.
	series []colour

	// low and high are the ends of the colour scale of a grid.
	low, high colour
}

func rgb(hex uint32) colour {
	return colour{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

var palettes = [...]palette{
	Light: {
		paper: rgb(0xffffff), ink: rgb(0x1f2328), faint: rgb(0x59636e), grid: rgb(0xe2e5e9),
		series: []colour{
			rgb(0x0072b2), rgb(0xd55e00), rgb(0x008a64), rgb(0xc15d98), rgb(0xa87400), rgb(0x6f4e9c), rgb(0x4d4d4d),
		},
		low: rgb(0xf1f5f9), high: rgb(0x004a74),
	},
	Dark: {
		paper: rgb(0x0d1117), ink: rgb(0xe6edf3), faint: rgb(0x9198a1), grid: rgb(0x272d36),
		series: []colour{
			rgb(0x56b4e9), rgb(0xff8c42), rgb(0x2fc79a), rgb(0xe08fbf), rgb(0xf0e442), rgb(0xa48be0), rgb(0xb4bac2),
		},
		low: rgb(0x161f2a), high: rgb(0x7cc8f5),
	},
}

func (t Theme) palette() *palette {
	if t == Page {
		return &palettes[Light]
	}
	return &palettes[min(int(t), len(palettes)-1)]
}

// A role is a colour and the name of its custom property.
type role struct {
	name   string
	colour colour
}

// roles returns all colours that pictures use.
func (p *palette) roles() []role {
	all := []role{{"paper", p.paper}, {"ink", p.ink}, {"faint", p.faint}, {"grid", p.grid}}
	for i, c := range p.series {
		all = append(all, role{fmt.Sprintf("series-%d", i), c})
	}
	for i := range levels {
		all = append(all, role{fmt.Sprintf("level-%d", i), p.level(i)})
	}
	return all
}

// Property returns the custom property of the colour with index place, from 1.
func (t Theme) Property(place int) string {
	return fmt.Sprintf("--chart-series-%d", (place-1)%len(t.palette().series))
}

// Properties returns the colours of t as declarations of the custom properties that the theme Page
// uses.
func (t Theme) Properties() string {
	var b strings.Builder
	for _, r := range t.palette().roles() {
		fmt.Fprintf(&b, "--chart-%s:#%02x%02x%02x;", r.name, r.colour.R, r.colour.G, r.colour.B)
	}
	return b.String()
}

// PageText is the style that pages must set for text in pictures. Text with another style has a
// style attribute.
const PageText = "font-size:11px;fill:var(--chart-faint)"

// hue returns the colour of the i-th series.
func (p *palette) hue(i int) colour { return p.series[i%len(p.series)] }

// place returns the index of the colour of series i, from 0: i, or asked−1 if asked is set.
func place(i, asked int) int {
	if asked > 0 {
		return asked - 1
	}
	return i
}

// levels is the number of colours of a colour scale.
const levels = 5

// level returns colour i of the scale, with i from 0 to levels−1.
func (p *palette) level(i int) colour { return p.between(float64(i+1) / levels) }

// veil returns c with the given alpha.
func veil(c colour, alpha uint8) colour {
	c.A = alpha
	return c
}

// between interpolates between low and high; share is clamped to [0, 1].
func (p *palette) between(share float64) colour {
	share = max(0, min(1, share))
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + float64(share*(float64(b)-float64(a))) + 0.5) }
	return colour{R: mix(p.low.R, p.high.R), G: mix(p.low.G, p.high.G), B: mix(p.low.B, p.high.B), A: 0xff}
}
