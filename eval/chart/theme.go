package chart

import "image/color"

// A colour has its transparency beside it, not multiplied in.
type colour = color.NRGBA

// A Theme is the colours of a picture.
type Theme uint8

// The themes. Both use hues that people with the common kinds of colour
// blindness tell apart.
const (
	Light Theme = iota
	Dark
)

// A palette is what a theme paints with.
type palette struct {
	paper, ink, faint, grid colour

	// series are the hues of series, in order: those of Okabe and Ito (Color
	// Universal Design, 2008), yellow left out where paper is white, and each
	// bright enough on dark paper.
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
			rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7), rgb(0xe69f00), rgb(0x56b4e9), rgb(0x4d4d4d),
		},
		low: rgb(0xf1f5f9), high: rgb(0x004a74),
	},
	Dark: {
		paper: rgb(0x0d1117), ink: rgb(0xe6edf3), faint: rgb(0x9198a1), grid: rgb(0x272d36),
		series: []colour{
			rgb(0x56b4e9), rgb(0xe69f00), rgb(0x2fc79a), rgb(0xe08fbf), rgb(0xf0e442), rgb(0xff7f45), rgb(0xb4bac2),
		},
		low: rgb(0x161f2a), high: rgb(0x7cc8f5),
	},
}

func (t Theme) palette() *palette { return &palettes[min(int(t), len(palettes)-1)] }

// hue returns the colour of the i-th series.
func (p *palette) hue(i int) colour { return p.series[i%len(p.series)] }

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
