package chart

import (
	"fmt"
	"image/color"
	"strings"
)

// A colour has its transparency apart, not multiplied in.
type colour = color.NRGBA

// A Theme is the colours of a picture.
type Theme uint8

// The themes. Light and Dark use hues that people with the common kinds of
// colour blindness tell apart. Page is for SVG inside an HTML page: its colours
// are custom properties, which the page sets to [Theme.Properties] of Light or
// Dark and may change while it is shown; its title is left to the page. As PNG
// it is Light.
const (
	Light Theme = iota
	Dark
	Page
)

// A palette is what a theme paints with.
type palette struct {
	paper, ink, faint, grid colour

	// series are the hues of series, in order: after those of Okabe and Ito
	// (Color Universal Design, 2008), each with a contrast to paper of 3:1 or
	// more, as what must be seen in a picture needs.
	series []colour

	// low and high are the ends of the scale of a grid of values.
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

// A role is a colour with the name of its custom property.
type role struct {
	name   string
	colour colour
}

// roles are all colours that pictures use.
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

// Property is the custom property with the colour of a series at a place, from 1.
func (t Theme) Property(place int) string {
	return fmt.Sprintf("--chart-series-%d", (place-1)%len(t.palette().series))
}

// Properties returns the colours of t as declarations of the custom properties
// that pictures of the theme Page use.
func (t Theme) Properties() string {
	var b strings.Builder
	for _, r := range t.palette().roles() {
		fmt.Fprintf(&b, "--chart-%s:#%02x%02x%02x;", r.name, r.colour.R, r.colour.G, r.colour.B)
	}
	return b.String()
}

// PageText is the style of text that pages give to the pictures in them. Other text has its own.
const PageText = "font-size:11px;fill:var(--chart-faint)"

// hue returns the colour of the i-th series.
func (p *palette) hue(i int) colour { return p.series[i%len(p.series)] }

// place returns the place of the colour of series i: i unless one is requested, counted from 1.
func place(i, asked int) int {
	if asked > 0 {
		return asked - 1
	}
	return i
}

// levels is how many colours a scale of values has.
const levels = 5

// level returns a colour of the scale, from 0 to levels − 1.
func (p *palette) level(i int) colour { return p.between(float64(i+1) / levels) }

// veil returns c, mostly transparent.
func veil(c colour, alpha uint8) colour {
	c.A = alpha
	return c
}

// between returns the colour a share of the way from low to high.
func (p *palette) between(share float64) colour {
	share = max(0, min(1, share))
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + float64(share*(float64(b)-float64(a))) + 0.5) }
	return colour{R: mix(p.low.R, p.high.R), G: mix(p.low.G, p.high.G), B: mix(p.low.B, p.high.B), A: 0xff}
}
