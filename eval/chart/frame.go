package chart

import (
	"errors"
	"fmt"
	"math"
)

// ErrValue is returned for numbers that cannot be drawn.
var ErrValue = errors.New("cannot be drawn")

// A Frame is what all pictures have: size, words and axes.
type Frame struct {
	// Title says what the picture shows, Note where the numbers come from, as
	// in "synthetic, preset aws-2024, seed 7". Detail is a description for
	// those who do not see the picture; empty means title and note.
	Title, Note, Detail string

	X, Y  Axis
	Theme Theme

	// ID begins the identifiers that tie an SVG to its title and description
	// where several stand in one page. Empty leaves them out.
	ID string

	// Width and Height are in pixels of a screen; 0 means 720 and 420.
	Width, Height int
}

// An Axis says how one direction is measured.
type Axis struct {
	// Label names the quantity with its unit, as in "$ per hour".
	Label string

	// Log spaces factors equally; no value may then be 0 or below. Time takes
	// values as seconds since 1970 and writes UTC dates. Percent takes shares
	// and writes percent.
	Log, Time, Percent bool

	// From and To bound the axis where From < To; else the values do.
	From, To float64
}

const (
	defaultWidth  = 720
	defaultHeight = 420

	// sizeMax keeps a slip of the keyboard from filling the memory.
	sizeMax = 10_000

	margin = 14
)

func (f *Frame) size() (w, h float64, err error) {
	width, height := f.Width, f.Height
	if width == 0 {
		width = defaultWidth
	}
	if height == 0 {
		height = defaultHeight
	}
	if width < 200 || height < 120 || width > sizeMax || height > sizeMax {
		return 0, 0, fmt.Errorf("%w: %d × %d pixels are not between 200 × 120 and %d × %d", ErrValue, width, height, sizeMax, sizeMax)
	}
	return float64(width), float64(height), nil
}

// A key is an entry of the legend: a line, or a filled box, or a glyph.
type key struct {
	name   string
	colour colour
	dashes []float64
	filled bool
	glyph  glyph

	// mark is a glyph on the line.
	mark glyph
}

// newPlot returns an empty plot in the colours and words of f.
func (f *Frame) newPlot() *plot {
	c := f.Theme.palette()
	label := words{size: 11, colour: c.faint}
	direction := func(spec *Axis, alignX, alignY float64) axis {
		label.alignX, label.alignY = alignX, alignY
		return axis{
			min: math.Inf(1), max: math.Inf(-1), log: spec.Log, ticks: spec.ticker(), words: label, line: pen{colour: c.faint, width: 0.75},
		}
	}
	return &plot{x: direction(&f.X, byCentre, byTop), y: direction(&f.Y, byRight, byMiddle)}
}

// bound applies the limits of the axes, after the data were added, and makes
// room where all values are one.
func (f *Frame) bound(p *plot) error {
	for _, side := range [...]struct {
		axis *axis
		spec *Axis
		name string
	}{{&p.x, &f.X, "x"}, {&p.y, &f.Y, "y"}} {
		a := side.axis
		least := a.min
		if side.spec.From < side.spec.To {
			a.min, a.max = side.spec.From, side.spec.To
		}
		if math.IsInf(a.min, 0) || math.IsInf(a.max, 0) || math.IsNaN(a.min) || math.IsNaN(a.max) {
			return fmt.Errorf("%w: the %s axis has no values", ErrValue, side.name)
		}
		if least = min(least, a.min); a.log && least <= 0 {
			return fmt.Errorf("%w: %v on the logarithmic %s axis", ErrValue, least, side.name)
		}
		if a.min == a.max {
			free := max(math.Abs(a.min)/2, 0.5)
			if a.log {
				a.max = a.min * 2
				a.min /= 2
			} else {
				a.min, a.max = a.min-free, a.max+free
			}
		}
	}
	return nil
}

// draw paints title, legend, plot and note onto c, and returns where the data lie.
func (f *Frame) draw(c canvas, keys []key, p *plot) area {
	colours := f.Theme.palette()
	c.box(colours.paper, c.Min.X, c.Min.Y, c.Max.X, c.Max.Y)
	c = c.crop(margin, -margin, margin, -margin)
	if f.Title != "" && f.Theme != Page {
		title := words{size: 15, bold: true, colour: colours.ink, alignY: byTop}
		for _, line := range wrap(title, f.Title, c.Max.X-c.Min.X) {
			c.text(title, point{c.Min.X, c.Max.Y}, line)
			c.Max.Y -= 20
		}
	}
	c.Max.Y -= f.legend(c, keys)
	if f.Note != "" {
		note := words{size: 10, colour: colours.faint, alignY: byBottom}
		lines := wrap(note, f.Note, c.Max.X-c.Min.X)
		for i := len(lines) - 1; i >= 0; i-- {
			c.text(note, c.Min, lines[i])
			c.Min.Y += 13
		}
		c.Min.Y += 4
	}
	return p.draw(f.labels(c).crop(0, -8, 0, -4))
}

// labels paints what the axes measure, that of y level above it, where it is
// read without turning the head, and returns what is left of c.
func (f *Frame) labels(c canvas) canvas {
	label := words{size: 11, colour: f.Theme.palette().ink, alignY: byTop}
	if f.Y.Label != "" {
		c.text(label, point{c.Min.X, c.Max.Y}, f.Y.Label)
		c.Max.Y -= 17
	}
	if f.X.Label != "" {
		label.alignX, label.alignY = byCentre, byBottom
		c.text(label, point{c.centre().X, c.Min.Y}, f.X.Label)
		c.Min.Y += 18
	}
	return c
}

// legend paints the entries in rows and returns the height that they take. One
// entry alone is what the title speaks of and needs none.
func (f *Frame) legend(c canvas, keys []key) float64 {
	if len(keys) < 2 {
		return 4
	}
	const swatch, gap, line = 22, 16, 18
	label := words{size: 11, colour: f.Theme.palette().ink, alignY: byTop}
	at := point{c.Min.X, c.Max.Y - 2}
	height := float64(line)
	for _, k := range keys {
		width := swatch + 6 + label.width(k.name)
		if at.X > c.Min.X && at.X+width > c.Max.X {
			at = point{c.Min.X, at.Y - line}
			height += line
		}
		entry := func() {
			k.paint(c, point{at.X, at.Y - 7}, swatch)
			c.text(label, point{at.X + swatch + 6, at.Y}, k.name)
		}
		if k.filled { // of parts that every series has
			entry()
		} else {
			f.group(c, entry)
		}
		at.X += width + gap
	}
	return height + 4
}

// paint draws the sign of k from its left end on.
func (k *key) paint(c canvas, left point, width float64) {
	switch {
	case k.glyph != nil:
		c.fill(k.glyph.at(point{left.X + width/2, left.Y}, glyphRadius), k.colour)
	case k.filled:
		c.box(k.colour, left.X, left.Y-5, left.X+width, left.Y+5)
	default:
		c.line(pen{k.colour, 2.5, k.dashes}, left.X, left.Y, left.X+width, left.Y)
		if k.mark != nil {
			c.fill(k.mark.at(point{left.X + width/2, left.Y}, markRadius), k.colour)
		}
	}
}

// wrap breaks s between words where a line would be wider than room.
func wrap(w words, s string, free float64) []string {
	var lines []string
	begin, space := 0, -1
	for i, r := range s {
		if r == ' ' {
			if space > begin && w.width(s[begin:i]) > free {
				lines = append(lines, s[begin:space])
				begin = space + 1
			}
			space = i
		}
	}
	if space > begin && w.width(s[begin:]) > free {
		lines = append(lines, s[begin:space])
		begin = space + 1
	}
	return append(lines, s[begin:])
}
